"""What a failure of the service means for a lane: when to try again, and what a person is told."""

from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    LedgerError,
    OutcomeUnknown,
    RateLimited,
    Refused,
    ServiceDown,
    ServiceError,
    Unreachable,
)
from tillbridge.core.log import get_logger
from tillbridge.menu.lane import Lane
from tillbridge.menu.ports import Desk
from tillbridge.menu.sending import JobLost
from tillbridge.service.answers import NOT_INTEGRATED

log = get_logger()

PUSH_NOT_ALLOWED = "menu.push_not_allowed"


def after_failure(
    failure: ServiceError | JobLost | LedgerError,
    store: str,
    *,
    lane: Lane,
    desk: Desk,
    subject: str,
) -> None:
    """Let the lane try again where that can help, and tell a person where it cannot.

    What is refused for good, or waits for the merchant's consent, is not tried again by a timer:
    something has to change first. `subject` tells the lanes' problems apart.
    """
    problem = _problem(subject)
    log.warning(
        problem,
        store=store,
        subject=subject,
        failure=type(failure).__name__,
        detail=failure.text,
    )
    match failure:
        case ConsentLost():
            return  # the stores' room tells it, and wakes the lanes when consent is back
        case Refused(code=code) if code == NOT_INTEGRATED:
            return  # (as above, for the integration)
        case Unreachable():
            lane.failed()
        case RateLimited():
            lane.poke_in(failure.retry_after_s)
        case Refused(code=code) if code == PUSH_NOT_ALLOWED:
            desk.open("menu.push_not_allowed", store)
        case ServiceDown() | OutcomeUnknown() | JobLost() | LedgerError():
            lane.failed()
            if not isinstance(failure, LedgerError):
                desk.open(problem, store, subject, detail=failure.text)
        case Refused() | Conflict():
            desk.open(problem, store, subject, detail=failure.text)
        case _:
            lane.failed()


def all_well(store: str, *, lane: Lane, desk: Desk, subject: str) -> None:
    """Close what `after_failure` opened for this lane."""
    lane.worked()
    desk.close(_problem(subject), store, subject)


def _problem(subject: str) -> str:
    return "tables.push_failed" if subject == "tables" else "menu.push_failed"
