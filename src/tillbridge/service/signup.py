"""Provisioning a merchant and a store. Specification: Onboarding and tokens, POST /pos/signup_url.

Failures never quote what was sent: it names a person.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    Refused,
    ServiceError,
    Unauthorised,
)
from tillbridge.core.i18n import _
from tillbridge.service.answers import BAD_CLIENT
from tillbridge.service.caller import Caller
from tillbridge.service.encoding import encode_small
from tillbridge.service.endpoints import Calls
from tillbridge.service.types import mapping, need

MERCHANT_EXISTS = "onboarding.merchant_exists"
LOGIN = "login"
_OPERATION = "signup.url"


@dataclass(frozen=True, slots=True)
class SignupAddress:
    """The store's address. What is "" is not sent."""

    street_address: str = ""
    city: str = ""
    state: str = ""
    country: str = ""
    zip: str = ""


@dataclass(frozen=True, slots=True)
class SignupRequest:
    """Who signs up, with which store. What is "" is not sent.

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
    """Where the merchant goes on. `as_login`: the merchant exists, and signs in instead."""

    url: str
    as_login: bool = False


class SigningApp:
    """The credential of a signup: id and secret for HTTP Basic, or nothing."""

    def __init__(self, client_id: str, client_secret: Callable[[], str] | None) -> None:
        self._client_id = client_id
        self._client_secret = client_secret

    async def access_token(self) -> str | None:
        """Return what stands behind `Basic`; None where the id goes in the body."""
        if self._client_secret is None:
            return None
        pair = f"{self._client_id}:{self._client_secret()}"
        return base64.b64encode(pair.encode()).decode("ascii")

    async def renewed(self, _refused: str) -> None:
        """Return nothing: there is no other secret, and the 401 stands."""

    def mark_lost(self, _failure: ConsentLost, _token: str) -> None:
        """Nothing is held that could be lost."""


class Signup(Calls):
    """The one call, and what a merchant who exists makes of it."""

    def __init__(
        self, caller: Caller, *, client_id: str, client_id_in_body: bool, redirect_uri: str
    ) -> None:
        super().__init__(caller)
        self._client_id = client_id
        self._client_id_in_body = client_id_in_body
        self._redirect_uri = redirect_uri

    async def url(self, wanted: SignupRequest, state: str) -> SignupUrl:
        """Return the authorize URL; `state` comes back with the redirect.

        A merchant who exists is asked to log in instead (409 onboarding.merchant_exists, retried
        once). Raises Conflict where that meets another store mapping too, Refused with
        `auth.invalid_client` where the id or secret is wrong, Refused for a field not taken.
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
        body = signup_body(wanted, redirect_uri=self._redirect_uri, state=state)
        if self._client_id_in_body:
            body["client_id"] = self._client_id
        # A repeat gives another URL, and the first one leads nowhere.
        try:
            outcome = await self._call(_OPERATION, body=encode_small(body))
        except (Unauthorised, Refused, ConsentLost) as failure:
            raise _refused(failure) from None
        url = need(mapping(outcome.answer.body, _OPERATION), "signup_url", _OPERATION)
        if urlsplit(url).scheme not in {"http", "https"}:
            raise Refused(
                _("The ordering service gave an address that is none."), operation=_OPERATION
            )
        return url


def signup_body(wanted: SignupRequest, *, redirect_uri: str, state: str) -> dict[str, Any]:
    """Return the body. Specification: Signup request and response."""
    address = _said({name: getattr(wanted.address, name) for name in SignupAddress.__slots__})
    named = {name: getattr(wanted, name) for name in SignupRequest.__slots__ if name != "address"}
    body = {**_said(named), "redirect_uri": redirect_uri, "state": state}
    return {**body, "address": address} if address else body


def _said(values: Mapping[str, str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _another_mapping(conflict: Conflict) -> Conflict:
    return Conflict(
        _("A merchant with this e-mail has other stores than this location."),
        code=conflict.code,
        status=conflict.status,
        operation=conflict.operation,
        fix=_(
            "Let the merchant sign in instead: tillbridge connect STORE --email EMAIL. "
            "Or sign up with another e-mail."
        ),
    )


def _refused(failure: ServiceError) -> ServiceError:
    if failure.code == BAD_CLIENT or isinstance(failure, Unauthorised):
        return Refused(
            _("The ordering service does not accept this app's client id and secret."),
            code=BAD_CLIENT,
            status=failure.status,
            operation=failure.operation,
            fix=_("Put the current client_id and client_secret of the service's console in place."),
        )
    return failure
