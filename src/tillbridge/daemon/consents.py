"""Counts down each store's consent. Specification: Authentication, rule 4."""

from tillbridge.clock import Clock
from tillbridge.i18n import ngettext
from tillbridge.ledger.desk import ProblemDesk
from tillbridge.ledger.ledger import Ledger
from tillbridge.service.tokens import TokenKeeper
from tillbridge.stores.consent import note_consent

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


async def count_down(
    store: str,
    keeper: TokenKeeper,
    ledger: Ledger,
    desk: ProblemDesk,
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
    if left_ms <= 0:
        desk.open("consent.expired", store)
    if 0 < left_ms <= warn_days * _DAY_MS:
        desk.open("consent.ending", store, left=_in_words(left_ms))
    else:
        desk.close("consent.ending", store)


def _in_words(left_ms: int) -> str:
    days = left_ms // _DAY_MS
    if days:
        return ngettext("{n} day", "{n} days", days).format(n=days)
    hours = max(1, left_ms // _HOUR_MS)
    return ngettext("{n} hour", "{n} hours", hours).format(n=hours)
