"""Which problem a failure of the service is, if any. Pure.

The codes are those of `tillbridge.core.problems`; who opens and closes them is up to the caller.
"""

from tillbridge.core.errors import (
    ConsentLost,
    OutcomeUnknown,
    ServiceDown,
    ServiceError,
    Unauthorised,
    Unreachable,
)
from tillbridge.service.answers import BAD_CLIENT, CONSENT_REVOKED
from tillbridge.service.tokens import CONSENT_MISSING

NOT_INTEGRATED = "store.not_integrated"
PUSH_NOT_ALLOWED = "menu.push_not_allowed"

_BY_CODE = {
    BAD_CLIENT: "service.bad_client",
    NOT_INTEGRATED: "integration.missing",
    PUSH_NOT_ALLOWED: "menu.push_not_allowed",
}


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
