"""Case folders: one thing that real exports do, with the files and what must be read from them.

`case.toml` says what it is about, the options, and the currency; the export's files lie beside it;
`expected.json` is what a right adapter reads. Anybody can add one, without writing code.
"""

import difflib
import json
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tillbridge.adapter.conformance.recorded import replaying
from tillbridge.adapter.failures import ExportUnreadable, PosFailure
from tillbridge.adapter.normalised import availability_json, catalogue_json, tables_json
from tillbridge.adapter.protocols import ReadsAvailability, ReadsCatalogue, ReadsTables
from tillbridge.adapter.registration import Adapter, AdapterContext, closing

EXPECTED = "expected.json"
_KEYS = {"about", "adapter", "currency", "location_id", "options"}


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its folder, and what `case.toml` says."""

    folder: Path
    about: str
    currency: str = "EUR"
    location_id: str = "case"
    options: Mapping[str, Any] = field(default_factory=dict)
    adapter: str = ""  # whose it is, where it was recorded

    @classmethod
    def of(cls, folder: Path) -> "Case":
        """Read `case.toml`. Raises ValueError for one that is not right, in words."""
        path = folder / "case.toml"
        try:
            said = tomllib.loads(path.read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as failure:
            raise ValueError(f"{path}: {failure}") from failure
        if strange := sorted(said.keys() - _KEYS):
            raise ValueError(
                f"{path}: {strange[0]} is no key of a case; there are {', '.join(sorted(_KEYS))}."
            )
        if not said.get("about"):
            raise ValueError(f"{path}: about is missing; say in a sentence what the case shows.")
        return cls(folder=folder, **said)


def case_folders(folder: Path) -> Sequence[Path]:
    """Return the cases below a folder, by name."""
    return sorted(path.parent for path in folder.glob("*/case.toml"))


def read_case(adapter: Adapter, case: Case) -> dict[str, Any]:
    """Return what the adapter reads from the case's files, as JSON values.

    It works on a copy: an adapter may make files of its own.
    """
    home = Path(tempfile.mkdtemp(prefix="case-"))
    try:
        shutil.copytree(case.folder, home, dirs_exist_ok=True)
        context = AdapterContext(
            store="case", currency=case.currency, location_id=case.location_id, base_dir=home
        )
        with replaying(home) as replay:
            options = replay.options(case.options)
            try:
                pos = adapter.open(adapter.options.model_validate(options), context)
            except ValueError as failure:
                return {"options": {"error": _without(str(failure), home)}}
            with closing(pos):
                found = {name: _without_in(value, home) for name, value in readings(pos)}
            if replay.strange:
                found["http"] = {"not_recorded": list(replay.strange)}
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return found


def run_case(adapter: Adapter, case: Case) -> str:
    """Return how the reading differs from what is expected, as a text; "" where it does not."""
    path = case.folder / EXPECTED
    found = written(read_case(adapter, case))
    try:
        expected = written(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        expected = ""
    except (OSError, ValueError) as failure:
        return f"{path}: {failure}"
    lines = difflib.unified_diff(
        expected.splitlines(), found.splitlines(), "expected", "read", lineterm="", n=2
    )
    return "\n".join(lines)


def accept_reading(adapter: Adapter, case: Case) -> None:
    """Write what the adapter reads now into `expected.json`."""
    (case.folder / EXPECTED).write_text(written(read_case(adapter, case)), "utf-8")


def written(reading: Mapping[str, Any]) -> str:
    """Return a reading as it stands in `expected.json`."""
    return json.dumps(reading, ensure_ascii=False, indent=2) + "\n"


def readings(pos: object) -> Iterator[tuple[str, Any]]:
    """Return all that is read from an adapter, as JSON values, and what it says it cannot read."""
    if isinstance(pos, ReadsCatalogue):
        yield "catalogue", _told(lambda: catalogue_json(pos.read_catalogue()))
    if isinstance(pos, ReadsAvailability):
        yield "availability", _told(lambda: availability_json(pos.read_availability()))
    if isinstance(pos, ReadsTables):
        yield "tables", _told(lambda: tables_json(pos.read_tables()))


def _told(read: Any) -> dict[str, Any]:  # noqa: ANN401 -- a call without arguments
    try:
        found: dict[str, Any] = read()
    except ExportUnreadable as failure:
        return {"error": failure.text, "place": failure.place, "fix": failure.fix}
    except PosFailure as failure:
        return {"error": f"{type(failure).__name__}: {failure.message}"}
    return found


def _without(text: str, home: Path) -> str:
    """Leave out where the copy lies, which is another place each time."""
    return text.replace(f"{home}/", "").replace(str(home), ".")


def _without_in(value: Any, home: Path) -> Any:  # noqa: ANN401 -- any JSON value
    if isinstance(value, str):
        return _without(value, home)
    if isinstance(value, dict):
        return {key: _without_in(part, home) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_in(part, home) for part in value]
    return value
