"""Keeping access tokens fresh. Specification: Authentication, rules 3 and 4; Limits.

A token's age is measured on the monotonic clock while the program runs, so that a jump of the wall
clock neither uses a dead token nor throws away a good one.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
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
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.service.answers import CONSENT_MISSING
from tillbridge.service.types import Tokens

_log = get_logger()


class TokenStore(Protocol):
    """Where one store's tokens are kept, encrypted. Both may block; they run in a thread."""

    def load(self) -> Tokens | None:
        """Return what is kept, None where there is nothing readable."""
        ...

    def save(self, tokens: Tokens) -> None:
        """Keep the tokens; on return they are on disk. Raises BridgeError or OSError."""
        ...


class MemoryTokens:
    """A `TokenStore` that forgets with the program."""

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens

    def load(self) -> Tokens | None:
        """Return what is kept."""
        return self._tokens

    def save(self, tokens: Tokens) -> None:
        """Keep the tokens until the program ends."""
        self._tokens = tokens


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """A fresh access token; `expires_in_s` from now, in seconds."""

    access_token: str = field(repr=False)
    expires_in_s: float
    scope: str = ""


Refresh = Callable[[str], Awaitable[AccessGrant]]


class RenewalLimit:
    """Lets refused tokens be renewed, and a token that does not help not again for a while.

    Minting a token per request counts against the rate limit (specification: Limits). A token that
    is refused soon after its renewal was not refused for its age: the next renewal waits for ten
    seconds, then for twice as long each time, up to five minutes.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._renewed_at = float("-inf")  # monotonic
        self._wait_s = 0.0

    def allows(self) -> bool:
        """Whether a token that was refused just now may be renewed."""
        age_s = self._clock.monotonic() - self._renewed_at
        if age_s >= 2 * _LONGEST_RENEWAL_WAIT_S:
            self._wait_s = 0.0  # it was good for some time
        return age_s >= self._wait_s

    def renewed(self) -> None:
        """Take note of a renewal after a refusal."""
        self._renewed_at = self._clock.monotonic()
        longer_s = 2 * self._wait_s or _FIRST_RENEWAL_WAIT_S
        self._wait_s = min(longer_s, _LONGEST_RENEWAL_WAIT_S)


class CachedToken(ABC):
    """An access token: renewed early, by one call however many wait for it.

    Its age is measured on the monotonic clock. A token that the service refuses is renewed once
    for all who used it. What the renewal meets is raised as it is.
    """

    def __init__(self, *, clock: Clock, early_s: float) -> None:
        self._clock = clock
        self._longest_early_s = early_s
        self._renew_at = 0.0  # monotonic
        self._dead_at = 0.0  # monotonic
        self._renewing: asyncio.Task[str] | None = None
        self._renewals = RenewalLimit(clock)

    async def access_token(self) -> str:
        """Return a token that is good for a while."""
        token = await self._current()
        if self._clock.monotonic() < self._renew_at:
            return token
        try:
            return await self._shared_renewal()
        except (Unreachable, ServiceDown, OutcomeUnknown, RateLimited):
            now = self._clock.monotonic()
            if now < self._dead_at:
                self._renew_at = now + _NEXT_EARLY_TRY_S
                return token  # early is only early: this one still works
            raise

    async def renewed(self, refused: str) -> str | None:
        """Return another token than the one the service has just refused with a 401.

        None where such a renewal has not helped a moment ago.
        """
        token = await self._current()
        if token and token != refused:
            return token  # somebody else has renewed it meanwhile
        if not self._renewals.allows():
            return None
        token = await self._shared_renewal()
        self._renewals.renewed()
        return token

    async def close(self) -> None:
        """End a renewal that nobody waits for any more."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])

    @abstractmethod
    async def _current(self) -> str:
        """Return the token that is there, "" for none."""

    @abstractmethod
    async def _renew(self) -> str:
        """Get a new token, use it and keep it."""

    async def _shared_renewal(self) -> str:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew())
            self._renewing.add_done_callback(_seen)
        # One caller that gives up must not end the renewal that the others wait for.
        return await asyncio.shield(self._renewing)

    def _lives(self, left_s: float, *, early_s: float) -> None:
        """Count the life of the token that is used from now on."""
        self._dead_at = self._clock.monotonic() + left_s
        self._renew_at = self._dead_at - early_s

    def _early_s(self, lifetime_s: float) -> float:
        """Return how long before its end a token is renewed; one that lives shortly, halfway."""
        return min(self._longest_early_s, max(lifetime_s, 0.0) / 2)


class TokenKeeper(CachedToken):
    """One store's tokens, refreshed before the access token ends.

    Once the consent is lost every caller hears so at once, without a call, until new tokens are
    given with `adopt` (or found by `reload`). What a refresh meets is raised: ConsentLost too.
    """

    def __init__(
        self, store: TokenStore, refresh: Refresh, *, clock: Clock, refresh_early_s: float = 60.0
    ) -> None:
        super().__init__(clock=clock, early_s=refresh_early_s)
        self._store = store
        self._refresh = refresh
        self._loaded = False
        self._tokens: Tokens | None = None
        self._lost: ConsentLost | None = None

    async def tokens(self) -> Tokens | None:
        """Return the tokens in force, None where the merchant has not consented yet."""
        if not self._loaded:
            await self.reload()
        return self._tokens

    @property
    def lost(self) -> ConsentLost | None:
        """Why the consent is gone, as far as is known."""
        return self._lost

    async def reload(self) -> None:
        """Read the kept tokens again: another process may have renewed the consent."""
        kept = await asyncio.to_thread(self._store.load)
        self._loaded = True
        if kept is None:
            return
        if self._tokens is None or kept.refresh_token != self._tokens.refresh_token:
            left_s = (kept.access_expires_at_ms - self._clock.now_ms()) / 1000
            self._use(kept, min(left_s, _LONGEST_KEPT_S), early_s=self._longest_early_s)

    async def adopt(self, tokens: Tokens) -> None:
        """Keep the tokens of a new consent, and then use them."""
        await asyncio.to_thread(self._store.save, tokens)
        left_s = (tokens.access_expires_at_ms - self._clock.now_ms()) / 1000
        self._loaded = True
        self._use(tokens, left_s, early_s=self._early_s(left_s))

    def mark_lost(self, failure: ConsentLost, token: str) -> None:
        """Take note that the service answered a call with `token` that the consent is gone."""
        if self._tokens is not None and self._tokens.access_token == token:
            self._lost = failure

    async def _current(self) -> str:
        return (await self._in_force()).access_token

    async def _in_force(self) -> Tokens:
        tokens = await self.tokens()
        if tokens is None:
            raise ConsentLost(
                _("The merchant has not yet allowed this bridge to work for the store."),
                code=CONSENT_MISSING,
            )
        if self._lost is not None:
            raise _again(self._lost)
        return tokens

    async def _renew(self) -> str:
        before = await self._in_force()
        try:
            grant = await self._refresh(before.refresh_token)
        except ConsentLost as failure:
            if self._tokens is before:
                self._lost = failure
            raise
        if self._tokens is not before and self._tokens is not None:
            return self._tokens.access_token  # a new consent came meanwhile
        tokens = replace(
            before,
            access_token=grant.access_token,
            access_expires_at_ms=self._clock.now_ms() + int(grant.expires_in_s * 1000),
            scope=grant.scope or before.scope,
        )
        try:
            await asyncio.to_thread(self._store.save, tokens)
        except (BridgeError, OSError) as trouble:
            # Nothing is lost: the refresh token is the old one, and it is kept.
            _log.warning("tokens.not_saved", error=type(trouble).__name__)
        if self._tokens is before:
            self._use(tokens, grant.expires_in_s, early_s=self._early_s(grant.expires_in_s))
        return grant.access_token

    def _use(self, tokens: Tokens, left_s: float, *, early_s: float) -> None:
        self._tokens, self._lost = tokens, None
        self._lives(left_s, early_s=early_s)


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


class AppToken(CachedToken):
    """The token of one audience and scope, minted with the app's own id and secret.

    Specification: Authentication, rule 3; for the community and reporting APIs. There is no refresh
    token: it is minted anew, and kept where the next run finds it. What minting meets is raised:
    Refused (`auth.invalid_client`, or an audience or scope that the service does not know),
    Unreachable, ServiceDown, RateLimited.
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
        super().__init__(clock=clock, early_s=early_s)
        self.access = access
        self._mint = mint
        self._store = store
        self._token = ""
        self._expires_at_ms = 0
        self._loaded = store is None

    @property
    def expires_at_ms(self) -> int:
        """When the token ends by the wall clock, for people; 0 where there is none yet."""
        return self._expires_at_ms

    def mark_lost(self, failure: ConsentLost, token: str) -> None:
        """Do nothing: no merchant's consent is behind such a token."""

    async def _current(self) -> str:
        if not self._loaded:
            await self._load()
        return self._token

    async def _load(self) -> None:
        store = self._store
        kept = None if store is None else await asyncio.to_thread(store.load, self.access)
        if self._loaded:
            return  # somebody else has loaded, or minted, meanwhile
        self._loaded = True
        if kept is None or kept.minted_at_ms > self._clock.now_ms():
            return  # a wall clock that was set back knows no token's age
        left_s = (kept.expires_at_ms - self._clock.now_ms()) / 1000
        self._use(
            kept.access_token, min(left_s, _LONGEST_APP_KEPT_S), early_s=self._longest_early_s
        )

    async def _renew(self) -> str:
        asked, asked_ms = self._clock.monotonic(), self._clock.now_ms()
        grant = await self._mint(self.access)
        spent_s = self._clock.monotonic() - asked  # its life began somewhere on the way
        left_s = grant.expires_in_s - spent_s
        self._loaded = True
        self._use(grant.access_token, left_s, early_s=self._early_s(left_s))
        _log.info("app_token.minted", audience=self.access.audience, scope=self.access.scope)
        if self._store is not None:
            kept = KeptToken(
                grant.access_token, asked_ms, asked_ms + int(grant.expires_in_s * 1000)
            )
            try:
                await asyncio.to_thread(self._store.save, self.access, kept)
            except (BridgeError, OSError) as trouble:
                # Nothing is lost but a minting at the next start.
                _log.warning("app_token.not_saved", error=type(trouble).__name__)
        return grant.access_token

    def _use(self, token: str, left_s: float, *, early_s: float) -> None:
        self._token = token
        self._expires_at_ms = self._clock.now_ms() + int(left_s * 1000)
        self._lives(left_s, early_s=early_s)


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


_NEXT_EARLY_TRY_S = 10.0  # so that orders are not held up by one vain refresh after the other
_FIRST_RENEWAL_WAIT_S = 10.0
_LONGEST_RENEWAL_WAIT_S = 300.0
_LONGEST_KEPT_S = 3600.0  # access token lifetime: a wall clock set back must not stretch it
_LONGEST_APP_KEPT_S = 24 * 3600.0  # whatever a file or a wall clock says


def _again(failure: ConsentLost) -> ConsentLost:
    """Return a fresh copy: an exception that is raised again and again gathers tracebacks."""
    return ConsentLost(
        failure.text,
        code=failure.code,
        status=failure.status,
        operation=failure.operation,
        fix=failure.fix,
    )


def _seen(task: asyncio.Task[str]) -> None:
    if not task.cancelled():
        task.exception()  # told to whoever waited; if nobody did, it is no news for the loop
