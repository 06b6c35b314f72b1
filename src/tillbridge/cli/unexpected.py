"""A failure nobody foresaw: a short word to the person, the details in a file for support."""

import os
import sys
import tempfile
from pathlib import Path

import tillbridge
from tillbridge.cli.exits import Exit
from tillbridge.cli.say import trouble
from tillbridge.core.i18n import _
from tillbridge.core.redaction import masked, masked_traceback


def report(failure: Exception) -> Exit:
    """Write the details to a file of this user's alone, and say where it is."""
    trouble(
        _("Something went wrong that should not: {kind}: {text}").format(
            kind=type(failure).__name__, text=masked(str(failure))
        ),
        _fix(_keep(failure)),
    )
    return Exit.FAILED


def _keep(failure: Exception) -> Path | None:
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
        return _("Please report it, with what you did.")
    return _("Please report it, with the file {path} (it holds no secrets).").format(path=path)
