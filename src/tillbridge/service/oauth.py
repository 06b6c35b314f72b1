"""The merchant's consent, and new merchants: authorize URL, code, refresh, signup.

Specification: Authentication; Onboarding and tokens. Failures of these calls never quote requests
or answers: both contain secrets or personal data.
"""

import base64
import hmac
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from tillbridge.core.clock import Clock
from tillbridge.core.errors import Conflict, ConsentLost, Refused, ServiceError, Unauthorised
from tillbridge.core.i18n import _
from tillbridge.model.lenient import decimal, text
from tillbridge.service.answers import BAD_CLIENT, CONSENT_REVOKED
from tillbridge.service.caller import Caller
from tillbridge.service.tokens import AccessGrant, AppTokenStore
from tillbridge.service.transport import Answer, Origin
from tillbridge.service.types import Tokens, mapping, need

MERCHANT_EXISTS = "onboarding.merchant_exists"
LOGIN = "login"
_DEFAULT_LIFETIME_S = 3600.0  # specification: Limits, access token lifetime
_LONGEST_LIFETIME_S = 24 * 3600.0
_REFUSALS = (Refused, Unauthorised, ConsentLost, Conflict)


def new_state() -> str:
    """Return an unguessable value that distinguishes our redirect from a forged one."""
    return secrets.token_urlsafe(32)


def same_state(one: str, other: str) -> bool:
    """Return whether two states are the same, in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def authorize_url(
    base_url: str, *, client_id: str, redirect_uri: str, state: str, email: str | None = None
) -> str:
    """Return the URL on which the merchant consents. Specification: GET /oauth2/authorize."""
    query = {"client_id": client_id, "redirect_uri": redirect_uri}
    if email:
        query["email"] = email
    query["state"] = state
    return Origin(base_url).url("oauth2/authorize", query=query)


@dataclass(frozen=True, slots=True)
class App:
    """The bridge's identity at the service; the secret is only fetched when it is sent.

    `scope_field` is the field for an app-level token's scopes, which the specification does not
    show. `token_store` creates the store for such tokens. `signup_with_secret` says whether a
    signup is sent with id and secret (Basic) or with the id alone.
    """

    client_id: str
    client_secret: Callable[[], str]
    redirect_uri: str
    scope_field: str = "scope"
    token_store: Callable[[], AppTokenStore] = AppTokenStore
    signup_with_secret: bool = True


class OAuth:
    """The two token endpoints. `client_secret` is fetched for each exchange, and never stored."""

    def __init__(self, caller: Caller, app: App, *, clock: Clock) -> None:
        self._caller = caller
        self._app = app
        self._clock = clock

    async def exchange(self, code: str) -> Tokens:
        """Return the tokens for an authorization code.

        Raises Refused: code `auth.invalid_grant` if the code is used up or expired, and
        `auth.invalid_client` if the client id or secret is wrong.
        """
        asked_ms = self._clock.now_ms()
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._app.redirect_uri,
            "client_id": self._app.client_id,
            "client_secret": self._app.client_secret(),
        }
        try:
            answer = await self._caller.call("oauth.exchange", body=body)
        except _REFUSALS as failure:
            if failure.code == CONSENT_REVOKED:
                raise _consent_over(failure) from None
            text = _(
                "The ordering service did not accept the authorization code (status {status})."
            ).format(status=failure.status)
            fix = _("It may have been used already, or be too old. Run “tillbridge connect” again.")
            raise _not_granted(failure, text, fix) from None
        grant = _grant(answer)
        return Tokens(
            access_token=grant.access_token,
            refresh_token=need(answer.body, "refresh_token", answer.operation),
            access_expires_at_ms=asked_ms + int(grant.expires_in_s * 1000),
            consented_at_ms=asked_ms,
            scope=grant.scope,
        )

    async def refresh(self, refresh_token: str) -> AccessGrant:
        """Return a fresh access token. The answer contains no refresh token: keep the old one.

        Raises ConsentLost if the consent has expired or was revoked, and Refused with code
        `auth.invalid_client` if the app is unknown.
        """
        body = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        try:
            return _grant(await self._caller.call("oauth.refresh", body=body))
        except ServiceError as failure:
            if failure.code == BAD_CLIENT:
                raise _bad_client(failure) from None
            if failure.status in {400, 401, 403}:
                raise _consent_over(failure) from None
            raise

    async def mint(self, audience: str, scope: str = "") -> AccessGrant:
        """Return an app-level token. Specification: Authentication, rule 3.

        "" omits a field. Raises Refused: code `auth.invalid_client` if the client id or secret is
        wrong, and for an unknown audience or scope.
        """
        body = {
            "grant_type": "client_credentials",
            "client_id": self._app.client_id,
            "client_secret": self._app.client_secret(),
        }
        body |= {"audience": audience} if audience else {}
        body |= {self._app.scope_field: scope} if scope else {}
        try:
            return _grant(await self._caller.call("oauth.mint", body=body))
        except _REFUSALS as failure:
            text = _(
                "The ordering service did not give a token for {audience!r} (status {status})."
            )
            fix = _(
                "Ask its support which audience and scope this app may use, and set "
                "community_audience, reporting_audience and scope_field in [assumptions]."
            )
            text = text.format(audience=audience, status=failure.status)
            raise _not_granted(failure, text, fix) from None


def _grant(answer: Answer) -> AccessGrant:
    body = mapping(answer.body, answer.operation)
    expires_in = body.get("expires_in")
    try:
        lifetime_s = float(decimal(expires_in) or text(expires_in, ""))
    except ValueError:
        lifetime_s = _DEFAULT_LIFETIME_S
    return AccessGrant(
        access_token=need(body, "access_token", answer.operation),
        expires_in_s=min(max(lifetime_s, 0.0), _LONGEST_LIFETIME_S),
        scope=text(body.get("scope"), ""),
    )


def _consent_over(failure: ServiceError) -> ConsentLost:
    text = _("The sign-in at the ordering service has expired.")
    if failure.code == CONSENT_REVOKED:
        text = _("Access was withdrawn at the ordering service, or the app was uninstalled.")
    return failure.reworded(ConsentLost, text, _("Sign in again: tillbridge connect STORE"))


def _bad_client(failure: ServiceError, fix: str = "") -> Refused:
    text = _("The ordering service does not accept this app's client id and secret.")
    fix = fix or _("Enter the current client_secret from the service's console.")
    return failure.reworded(Refused, text, fix, code=BAD_CLIENT)


def _not_granted(failure: ServiceError, text: str, fix: str) -> Refused:
    if failure.code == BAD_CLIENT:
        return _bad_client(failure)
    return failure.reworded(Refused, text, fix)


# -- signing up


@dataclass(frozen=True, slots=True)
class SignupAddress:
    """The store's address. Empty fields are not sent."""

    street_address: str = ""
    city: str = ""
    state: str = ""
    country: str = ""
    zip: str = ""


@dataclass(frozen=True, slots=True)
class SignupRequest:
    """Who signs up, with which store. Empty fields are not sent.

    `location_id` becomes the store's default external_store_id; `business_phone` is in
    international format, `locale` a language-region tag, `flow_type` "login", "signup" or "".
    """

    email: str
    store_name: str = ""
    location_id: str = ""
    first_name: str = ""
    last_name: str = ""
    business_phone: str = ""
    address: SignupAddress = SignupAddress()
    locale: str = ""
    flow_type: str = ""


@dataclass(frozen=True, slots=True)
class SignupUrl:
    """Where the merchant continues. `as_login`: the merchant exists, and signs in instead."""

    url: str
    as_login: bool = False


class Signup:
    """Creates a merchant and a store. Specification: POST /pos/signup_url."""

    def __init__(self, caller: Caller, app: App) -> None:
        self._caller = caller
        self._app = app

    async def url(self, wanted: SignupRequest, state: str) -> SignupUrl:
        """Return the authorize URL; `state` comes back with the redirect.

        An existing merchant has to log in instead (409 onboarding.merchant_exists, retried once).
        Raises Conflict if that also meets another store mapping, Refused with `auth.invalid_client`
        if the id or secret is wrong, Refused for a field that is not accepted.
        """
        try:
            return SignupUrl(await self._ask(wanted, state))
        except Conflict as conflict:
            if conflict.code != MERCHANT_EXISTS:
                raise
            if wanted.flow_type == LOGIN:
                raise _another_mapping(conflict) from None
        try:
            return SignupUrl(
                await self._ask(replace(wanted, flow_type=LOGIN), state), as_login=True
            )
        except Conflict as conflict:
            raise _another_mapping(conflict) from None

    async def _ask(self, wanted: SignupRequest, state: str) -> str:
        app, basic = self._app, ""
        body = signup_body(wanted, redirect_uri=app.redirect_uri, state=state)
        if app.signup_with_secret:
            pair = f"{app.client_id}:{app.client_secret()}"
            basic = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
        else:
            body["client_id"] = app.client_id
        # A repeat returns another URL, and the first one becomes useless.
        try:
            answer = await self._caller.call("signup.url", body=body, authorization=basic)
        except (Unauthorised, Refused, ConsentLost) as failure:
            if failure.code == BAD_CLIENT or isinstance(failure, Unauthorised):
                fix = _("Enter the current client_id and client_secret from the service's console.")
                raise _bad_client(failure, fix) from None
            raise
        url = need(mapping(answer.body, answer.operation), "signup_url", answer.operation)
        if urlsplit(url).scheme not in {"http", "https"}:
            raise Refused(
                _("The ordering service sent something that is not a web address."),
                operation=answer.operation,
            )
        return url


def signup_body(wanted: SignupRequest, *, redirect_uri: str, state: str) -> dict[str, Any]:
    """Return the body. Specification: Signup request and response."""
    body = {name: value for name, value in asdict(wanted).items() if value}
    body["address"] = {name: value for name, value in body["address"].items() if value}
    if not body["address"]:
        del body["address"]
    return {**body, "redirect_uri": redirect_uri, "state": state}


def _another_mapping(conflict: Conflict) -> Conflict:
    return conflict.reworded(
        Conflict,
        _("The account with this e-mail address has other stores, but not this one."),
        _(
            "Sign in instead: tillbridge connect STORE --email EMAIL. Or sign "
            "up with another e-mail address."
        ),
    )
