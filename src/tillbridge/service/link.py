"""The link to one service: what all stores share, and what each store gets of it."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tillbridge.core.clock import Clock
from tillbridge.service.caller import (
    Caller,
    Hindrance,
    NoCredential,
    OnContact,
    Sleep,
    ignore_contact,
    nothing_hinders,
)
from tillbridge.service.client import OrderBodies, ServiceClient
from tillbridge.service.gate import Gate
from tillbridge.service.oauth import OAuth
from tillbridge.service.retry import Limits
from tillbridge.service.signup import SigningApp, Signup
from tillbridge.service.tokens import (
    Access,
    AccessGrant,
    AppToken,
    AppTokens,
    AppTokenStore,
    TokenKeeper,
    TokenStore,
)
from tillbridge.service.transport import Transport


@dataclass(frozen=True, slots=True)
class App:
    """Who the bridge is to the service; the secret is asked for only when it is sent.

    `scope_field` is how an app-level token's scopes are asked for, which the specification does
    not show. `token_store` makes the place where such tokens are kept; None: in memory only.
    `signup_with_secret` says whether a signup carries id and secret (Basic) or the id alone.
    """

    client_id: str
    client_secret: Callable[[], str]
    redirect_uri: str
    scope_field: str = "scope"
    token_store: Callable[[], AppTokenStore] | None = None
    signup_with_secret: bool = True


@dataclass(frozen=True, slots=True)
class StoreLink:
    """One store's access: its tokens, and the calls that use them."""

    tokens: TokenKeeper
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
        clock = clock or Clock()
        self._clock = clock
        self._refresh_early_s = refresh_early_s
        self._limits = limits or Limits()
        self._sleep = sleep
        self._jitter = jitter
        self._transport = Transport(base_url, timeout_s=timeout_s, clock=clock)
        self._gate = Gate()
        self._keepers: list[TokenKeeper] = []
        self._app_tokens: AppTokens | None = None
        self.base_url = base_url
        self.identity = app
        self.oauth = OAuth(
            Caller(
                self._transport,
                self._gate,
                NoCredential(),
                limits=self._limits,
                sleep=sleep,
                jitter=jitter,
            ),
            client_id=app.client_id,
            client_secret=app.client_secret,
            redirect_uri=app.redirect_uri,
            clock=clock,
            scope_field=app.scope_field,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_how: object) -> None:
        await self.close()

    def store(
        self,
        token_store: TokenStore,
        *,
        bodies: OrderBodies | None = None,
        on_contact: OnContact = ignore_contact,
        hindrance: Hindrance = nothing_hinders,
    ) -> StoreLink:
        """Return the access of one store; what `hindrance` refuses is not sent."""
        keeper = TokenKeeper(
            token_store,
            self.oauth.refresh,
            clock=self._clock,
            refresh_early_s=self._refresh_early_s,
        )
        self._keepers.append(keeper)
        caller = Caller(
            self._transport,
            self._gate,
            keeper,
            limits=self._limits,
            on_contact=on_contact,
            hindrance=hindrance,
            sleep=self._sleep,
            jitter=self._jitter,
        )
        return StoreLink(keeper, ServiceClient(caller, bodies))

    def app(
        self, *, audience: str, scope: str = "", on_contact: OnContact = ignore_contact
    ) -> AppLink:
        """Return the app's own access, without a merchant, for the community and reporting APIs.

        `scope` is space-separated. Links of one audience and scope share one token.
        """
        if self._app_tokens is None:
            self._app_tokens = AppTokens(
                self._mint,
                self.identity.token_store() if self.identity.token_store else None,
                clock=self._clock,
                early_s=self._refresh_early_s,
            )
        token = self._app_tokens.of(Access(audience, " ".join(sorted(scope.split()))))
        caller = Caller(
            self._transport,
            self._gate,
            token,
            limits=self._limits,
            on_contact=on_contact,
            sleep=self._sleep,
            jitter=self._jitter,
        )
        return AppLink(token, caller)

    def signup(self) -> Signup:
        """Return the call that provisions a merchant and a store."""
        app = self.identity
        secret = app.client_secret if app.signup_with_secret else None
        return Signup(
            Caller(
                self._transport,
                self._gate,
                SigningApp(app.client_id, secret),
                limits=self._limits,
                sleep=self._sleep,
                jitter=self._jitter,
            ),
            client_id=app.client_id,
            client_id_in_body=not app.signup_with_secret,
            redirect_uri=app.redirect_uri,
        )

    async def _mint(self, access: Access) -> AccessGrant:
        return await self.oauth.mint(access.audience, access.scope)

    async def close(self) -> None:
        """End refreshes nobody waits for, and close the connections."""
        for keeper in self._keepers:
            await keeper.close()
        if self._app_tokens is not None:
            await self._app_tokens.close()
        await self._transport.close()
