"""Exports to damage: those of the case folders, and some that the folder adapter reads plainly."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

from tillbridge.adapter import Adapter, AdapterContext, PosFailure, isolation
from tillbridge.adapter.conformance import case_folders
from tillbridge.adapter.conformance.cases import Reading, read_all
from tillbridge.adapter.registration import closing
from tillbridge.parsing import Unreadable
from tillbridge.parsing.workbook import parse_sheets

ROOT = Path(__file__).resolve().parents[2]
_CASES = {
    "folder": ROOT / "tests/data/folder/cases",
    **{name: ROOT / f"adapters/{name}/tests/cases" for name in ("aloha", "clover", "loyverse")},
    **{name: ROOT / f"adapters/{name}/tests/cases" for name in ("sql", "square")},
}
_SHEETS = b"["
_NO_EXPORT = {"case.toml", "expected.json", "queries.sql"}

_DISHES = "Margherita Marinara Napoli Funghi Diavola Capricciosa Calzone Romana Ortolana Tonno"
_NAMES = _DISHES.split()
_HEADER = "external_id,name,price,category,variant_name,parent_id"


def _lines(*lines: str, end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def _menu(**more: object) -> dict[str, Any]:
    dishes = [
        {"external_id": f"p{n}", "name": name, "price": 100 * n + 50, "categories": ["c1"], **more}
        for n, name in enumerate(_NAMES, 1)
    ]
    return {
        "external_id": "m1",
        "name": "Carta",
        "categories": [{"external_id": "c1", "name": "Pizza"}],
        "items": dishes,
    }


_CHOICES = {
    "add_ons": [{"external_id": f"a{n}", "name": f"Extra {n}", "price": 50 * n} for n in range(4)],
    "addon_groups": [
        {
            "external_id": "g1",
            "name": "Extras",
            "min_select": 0,
            "max_select": 2,
            "required": False,
            "add_ons": ["a0", "a1", "a2"],
        }
    ],
}
_SIZES = [{"external_id": "s", "variant_name": "small", "price": 500, "available": True}]

# What the folder adapter reads without a mapping, with what real programs do to such files.
_PLAIN: Mapping[str, bytes] = {
    "one heading.csv": _lines(
        _HEADER, *(f"{n},{name},{n}.50,Pizza,," for n, name in enumerate(_NAMES, 1))
    ),
    "sizes.csv": _lines(
        _HEADER,
        *(
            row
            for n, name in enumerate(_NAMES, 1)
            for row in (
                f"{n},{name},{n}.50,Pizza,,",
                f"{n}s,,{n}.50,,small,{n}",
                f"{n}l,,{n + 2}.50,,large,{n}",
            )
        ),
        end="\r\n",
    ),
    "quoted.csv": _lines(
        _HEADER.replace(",", ";"),
        *(
            f'"{n}";"{name} ""grün"" ½";"{n},50";"Ofen|Küche {n % 3}";"";""'
            for n, name in enumerate(_NAMES, 1)
        ),
    ),
    "a line break in a name.csv": _lines(
        "external_id,name,price,description",
        *(f'{n},"{name}\n(new)",{n}.00,"hot, ""very"""' for n, name in enumerate(_NAMES, 1)),
    ),
    "byte order mark.csv": "\ufeff".encode()
    + _lines("external_id,name,price", *(f"{n},{x},{n}" for n, x in enumerate(_NAMES, 1))),
    "two bytes a letter.csv": "".join(
        f"{line}\r\n"
        for line in (
            "external_id\tname\tprice",
            *(f"{n}\t{name} ½\t{n},50" for n, name in enumerate(_NAMES, 1)),
        )
    ).encode("utf-16"),
    "western.tsv": "".join(
        f"{line}\n"
        for line in (
            "external_id\tname\tprice\tavailable",
            *(
                f"{n}\tCrème {name}\t{n}.5\t{'yes' if n % 2 else 'no'}"
                for n, name in enumerate(_NAMES)
            ),
        )
    ).encode("cp1252"),
    "no end of the last line.csv": _lines(
        _HEADER, *(f"{n},{name},{n}.50,Pizza,," for n, name in enumerate(_NAMES, 1))
    )[:-1],
    "blank lines.csv": _lines(
        "external_id,name,price", "", *(f"{n},{x},{n}.00\n" for n, x in enumerate(_NAMES)), ""
    ),
    "menus.json": json.dumps({"menus": [_menu()]}, indent=1).encode() + b"\n",
    "menus of one line.json": json.dumps({"menus": [_menu()]}).encode(),
    "choices.json": json.dumps(
        {"menus": [{**_menu(addon_groups=["g1"], variants=_SIZES), **_CHOICES}]}
    ).encode(),
    "flat.json": json.dumps(
        {"menu_name": "Carta", **{k: v for k, v in _menu().items() if k in {"items", "categories"}}}
    ).encode(),
}


@dataclass(frozen=True, slots=True)
class Export:
    """One file of a till, `content`, the files beside it, and how the adapter reads them."""

    name: str
    adapter: str
    file: str
    content: bytes
    currency: str = "EUR"
    options: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of file, by its name."""
        return self.file.rpartition(".")[2].lower()


def _of_case(adapter: str, folder: Path) -> Iterator[Export]:
    told = tomllib.loads((folder / "case.toml").read_text("utf-8"))
    files = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    currency, options = told.get("currency", "EUR"), told.get("options", {})
    for name in sorted(files.keys() - _NO_EXPORT):
        if not name.endswith(".toml"):
            beside = {key: each for key, each in files.items() if key != name}
            label = f"{adapter} {folder.name} {name}"
            yield Export(label, adapter, name, files[name], currency, options, beside)


@cache
def exports() -> Mapping[str, Export]:
    """Return every export there is, by name."""
    found = [
        Export(
            f"folder plain {name}",
            "folder",
            f"menu.{name.rpartition('.')[2]}",
            content,
            options={"menu": f"menu.{name.rpartition('.')[2]}"},
        )
        for name, content in _PLAIN.items()
    ]
    for adapter, cases in _CASES.items():
        for folder in case_folders(cases):
            found += _of_case(adapter, folder)
    return {each.name: each for each in found}


@cache
def adapter_of(name: str) -> Adapter:
    """Return an installed adapter."""
    (found,) = entry_points(group="tillbridge.adapters", name=name)
    loaded: Adapter = found.load()
    return loaded


def as_sheets(content: bytes) -> bytes:
    """Return what a workbook holds in a form that can be damaged, as `read` takes it; or `content`.

    A workbook's own bytes cannot: each of its parts has a checksum.
    """
    try:
        return json.dumps(parse_sheets({"": content}), ensure_ascii=False).encode()
    except Unreadable:
        return content


def _sheets(content: bytes) -> list[tuple[str, list[tuple[int, list[str]]]]]:
    """Return sheets as `parse_sheets` would, at least one. Raises Unreadable."""
    with suppress(ValueError, RecursionError, TypeError, OverflowError):
        sheets = [
            (str(name), [(int(number), [str(cell) for cell in cells]) for number, cells in rows])
            for name, rows in json.loads(content.decode("utf-8", "replace"))
        ]
        if sheets:
            return sheets
    raise Unreadable("It is damaged.", place="", fix="Export it again.")


@contextmanager
def parsing_here() -> Iterator[None]:
    """Let parsers run in this process, where their coverage is seen and they cost no start."""

    def answer(function: Callable[..., Any], arguments: tuple[Any, ...], _limits: object) -> bytes:
        content = next(iter(arguments[0].values()))
        written = function is parse_sheets and content.startswith(_SHEETS)
        try:
            found = _sheets(content) if written else function(*arguments)
            return json.dumps(["returned", found]).encode()
        except Unreadable as failure:
            names = ("text", "place", "fix", "passing")
            parts = {name: getattr(failure, name) for name in names}
            parts["values"] = dict(failure.values)
            return json.dumps(["unreadable", parts]).encode()

    with mock.patch.object(isolation, "_answer", answer):
        yield


def read(export: Export, content: bytes, home: Path) -> dict[str, Reading]:
    """Return what the adapter reads in the empty folder `home` where `content` is in the file.

    Raises what no adapter may raise; a failure that it may report is its reading.
    """
    for name, each in {**export.beside, export.file: content}.items():
        (home / name).write_bytes(each)
    context = AdapterContext(
        store="case", currency=export.currency, location_id="case", base_dir=home
    )
    adapter = adapter_of(export.adapter)
    with ExitStack() as stack:
        stack.enter_context(parsing_here())
        try:
            pos = adapter.open(adapter.options.model_validate(dict(export.options)), context)
        except ValueError:  # the settings are wrong: told where they are read
            return {}
        except PosFailure as failure:
            return {"catalogue": failure}
        stack.enter_context(closing(pos))
        return dict(read_all(pos))
