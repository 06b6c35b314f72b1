"""Reading a file of 5,000 rows with each adapter, beside what its bare parser takes.

The bare parser makes the same rows and does nothing with them: `csv.reader`, `json.loads`,
python-calamine, dbfread. Two readings are measured beside it, in turn in one process; the median of
the ratios counts, in time of the processor, so that other programs do not:

- **read again**: one row in a hundred is new since the last reading. It is what the bridge does
  all day, and what is held to the aim. An adapter that tells a menu as its difference is asked for
  that, as the bridge asks it.
  A workbook is parsed in a child process, whose time counts: starting it and comparing checksums
  costs some 80 ms, whatever the size, so the aim of workbooks is another.
- **first reading**: nothing is known yet, every row becomes an item. The bridge does so after a
  start with an empty ledger, and once a day. It is told, and not held to the aim: making an `Item`
  alone takes twice what `csv.reader` takes for a row.
"""

import csv
import gc
import io
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.measure import Bench, Measured, Options, Result, Skipped
from tillbridge.adapter import (
    AdapterContext,
    CatalogueChanges,
    ReadsCatalogue,
    ReadsCatalogueChanges,
)
from tillbridge.adapter.conformance.subject import plain_items
from tillbridge.core.errors import ConfigError
from tillbridge.menu.lane import gc_paused
from tillbridge.model.catalogue import Item
from tillbridge.pos.kit import find_kit

ROWS = 5_000
ROWS_FOR_ONE_NEW = 100
_AIM_OF_A_CHILD = 8
_AIM_WITH_A_BAD_ITEM = 5  # known items are parsed for their ids; reading all of them takes more
_LEAST_ROUNDS = 9

_Made = tuple[Path, Mapping[str, Any]]
"""The file that has the rows, and the options of the adapter that reads it."""


@dataclass(frozen=True, slots=True)
class _Format:
    """A file format of an adapter: how the file is made, and what its bare parser is."""

    adapter: str
    kind: str
    parse: Callable[[Path], object]
    make: Callable[[Path, Sequence[Item]], _Made]
    aim: float = 3


def _by_rig(adapter: str) -> Callable[[Path, Sequence[Item]], _Made]:
    """Let the adapter's rig export as its till does."""

    def make(folder: Path, items: Sequence[Item]) -> _Made:
        kit = find_kit(adapter)
        assert kit.rig is not None
        rig = kit.rig(folder)
        rig.sell(items, "EUR")
        return Path(rig.exports()[0]), rig.options()

    return make


def _square_csv(folder: Path, items: Sequence[Item]) -> _Made:
    book, options = _by_rig("square")(folder, items)
    rows = _workbook(book)
    path = folder / "library.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(row for row in rows if any(row))
    return path, {**options, "export": path.name}


def _folder_json(folder: Path, items: Sequence[Item]) -> _Made:
    path = folder / "menu.json"
    rows = [
        {"external_id": item.external_id, "name": item.name, "price": item.price, "available": True}
        for item in items
    ]
    return _folder_menu(path, rows)


def _folder_json_with_bad(folder: Path, items: Sequence[Item]) -> _Made:
    """Export an item that stays bad, too, and a group that offers an item."""
    path, _options = _folder_json(folder, items)
    rows = json.loads(path.read_bytes())["menus"][0]["items"]
    rows[1]["product_type"] = "addon"
    rows.append({"external_id": "bad", "name": "Bad", "price": "?"})
    group = {"external_id": "g", "name": "Group", "add_ons": [rows[1]["external_id"]]}
    return _folder_menu(path, rows, addon_groups=[group])


def _folder_menu(path: Path, rows: Sequence[object], **more: object) -> _Made:
    menu = {"external_id": "m", "name": "Menu", "items": rows, **more}
    path.write_text(json.dumps({"menus": [menu]}), "utf-8")
    return path, {"menu": path.name}


def _square_json(folder: Path, items: Sequence[Item]) -> _Made:
    """Save what Square answers to a call for the whole catalog."""
    path = folder / "catalog.json"
    objects = [_square_object(item) for item in items]
    path.write_text(json.dumps({"objects": objects}), "utf-8")
    return path, {"export": path.name}


def _square_object(item: Item) -> Mapping[str, Any]:
    every = {"updated_at": "2026-01-02T18:00:00.000Z", "version": 1, "is_deleted": False}
    everywhere = {**every, "present_at_all_locations": True}
    variation = {
        "item_id": item.external_id,
        "name": "Regular",
        "ordinal": 1,
        "pricing_type": "FIXED_PRICING",
        "price_money": {"amount": item.price, "currency": "EUR"},
        "sellable": True,
        "stockable": True,
    }
    data = {
        "name": item.name,
        "is_taxable": True,
        "variations": [
            {
                "type": "ITEM_VARIATION",
                "id": f"{item.external_id}-v",
                **everywhere,
                "item_variation_data": variation,
            }
        ],
        "product_type": "REGULAR",
        "is_archived": False,
    }
    return {"type": "ITEM", "id": item.external_id, **everywhere, "item_data": data}


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
    _Format("folder", "JSON with a bad item", _json, _folder_json_with_bad, _AIM_WITH_A_BAD_ITEM),
    _Format("loyverse", "CSV", _csv, _by_rig("loyverse")),
    _Format("square", "CSV", _csv, _square_csv),
    _Format("square", "JSON", _json, _square_json),
    _Format("square", "XLSX", _workbook, _by_rig("square"), _AIM_OF_A_CHILD),
    _Format("clover", "XLSX", _workbook, _by_rig("clover"), _AIM_OF_A_CHILD),
    _Format("aloha", "DBF", _dbf, _by_rig("aloha")),
)


def run(options: Options) -> Iterator[Result]:
    """Measure each format that can be read here."""
    rounds = max(options.rounds, _LEAST_ROUNDS)
    for each in _FORMATS:
        what = f"{each.adapter}, {each.kind}"
        with tempfile.TemporaryDirectory(prefix="tillbridge-bench-") as folder:
            try:
                exports = _Exports.of(each, Path(folder))
            except (ConfigError, ImportError) as failure:
                yield Skipped(what, f"{failure}".splitlines()[0])
                continue
            again = [exports.read_again(each.parse) for _round in range(rounds)]
            yield _measured(f"{what}, read again, 1 row of {ROWS_FOR_ONE_NEW} new", again, each.aim)
            first = [exports.read_first(each.parse) for _round in range(rounds)]
            yield _measured(f"{what}, first reading (told, not held to the aim)", first, None)


class _Exports:
    """Two exports of one till, which it writes by turns, and the adapter that reads them."""

    def __init__(self, pos: ReadsCatalogue, path: Path, contents: Sequence[bytes]) -> None:
        self._pos = pos
        self._path = path
        self._contents = contents
        self._turn = len(contents) - 1
        self._known = [self._fingerprints() for _content in contents]

    @classmethod
    def of(cls, how: _Format, folder: Path) -> "_Exports":
        """Let the till export, and open the adapter. Raises ConfigError, ImportError."""
        before = plain_items(ROWS)
        after = [
            replace(item, price=item.price + 1) if number % ROWS_FOR_ONE_NEW == 0 else item
            for number, item in enumerate(before)
        ]
        (folder / "before").mkdir()
        (folder / "after").mkdir()
        path, _options = how.make(folder / "before", before)
        contents = [path.read_bytes()]
        path, options = how.make(folder / "after", after)
        contents.append(path.read_bytes())
        found = find_kit(how.adapter).adapter
        context = AdapterContext("bench", "EUR", "bench", folder / "after")
        pos = found.open(found.options.model_validate(dict(options)), context)
        assert isinstance(pos, ReadsCatalogue)
        return cls(pos, path, contents)

    def read_again(self, parse: Callable[[Path], object]) -> tuple[float, float]:
        """Let the till export, and return what reading what is new takes, and `parse`."""
        known, pos = self._known[self._turn], self._pos
        self._export()
        if not isinstance(pos, ReadsCatalogueChanges):
            return _took_s(pos.read_catalogue), _took_s(lambda: parse(self._path))
        found: list[CatalogueChanges] = []
        ours = _took_s(lambda: found.append(pos.read_changes(known)))
        assert len(found[0].fresh.items) == ROWS // ROWS_FOR_ONE_NEW
        return ours, _took_s(lambda: parse(self._path))

    def read_first(self, parse: Callable[[Path], object]) -> tuple[float, float]:
        """Let the till export, and return what reading all of it takes, and `parse`."""
        self._export()
        with gc_paused():  # as it does while the bridge reads a whole menu
            return _took_s(self._pos.read_catalogue), _took_s(lambda: parse(self._path))

    def _export(self) -> None:
        self._turn = (self._turn + 1) % len(self._contents)
        self._path.write_bytes(self._contents[self._turn])

    def _fingerprints(self) -> frozenset[int]:
        self._export()
        whole = self._pos.read_catalogue()
        assert len(whole.items) == ROWS
        return frozenset(whole.fingerprints.values())


def _measured(what: str, pairs: Sequence[tuple[float, float]], aim: float | None) -> Measured:
    ratio = statistics.median(ours / bare for ours, bare in pairs)
    ours, bare = (statistics.median(each) * 1000 for each in zip(*pairs, strict=True))
    return Measured(what, ratio, "x", "at most", aim, f"({ours:.1f} ms; bare {bare:.1f} ms)")


def _took_s(what: Callable[[], object]) -> float:
    gc.collect()
    began = time.thread_time() + _children_s()
    what()
    return time.thread_time() + _children_s() - began


def _children_s() -> float:
    """Return what child processes have taken: a workbook is parsed in one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


BENCH = Bench(
    "files", f"reading {ROWS:,} rows again and for the first time, beside the bare parser", run
)
