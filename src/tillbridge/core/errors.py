"""Failures, by how one recovers from them.

The type of a failure decides how to recover (invariant 5); it is determined once, at the edge
that met the failure, and nobody further in looks at a status or an errno again. Failures of a
POS are in `tillbridge.adapter.failures`, since vendors raise them.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

from tillbridge.core.i18n import _

E = TypeVar("E", bound="ServiceError")


class BridgeError(Exception):
    """Something a person has to know: what happened, and what to do next."""

    def __init__(self, text: str, *, fix: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.text} {self.fix}".strip()


class ConfigError(BridgeError):
    """The configuration cannot be used. Names file, key, line and remedy.

    `field` is the option or the field of a form that it is about, "" for none.
    """

    def __init__(self, text: str, *, fix: str = "", field: str = "") -> None:
        super().__init__(text, fix=fix)
        self.field = field


class LedgerError(BridgeError):
    """The ledger cannot be used at all."""


class LedgerLocked(LedgerError):
    """Another daemon has the ledger. Never waited for: a second daemon refuses to start."""


class LedgerUnwritable(LedgerError):
    """Nothing was committed: disk full, read-only, or a failing disk. The caller answers 503."""


class LeaseLost(LedgerError):
    """Another bridge serves the store: nothing was written. This one stops acting for it."""


class NotServedHere(BridgeError):
    """This bridge does not serve the store now: nothing was done. Try again in a moment."""


class ServedElsewhere(NotServedHere):
    """Another bridge serves the store; `holder` is the id of its run, and asked instead."""

    def __init__(self, text: str, *, holder: str = "", fix: str = "") -> None:
        super().__init__(text, fix=fix)
        self.holder = holder


class LedgerUnreachable(LedgerError):
    """The database server does not answer, or does not write now. Try again later."""


class ServiceError(BridgeError):
    """The ordering service did not do what was asked (specification: Errors).

    `code` is the envelope's code ("" where the service gave none), `status` the HTTP status
    (0 if there was no answer), `operation` a short name such as "menus.push".
    """

    def __init__(
        self, text: str, *, code: str = "", status: int = 0, operation: str = "", fix: str = ""
    ) -> None:
        super().__init__(text, fix=fix)
        self.code = code
        self.status = status
        self.operation = operation

    def reworded(self, kind: type[E], text: str, fix: str, *, code: str = "") -> E:
        """Return a failure of this kind about the same answer, in other words."""
        status, operation = self.status, self.operation
        return kind(text, code=code or self.code, status=status, operation=operation, fix=fix)


class Unreachable(ServiceError):
    """No connection was made, so nothing was applied. Try again later."""


class ServiceDown(ServiceError):
    """5xx: the service failed (500, 502, 503). Try again later, with backoff and jitter."""


class OutcomeUnknown(ServiceError):
    """The line dropped or a 504 came after a write was sent: read state before repeating it."""


class RateLimited(ServiceError):
    """429: try again after `retry_after_s` seconds."""

    def __init__(
        self,
        text: str,
        *,
        retry_after_s: float,
        code: str = "rate.limited",
        operation: str = "",
        fix: str = "",
    ) -> None:
        super().__init__(text, code=code, status=429, operation=operation, fix=fix)
        self.retry_after_s = retry_after_s


class Unauthorised(ServiceError):
    """401: refresh the token once and repeat once; after that it stands."""


class ConsentLost(ServiceError):
    """The merchant's consent is missing, expired or revoked: a person must consent again."""


class Conflict(ServiceError):
    """409: read the state and reconcile; never repeat."""


class Refused(ServiceError):
    """400, 403, 404, 422 and unknown codes: the same request will never succeed."""


def own_defect(failure: Exception) -> BridgeError:
    """Return what to tell a person of a failure that nobody expected, once it is logged."""
    text = _("The bridge could not do it because of a defect of its own: {kind}.")
    fix = _("Please report it, with what the log says: tillbridge logs --level error")
    return BridgeError(text.format(kind=type(failure).__name__), fix=fix)


def reason_of(failure: OSError) -> str:
    """Return why the system refused, in its own few words: `Address already in use`."""
    if failure.errno is not None and failure.errno > 0:
        return os.strerror(failure.errno)
    return failure.strerror or str(failure)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to a misspelt one, for the remedy; None if none is near."""
    # Only for those who mistype: it need not weigh on every start.
    from difflib import get_close_matches  # noqa: PLC0415 -- (as above)

    close = get_close_matches(word, list(known), n=1)
    return close[0] if close else None
