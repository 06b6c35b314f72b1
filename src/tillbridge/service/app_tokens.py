"""App-level tokens, by audience and scope. Specification: Authentication, rule 3.

The app mints them itself with its client id and secret (grant_type client_credentials), for the
community and reporting APIs; there is no refresh token. Minting one per request would count
against the rate limit, so each is used until shortly before its end, minted by one call however
many wait for it, and kept where the next run finds it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from tillbridge.core.clock import Clock
from tillbridge.core.errors import (
    BridgeError,
    ConsentLost,
    OutcomeUnknown,
    RateLimited,
    ServiceDown,
    Unreachable,
)
from tillbridge.core.log import get_logger
from tillbridge.service.tokens import AccessGrant, RenewalLimit

log = get_logger()

_NEXT_EARLY_TRY_S = 10.0  # while the old one still works
_LONGEST_KEPT_S = 24 * 3600.0  # whatever a file or a wall clock says


@dataclass(frozen=True, slots=True)
class Access:
    """What a token is for; `scope` is space-separated, "" for none by name."""

    audience: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class KeptToken:
    """A token with the wall clock's times (ms) of its minting and its end."""

    access_token: str = field(repr=False)
    minted_at_ms: int
    expires_at_ms: int


class AppTokenStore(Protocol):
    """Where app-level tokens are kept, encrypted. Both may block; they run in a thread."""

    def load(self, access: Access) -> KeptToken | None:
        """Return what is kept, None where there is nothing readable."""
        ...

    def save(self, access: Access, token: KeptToken) -> None:
        """Keep the token in place of the one before. Raises BridgeError or OSError."""
        ...


Mint = Callable[[Access], Awaitable[AccessGrant]]


class AppToken:
    """The token of one audience and scope; a `caller.Credential`.

    A token that the service refuses is minted anew once for all who used it. What minting meets
    is raised as it is: Refused (`auth.invalid_client`, or an audience or scope that the service
    does not know), Unreachable, ServiceDown, RateLimited.
    """

    def __init__(
        self,
        access: Access,
        mint: Mint,
        store: AppTokenStore | None,
        *,
        clock: Clock,
        early_s: float = 60.0,
    ) -> None:
        self.access = access
        self._mint = mint
        self._store = store
        self._clock = clock
        self._early_s = early_s
        self._token = ""
        self._expires_at_ms = 0
        self._mint_at = 0.0  # monotonic
        self._dead_at = 0.0  # monotonic
        self._loaded = store is None
        self._minting: asyncio.Task[str] | None = None
        self._renewals = RenewalLimit(clock)

    @property
    def expires_at_ms(self) -> int:
        """When the token ends by the wall clock, for people; 0 where there is none yet."""
        return self._expires_at_ms

    async def access_token(self) -> str:
        """Return a token that is good for a while."""
        if not self._loaded:
            await self._load()
        if self._clock.monotonic() < self._mint_at:
            return self._token
        try:
            return await self._minted()
        except (Unreachable, ServiceDown, OutcomeUnknown, RateLimited):
            now = self._clock.monotonic()
            if now < self._dead_at:
                self._mint_at = now + _NEXT_EARLY_TRY_S
                return self._token  # early is only early: this one still works
            raise

    async def renewed(self, refused: str) -> str | None:
        """Return another token than the one that the service has just refused with a 401.

        None where one that was minted for the same reason has not helped a moment ago.
        """
        if self._token and self._token != refused:
            return self._token  # somebody else has minted it meanwhile
        if not self._renewals.allows():
            return None
        token = await self._minted()
        self._renewals.renewed()
        return token

    def mark_lost(self, failure: ConsentLost, token: str) -> None:
        """Do nothing: no merchant's consent is behind such a token."""

    async def close(self) -> None:
        """End a minting that nobody waits for any more."""
        if self._minting is not None:
            self._minting.cancel()
            await asyncio.wait([self._minting])

    async def _load(self) -> None:
        store = self._store
        kept = None if store is None else await asyncio.to_thread(store.load, self.access)
        if self._loaded:
            return  # somebody else has loaded, or minted, meanwhile
        self._loaded = True
        if kept is None or kept.minted_at_ms > self._clock.now_ms():
            return  # a wall clock that was set back knows no token's age
        left_s = (kept.expires_at_ms - self._clock.now_ms()) / 1000
        self._use(kept.access_token, min(left_s, _LONGEST_KEPT_S), early_s=self._early_s)

    async def _minted(self) -> str:
        if self._minting is None or self._minting.done():
            self._minting = asyncio.create_task(self._do_mint())
            self._minting.add_done_callback(_seen)
        # One caller that gives up must not end the minting that the others wait for.
        return await asyncio.shield(self._minting)

    async def _do_mint(self) -> str:
        asked, asked_ms = self._clock.monotonic(), self._clock.now_ms()
        grant = await self._mint(self.access)
        spent_s = self._clock.monotonic() - asked  # its life began somewhere on the way
        left_s = grant.expires_in_s - spent_s
        self._loaded = True
        self._use(grant.access_token, left_s, early_s=min(self._early_s, max(left_s, 0.0) / 2))
        log.info("app_token.minted", audience=self.access.audience, scope=self.access.scope)
        if self._store is not None:
            kept = KeptToken(
                grant.access_token, asked_ms, asked_ms + int(grant.expires_in_s * 1000)
            )
            try:
                await asyncio.to_thread(self._store.save, self.access, kept)
            except (BridgeError, OSError) as trouble:
                # Nothing is lost but a minting at the next start.
                log.warning("app_token.not_saved", error=type(trouble).__name__)
        return grant.access_token

    def _use(self, token: str, left_s: float, *, early_s: float) -> None:
        self._token = token
        self._expires_at_ms = self._clock.now_ms() + int(left_s * 1000)
        self._dead_at = self._clock.monotonic() + left_s
        self._mint_at = self._dead_at - early_s


class AppTokens:
    """One `AppToken` for each audience and scope, however often it is asked for."""

    def __init__(
        self, mint: Mint, store: AppTokenStore | None, *, clock: Clock, early_s: float
    ) -> None:
        self._mint = mint
        self._store = store
        self._clock = clock
        self._early_s = early_s
        self._tokens: dict[Access, AppToken] = {}

    def of(self, access: Access) -> AppToken:
        """Return the token of this audience and scope; nothing is minted before it is used."""
        known = self._tokens.get(access)
        if known is None:
            known = AppToken(
                access, self._mint, self._store, clock=self._clock, early_s=self._early_s
            )
            self._tokens[access] = known
        return known

    async def close(self) -> None:
        """End mintings that nobody waits for."""
        for token in self._tokens.values():
            await token.close()


def _seen(task: asyncio.Task[str]) -> None:
    if not task.cancelled():
        task.exception()  # told to whoever waited; if nobody did, it is no news for the loop
