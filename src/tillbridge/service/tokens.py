"""Keeping access tokens fresh. Specification: Authentication, rules 3 and 4; Limits.

A token's age is measured on the monotonic clock while the program runs, so that a jump of the wall
clock neither uses a dead token nor throws away a good one.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

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

_NEXT_EARLY_TRY_S = 10.0  # so that orders do not wait for one futile refresh after another
_FIRST_RENEWAL_WAIT_S = 10.0
_LONGEST_RENEWAL_WAIT_S = 300.0
_LONGEST_STORED_S = 3600.0  # access token lifetime: a wall clock set back must not stretch it
_LONGEST_APP_STORED_S = 24 * 3600.0  # whatever a file or a wall clock says

_log = get_logger()


class TokenStore:
    """Stores one store's tokens; this class in memory, until the program ends.

    Subclasses store them encrypted. Both methods may block; they run in a thread.
    """

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens

    def load(self) -> Tokens | None:
        """Return the stored tokens, or None if there is nothing readable."""
        return self._tokens

    def save(self, tokens: Tokens) -> None:
        """Store the tokens; on return they are on disk. Raises BridgeError or OSError."""
        self._tokens = tokens


MemoryTokens = TokenStore


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """A fresh access token; `expires_in_s` from now, in seconds."""

    access_token: str = field(repr=False)
    expires_in_s: float
    scope: str = ""


class CachedToken(ABC):
    """An access token: renewed early, by a single call however many wait for it.

    Its age is measured on the monotonic clock. A token that the service refuses is renewed once for
    everybody who used it. Failures of the renewal are raised unchanged.
    """

    def __init__(self, *, clock: Clock, early_s: float) -> None:
        self._clock = clock
        self._longest_early_s = early_s
        self._loaded = False
        self._token = ""
        self._renew_at = 0.0  # monotonic; 0 if there is no usable token
        self._dead_at = 0.0  # monotonic
        self._renewing: asyncio.Task[str] | None = None
        # Minting a token per request counts against the rate limit (specification: Limits). A token
        # that is refused soon after its renewal was not refused because of its age: the next
        # renewal waits for ten seconds, then twice as long each time, up to five minutes.
        self._renewed_at = float("-inf")  # monotonic; after a refusal
        self._renewal_wait_s = 0.0

    async def access_token(self) -> str:
        """Return a token that stays valid for a while."""
        if self._clock.monotonic() < self._renew_at:
            return self._token
        token = await self._current()
        if self._clock.monotonic() < self._renew_at:
            return token
        try:
            return await self._shared_renewal()
        except (Unreachable, ServiceDown, OutcomeUnknown, RateLimited):
            now = self._clock.monotonic()
            if now < self._dead_at:
                self._renew_at = now + _NEXT_EARLY_TRY_S
                return token  # it was renewed early, so this one still works
            raise

    async def renewed(self, refused: str) -> str | None:
        """Return another token than the one that the service has just refused with a 401.

        None if such a renewal has not helped a moment ago.
        """
        token = await self._current()
        if token and token != refused:
            return token  # somebody else has renewed it in the meantime
        age_s = self._clock.monotonic() - self._renewed_at
        if age_s >= 2 * _LONGEST_RENEWAL_WAIT_S:
            self._renewal_wait_s = 0.0  # it was valid for some time
        if age_s < self._renewal_wait_s:
            return None
        token = await self._shared_renewal()
        self._renewed_at = self._clock.monotonic()
        longer_s = 2 * self._renewal_wait_s or _FIRST_RENEWAL_WAIT_S
        self._renewal_wait_s = min(longer_s, _LONGEST_RENEWAL_WAIT_S)
        return token

    def mark_lost(self, failure: ConsentLost, token: str) -> None:  # noqa: B027 -- an app's token has no consent
        """Record that the service answered a call with `token` that the consent is gone."""

    async def close(self) -> None:
        """Cancel a renewal that nobody waits for any more."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])

    @abstractmethod
    async def _current(self) -> str:
        """Return the present token, "" if there is none."""

    @abstractmethod
    async def _renew(self) -> str:
        """Get a new token, use it and store it."""

    async def _shared_renewal(self) -> str:
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew())
            self._renewing.add_done_callback(
                # Raised to whoever waited; if nobody did, the loop need not report it.
                lambda done: done.cancelled() or done.exception()
            )
        # If one caller gives up, the renewal must continue for the others.
        return await asyncio.shield(self._renewing)

    def _use(self, token: str, left_s: float, *, fresh: bool) -> None:
        """Count the token's lifetime from now on; a fresh one with a short life ends halfway."""
        early_s = self._longest_early_s
        if fresh:
            early_s = min(early_s, max(left_s, 0.0) / 2)
        self._token, self._loaded = token, True
        self._dead_at = self._clock.monotonic() + left_s
        self._renew_at = self._dead_at - early_s

    async def _saved(self, event: str, save: Callable[..., None], *values: object) -> None:
        """Store a token. If that fails, only a renewal at the next start is lost."""
        try:
            await asyncio.to_thread(save, *values)
        except (BridgeError, OSError) as trouble:
            _log.warning(event, error=type(trouble).__name__)


class StoreTokens(CachedToken):
    """One store's tokens, refreshed before the access token expires.

    Once the consent is lost, every caller is refused immediately, without a call, until new tokens
    are given with `adopt` (or found by `reload`). Failures of a refresh are raised, also
    ConsentLost.
    """

    def __init__(
        self,
        store: TokenStore,
        refresh: Callable[[str], Awaitable[AccessGrant]],
        *,
        clock: Clock,
        refresh_early_s: float = 60.0,
    ) -> None:
        super().__init__(clock=clock, early_s=refresh_early_s)
        self._store = store
        self._refresh = refresh
        self._tokens: Tokens | None = None
        self.lost: ConsentLost | None = None  # why the consent is gone, as far as known

    async def tokens(self) -> Tokens | None:
        """Return the current tokens, or None if the merchant has not consented yet."""
        if not self._loaded:
            await self.reload()
        return self._tokens

    async def reload(self) -> None:
        """Read the stored tokens again: another process may have renewed the consent."""
        stored = await asyncio.to_thread(self._store.load)
        self._loaded = True
        if stored is None:
            return
        if self._tokens is None or stored.refresh_token != self._tokens.refresh_token:
            left_s = (stored.access_expires_at_ms - self._clock.now_ms()) / 1000
            self._adopted(stored, min(left_s, _LONGEST_STORED_S), fresh=False)

    async def adopt(self, tokens: Tokens) -> None:
        """Store the tokens of a new consent, then use them."""
        await asyncio.to_thread(self._store.save, tokens)
        left_s = (tokens.access_expires_at_ms - self._clock.now_ms()) / 1000
        self._adopted(tokens, left_s, fresh=True)

    def mark_lost(self, failure: ConsentLost, token: str) -> None:
        """Record that the service answered a call with `token` that the consent is gone."""
        if self._tokens is not None and self._tokens.access_token == token:
            self.lost, self._renew_at = failure, 0.0

    async def _current(self) -> str:
        return (await self._in_force()).access_token

    async def _in_force(self) -> Tokens:
        tokens = await self.tokens()
        if tokens is None:
            raise ConsentLost(
                _("The owner has not yet given this bridge access to the store."),
                code=CONSENT_MISSING,
            )
        if (lost := self.lost) is not None:
            # A fresh copy: an exception that is raised repeatedly accumulates tracebacks.
            raise lost.reworded(ConsentLost, lost.text, lost.fix)
        return tokens

    async def _renew(self) -> str:
        before = await self._in_force()
        try:
            grant = await self._refresh(before.refresh_token)
        except ConsentLost as failure:
            self.mark_lost(failure, before.access_token)
            raise
        if self._tokens is not before and self._tokens is not None:
            return self._tokens.access_token  # there is a new consent in the meantime
        tokens = replace(
            before,
            access_token=grant.access_token,
            access_expires_at_ms=self._clock.now_ms() + int(grant.expires_in_s * 1000),
            scope=grant.scope or before.scope,
        )
        await self._saved("tokens.not_saved", self._store.save, tokens)
        if self._tokens is before:
            self._adopted(tokens, grant.expires_in_s, fresh=True)
        return grant.access_token

    def _adopted(self, tokens: Tokens, left_s: float, *, fresh: bool) -> None:
        self._tokens, self.lost = tokens, None
        self._use(tokens.access_token, left_s, fresh=fresh)


@dataclass(frozen=True, slots=True)
class Access:
    """What a token is for; `scope` is space-separated, "" for none."""

    audience: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token with the wall clock's times (ms) of its minting and its expiry."""

    access_token: str = field(repr=False)
    minted_at_ms: int
    expires_at_ms: int


class AppTokenStore:
    """Stores app-level tokens; this class in memory. As `TokenStore`."""

    def __init__(self) -> None:
        self._tokens: dict[Access, StoredToken] = {}

    def load(self, access: Access) -> StoredToken | None:
        """Return the stored token, or None if there is nothing readable."""
        return self._tokens.get(access)

    def save(self, access: Access, token: StoredToken) -> None:
        """Store the token, replacing the previous one. Raises BridgeError or OSError."""
        self._tokens[access] = token


class AppToken(CachedToken):
    """The token of one audience and scope, minted with the app's own id and secret.

    Specification: Authentication, rule 3; for the community and reporting APIs. There is no refresh
    token: a new one is minted, and stored for the next run. Failures of minting are raised: Refused
    (`auth.invalid_client`, or an unknown audience or scope), Unreachable, ServiceDown, RateLimited.
    """

    def __init__(
        self,
        access: Access,
        mint: Callable[[Access], Awaitable[AccessGrant]],
        store: AppTokenStore,
        *,
        clock: Clock,
        early_s: float = 60.0,
    ) -> None:
        super().__init__(clock=clock, early_s=early_s)
        self.access = access
        self._mint = mint
        self._store = store

    @property
    def expires_at_ms(self) -> int:
        """When the token expires by the wall clock, for people; 0 if there is none yet."""
        left_s = self._dead_at - self._clock.monotonic()
        return self._clock.now_ms() + int(left_s * 1000) if self._token else 0

    async def _current(self) -> str:
        if not self._loaded:
            await self._load()
        return self._token

    async def _load(self) -> None:
        stored = await asyncio.to_thread(self._store.load, self.access)
        if self._loaded:
            return  # somebody else has loaded or minted one in the meantime
        self._loaded, now_ms = True, self._clock.now_ms()
        if stored is None or stored.minted_at_ms > now_ms:
            return  # the clock was set back, so the token's age is unknown
        left_s = min((stored.expires_at_ms - now_ms) / 1000, _LONGEST_APP_STORED_S)
        self._use(stored.access_token, left_s, fresh=False)

    async def _renew(self) -> str:
        asked, asked_ms = self._clock.monotonic(), self._clock.now_ms()
        grant = await self._mint(self.access)
        spent_s = self._clock.monotonic() - asked  # its lifetime began somewhere in between
        self._use(grant.access_token, grant.expires_in_s - spent_s, fresh=True)
        _log.info("app_token.minted", audience=self.access.audience, scope=self.access.scope)
        expires_at_ms = asked_ms + int(grant.expires_in_s * 1000)
        stored = StoredToken(grant.access_token, asked_ms, expires_at_ms)
        await self._saved("app_token.not_saved", self._store.save, self.access, stored)
        return grant.access_token


TokenKeeper = StoreTokens  # its former name
