"""Keeping a merchant's access token fresh. Specification: Authentication, rule 4; Limits.

A token's age is measured on the monotonic clock while the program runs, so that a jump of the wall
clock neither uses a dead token nor throws away a good one.
"""

import asyncio
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
from tillbridge.service.types import Tokens

CONSENT_MISSING = "consent.missing"

_log = get_logger()


class TokenStore(Protocol):
    """Where one store's tokens are kept, encrypted. Both may block; they run in a thread."""

    def load(self) -> Tokens | None:
        """Return what is kept, None where there is nothing readable."""
        ...

    def save(self, tokens: Tokens) -> None:
        """Keep the tokens; on return they are on disk. Raises BridgeError or OSError."""
        ...


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


class TokenKeeper:
    """One store's tokens: refreshed early, by one call however many wait, and kept first.

    Once the consent is lost every caller is told so at once, without a call, until new tokens are
    given with `adopt` (or found by `reload`).
    """

    def __init__(
        self, store: TokenStore, refresh: Refresh, *, clock: Clock, refresh_early_s: float = 60.0
    ) -> None:
        self._store = store
        self._refresh = refresh
        self._clock = clock
        self._refresh_early_s = refresh_early_s
        self._loaded = False
        self._tokens: Tokens | None = None
        self._refresh_at = 0.0  # monotonic
        self._dead_at = 0.0  # monotonic
        self._lost: ConsentLost | None = None
        self._refreshing: asyncio.Task[str] | None = None
        self._renewals = RenewalLimit(clock)

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
            self._use(kept, min(left_s, _LONGEST_KEPT_S), early_s=self._refresh_early_s)

    async def adopt(self, tokens: Tokens) -> None:
        """Keep the tokens of a new consent, and then use them."""
        await asyncio.to_thread(self._store.save, tokens)
        left_s = (tokens.access_expires_at_ms - self._clock.now_ms()) / 1000
        self._loaded = True
        self._use(tokens, left_s, early_s=self._early_s(left_s))

    async def access_token(self) -> str:
        """Return a token that is good for a while. Raises ConsentLost, or what a refresh meets."""
        tokens = await self._in_force()
        if self._clock.monotonic() < self._refresh_at:
            return tokens.access_token
        try:
            return await self._refreshed()
        except (Unreachable, ServiceDown, OutcomeUnknown, RateLimited):
            now = self._clock.monotonic()
            if now < self._dead_at:
                self._refresh_at = now + _NEXT_EARLY_TRY_S
                return tokens.access_token  # early is only early: this one still works
            raise

    async def renewed(self, refused: str) -> str | None:
        """Return another token than the one the service has just refused with a 401.

        None where such a refresh has not helped a moment ago.
        """
        tokens = await self._in_force()
        if tokens.access_token != refused:
            return tokens.access_token  # somebody else has refreshed it meanwhile
        if not self._renewals.allows():
            return None
        token = await self._refreshed()
        self._renewals.renewed()
        return token

    def mark_lost(self, failure: ConsentLost, token: str) -> None:
        """Take note that the service answered a call with `token` that the consent is gone."""
        if self._tokens is not None and self._tokens.access_token == token:
            self._lost = failure

    async def close(self) -> None:
        """End a refresh that nobody waits for any more."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait([self._refreshing])

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

    async def _refreshed(self) -> str:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._do_refresh())
            self._refreshing.add_done_callback(_seen)
        # One caller that gives up must not end the refresh that the others wait for.
        return await asyncio.shield(self._refreshing)

    async def _do_refresh(self) -> str:
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

    def _early_s(self, lifetime_s: float) -> float:
        """Return how long before its end a token is refreshed; one that lives shortly, halfway."""
        return min(self._refresh_early_s, max(lifetime_s, 0.0) / 2)

    def _use(self, tokens: Tokens, left_s: float, *, early_s: float) -> None:
        self._tokens, self._lost = tokens, None
        self._dead_at = self._clock.monotonic() + left_s
        self._refresh_at = self._dead_at - early_s


_NEXT_EARLY_TRY_S = 10.0  # so that orders are not held up by one vain refresh after the other
_FIRST_RENEWAL_WAIT_S = 10.0
_LONGEST_RENEWAL_WAIT_S = 300.0
_LONGEST_KEPT_S = 3600.0  # access token lifetime: a wall clock set back must not stretch it


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
