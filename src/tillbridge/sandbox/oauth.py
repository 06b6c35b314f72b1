"""Onboarding and tokens: /pos/signup_url, /oauth2/authorize, /oauth2/token, /oauth2/refresh."""

import base64
import binascii
import hmac
from collections.abc import Mapping
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
from tillbridge.sandbox.endpoints import Call, Endpoint, Unread, anyone, endpoint
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.pages import read_form
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import App, Merchant, World, new_id
from tillbridge.sandbox.tokens import REPORTING_SCOPES
from tillbridge.sandbox.validation import Json, wrong

if TYPE_CHECKING:
    from tillbridge.sandbox.server import Sandbox


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """A consent that a browser asks for; `email` is empty until the merchant says who they are."""

    app: App
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


async def _signup_url(call: Call[tuple[str, str] | None, Signup]) -> Json:
    world, body = call.sandbox.world, call.body
    app = _signing_app(world, call.found, body.client_id)
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
    target = URL(call.origin + call.sandbox.settings.api_prefix + "/oauth2/authorize")
    return {"status": "success", "signup_url": str(target.with_query(query))}


async def _authorize(call: Call[None, Unread]) -> web.Response:
    """The page on which the merchant consents; with auto-consent, straight to the redirect."""
    sandbox, query = call.sandbox, call.request.query
    asked = _consent_request(sandbox.world, query)
    if sandbox.world.auto_consent:
        email = asked.email or next(iter(sandbox.world.merchants.values())).email
        raise web.HTTPFound(_allow(sandbox, asked, email))
    merchant = sandbox.world.merchant(asked.email)
    stores = sandbox.world.stores_of(merchant) if merchant else []
    return sandbox.pages.render(
        "consent.html",
        asked=asked,
        flow=query.get("flow_type") or ("login" if merchant else "signup"),
        fields=dict(query),
        action=f"{sandbox.settings.api_prefix}/oauth2/authorize",
        stores=[store.name for store in stores],
    )


async def _decide(call: Call[None, Unread]) -> web.Response:
    """The consent page's form (the sandbox's own; the specification does not show it)."""
    form = await read_form(call.request)
    asked = _consent_request(call.sandbox.world, form)
    if form.get("decision") != "allow":
        raise web.HTTPFound(asked.answer(error="access_denied"))
    if not asked.email:
        raise wrong("email", "is required")
    raise web.HTTPFound(_allow(call.sandbox, asked, asked.email))


async def _token(call: Call[None, TokenByCode | TokenByCredentials]) -> Json:
    sandbox, body = call.sandbox, call.body
    app = _authenticated(sandbox.world, body.client_id, body.client_secret)
    if isinstance(body, TokenByCode):
        return sandbox.tokens.exchange(app.client_id, body.code, body.redirect_uri)
    audience, scopes = _wanted(sandbox.settings, body)
    return sandbox.tokens.issue_app_token(app.client_id, audience, scopes)


async def _refresh(call: Call[None, Refresh]) -> Json:
    return call.sandbox.tokens.refresh(call.body.refresh_token)


def oauth_endpoints(settings: SandboxSettings) -> list[Endpoint]:
    """The endpoints under "Onboarding and tokens"."""
    return [
        endpoint("POST", "/pos/signup_url", _basic, Signup, _signup_url),
        endpoint("GET", "/oauth2/authorize", anyone, Unread, _authorize),
        endpoint("POST", "/oauth2/authorize", anyone, Unread, _decide),
        endpoint("POST", "/oauth2/token", anyone, token_request(settings.scope_field), _token),
        endpoint("POST", "/oauth2/refresh", anyone, Refresh, _refresh),
    ]


# What the calls above decide


def _authenticated(world: World, client_id: str, client_secret: str) -> App:
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


def _signing_app(world: World, basic: tuple[str, str] | None, body_client_id: str | None) -> App:
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


def _refuse_conflict(world: World, app: App, signup: Signup) -> None:
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
    merchant = sandbox.world.merchant(email)
    if merchant is None:
        if asked.flow_type == "login":  # the prompt of those who exist lets nobody else in
            return asked.answer(error="access_denied")
        merchant = sandbox.world.add_merchant(email)
        name = asked.signup.store_name if asked.signup else None
        sandbox.world.add_store(merchant, name or "New store")
    _map_location(sandbox.world, asked, merchant)
    code = sandbox.tokens.authorize(asked.app.client_id, merchant.email, asked.redirect_uri)
    return asked.answer(code=code)


def _map_location(world: World, asked: ConsentRequest, merchant: Merchant) -> None:
    """The signup's location_id becomes a store's default external_store_id."""
    location = asked.signup.location_id if asked.signup else None
    links = [world.link(asked.app.client_id, store) for store in world.stores_of(merchant)]
    if location is None or any(link.location_id == location for link in links):
        return
    free = next((link for link in links if link.location_id is None), None)
    if free is not None:
        free.location_id = location


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


def _check_redirect(app: App, redirect_uri: str) -> None:
    """A registered URI, exactly; any loopback address where the app registered none."""
    if app.redirect_uris:
        if redirect_uri in app.redirect_uris:
            return
        raise wrong("redirect_uri", "is not one of the redirect URIs registered on the credential")
    try:
        parts = urlsplit(redirect_uri)
        host = parts.hostname or ""
        if parts.scheme in ("http", "https") and (
            host == "localhost" or ip_address(host).is_loopback
        ):
            return
    except ValueError:
        pass  # not an address at all: refused below, like any other
    raise wrong(
        "redirect_uri", "must be a loopback address, because this app registered no redirect URIs"
    )
