"""Counts down each store's consent. Specification: Authentication, rule 4."""

from tillbridge.core.clock import Clock
from tillbridge.core.spans import days_left
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.service.tokens import TokenKeeper
from tillbridge.stores.consent import note_consent

_DAY_MS = 86_400_000


async def count_down(
    store: str,
    keeper: TokenKeeper,
    ledger: Ledger,
    desk: ProblemTracker,
    *,
    clock: Clock,
    warn_days: float,
) -> None:
    """Open or close the problems that the calendar alone decides; to be called now and then."""
    tokens = await keeper.tokens()
    if tokens is None:
        desk.open("consent.missing", store)
        return
    desk.close("consent.missing", store)
    now = clock.now_ms()
    await note_consent(ledger, store, tokens, at_ms=now)
    left_ms = tokens.consent_expires_at_ms - now
    # That it has ended is the service's to say: some refresh a consent for longer than seven days.
    if left_ms <= warn_days * _DAY_MS and keeper.lost is None:
        desk.open("consent.ending", store, left=days_left(left_ms))
    else:
        desk.close("consent.ending", store)
