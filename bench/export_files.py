"""Reading a file of 5,000 rows with each adapter, beside what its bare parser takes.

The bare parser makes the same rows and does nothing with them: `csv.reader`, `json.load`,
python-calamine, dbfread. Both are measured in turn in one process; the median of ratios counts. An
adapter that can read a menu as its difference is measured so: the bridge reads it that way.
"""

import csv
import gc
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure import Bench, Measured, Options, Result, Skipped
from tillbridge.adapter import AdapterContext, ReadsCatalogue, ReadsCatalogueChanges
from tillbridge.adapter.conformance.samples import plain_items
from tillbridge.adapters.kit import find_kit
from tillbridge.errors import ConfigError

ROWS = 5_000
_AIM = 3


@dataclass(frozen=True, slots=True)
class _Format:
    """A file format of an adapter: how the file is made, and what its bare parser is."""

    adapter: str
    kind: str
    parse: Callable[[Path], object]
    make: Callable[[Path], tuple[Path, Mapping[str, Any]]]


def _by_rig(adapter: str) -> Callable[[Path], tuple[Path, Mapping[str, Any]]]:
    """Let the adapter's rig export as its till does."""

    def make(folder: Path) -> tuple[Path, Mapping[str, Any]]:
        kit = find_kit(adapter)
        assert kit.rig is not None
        rig = kit.rig(folder)
        rig.sell(plain_items(ROWS), "EUR")
        return Path(rig.exports()[0]), rig.options()

    return make


def _square_csv(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    book, options = _by_rig("square")(folder)
    rows = _workbook(book)
    path = folder / "library.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(row for row in rows if any(row))
    return path, {**options, "export": path.name}


def _folder_json(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    path = folder / "menu.json"
    items = [
        {"external_id": item.external_id, "name": item.name, "price": item.price, "available": True}
        for item in plain_items(ROWS)
    ]
    menu = {"external_id": "m", "name": "Menu", "items": items}
    path.write_text(json.dumps({"menus": [menu]}), "utf-8")
    return path, {"menu": path.name}


def _csv(path: Path) -> object:
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def _json(path: Path) -> object:
    return json.loads(path.read_bytes())


def _workbook(path: Path) -> list[list[Any]]:
    import python_calamine  # noqa: PLC0415 -- only where an adapter for workbooks is installed

    book = python_calamine.CalamineWorkbook.from_path(str(path))
    rows: list[list[Any]] = []
    for name in book.sheet_names:
        rows += book.get_sheet_by_name(name).to_python(skip_empty_area=False)
    return rows


def _dbf(path: Path) -> object:
    import dbfread  # noqa: PLC0415 -- only where the adapter for DBF files is installed

    return list(dbfread.DBF(path))


_FORMATS = (
    _Format("folder", "CSV", _csv, _by_rig("folder")),
    _Format("folder", "JSON", _json, _folder_json),
    _Format("loyverse", "CSV", _csv, _by_rig("loyverse")),
    _Format("square", "CSV", _csv, _square_csv),
    _Format("square", "XLSX", _workbook, _by_rig("square")),
    _Format("clover", "XLSX", _workbook, _by_rig("clover")),
    _Format("aloha", "DBF", _dbf, _by_rig("aloha")),
)


def run(options: Options) -> Iterator[Result]:
    """Measure each format that can be read here."""
    for each in _FORMATS:
        what = f"{each.adapter}, {each.kind}, {ROWS:,} rows, beside its bare parser"
        with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
            try:
                path, chosen = each.make(Path(folder))
                read = _reader(each.adapter, chosen, Path(folder))
            except (ConfigError, ImportError) as failure:
                yield Skipped(what, f"{failure}".splitlines()[0])
                continue
            yield _measured(what, options.rounds, read, lambda: each.parse(path))  # noqa: B023 -- called at once


def _reader(adapter: str, options: Mapping[str, Any], folder: Path) -> Callable[[], object]:
    found = find_kit(adapter).adapter
    context = AdapterContext("bench", "EUR", "bench", folder)
    pos = found.open(found.options.model_validate(dict(options)), context)
    assert isinstance(pos, ReadsCatalogue)
    whole = pos.read_catalogue()
    assert len(whole.items) == ROWS
    if isinstance(pos, ReadsCatalogueChanges):
        # As the bridge reads it: all but ten records are known from the reading before.
        known = frozenset(list(whole.fingerprints.values())[10:])
        return lambda: pos.read_changes(known)
    return pos.read_catalogue


def _measured(
    what: str, rounds: int, read: Callable[[], object], parse: Callable[[], object]
) -> Measured:
    parse()
    pairs = [(_took_s(read), _took_s(parse)) for _round in range(max(rounds, 5))]
    ratio = statistics.median(ours / bare for ours, bare in pairs)
    ours, bare = (statistics.median(each) * 1000 for each in zip(*pairs, strict=True))
    return Measured(what, ratio, "x", "at most", _AIM, f"({ours:.1f} ms; bare {bare:.1f} ms)")


def _took_s(what: Callable[[], object]) -> float:
    gc.collect()
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


BENCH = Bench("files", "reading a file of 5,000 rows, beside its bare parser", run)
