"""Reads a table of a small TOML file key by key, and notes what is wrong with it.

For the files that restaurants write themselves (opening hours, store settings); `bridge.toml` has
models for this.
"""

from collections.abc import Collection, Mapping
from pathlib import Path as FilePath
from typing import Any

from tillbridge.config.faults import Fault
from tillbridge.config.lines import Path, dotted
from tillbridge.core.i18n import _
from tillbridge.core.nearest import nearest

_MISSING = object()


def required_file(path: FilePath, setting: str) -> Fault | None:
    """Return a fault where there is no such file; `setting` is the one that names it."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError:
        return None  # whoever reads it tells why not
    else:
        return None
    return Fault(
        (),
        _("there is no such file, though {setting} names it.").format(setting=setting),
        _("Put it there, or correct {setting} in bridge.toml.").format(setting=setting),
    )


class TableReader:
    """One table; faults go to the list that all tables of the file share."""

    def __init__(self, values: Mapping[str, Any], path: Path, faults: list[Fault]) -> None:
        self.values = values
        self.path = path
        self.faults = faults

    def fault(self, key: str | int | None, text: str, fix: str) -> None:
        """Note what is wrong with a key of the table, or with the table (None)."""
        path = self.path if key is None else (*self.path, key)
        self.faults.append(Fault(path, text, fix))

    def only(self, known: Collection[str], *, otherwise: str = "") -> None:
        """Note every key that is not among `known`, with the one that was probably meant."""
        for key in self.values:
            if key not in known:
                place = f"[{dotted(self.path)}]" if self.path else _("the top of the file")
                self.fault(
                    key,
                    _("is nothing that {place} knows.").format(place=place),
                    did_you_mean(key, known) or otherwise or _("Remove it."),
                )

    def text(self, key: str, *, empty: bool = False) -> str | None:
        """Return a text; None where it is missing or wrong."""
        value = self.values.get(key, _MISSING)
        if value is _MISSING:
            return None
        if not isinstance(value, str):
            self.fault(key, _("must be text."), _("Put it in quotes."))
            return None
        if not value.strip() and not empty:
            self.fault(key, _("must not be empty."), _("Write it, or remove the line."))
            return None
        return value.strip()

    def flag(self, key: str) -> bool | None:
        """Return true or false; None where it is missing or wrong."""
        value = self.values.get(key, _MISSING)
        if value is _MISSING or isinstance(value, bool):
            return None if value is _MISSING else bool(value)
        self.fault(key, _("must be true or false, without quotes."), _("Write true or false."))
        return None

    def table(self, key: str) -> "TableReader | None":
        """Return a table in this one; None where it is missing or wrong."""
        value = self.values.get(key, _MISSING)
        if value is _MISSING:
            return None
        if not isinstance(value, Mapping):
            name = dotted((*self.path, key))
            self.fault(key, _("must be a table."), _("Write [{name}].").format(name=name))
            return None
        return TableReader(value, (*self.path, key), self.faults)

    def has(self, key: str) -> bool:
        """Return whether the key stands there."""
        return key in self.values


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return "Did you mean ...?" for the nearest known word; "" where none is near."""
    low = word.lower()
    begun = [each for each in known if len(low) > 1 and each.startswith(low)]
    close = begun[0] if begun else nearest(low, known)
    return _('Did you mean "{key}"?').format(key=close) if close else ""
