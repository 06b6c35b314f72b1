"""The endpoints of "Onboarding and tokens"."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
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
from tillbridge.sandbox.endpoints import API, origin
from tillbridge.sandbox.pages import read_form
from tillbridge.sandbox.settings import AppSeed, SandboxSettings, StoreSeed
from tillbridge.sandbox.state import World, new_id
from tillbridge.sandbox.tokens import REPORTING_SCOPES
from tillbridge.sandbox.validation import Json, ServiceError, wrong

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


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


@API.serves("POST", "/pos/signup_url", _basic)
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


@API.serves("GET", "/oauth2/authorize")
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


@API.serves("POST", "/oauth2/authorize")
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


@API.serves("POST", "/oauth2/token", model=lambda settings: token_request(settings.scope_field))
def token(sandbox: "Sandbox", body: TokenByCode | TokenByCredentials) -> Json:
    """For a merchant's code, or for the app itself."""
    app = _authenticated(sandbox.world, body.client_id, body.client_secret)
    if isinstance(body, TokenByCode):
        return sandbox.tokens.exchange(app.client_id, body.code, body.redirect_uri)
    audience, scopes = _wanted(sandbox.settings, body)
    return sandbox.tokens.issue_app_token(app.client_id, audience, scopes)


@API.serves("POST", "/oauth2/refresh")
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
