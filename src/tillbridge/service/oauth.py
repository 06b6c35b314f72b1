"""The merchant's consent: authorize URL, state, code exchange, refresh.

Specification: Authentication; Onboarding and tokens. Failures of these calls never quote what was
sent or answered: both hold secrets.
"""

import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from tillbridge.core.clock import Clock
from tillbridge.core.errors import Conflict, ConsentLost, Refused, ServiceError, Unauthorised
from tillbridge.core.i18n import _
from tillbridge.service.answers import BAD_CLIENT, CONSENT_REVOKED
from tillbridge.service.caller import Caller
from tillbridge.service.encoding import encode_small
from tillbridge.service.endpoints import Calls
from tillbridge.service.origin import Origin
from tillbridge.service.tokens import AccessGrant
from tillbridge.service.types import Tokens, decimal, mapping, need, words

_DEFAULT_LIFETIME_S = 3600.0  # specification: Limits, access token lifetime
_LONGEST_LIFETIME_S = 24 * 3600.0


def new_state() -> str:
    """Return a value nobody can guess, to tell our redirect from a forged one."""
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
    return f"{Origin(base_url).url('oauth2', 'authorize')}?{urlencode(query)}"


class OAuth(Calls):
    """The two token endpoints. `client_secret` is asked for at each exchange, and never kept.

    `scope_field` is what the body of client_credentials calls the scopes, which is not shown.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        client_id: str,
        client_secret: Callable[[], str],
        redirect_uri: str,
        clock: Clock,
        scope_field: str = "scope",
    ) -> None:
        super().__init__(caller)
        self._client_id = client_id
        self._client_secret = client_secret
        self._redirect_uri = redirect_uri
        self._scope_field = scope_field
        self._clock = clock

    async def exchange(self, code: str) -> Tokens:
        """Return the tokens for an authorization code.

        Raises Refused: code `auth.invalid_grant` where the code is used up or expired, and
        `auth.invalid_client` where the client id or secret is wrong.
        """
        asked_ms = self._clock.now_ms()
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "client_id": self._client_id,
            "client_secret": self._client_secret(),
        }
        try:
            told = await self._post("oauth.exchange", body)
        except (Refused, Unauthorised, ConsentLost, Conflict) as failure:
            raise _no_tokens(failure) from None
        grant = _grant(told, "oauth.exchange")
        return Tokens(
            access_token=grant.access_token,
            refresh_token=need(told, "refresh_token", "oauth.exchange"),
            access_expires_at_ms=asked_ms + int(grant.expires_in_s * 1000),
            consented_at_ms=asked_ms,
            scope=grant.scope,
        )

    async def refresh(self, refresh_token: str) -> AccessGrant:
        """Return a fresh access token; the answer holds no refresh token, so the old one stays.

        Raises ConsentLost where the consent has expired or was revoked, and Refused with code
        `auth.invalid_client` where it is the app that is not known.
        """
        body = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        try:
            return _grant(await self._post("oauth.refresh", body), "oauth.refresh")
        except ServiceError as failure:
            if failure.code == BAD_CLIENT:
                raise _bad_client(failure) from None
            if failure.status in {400, 401, 403}:
                raise _consent_over(failure) from None
            raise

    async def mint(self, audience: str, scope: str = "") -> AccessGrant:
        """Return an app-level token. Specification: Authentication, rule 3.

        "" leaves a field out. Raises Refused: code `auth.invalid_client` where the client id or
        secret is wrong, and where the service knows no such audience or scope.
        """
        body = {
            "grant_type": "client_credentials",
            "client_id": self._client_id,
            "client_secret": self._client_secret(),
        }
        body |= {"audience": audience} if audience else {}
        body |= {self._scope_field: scope} if scope else {}
        try:
            return _grant(await self._post("oauth.mint", body), "oauth.mint")
        except (Refused, Unauthorised, ConsentLost, Conflict) as failure:
            raise _no_app_token(failure, audience) from None

    async def _post(self, operation: str, body: dict[str, str]) -> Mapping[str, Any]:
        outcome = await self._call(operation, body=encode_small(body))
        return mapping(outcome.answer.body, operation)


def _grant(body: Mapping[str, Any], operation: str) -> AccessGrant:
    expires_in = body.get("expires_in")
    try:
        lifetime_s = float(decimal(expires_in) or words(expires_in))
    except ValueError:
        lifetime_s = _DEFAULT_LIFETIME_S
    return AccessGrant(
        access_token=need(body, "access_token", operation),
        expires_in_s=min(max(lifetime_s, 0.0), _LONGEST_LIFETIME_S),
        scope=words(body.get("scope")),
    )


def _consent_over(failure: ServiceError) -> ConsentLost:
    revoked = failure.code == CONSENT_REVOKED
    return ConsentLost(
        _("The merchant has withdrawn the consent, or uninstalled the app.")
        if revoked
        else _("The merchant's consent has ended."),
        code=failure.code,
        status=failure.status,
        operation=failure.operation,
        fix=_("Ask the merchant to consent again: tillbridge connect STORE"),
    )


def _no_tokens(failure: ServiceError) -> ServiceError:
    if failure.code == BAD_CLIENT:
        return _bad_client(failure)
    if failure.code == CONSENT_REVOKED:
        return _consent_over(failure)
    return Refused(
        _("The ordering service did not accept the authorization code (status {status}).").format(
            status=failure.status
        ),
        code=failure.code,
        status=failure.status,
        operation=failure.operation,
        fix=_("It may be used up or too old: run tillbridge connect again."),
    )


def _no_app_token(failure: ServiceError, audience: str) -> ServiceError:
    if failure.code == BAD_CLIENT:
        return _bad_client(failure)
    return Refused(
        _("The ordering service gives no token for {audience!r} (status {status}).").format(
            audience=audience, status=failure.status
        ),
        code=failure.code,
        status=failure.status,
        operation=failure.operation,
        fix=_(
            "Ask its support what audience and scope this app may have, and set "
            "community_audience, reporting_audience and scope_field in [assumptions]."
        ),
    )


def _bad_client(failure: ServiceError) -> Refused:
    return Refused(
        _("The ordering service does not accept this app's client id and secret."),
        code=BAD_CLIENT,
        status=failure.status,
        operation=failure.operation,
        fix=_("Put the current client_secret from the service's console in place."),
    )
