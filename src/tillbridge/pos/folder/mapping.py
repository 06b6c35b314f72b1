"""Mappings: how the export of a product says what a menu is, as data (TOML).

Those of known products lie beside this module in `formats/`; a merchant can write one of the same
form. A mapping says where each field of ours stands, in columns of a table, in lines of text or in
the objects of a JSON document.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from tillbridge.adapter import ExportUnreadable
from tillbridge.adapter.sharing import read_shared
from tillbridge.adapter.texts import _, joined
from tillbridge.pos.folder import cells, json_paths

_MAX_SHOWN = 25  # columns named in a message

FORMATS = Path(__file__).with_name("formats")

Ids = Literal["column", "derived"]
"""Where ids come from: the file, or category, name and size (for files that have none)."""

MenuColumn = Literal[
    "external_id",
    "name",
    "price",
    "description",
    "category",
    "available",
    "image_url",
    "variant_id",
    "variant_name",
    "parent_id",
    "addon_groups",
    "stock",
    "stock_counted",
]


def _several(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as failure:
        raise ValueError(f"is no regular expression: {failure}") from None
    return text


def _path(text: str) -> str:
    json_paths.parse_path(text)
    return text


ColumnName = Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=1, strict=True)]
"""A column by its header, or by its position (1 is the first) in a file without a header."""

ColumnNames = Annotated[tuple[ColumnName, ...], BeforeValidator(_several), Field(min_length=1)]
"""One column, or several of which the first that says anything counts."""

Pattern = Annotated[str, AfterValidator(_pattern)]
JsonPath = Annotated[str, AfterValidator(_path)]


class _Authored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LinePatterns(_Authored):
    """Lines of text: regular expressions whose named groups are our columns."""

    heading: Pattern | None = Field(
        None, description="A line that is the category of those below; group `category`."
    )
    row: Pattern = Field(description="A line that is an item; groups `name`, `price`, ...")


class JsonSizes(_Authored):
    """The sizes of an item; the paths of their fields count from a size."""

    path: JsonPath = Field(description="From an item to its sizes.")
    key: JsonPath | None = Field(
        None, description="What tells the sizes of an item apart for good; else their names do."
    )
    name: JsonPath = Field(description="What the size is called; empty for an item of one size.")
    price: JsonPath = Field(description="Its price.")
    available: JsonPath | None = Field(None, description="Whether it is on sale.")


class JsonOptions(_Authored):
    """The add-ons of a group; the paths of their fields count from an add-on."""

    path: JsonPath = Field(description="From a group to its add-ons.")
    external_id: JsonPath = Field(description="The id of the add-on.")
    name: JsonPath = Field(description="What it is called.")
    price: JsonPath = Field(description="What it costs on top.")


class JsonGroups(_Authored):
    """The add-on groups of an item; the paths of their fields count from a group."""

    path: JsonPath = Field(description="From an item to its groups.")
    external_id: JsonPath = Field(description="The id of the group.")
    name: JsonPath = Field(description="What the group is called.")
    min_select: JsonPath | None = Field(None, description="How many must be taken.")
    max_select: JsonPath | None = Field(None, description="How many may be taken; 0 is no limit.")
    options: JsonOptions


class JsonMenu(_Authored):
    """A JSON document; `columns` and `where` of the mapping are paths from an item."""

    items: JsonPath = Field(description="From the root to the items.")
    price_unit: Literal["major", "minor"] = Field(
        "major", description="Whether prices are decimal (4.5) or whole minor units (450)."
    )
    sizes: JsonSizes | None = None
    groups: tuple[JsonGroups, ...] = ()


class MenuMapping(_Authored):
    """One mapping. Columns are by our names; a list of headers is tried in its order."""

    title: str = Field("", description="What the product is called, for people.")
    export: str = Field("", description="Where in the product the export is made, for people.")
    detect: tuple[str, ...] = Field(
        (),
        description="Headers (or members of a JSON document) that only this format has, each with "
        "its alternatives: `Type|Typ`.",
    )
    columns: dict[MenuColumn, ColumnNames] = Field(
        default_factory=dict, description="Where each of our columns stands."
    )
    group_by: ColumnNames | None = Field(
        None, description="The column by which rows are one item; the first row is the item."
    )
    sizes: tuple[ColumnNames, ...] = Field(
        (), description="The columns that together name a size, each with its alternatives."
    )
    no_size: tuple[str, ...] = Field(
        (), description="What stands in them where an item has one size only."
    )
    ids: Ids = Field("column", description="Whether the file has ids, or they are derived.")
    where: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description='Rows whose column holds something else are left out; ["*"] is anything. '
        "An empty cell passes, unless * is asked for.",
    )
    on_sale: tuple[str, ...] = Field(
        (), description="Words of `available` that mean yes, beside the usual ones."
    )
    sold_out: tuple[str, ...] = Field((), description="Words of `available` that mean no.")
    category_separator: str | None = Field(None, description="Between several categories (`|`).")
    category_levels: str | None = Field(
        None, description="Between a category and the one below it; the lowest counts."
    )
    image_separator: str | None = Field(
        None, description="Between several images; the first counts."
    )
    parent_prefix: str = Field("", description="What stands before the id in `parent_id`.")
    parent_by: ColumnNames | None = Field(
        None, description="The column that `parent_id` means where it has not that prefix."
    )
    lines: LinePatterns | None = None
    json_menu: JsonMenu | None = Field(None, alias="json")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.lines is not None and self.json_menu is not None:
            raise ValueError("has [lines] and [json]; a file is one of them")
        if self.json_menu is not None:
            self._check_json()
            return self
        if self.group_by is not None and "parent_id" in self.columns:
            raise ValueError("has group_by and columns.parent_id; sizes are found by one of them")
        if self.ids == "derived" and "external_id" in self.columns:
            raise ValueError('has ids = "derived" and columns.external_id; leave out one of them')
        positions = {type(each) for names in self.columns.values() for each in names}
        if positions == {int, str}:
            raise ValueError("columns: name all columns by their headers, or all by positions")
        return self

    def _check_json(self) -> None:
        for name, paths in self.columns.items():
            for path in paths:
                try:
                    json_paths.parse_path(str(path))
                except ValueError as failure:
                    raise ValueError(f"columns.{name}: {failure}") from None
        for path in self.where:
            json_paths.parse_path(path)
        needed = ("external_id", "name") if self.ids == "column" else ("name",)
        if missing := [name for name in needed if name not in self.columns]:
            raise ValueError(f"columns: {', '.join(missing)} is missing")

    @property
    def has_header(self) -> bool:
        """Whether the columns are named by a header; else by their positions."""
        return not any(isinstance(each, int) for names in self.columns.values() for each in names)


@cache
def known_formats() -> Mapping[str, MenuMapping]:
    """Return the mappings of known products by their names."""
    return {path.stem: read_mapping(path) for path in sorted(FORMATS.glob("*.toml"))}


def read_mapping(path: Path) -> MenuMapping:
    """Return the mapping in a file. Raises ValueError, which names file and place."""
    try:
        data = tomllib.loads(read_shared(path).decode("utf-8"))
    except OSError as failure:
        raise ValueError(f"format: {path} cannot be read: {failure.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise ValueError(f"format: {path} is no TOML: {failure}") from None
    try:
        return MenuMapping.model_validate(data)
    except ValidationError as failure:
        raise ValueError(f"format: {path.name}: {'; '.join(explained(failure))}") from None


def mapping_named(name: str, base_dir: Path) -> MenuMapping:
    """Return the mapping that the option `format` names. Raises ValueError."""
    if name.lower().endswith(".toml"):
        return read_mapping(base_dir / name)
    formats = known_formats()
    if name not in formats:
        raise ValueError(
            f'format: there is no "{name}"; it is one of {", ".join(formats)}, '
            "or a file of your own that ends in .toml"
        )
    return formats[name]


def looks_like(names: Iterable[str]) -> str:
    """Return the format that alone has all these headers or members, "" for none."""
    there = {cells.alike(name) for name in names}
    found = [
        name
        for name, mapping in known_formats().items()
        if mapping.detect
        and all(there & set(cells.alike(each).split("|")) for each in mapping.detect)
    ]
    return found[0] if len(found) == 1 else ""


def no_column(
    path: Path, header: Sequence[str], missing: Sequence[str], fix: str, *, row: int = 1
) -> ExportUnreadable:
    """Return what is wrong with a table without these columns; `fix` unless its format shows."""
    names = [name for name in header if name]
    shown = joined(", ", names[:_MAX_SHOWN]) + (", ..." if len(names) > _MAX_SHOWN else "")
    return ExportUnreadable(
        _("{name} has no column {missing}. Its columns are: {shown}.").format(
            name=path.name, missing=joined(", ", missing), shown=shown
        ),
        place=_("{file}, row {row}").format(file=path.name, row=row),
        fix=format_hint(header, path) or fix,
    )


def format_hint(names: Iterable[str], path: Path) -> str:
    """Return what to do about a file with these headers or members, "" where nothing is known."""
    listed = list(names)
    found = looks_like(listed)
    if not found and path.suffix.lower() == ".txt" and listed and listed[0].startswith("#"):
        found = next((name for name, each in known_formats().items() if each.lines), "")
    if not found:
        return ""
    return _('It looks like an export of {till}: set format = "{format}".').format(
        till=known_formats()[found].title, format=found
    )


def explained(failure: ValidationError) -> list[str]:
    """Return what is wrong with a mapping, each with its key."""
    found = []
    for error in failure.errors():
        place = [str(part) for part in error["loc"] if part not in {"str", "int"}]
        what = error["msg"].removeprefix("Value error, ")
        if place[-1:] == ["[key]"]:
            place.pop()
            what = f"there is no such column; there are {', '.join(get_args(MenuColumn))}"
        elif error["type"] == "extra_forbidden":
            what = f"there is no such key; there are {', '.join(_keys(place[:-1]))}"
        found.append(f"{'.'.join(place)}: {what}" if place else what)
    return list(dict.fromkeys(found))


def _keys(place: Iterable[str]) -> list[str]:
    """Return the keys that a table of a mapping can have."""
    tables: dict[str, type[BaseModel]] = {
        "lines": LinePatterns,
        "json": JsonMenu,
        "sizes": JsonSizes,
        "groups": JsonGroups,
        "options": JsonOptions,
    }
    names = [part for part in place if part in tables]
    model = tables.get(names[-1], MenuMapping) if names else MenuMapping
    return [field.alias or name for name, field in model.model_fields.items()]
