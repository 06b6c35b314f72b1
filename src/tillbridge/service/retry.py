"""The retry policy: the specification's status table, and nothing else (Errors). Pure.

| failure | decision |
|---|---|
| 401 | refresh the token once, repeat once |
| 400, 403, 404, 409, 422, consent lost, unknown codes | give up |
| 429 | nobody calls before Retry-After has passed |
| 500, 502, 503, no connection, a line dropped under a read | backoff with full jitter, capped |
| 504, or a line dropped after a write was sent | read state; repeat only where it was not applied |
"""

from dataclasses import dataclass
from enum import Enum

from tillbridge.core.errors import (
    OutcomeUnknown,
    RateLimited,
    ServiceDown,
    ServiceError,
    Unauthorised,
    Unreachable,
)


class Kind(Enum):
    """Whether a call changes something at the service."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one call goes before it is left to the caller's own timer. Durations in seconds."""

    max_attempts: int = 5
    backoff_first_s: float = 0.5
    backoff_cap_s: float = 60.0
    rate_limit_patience_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Repeat the call after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HoldAll:
    """Repeat the call; nobody calls the service for this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """Get a new access token, then repeat the call once."""


@dataclass(frozen=True, slots=True)
class ReadState:
    """After this many seconds read the state; where it shows nothing, and `repeat`, try again."""

    seconds: float
    repeat: bool


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Let the failure stand."""


Decision = Wait | HoldAll | RefreshToken | ReadState | GiveUp


def decide(
    failure: ServiceError,
    attempt: int,
    *,
    kind: Kind,
    refreshed: bool,
    random: float,
    limits: Limits,
) -> Decision:
    """Return how to go on after try number `attempt` (from 1) ended in `failure`.

    `refreshed` says whether this call has already had its new token; `random` is from [0, 1].
    """
    more = attempt < limits.max_attempts
    pause = backoff(attempt, random=random, limits=limits)
    match failure:
        case Unauthorised():
            return GiveUp() if refreshed else RefreshToken()
        case RateLimited(retry_after_s=seconds):
            patient = seconds <= limits.rate_limit_patience_s
            return HoldAll(seconds) if more and patient else GiveUp()
        case OutcomeUnknown() if kind is Kind.WRITE:
            return ReadState(pause, repeat=more)
        case Unreachable() | ServiceDown() | OutcomeUnknown():
            return Wait(pause) if more else GiveUp()
        case _:
            return GiveUp()


def backoff(attempt: int, *, random: float, limits: Limits) -> float:
    """Return a full-jitter pause in seconds: anything up to a bound that doubles up to a cap."""
    doublings = min(attempt - 1, 32)  # beyond that the cap holds anyway, and floats overflow
    return random * min(limits.backoff_cap_s, limits.backoff_first_s * 2.0**doublings)
