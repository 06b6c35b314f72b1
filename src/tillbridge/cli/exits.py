"""How a command ends that fails: its exit code, its sentence, and what to do."""

import os
import sys
import tempfile
from enum import IntEnum
from pathlib import Path

import tillbridge
from tillbridge.cli.say import trouble
from tillbridge.core import errors
from tillbridge.core.i18n import _
from tillbridge.core.redaction import masked, masked_traceback


class Exit(IntEnum):
    """What a command ends with (contract: Exit codes)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3


_UNREACHABLE = (
    errors.Unreachable,
    errors.ServiceDown,
    errors.OutcomeUnknown,
    errors.RateLimited,
)


class CommandFailed(errors.BridgeError):
    """What a running bridge answered instead of doing it; `exit_code` is what it means here."""

    def __init__(self, text: str, *, fix: str = "", exit_code: int = Exit.FAILED) -> None:
        super().__init__(text, fix=fix)
        self.exit_code = exit_code


def exit_code_of(failure: errors.BridgeError) -> int:
    """Return the exit code a failure ends with."""
    if isinstance(failure, CommandFailed):
        return failure.exit_code
    return exit_code_of_kind(type(failure))


def exit_code_of_kind(kind: type[errors.BridgeError]) -> Exit:
    """Return the exit code of a kind of failure."""
    if issubclass(kind, errors.ConfigError):
        return Exit.USAGE
    return Exit.UNREACHABLE if issubclass(kind, _UNREACHABLE) else Exit.FAILED


def exit_code_of_name(name: str) -> Exit:
    """Return the exit code of a failure that a running bridge named."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.BridgeError):
        return exit_code_of_kind(kind)
    return Exit.UNREACHABLE if name == "PosOffline" else Exit.FAILED


def next_step(failure: errors.BridgeError) -> str:
    """Return what to do about a failure: what it says itself, else where one finds out."""
    if failure.fix:
        return failure.fix
    if isinstance(failure, errors.ConfigError):
        return _("Correct it, then check it: tillbridge config check")
    if isinstance(failure, errors.ConsentLost):
        return _("Sign in again: tillbridge connect STORE")
    if isinstance(failure, errors.ServiceError):
        return _("Find the broken link: tillbridge doctor")
    return _("See what is wrong: tillbridge status")


def report(failure: Exception) -> Exit:
    """Write the details to a file of this user's alone, and say where it is."""
    trouble(
        _("An unexpected error: {kind}: {text}").format(
            kind=type(failure).__name__, text=masked(str(failure))
        ),
        _fix(_store_traceback(failure)),
    )
    return Exit.FAILED


def _store_traceback(failure: Exception) -> Path | None:
    head = f"tillbridge {tillbridge.__version__}, Python {sys.version}\n\n"
    try:
        number, name = tempfile.mkstemp(prefix="tillbridge-error-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(head + masked_traceback(failure))
    except OSError:
        return None
    return Path(name)


def _fix(path: Path | None) -> str:
    if path is None:
        return _("Report it, and say what you did.")
    return _("Report it with the file {path} (it contains no secrets).").format(path=path)
