"""Onboarding and tokens: /pos/signup_url, /oauth2/authorize, /oauth2/token, /oauth2/refresh."""

import base64
import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from yarl import URL

from tillbridge.sandbox.bodies import REFRESH, SIGNUP, token_request
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.pages import Pages
from tillbridge.sandbox.requests import read_body, reply
from tillbridge.sandbox.schema import wrong
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import App, Merchant, World, new_id
from tillbridge.sandbox.tokens import REPORTING_SCOPES, Tokens


@dataclass(frozen=True, slots=True)
class Signup:
    """What a signup call said, kept until the merchant opens its URL."""

    app_id: str
    email: str
    location_id: str | None
    store_name: str | None
    flow_type: str | None


@dataclass(frozen=True, slots=True)
class Asked:
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


class OAuth:
    """The endpoints under "Onboarding and tokens"."""

    def __init__(
        self, world: World, tokens: Tokens, pages: Pages, settings: SandboxSettings
    ) -> None:
        self._world = world
        self._tokens = tokens
        self._pages = pages
        self._settings = settings
        self._token_check = token_request(settings.scope_field)
        self._signups: dict[str, Signup] = {}

    def routes(self) -> list[web.RouteDef]:
        """Its endpoints."""
        return [
            web.post("/pos/signup_url", self._signup_url),
            web.get("/oauth2/authorize", self._authorize),
            web.post("/oauth2/authorize", self._decide),
            web.post("/oauth2/token", self._token),
            web.post("/oauth2/refresh", self._refresh),
        ]

    def reset(self) -> None:
        """Forget the signups."""
        self._signups.clear()

    async def _signup_url(self, request: web.Request) -> web.Response:
        basic = _basic(request)
        body = await read_body(request, SIGNUP)
        app = self._signing_app(basic, body.get("client_id"))
        _check_redirect(app, body["redirect_uri"])
        signup = Signup(
            app.client_id,
            body["email"],
            body.get("location_id"),
            body.get("store_name"),
            body.get("flow_type"),
        )
        self._refuse_conflict(signup)
        key = new_id("sgn")
        self._signups[key] = signup
        query = {
            "client_id": app.client_id,
            "redirect_uri": body["redirect_uri"],
            "email": body["email"],
            "state": body["state"],
            "signup": key,
        }
        if signup.flow_type:
            query["flow_type"] = signup.flow_type
        origin = self._settings.public_url or str(request.url.origin())
        target = URL(
            origin.rstrip("/") + self._settings.api_prefix + "/oauth2/authorize"
        ).with_query(query)
        return reply({"status": "success", "signup_url": str(target)})

    async def _authorize(self, request: web.Request) -> web.Response:
        """The page on which the merchant consents; with auto-consent, straight to the redirect."""
        asked = self._asked(request.query)
        if self._world.auto_consent:
            email = asked.email or next(iter(self._world.merchants.values())).email
            raise web.HTTPFound(self._allow(asked, email))
        merchant = self._world.merchant(asked.email)
        flow = request.query.get("flow_type") or ("login" if merchant else "signup")
        return self._pages.render(
            "consent.html",
            asked=asked,
            flow=flow,
            fields=dict(request.query),
            action=f"{self._settings.api_prefix}/oauth2/authorize",
            stores=[store.name for store in self._world.stores_of(merchant)] if merchant else [],
        )

    async def _decide(self, request: web.Request) -> web.Response:
        """The consent page's form (the sandbox's own; the specification does not show it)."""
        form = {
            key: value for key, value in (await request.post()).items() if isinstance(value, str)
        }
        asked = self._asked(form)
        if form.get("decision") != "allow":
            raise web.HTTPFound(asked.answer(error="access_denied"))
        if not asked.email:
            raise wrong("email", "is required")
        raise web.HTTPFound(self._allow(asked, asked.email))

    async def _token(self, request: web.Request) -> web.Response:
        body = await read_body(request, self._token_check)
        app = self._app(body["client_id"], body["client_secret"])
        if body["grant_type"] == "client_credentials":
            audience, scopes = self._wanted(body)
            return reply(self._tokens.issue_app_token(app.client_id, audience, scopes))
        return reply(self._tokens.exchange(app.client_id, body["code"], body["redirect_uri"]))

    async def _refresh(self, request: web.Request) -> web.Response:
        body = await read_body(request, REFRESH)
        return reply(self._tokens.refresh(body["refresh_token"]))

    # What the calls above decide

    def _app(self, client_id: str, client_secret: str) -> App:
        app = self._world.apps.get(client_id)
        # Unknown and wrong look alike, on purpose (specification, "Errors").
        if app is None or not hmac.compare_digest(
            app.client_secret.encode(), client_secret.encode()
        ):
            raise ServiceError(
                "auth.invalid_client", "Unknown client_id, wrong secret, or revoked credential"
            )
        return app

    def _wanted(self, body: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
        """The audience and scopes of an app-level token; scopes alone mean the reporting API."""
        field = self._settings.scope_field
        community, reporting = self._settings.community_audience, self._settings.reporting_audience
        if "audience" not in body and field not in body:
            raise wrong("audience", f"is required: {community}, or {reporting}")
        audience = body.get("audience", reporting)
        if audience not in (community, reporting):
            raise wrong("audience", f"must be {community} or {reporting}, not {audience!r}")
        if audience == community:
            if field in body:
                raise wrong(field, f"means nothing for the audience {community}; leave it out")
            return audience, ()
        scopes = tuple(body.get(field, " ".join(REPORTING_SCOPES)).split())
        for scope in scopes:
            if scope not in REPORTING_SCOPES:
                raise wrong(field, f"knows {' and '.join(REPORTING_SCOPES)}, not {scope!r}")
        return audience, scopes

    def _signing_app(self, basic: tuple[str, str] | None, body_client_id: str | None) -> App:
        if basic is not None:
            app = self._app(*basic)
            if body_client_id not in (None, app.client_id):
                raise ServiceError(
                    "auth.invalid_client", "client_id of the body and of the header differ"
                )
            return app
        app_or_none = self._world.apps.get(body_client_id or "")
        if app_or_none is None:
            raise ServiceError(
                "auth.invalid_client", "Send HTTP Basic credentials, or client_id in the body"
            )
        return app_or_none

    def _refuse_conflict(self, signup: Signup) -> None:
        """409 for a known merchant who shall sign up again, or whose stores are other locations."""
        merchant = self._world.merchant(signup.email)
        if merchant is None or signup.flow_type == "login":
            return
        locations = {
            self._world.link(signup.app_id, store).location_id
            for store in self._world.stores_of(merchant)
        }
        fits = signup.location_id is None or signup.location_id in locations or None in locations
        if signup.flow_type == "signup" or not fits:
            raise ServiceError(
                "onboarding.merchant_exists",
                "A merchant with this e-mail exists with another store mapping; "
                "retry with flow_type login",
            )

    def _asked(self, fields: Mapping[str, str]) -> Asked:
        app = self._world.apps.get(fields.get("client_id", ""))
        if app is None:
            raise ServiceError("auth.invalid_client", "Unknown client_id")
        redirect_uri = fields.get("redirect_uri", "")
        _check_redirect(app, redirect_uri)
        signup = self._signups.get(fields.get("signup", ""))
        email = fields.get("email", "").strip()
        state, flow_type = fields.get("state", ""), fields.get("flow_type", "")
        return Asked(app, redirect_uri, state, email, signup, flow_type)

    def _allow(self, asked: Asked, email: str) -> str:
        merchant = self._world.merchant(email)
        if merchant is None:
            if asked.flow_type == "login":  # the prompt of those who exist lets nobody else in
                return asked.answer(error="access_denied")
            merchant = self._sign_up(email, asked.signup)
        self._map_location(asked, merchant)
        code = self._tokens.authorize(asked.app.client_id, merchant.email, asked.redirect_uri)
        return asked.answer(code=code)

    def _sign_up(self, email: str, signup: Signup | None) -> Merchant:
        merchant = self._world.add_merchant(email)
        self._world.add_store(merchant, (signup and signup.store_name) or "New store")
        return merchant

    def _map_location(self, asked: Asked, merchant: Merchant) -> None:
        """The signup's location_id becomes a store's default external_store_id."""
        location = asked.signup.location_id if asked.signup else None
        links = [
            self._world.link(asked.app.client_id, store)
            for store in self._world.stores_of(merchant)
        ]
        if location is None or any(link.location_id == location for link in links):
            return
        free = next((link for link in links if link.location_id is None), None)
        if free is not None:
            free.location_id = location


def _basic(request: web.Request) -> tuple[str, str] | None:
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
