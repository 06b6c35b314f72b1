"""Opening an adapter by hand and looking at what it reads; nothing is pushed, nothing is kept."""

import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    Catalogue,
    ExportUnreadable,
    PosFailure,
    ReadsAvailability,
    ReadsCatalogue,
    ReadsTables,
    ReportsHealth,
)
from tillbridge.adapter.normalised import availability_json, catalogue_json, tables_json
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.model.menu_summary import MenuSummary

_LOOK_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One look: health, catalogue, availability, tables, as far as the adapter has them."""

    readings: Mapping[str, Any]
    summary: MenuSummary | None = None  # of the catalogue, if that could be read

    def to_json(self) -> dict[str, Any]:
        """Return it for machines; a reading that failed holds `error` and `fix`."""
        return dict(self.readings)


def options_of_sample(path: Path) -> dict[str, Any]:
    """Return an adapter's options from [stores.NAME.pos] of a TOML file, or from its top.

    Raises ConfigError.
    """
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as failure:
        raise ConfigError(f"{path}: {failure}", fix=_("Correct the file.")) from failure
    for store in found.get("stores", {}).values():
        for table in ("pos", "orders"):
            if "adapter" in store.get(table, {}):
                found = store[table]
                break
    return {key: value for key, value in found.items() if key != "adapter"}


def opened(
    adapter: Adapter, options: Mapping[str, Any], *, store: str, currency: str, base_dir: Path
) -> object:
    """Return the adapter's object. Raises ConfigError for options that are not right."""
    context = AdapterContext(store=store, currency=currency, location_id=store, base_dir=base_dir)
    try:
        return adapter.open(adapter.options.model_validate(dict(options)), context)
    except ValidationError as failure:
        first = failure.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or _("the options")
        raise ConfigError(
            f"{place}: {first['msg']}",
            fix=_("The adapter {name} has the options {names}.").format(
                name=adapter.name, names=", ".join(sorted(adapter.options.model_fields))
            ),
        ) from failure
    except ValueError as failure:
        raise ConfigError(str(failure), fix=_("Correct the adapter's options.")) from failure


def trial_of(pos: object) -> Trial:
    """Read all there is to read, once."""
    readings: dict[str, Any] = {}
    summary = None
    if isinstance(pos, ReportsHealth):
        health = pos.health()
        readings["health"] = {"online": health.online, "detail": health.detail}
    if isinstance(pos, ReadsCatalogue):
        read: list[Catalogue] = []

        def catalogue() -> dict[str, Any]:
            read.append(pos.read_catalogue())
            return catalogue_json(read[0])

        readings["catalogue"] = _read(catalogue)
        summary = MenuSummary.of(read[0]) if read else None
    if isinstance(pos, ReadsAvailability):
        readings["availability"] = _read(lambda: availability_json(pos.read_availability()))
    if isinstance(pos, ReadsTables):
        readings["tables"] = _read(lambda: tables_json(pos.read_tables()))
    return Trial(readings, summary)


def trials(pos: object) -> Iterator[Trial]:
    """Read again and again, and yield what differs from before; until it is interrupted."""
    before: Trial | None = None
    while True:
        now = trial_of(pos)
        if now != before:
            yield now
            before = now
        time.sleep(_LOOK_AGAIN_S)


def _read(read: Any) -> dict[str, Any]:  # noqa: ANN401 -- a call without arguments
    try:
        found: dict[str, Any] = read()
    except ExportUnreadable as failure:
        return {"error": failure.text, "place": failure.place, "fix": failure.fix}
    except PosFailure as failure:
        return {
            "error": f"{type(failure).__name__}: {failure.message}",
            "fix": _("Look whether the till runs, and whether the options are right."),
        }
    return found
