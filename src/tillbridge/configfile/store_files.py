"""Reads the files that a restaurant writes about itself: `settings_file` and `hours_file`.

Both together, so that everything that is wrong is told at once; docs/store.md.
"""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from tillbridge.configfile.faults import ConfigFaults
from tillbridge.configfile.hours_file import read_hours_file
from tillbridge.configfile.store_file import StoreFile, read_store_file
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.hours import OpeningHours
from tillbridge.model.restaurant import Restaurant

if TYPE_CHECKING:
    from tillbridge.config import StoreSettings


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """Where the files of a store are; None for what its configuration does not name."""

    settings: Path | None
    hours: Path | None
    currency: str
    timezone: str | None

    @classmethod
    def of(cls, store: "StoreSettings", base_dir: Path) -> "StoreFiles":
        """Return the files of a store; relative ones count from `base_dir`."""
        return cls(
            None if store.settings_file is None else base_dir / store.settings_file,
            None if store.hours_file is None else base_dir / store.hours_file,
            store.currency,
            store.timezone,
        )

    def paths(self) -> tuple[Path, ...]:
        """Return the files there are."""
        return tuple(path for path in (self.settings, self.hours) if path is not None)


@dataclass(frozen=True, slots=True)
class StoreWords:
    """What the files say; `notes` are sentences about days that come."""

    restaurant: Restaurant | None = None
    hours: OpeningHours | None = None
    notes: tuple[str, ...] = ()


def read_store_files(files: StoreFiles, *, today: date) -> StoreWords:
    """Return what the files say. Raises ConfigError with all that is wrong in all of them."""
    wrong: list[ConfigError] = []
    told = StoreFile(Restaurant())
    hours: OpeningHours | None = None
    notes: tuple[str, ...] = ()
    if files.settings is not None:
        try:
            told = read_store_file(
                files.settings, currency=files.currency, has_hours_file=files.hours is not None
            )
        except ConfigError as fault:
            wrong.append(fault)
    if files.hours is not None:
        try:
            found = read_hours_file(files.hours, timezone=files.timezone, today=today)
            hours, notes = found.hours, found.notes
        except ConfigError as fault:
            wrong.append(fault)
    if wrong:
        raise _together(wrong)
    if told.weekly is not None:
        hours = OpeningHours(files.timezone or "", told.weekly)
    restaurant = told.restaurant if files.settings is not None else None
    return StoreWords(restaurant, hours, notes)


def _together(wrong: list[ConfigError]) -> ConfigError:
    if len(wrong) == 1:
        return wrong[0]
    lines = []
    for each in wrong:
        if isinstance(each, ConfigFaults):
            lines += [fault.told(each.file) for fault in each.faults]
        else:
            lines.append(str(each))
    head = _("{count} things are wrong").format(count=len(lines))
    return ConfigError(
        "\n".join([f"{head}:", *(f"  {line}" for line in lines)]),
        fix=_("Mend them and try again."),
    )
