"""Reads a TOML file, and says in plain words where it is none."""

import re
import tomllib
from pathlib import Path
from typing import Any

from tillbridge.config.faults import ConfigFaults, Fault
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.own_files import claim_file

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_file(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the file's text and what it says. Raises ConfigError, with the line of a slip."""
    claim_file(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        fault = Fault((), _("is not UTF-8 text."), _("Save it as UTF-8 in the editor."))
        raise ConfigFaults(str(path), [fault]) from None
    except OSError as failure:
        raise ConfigError(
            _("{path} cannot be read: {why}.").format(path=path, why=failure.strerror),
            fix=_("Check that this user may read it."),
        ) from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as slip:
        raise ConfigFaults(str(path), [_slip(str(slip), text)]) from None
    except RecursionError:
        fault = Fault(
            (), _("is nested too deeply."), _("Look for brackets that stand for nothing.")
        )
        raise ConfigFaults(str(path), [fault]) from None


def _slip(message: str, text: str) -> Fault:
    found = _PLACE.search(message)
    line = int(found[1]) if found and found[1] else text.count("\n") + 1
    words = message[: found.start()] if found else message
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    return Fault((), _("is not TOML: {words}.").format(words=words), _remedy(words, written), line)


def _remedy(words: str, written: str) -> str:
    if "\\" in written and '"' in written:
        return _(
            "A backslash in double quotes means something else: write Windows paths in single "
            r"quotes, for example 'C:\POS\export'."
        )
    if "Invalid value" in words:
        return _("Text needs quotes, and true and false small letters.")
    if "overwrite" in words or "twice" in words:
        return _("The key or table stands there twice: remove one.")
    if "Expected '='" in words:
        return _("Each line is key = value, or [table].")
    return _("Look at that line, and the end of the one before.")


def read_named_file(path: Path, setting: str) -> tuple[str, dict[str, Any]]:
    """Read the file that a setting of bridge.toml names, as `read_file`."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        fault = Fault(
            (),
            _("there is no such file, though {setting} names it.").format(setting=setting),
            _("Put it there, or correct {setting} in bridge.toml.").format(setting=setting),
        )
        raise ConfigFaults(str(path), [fault]) from None
    except OSError:
        pass  # reading it says why not
    return read_file(path)
