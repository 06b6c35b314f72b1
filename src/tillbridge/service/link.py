"""The link to one service: what all stores share, and what each store gets of it."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tillbridge.core.clock import Clock
from tillbridge.service.answers import Limits
from tillbridge.service.caller import Caller, Gate, Hindrance, OnContact, Sleep
from tillbridge.service.client import OrderBodies, ServiceClient
from tillbridge.service.oauth import App, OAuth, Signup
from tillbridge.service.tokens import (
    Access,
    AccessGrant,
    AppToken,
    AppTokenStore,
    CachedToken,
    StoreTokens,
    TokenStore,
)
from tillbridge.service.transport import Transport


def _nothing_hinders(_operation: str) -> None:
    """Let every call be made."""


def _ignore(_contact: object) -> None:
    """For programs that report no problems."""


@dataclass(frozen=True, slots=True)
class StoreLink:
    """One store's access: its tokens, and the calls that use them."""

    tokens: StoreTokens
    client: ServiceClient


@dataclass(frozen=True, slots=True)
class AppLink:
    """The app's own access for one audience: `await token.access_token()`, or calls with it."""

    token: AppToken
    caller: Caller


class ServiceLink:
    """One per base_url, to be closed: `async with ServiceLink(...) as link`.

    Durations in seconds; `sleep` and `jitter` are for tests.
    """

    def __init__(
        self,
        base_url: str,
        app: App,
        *,
        clock: Clock | None = None,
        timeout_s: float = 15.0,
        refresh_early_s: float = 60.0,
        limits: Limits | None = None,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock or Clock()
        self._early_s = refresh_early_s
        self._limits = limits or Limits()
        self._sleep = sleep
        self._jitter = jitter
        self._transport = Transport(base_url, timeout_s=timeout_s, clock=self._clock)
        self._gate = Gate()
        self._store_tokens: list[StoreTokens] = []
        self._app_tokens: dict[Access, AppToken] = {}
        self._token_store: AppTokenStore | None = None
        self.base_url = base_url
        self.identity = app
        self.oauth = OAuth(self._caller(None), app, clock=self._clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_how: object) -> None:
        await self.close()

    def store(
        self,
        token_store: TokenStore,
        *,
        bodies: OrderBodies | None = None,
        on_contact: OnContact = _ignore,
        hindrance: Hindrance = _nothing_hinders,
    ) -> StoreLink:
        """Return the access of one store; what `hindrance` refuses is not sent."""
        tokens = StoreTokens(
            token_store, self.oauth.refresh, clock=self._clock, refresh_early_s=self._early_s
        )
        self._store_tokens.append(tokens)
        return StoreLink(tokens, ServiceClient(self._caller(tokens, on_contact, hindrance), bodies))

    def app(self, *, audience: str, scope: str = "", on_contact: OnContact = _ignore) -> AppLink:
        """Return the app's own access, without a merchant, for the community and reporting APIs.

        `scope` is space-separated. Links of one audience and scope share one token.
        """
        if self._token_store is None:
            self._token_store = self.identity.token_store()
        access = Access(audience, " ".join(sorted(scope.split())))
        token = self._app_tokens.get(access) or AppToken(
            access, self._mint, self._token_store, clock=self._clock, early_s=self._early_s
        )
        self._app_tokens[access] = token
        return AppLink(token, self._caller(token, on_contact))

    def signup(self) -> Signup:
        """Return the call that provisions a merchant and a store."""
        return Signup(self._caller(None), self.identity)

    def _caller(
        self,
        credential: CachedToken | None,
        on_contact: OnContact = _ignore,
        hindrance: Hindrance = _nothing_hinders,
    ) -> Caller:
        return Caller(
            self._transport,
            self._gate,
            self._limits,
            credential,
            on_contact=on_contact,
            hindrance=hindrance,
            sleep=self._sleep,
            jitter=self._jitter,
        )

    async def _mint(self, access: Access) -> AccessGrant:
        return await self.oauth.mint(access.audience, access.scope)

    async def close(self) -> None:
        """End refreshes nobody waits for, and close the connections."""
        for token in (*self._store_tokens, *self._app_tokens.values()):
            await token.close()
        await self._transport.close()
