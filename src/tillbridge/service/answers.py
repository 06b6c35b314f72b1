"""From HTTP status and error envelope to a failure, and from the failure to the retry. Pure.

Specification: Errors. Clients branch on the code; without one, the status decides. The type of the
failure says how to recover, and this table is the only retry policy:

| failure | decision |
|---|---|
| 401 | refresh the token once, repeat once |
| 400, 403, 404, 409, 422, consent lost, unknown codes | give up |
| 429 | nobody calls before Retry-After has passed |
| 500, 502, 503, no connection, connection lost during a read | backoff with full jitter, capped |
| 504, or connection lost after sending a write | read state; repeat only if it was not applied |
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum

from tillbridge.core.errors import (
    Conflict,
    ConsentLost,
    OutcomeUnknown,
    RateLimited,
    Refused,
    ServiceDown,
    ServiceError,
    Unauthorised,
    Unreachable,
)
from tillbridge.core.i18n import _
from tillbridge.model.numbers import printable

CONSENT_REVOKED = "auth.consent_revoked"
CONSENT_MISSING = "consent.missing"
BAD_CLIENT = "auth.invalid_client"
NOT_INTEGRATED = "store.not_integrated"
PUSH_NOT_ALLOWED = "menu.push_not_allowed"

_BY_CODE = {
    BAD_CLIENT: "service.bad_client",
    NOT_INTEGRATED: "integration.missing",
    PUSH_NOT_ALLOWED: "menu.push_not_allowed",
}


class Kind(Enum):
    """Whether a call changes something at the service."""

    READ = "read"
    WRITE = "write"


_LONGEST_MESSAGE = 300
_LONGEST_CODE = 80
_NO_RETRY_AFTER_S = 1.0
_LONGEST_RETRY_AFTER_S = 24 * 3600.0


def failure_of(
    status: int,
    body: object,
    headers: Mapping[str, str],
    *,
    operation: str,
    kind: Kind,
    now_ms: int,
) -> ServiceError:
    """Return the failure for an answer that is not 2xx; `body` is its JSON value, if any."""
    code, message = _envelope(body)
    text = _text(status, message)
    if status == 429:
        wait = retry_after_s(headers, now_ms=now_ms)
        return RateLimited(
            text, retry_after_s=wait, code=code or "rate.limited", operation=operation
        )
    # Redirects are never followed with a token; other statuses are like unknown codes: give up.
    failure: type[ServiceError] = Refused
    if code == CONSENT_REVOKED:
        failure = ConsentLost
    elif status == 401 and code != BAD_CLIENT:
        failure = Unauthorised
    elif status == 409:
        failure = Conflict
    elif status >= 500:
        # Beyond the table there are only gateways' own codes (52x), which know as little as a 504.
        unknown = kind is Kind.WRITE and status not in {500, 502, 503}
        failure = OutcomeUnknown if unknown else ServiceDown
    return failure(text, code=code, status=status, operation=operation)


def retry_after_s(headers: Mapping[str, str], *, now_ms: int) -> float:
    """Return Retry-After in seconds, from seconds or an HTTP date; 1 if it is missing.

    A date is compared with the answer's own Date, so that a wrong local clock does not matter.
    """
    given = headers.get("Retry-After", "").strip()
    try:
        seconds = float(given)
    except ValueError:
        until, now = _http_date(given), _http_date(headers.get("Date", ""))
        if until is None:
            return _NO_RETRY_AFTER_S
        seconds = until - (now_ms / 1000 if now is None else now)
    if not math.isfinite(seconds):
        return _NO_RETRY_AFTER_S
    return min(max(seconds, 0.0), _LONGEST_RETRY_AFTER_S)


def _http_date(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _envelope(body: object) -> tuple[str, str]:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", ""
    code, message = error.get("code"), error.get("message")
    return (
        printable(code, most=_LONGEST_CODE) if isinstance(code, str) else "",
        printable(message, most=_LONGEST_MESSAGE) if isinstance(message, str) else "",
    )


def _text(status: int, message: str) -> str:
    if 300 <= status < 400:
        return _("The ordering service answered with a redirect, which the bridge does not follow.")
    if message:
        return _("The ordering service says: {message}").format(message=message)
    return _("The ordering service answered with status {status}.").format(status=status)


def problem_of(failure: ServiceError) -> str | None:
    """Return the problem code for `failure`; None if only this call is concerned."""
    match failure:
        case Unreachable() | ServiceDown() | OutcomeUnknown():
            return "service.unreachable"
        case ConsentLost(code=code):
            return {CONSENT_REVOKED: "consent.revoked", CONSENT_MISSING: "consent.missing"}.get(
                code, "consent.expired"
            )
        case Unauthorised():
            return "service.token_refused"  # even a fresh one: it was refreshed and sent again
        case _:
            return _BY_CODE.get(failure.code)


# -- what to do next


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one call keeps trying before it is left to the caller. Durations in seconds."""

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
    """Read the state after this many seconds; if it shows nothing and `repeat`, try again."""

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
    """Return what to do after try number `attempt` (from 1) failed with `failure`.

    `refreshed` says whether this call already got its new token; `random` is from [0, 1].
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
    """Return a full-jitter pause in seconds: random up to a bound that doubles up to a cap."""
    doublings = min(attempt - 1, 32)  # beyond that the cap applies anyway, and floats overflow
    return random * min(limits.backoff_cap_s, limits.backoff_first_s * 2.0**doublings)
