"""How a command ends that fails or was typed wrong: exit code, sentence, and what to do."""

import os
import re
import sys
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeVar

import typer

import tillbridge
from tillbridge.cli.say import clean, failed, trouble
from tillbridge.core import errors
from tillbridge.core.i18n import N_, _
from tillbridge.core.redaction import masked, masked_traceback

T = TypeVar("T")


class Exit(IntEnum):
    """What a command ends with (contract: Exit codes)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3


_UNREACHABLE = (
    errors.LedgerUnreachable,
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


# -- a command that was typed wrong

# What typer prints, always in English, and what is printed instead.
_SENTENCES = (
    (r"No such command '(?P<name>.*?)'.*", N_("There is no command {name}.")),
    (r"Missing command.*", N_("A command is missing.")),
    (r"No such option: (?P<name>.*)", N_("There is no option {name}.")),
    (r"Option '(?P<name>.*)' requires .*", N_("{name} needs a value.")),
    (r"Option '(?P<name>.*)' does not take a value\.", N_("{name} does not take a value.")),
    (r"Got unexpected extra argument\S* \((?P<words>.*)\)", N_("Not expected here: {words}")),
    (r"Value error, '?(?P<given>.*?)'? is not one of (?P<known>.*)\.",
     N_("{given} is not one of: {known}.")),
    (r"Value error, (?P<text>.*)", "{text}"),
    (r"Input should be a valid integer.*", N_("Enter a whole number.")),
    (r"Input should be a valid number.*", N_("Enter a number.")),
    (r"Input should be greater than or equal to (?P<least>\S+)", N_("Enter {least} or more.")),
    (r"Input should be less than or equal to (?P<most>\S+)", N_("Enter {most} or less.")),
)  # fmt: skip


def refused(error: Exception, *, as_json: bool) -> int | None:
    """Say what is wrong with a command line; None if the error is of another kind."""
    if isinstance(error, typer.Abort):
        failed(_("Cancelled."), "", Exit.FAILED, as_json=as_json)
        return Exit.FAILED
    if not isinstance(error, typer.TyperException):
        return None
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(error.message, err=True)
        return Exit.USAGE
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tillbridge"
    see = _("For help: {command} --help").format(command=command)
    failed(_message(error), see, Exit.USAGE, as_json=as_json)
    return Exit.USAGE


def _message(error: typer.TyperException) -> str:
    message = clean(error.message)
    text = next(
        (
            str(_(ours)).format(**found.groupdict()).replace("'", "")
            for pattern, ours in _SENTENCES
            if (found := re.fullmatch(pattern, message))
        ),
        message,
    )
    if isinstance(error, typer.BadParameter):
        name = _name(error)
        if not text:
            text = str(_("{name} is missing.")).format(name=name)
        elif name:
            text = f"{name}: {text}"
    if close := _close(error):
        text += " " + str(_("Did you mean {name}?")).format(name=close)
    return text


def _name(error: typer.BadParameter) -> str:
    parameter = error.param
    if parameter is None:
        return str(error.param_hint or "")
    options = [each for each in parameter.opts if each.startswith("-")]
    return max(options, key=len) if options else str(parameter.metavar or parameter.name).upper()


def _close(error: typer.TyperException) -> str:
    if possible := getattr(error, "possibilities", None):
        return str(possible[0])
    found = re.search(r"Did you mean '(.*?)'", error.message)
    return found[1] if found else ""


async def until_signalled(serving: Coroutine[Any, Any, T]) -> T:
    """Serve until it ends, or Ctrl-C, `kill` or a closed terminal ends it in order.

    Raises CancelledError for these; KeyboardInterrupt where asyncio has no handlers of signals.
    """
    import asyncio
    import signal

    task = asyncio.current_task()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # Windows: asyncio has no handlers there, and raises KeyboardInterrupt for Ctrl-C.
        with suppress(NotImplementedError, AttributeError):
            asyncio.get_running_loop().add_signal_handler(
                getattr(signal, name), lambda: task and (task.cancelling() or task.cancel())
            )
    return await serving
