"""Consents, codes and tokens, and the endpoints of "Onboarding and tokens".

What is issued, how long it lives, why it stops working.
"""

import base64
import binascii
import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.bodies import (
    Refresh,
    Signup,
    TokenByCode,
    TokenByCredentials,
    token_request,
)
from tillbridge.sandbox.clock import Clock
from tillbridge.sandbox.endpoints import Endpoints, origin
from tillbridge.sandbox.pages import read_form
from tillbridge.sandbox.settings import AppSeed, SandboxSettings, StoreSeed
from tillbridge.sandbox.state import World, new_id
from tillbridge.sandbox.validation import Json, ServiceError, wrong

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


SCOPES = "store.read menu.write orders.write webhooks.write"
REPORTING_SCOPES = ("reports.read", "catalogue.write")

Kind = Literal["access", "refresh", "app"]


@dataclass(slots=True)
class Consent:
    """A merchant's permission for an app. Revoking it stops every token that came of it."""

    app_id: str
    merchant_email: str
    revoked: bool = False


@dataclass(slots=True)
class Token:
    """What was issued: a token, or a code. `invalid` ones are as good as unknown, or used up."""

    kind: Kind | Literal["code"]
    app_id: str
    expires_at_ms: int
    consent: Consent | None = None
    audience: str | None = None
    scopes: tuple[str, ...] = ()
    redirect_uri: str = ""
    invalid: bool = False


_JWT_HEAD = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"  # {"alg":"HS256","typ":"JWT"}


class Tokens:
    """Issues and checks. A token has the form of a JWT, which nobody decodes (rule 6)."""

    def __init__(self, clock: Clock, settings: SandboxSettings) -> None:
        self._clock = clock
        self._settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget all of them."""
        self._consents: dict[tuple[str, str], Consent] = {}
        self._issued: dict[str, Token] = {}

    def records(self) -> tuple[list[Consent], Mapping[str, Token]]:
        """The consents that count now, and all that was issued, by its text."""
        return list(self._consents.values()), self._issued

    def restore(self, consents: list[Consent], issued: dict[str, Token]) -> None:
        """Go on with what another sandbox had."""
        self._consents = {(each.app_id, each.merchant_email): each for each in consents}
        self._issued = issued

    # Issuing

    def authorize(self, app_id: str, merchant_email: str, redirect_uri: str) -> str:
        """An authorization code: good once, for `auth_code_s`."""
        consent = self._consent(app_id, merchant_email)
        lifetime_s = self._settings.auth_code_s
        return self._issue("code", app_id, lifetime_s, consent, redirect_uri=redirect_uri)

    def exchange(self, app_id: str, code: str, redirect_uri: str) -> dict[str, Any]:
        """The token response for an authorization code.

        Raises auth.invalid_grant or auth.consent_revoked.
        """
        found = self._issued.get(code)
        problem = ""
        if found is None or found.kind != "code" or found.app_id != app_id:
            problem = "Unknown authorization code"
        elif found.invalid:
            problem = "This authorization code was used before"
        elif self._is_over(found):
            problem = "This authorization code has expired; ask for consent again"
        elif found.redirect_uri != redirect_uri:
            problem = "This authorization code belongs to another redirect_uri"
        if found is None or problem:
            raise ServiceError("auth.invalid_grant", problem)
        consent = _in_force(found.consent)
        found.invalid = True
        return self._both(consent)

    def issue_for(self, app_id: str, merchant_email: str) -> dict[str, Any]:
        """Tokens without the browser (control API)."""
        return self._both(self._consent(app_id, merchant_email))

    def refresh(self, refresh_token: str) -> dict[str, Any]:
        """A new access token, and no new refresh token: only another consent renews that."""
        token = self._issued.get(refresh_token)
        if token is None or token.kind != "refresh" or token.invalid:
            raise ServiceError("auth.invalid_grant", "Unknown refresh token")
        consent = _in_force(token.consent)
        if self._is_over(token):
            raise ServiceError(
                "auth.invalid_grant",
                "The refresh token has expired; the merchant must consent again",
            )
        return self._access(consent)

    def issue_app_token(
        self, app_id: str, audience: str, scopes: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """client_credentials: an app-level token, of no use on /pos/*."""
        lifetime_s = self._settings.app_token_s
        text = self._issue("app", app_id, lifetime_s, audience=audience, scopes=scopes)
        return {"access_token": text, "expires_in": lifetime_s}

    def _consent(self, app_id: str, merchant_email: str) -> Consent:
        key = (app_id, merchant_email)
        if key not in self._consents or self._consents[key].revoked:
            self._consents[key] = Consent(app_id, merchant_email)
        return self._consents[key]

    def _both(self, consent: Consent) -> dict[str, Any]:
        """A fresh access and refresh token."""
        refresh_s = self._settings.refresh_token_s
        refresh = self._issue("refresh", consent.app_id, refresh_s, consent)
        return {**self._access(consent), "refresh_token": refresh}

    def _access(self, consent: Consent) -> dict[str, Any]:
        lifetime_s = self._settings.access_token_s
        return {
            "token_type": "Bearer",
            "access_token": self._issue("access", consent.app_id, lifetime_s, consent),
            "expires_in": lifetime_s,
            "scope": SCOPES,
        }

    def _issue(
        self,
        kind: Kind | Literal["code"],
        app_id: str,
        lifetime_s: int,
        consent: Consent | None = None,
        **more: Any,  # noqa: ANN401 (fields of the record)
    ) -> str:
        text = f"{_JWT_HEAD}.{secrets.token_urlsafe(48)}.{secrets.token_urlsafe(32)}"
        expires_at_ms = self._clock.now_ms() + lifetime_s * 1000
        self._issued[text] = Token(kind, app_id, expires_at_ms, consent, **more)
        return text

    # Checking

    def consent_of(self, access_token: str) -> Consent:
        """Whose token this is.

        Raises auth.invalid_token, auth.consent_revoked or auth.token_expired.
        """
        token = self._known(access_token)
        if token.kind != "access":
            raise ServiceError(
                "auth.invalid_token", f"A token of kind {token.kind} is not accepted here"
            )
        consent = _in_force(token.consent)
        self._refuse_expired(token)
        return consent

    def app_of(self, access_token: str, audience: str) -> str:
        """The app whose app-level token for `audience` this is.

        Raises auth.invalid_token or auth.token_expired, and for another audience the code that
        `wrong_audience_code` names.
        """
        token = self._known(access_token)
        if token.kind != "app":
            raise ServiceError(
                "auth.invalid_token", "Only an app-level token (client_credentials) opens this"
            )
        self._refuse_expired(token)
        if token.audience != audience:
            raise ServiceError(
                self._settings.wrong_audience_code,
                f"This token is not for the audience {audience}; mint one that is",
            )
        return token.app_id

    def _known(self, access_token: str) -> Token:
        token = self._issued.get(access_token)
        if token is None or token.invalid or token.kind == "code":
            raise ServiceError(
                "auth.invalid_token",
                "The access token is malformed, revoked, or not of this service",
            )
        return token

    def _is_over(self, token: Token) -> bool:
        return token.expires_at_ms <= self._clock.now_ms()

    def _refuse_expired(self, token: Token) -> None:
        if self._is_over(token):
            raise ServiceError(
                "auth.token_expired", "The access token has expired; get a fresh one"
            )

    # Control

    def expire(self, kind: Kind) -> int:
        """End the lifetime of all live tokens of a kind; returns how many."""
        live = [
            token
            for token in self._issued.values()
            if token.kind == kind and not self._is_over(token)
        ]
        for token in live:
            token.expires_at_ms = self._clock.now_ms()
        return len(live)

    def invalidate(self, kind: Kind) -> int:
        """Make all tokens of a kind unknown to the service; returns how many."""
        live = [each for each in self._issued.values() if each.kind == kind and not each.invalid]
        for token in live:
            token.invalid = True
        return len(live)

    def revoke(self, merchant_email: str | None = None) -> list[Consent]:
        """The merchant (or every one) takes the permission back."""
        hit = [
            consent
            for consent in self._consents.values()
            if not consent.revoked and merchant_email in (None, consent.merchant_email)
        ]
        for consent in hit:
            consent.revoked = True
        return hit

    def summary(self) -> list[dict[str, Any]]:
        """Tokens without their text, for the state dump."""
        return [
            {
                "kind": token.kind,
                "app_id": token.app_id,
                "merchant": token.consent.merchant_email if token.consent else None,
                "expires_in_s": (token.expires_at_ms - self._clock.now_ms()) // 1000,
                "audience": token.audience,
                "scopes": list(token.scopes),
                "invalid": token.invalid,
                "consent_revoked": bool(token.consent and token.consent.revoked),
            }
            for token in self._issued.values()
            if token.kind != "code"
        ]


def _in_force(consent: Consent | None) -> Consent:
    if consent is None or consent.revoked:
        raise ServiceError(
            "auth.consent_revoked",
            "The merchant uninstalled or revoked the app; ask for consent again",
        )
    return consent


# The endpoints


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """A consent that a browser asks for; `email` is empty until the merchant says who they are."""

    app: AppSeed
    redirect_uri: str
    state: str
    email: str
    signup: Signup | None
    flow_type: str

    def answer(self, **params: str) -> str:
        """Where the browser goes next."""
        if self.state:
            params["state"] = self.state
        return str(URL(self.redirect_uri).update_query(params))


OAUTH_ENDPOINTS = Endpoints(api=True)
_serves = OAUTH_ENDPOINTS.serves


def _basic(_sandbox: "Sandbox", request: web.Request) -> tuple[str, str] | None:
    """The credentials of the header, if there is one."""
    header = request.headers.get("Authorization")
    if header is None:
        return None
    scheme, _, encoded = header.partition(" ")
    refusal = ServiceError("auth.invalid_client", "The Authorization header is not HTTP Basic")
    if scheme.lower() != "basic":
        raise refusal
    try:
        client_id, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise refusal from None
    return client_id, secret


@_serves("POST", "/pos/signup_url", _basic)
def signup_url(
    sandbox: "Sandbox", basic: tuple[str, str] | None, request: web.Request, body: Signup
) -> Json:
    """Where a merchant goes to sign up."""
    world = sandbox.world
    app = _signing_app(world, basic, body.client_id)
    _check_redirect(app, body.redirect_uri)
    _refuse_conflict(world, app, body)
    key = new_id("sgn")
    world.signups[key] = body
    query = {
        "client_id": app.client_id,
        "redirect_uri": body.redirect_uri,
        "email": body.email,
        "state": body.state,
        "signup": key,
    }
    if body.flow_type:
        query["flow_type"] = body.flow_type
    target = URL(f"{origin(sandbox, request)}{sandbox.settings.api_prefix}/oauth2/authorize")
    return {"status": "success", "signup_url": str(target.with_query(query))}


@_serves("GET", "/oauth2/authorize")
def authorize(sandbox: "Sandbox", request: web.Request) -> web.Response:
    """The page on which the merchant consents; with auto-consent, straight to the redirect."""
    query = request.query
    asked = _consent_request(sandbox.world, query)
    if sandbox.world.auto_consent:
        email = asked.email or next(iter(sandbox.world.merchants.values())).email
        raise web.HTTPFound(_allow(sandbox, asked, email))
    return _page(sandbox, asked, query)


def _page(sandbox: "Sandbox", asked: ConsentRequest, fields: Mapping[str, str]) -> web.Response:
    """Return the consent page."""
    world = sandbox.world
    email = asked.email or next(iter(world.merchants.values())).email
    merchant = world.merchant(email)
    unknown = "" if merchant or asked.signup else email
    stores = world.stores_of(merchant) if merchant else []
    return sandbox.pages.render(
        "consent.html",
        asked=asked,
        email=email,
        unknown=unknown,
        flow=fields.get("flow_type") or ("login" if merchant or unknown else "signup"),
        fields=dict(fields),
        action=f"{sandbox.settings.api_prefix}/oauth2/authorize",
        stores=[store.name for store in stores],
    )


@_serves("POST", "/oauth2/authorize")
async def decide(sandbox: "Sandbox", request: web.Request) -> web.Response:
    """The consent page's form (the sandbox's own; the specification does not show it).

    An e-mail that nobody has makes a merchant only after a signup, or where the form says so.
    """
    form = await read_form(request)
    asked = _consent_request(sandbox.world, form)
    if form.get("decision") != "allow":
        raise web.HTTPFound(asked.answer(error="access_denied"))
    if not asked.email:
        raise wrong("email", "is required")
    signs_up = asked.signup is not None or form.get("new") == asked.email
    if sandbox.world.merchant(asked.email) is None and not signs_up:
        return _page(sandbox, asked, form)
    raise web.HTTPFound(_allow(sandbox, asked, asked.email))


@_serves("POST", "/oauth2/token", model=lambda settings: token_request(settings.scope_field))
def token(sandbox: "Sandbox", body: TokenByCode | TokenByCredentials) -> Json:
    """For a merchant's code, or for the app itself."""
    app = _authenticated(sandbox.world, body.client_id, body.client_secret)
    if isinstance(body, TokenByCode):
        return sandbox.tokens.exchange(app.client_id, body.code, body.redirect_uri)
    audience, scopes = _wanted(sandbox.settings, body)
    return sandbox.tokens.issue_app_token(app.client_id, audience, scopes)


@_serves("POST", "/oauth2/refresh")
def refresh(sandbox: "Sandbox", body: Refresh) -> Json:
    """Another access token."""
    return sandbox.tokens.refresh(body.refresh_token)


# What the calls above decide


def _authenticated(world: World, client_id: str, client_secret: str) -> AppSeed:
    app = world.apps.get(client_id)
    # Unknown and wrong look alike, on purpose (specification, "Errors").
    if app is None or not hmac.compare_digest(app.client_secret.encode(), client_secret.encode()):
        raise ServiceError(
            "auth.invalid_client", "Unknown client_id, wrong secret, or revoked credential"
        )
    return app


def _wanted(settings: SandboxSettings, body: TokenByCredentials) -> tuple[str, tuple[str, ...]]:
    """The audience and scopes of an app-level token; scopes alone mean the reporting API."""
    field = settings.scope_field
    community, reporting = settings.community_audience, settings.reporting_audience
    if body.audience is None and body.scope is None:
        raise wrong("audience", f"is required: {community}, or {reporting}")
    audience = body.audience or reporting
    if audience not in (community, reporting):
        raise wrong("audience", f"must be {community} or {reporting}, not {audience!r}")
    if audience == community:
        if body.scope is not None:
            raise wrong(field, f"means nothing for the audience {community}; leave it out")
        return audience, ()
    scopes = tuple(body.scope.split()) if body.scope is not None else REPORTING_SCOPES
    for scope in scopes:
        if scope not in REPORTING_SCOPES:
            raise wrong(field, f"knows {' and '.join(REPORTING_SCOPES)}, not {scope!r}")
    return audience, scopes


def _signing_app(
    world: World, basic: tuple[str, str] | None, body_client_id: str | None
) -> AppSeed:
    if basic is not None:
        app = _authenticated(world, *basic)
        if body_client_id not in (None, app.client_id):
            raise ServiceError(
                "auth.invalid_client", "client_id of the body and of the header differ"
            )
        return app
    if body_client_id not in world.apps:
        raise ServiceError(
            "auth.invalid_client", "Send HTTP Basic credentials, or client_id in the body"
        )
    return world.apps[body_client_id]


def _refuse_conflict(world: World, app: AppSeed, signup: Signup) -> None:
    """409 for a known merchant who shall sign up again, or whose stores are other locations."""
    merchant = world.merchant(signup.email)
    if merchant is None or signup.flow_type == "login":
        return
    stores = world.stores_of(merchant)
    locations = {world.link(app.client_id, store).location_id for store in stores}
    fits = signup.location_id is None or signup.location_id in locations or None in locations
    if signup.flow_type == "signup" or not fits:
        raise ServiceError(
            "onboarding.merchant_exists",
            "A merchant with this e-mail exists with another store mapping; "
            "retry with flow_type login",
        )


def _consent_request(world: World, fields: Mapping[str, str]) -> ConsentRequest:
    app = world.apps.get(fields.get("client_id", ""))
    if app is None:
        raise ServiceError("auth.invalid_client", "Unknown client_id")
    redirect_uri = fields.get("redirect_uri", "")
    _check_redirect(app, redirect_uri)
    signup = world.signups.get(fields.get("signup", ""))
    email = fields.get("email", "").strip()
    state, flow_type = fields.get("state", ""), fields.get("flow_type", "")
    return ConsentRequest(app, redirect_uri, state, email, signup, flow_type)


def _allow(sandbox: "Sandbox", asked: ConsentRequest, email: str) -> str:
    world = sandbox.world
    merchant = world.merchant(email)
    if merchant is None:
        if asked.flow_type == "login":  # the prompt of those who exist lets nobody else in
            return asked.answer(error="access_denied")
        merchant = world.add_merchant(email)
        name = asked.signup.store_name if asked.signup else None
        world.add_store(merchant, StoreSeed(new_id("st"), name or "New store", None))
    # The signup's location_id becomes a store's default external_store_id.
    location = asked.signup.location_id if asked.signup else None
    links = [world.link(asked.app.client_id, store) for store in world.stores_of(merchant)]
    free = next((link for link in links if link.location_id is None), None)
    if location not in (None, *(link.location_id for link in links)) and free is not None:
        free.location_id = location
    code = sandbox.tokens.authorize(asked.app.client_id, merchant.email, asked.redirect_uri)
    return asked.answer(code=code)


def _check_redirect(app: AppSeed, redirect_uri: str) -> None:
    """A registered URI, exactly; any loopback address where the app registered none."""
    if app.redirect_uris:
        if redirect_uri not in app.redirect_uris:
            text = "is not one of the redirect URIs registered on the credential"
            raise wrong("redirect_uri", text)
        return
    parts = urlsplit("")
    with suppress(ValueError):  # not an address at all: refused below, like any other
        parts = urlsplit(redirect_uri)
    if parts.scheme not in ("http", "https") or not _is_loopback(parts.hostname or ""):
        text = "must be a loopback address, because this app registered no redirect URIs"
        raise wrong("redirect_uri", text)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
