"""From an HTTP status and the error envelope to the failure that says how to recover. Pure.

Specification: Errors. Clients branch on code; where there is none, the status decides.
"""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn, TypedDict

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
from tillbridge.model.numbers import parse_json_float
from tillbridge.service.retry import Kind

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


class _Said(TypedDict):
    code: str
    status: int
    operation: str


_LONGEST_MESSAGE = 300
_LONGEST_CODE = 80
_NO_RETRY_AFTER_S = 1.0
_LONGEST_RETRY_AFTER_S = 24 * 3600.0


def parse_json(raw: bytes) -> Any:  # noqa: ANN401 -- JSON is anything
    """Return the value in a body, fractions as Decimal. Raises ValueError where it is no JSON."""
    try:
        return json.loads(raw, parse_float=parse_json_float, parse_constant=_refuse_constant)
    except RecursionError:
        msg = "nested too deeply"
        raise ValueError(msg) from None


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def failure_of(
    status: int, raw: bytes, headers: Mapping[str, str], *, operation: str, kind: Kind, now_ms: int
) -> ServiceError:
    """Return the failure for an answer that is not 2xx. Never raises, whatever the body is."""
    code, message = _envelope(raw)
    text = _text(status, message)
    said = _Said(code=code, status=status, operation=operation)
    if status == 429:
        wait = retry_after_s(headers, now_ms=now_ms)
        return RateLimited(
            text, retry_after_s=wait, code=code or "rate.limited", operation=operation
        )
    if code == CONSENT_REVOKED:
        return ConsentLost(text, **said)
    if status == 401:
        return Refused(text, **said) if code == BAD_CLIENT else Unauthorised(text, **said)
    if status == 409:
        return Conflict(text, **said)
    if status >= 500:
        # Beyond the table are only gateways' own numbers (52x), which know as little as a 504 does.
        unknown = kind is Kind.WRITE and status not in {500, 502, 503}
        return OutcomeUnknown(text, **said) if unknown else ServiceDown(text, **said)
    # Redirects are never followed with a token; other statuses are as unknown codes: never again.
    return Refused(text, **said)


def retry_after_s(headers: Mapping[str, str], *, now_ms: int) -> float:
    """Return Retry-After in seconds, told as seconds or as an HTTP date; 1 where it is missing.

    A date is measured against the answer's own Date, so that a wrong clock here does not matter.
    """
    told = headers.get("Retry-After", "").strip()
    try:
        seconds = float(told)
    except ValueError:
        until, now = _http_date(told), _http_date(headers.get("Date", ""))
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


def _envelope(raw: bytes) -> tuple[str, str]:
    try:
        body = parse_json(raw)
    except ValueError:
        return "", ""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return "", ""
    code, message = error.get("code"), error.get("message")
    return (
        one_line(code, _LONGEST_CODE) if isinstance(code, str) else "",
        one_line(message, _LONGEST_MESSAGE) if isinstance(message, str) else "",
    )


def one_line(text: str, longest: int) -> str:
    """Return a stranger's text fit for a log and a page: one line, printable, not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _text(status: int, message: str) -> str:
    if 300 <= status < 400:
        return _("The ordering service answered with a redirect, which is never followed.")
    if message:
        return _("The ordering service says: {message}").format(message=message)
    return _("The ordering service answered with status {status}.").format(status=status)


def problem_of(failure: ServiceError) -> str | None:
    """Return the code of the problem that `failure` shows, None where it is the call's own."""
    match failure:
        case Unreachable() | ServiceDown() | OutcomeUnknown():
            return "service.unreachable"
        case ConsentLost(code=code):
            return {
                CONSENT_REVOKED: "consent.revoked",
                CONSENT_MISSING: "consent.missing",
            }.get(code, "consent.expired")
        case Unauthorised():
            return "service.token_refused"  # a fresh one, too: it was refreshed and sent again
        case _:
            return _BY_CODE.get(failure.code)
