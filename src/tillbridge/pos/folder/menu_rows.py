"""Rows of a menu CSV: what their fields say as an item or a variant."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from tillbridge.adapter import Item, Variant
from tillbridge.adapter.prices import PriceReader
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BrokenRow
from tillbridge.pos.folder.table_file import Table

REQUIRED = ("external_id", "name", "price")
OPTIONAL = (
    "description",
    "category",
    "available",
    "image_url",
    "variant_name",
    "parent_id",
    "addon_groups",
)

_BLANK = dict.fromkeys((*REQUIRED, *OPTIONAL), "")
_PRICE_LIKE = re.compile(r"\s*\d[\d\s.,']*\s*")


@dataclass(frozen=True, slots=True)
class MenuRow:
    """A row as it stands, its fields by our names; a column the file lacks reads as empty."""

    fields: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.fields[name]

    @property
    def external_id(self) -> str:
        """The id as far as it can be told, "" where it cannot."""
        return cells.plain(self["external_id"])

    @property
    def parent_id(self) -> str:
        """The item this row is a variant of, "" for an item."""
        return cells.plain(self["parent_id"])

    def with_fields(self, **fields: str) -> "MenuRow":
        """Return the row with other values in some fields."""
        return MenuRow({**self.fields, **fields})

    @property
    def has_price(self) -> bool:
        """Whether there is anything in the price's field."""
        return bool(cells.plain(self["price"]))


def menu_row(fields: Mapping[str, str]) -> MenuRow:
    """Return a row with these fields by our names; others it may have are left out."""
    return MenuRow({name: fields.get(name, "") for name in _BLANK})


_PLAIN_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?")


@dataclass(frozen=True, slots=True)
class RowValues:
    """What the fields of a row say as an item or a variant, of whatever file. Raises BadCell.

    `prices` reads prices, unless they are whole `minor_units`; `exact` ones are numbers of a
    document, whose point is always a decimal point. `shown` gives the names that the file has for
    our columns, and `delimiter` what it separates fields with, "" where nothing does.
    """

    prices: PriceReader
    menu_id: str
    delimiter: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)
    minor_units: bool = False
    exact: bool = False

    def item(self, row: MenuRow) -> Item:
        """Return the item. Without a price it gets 0: its variants must have theirs."""
        fields = row.fields
        return Item(
            external_id=self._line(row, "external_id"),
            name=self._line(row, "name"),
            price=self._price(row, row["name"]) if row.has_price else 0,
            description=cells.description(fields["description"]),
            image_url=cells.text(self.name_of("image_url"), fields["image_url"]),
            available=self._available(row),
            categories=cells.names(cells.text(self.name_of("category"), fields["category"])),
            addon_groups=cells.names(
                cells.text(self.name_of("addon_groups"), fields["addon_groups"])
            ),
            menus=(self.menu_id,),
        )

    def variant(self, row: MenuRow) -> Variant:
        """Return the variant; its name is `variant_name`, else `name`."""
        named = "variant_name" if cells.plain(row["variant_name"]) else "name"
        return Variant(
            external_id=self._line(row, "external_id"),
            variant_name=self._line(row, named),
            price=self._price(row, row[named]),
            available=self._available(row),
        )

    def name_of(self, column: str) -> str:
        """Return how the file calls one of our columns."""
        return self.shown.get(column, column)

    def price_of(self, column: str, text: str, name: str) -> int:
        """Return a price in minor units, of the thing `name`, in the file's `column`."""
        if self.minor_units:
            return cells.minor_price(column, text)
        if self.exact and _PLAIN_NUMBER.fullmatch(text):
            return cells.exact_price(column, Decimal(text), self.prices.currency)
        return cells.price(self.prices, column, text, name)

    def _line(self, row: MenuRow, column: str) -> str:
        return cells.needed(self.name_of(column), row[column], delimiter=self.delimiter)

    def _price(self, row: MenuRow, name: str) -> int:
        return self.price_of(self.name_of("price"), row["price"], cells.plain(name))

    def _available(self, row: MenuRow) -> bool:
        return cells.yes_or_no(self.name_of("available"), row["available"], empty=True)


@dataclass(frozen=True, slots=True)
class MenuRowReader:
    """Finds the fields of one table's rows, and what is wrong with a row as a whole."""

    table: Table

    def row(self, row: Sequence[str]) -> MenuRow:
        """Return the row's fields by name."""
        fields = _BLANK.copy()
        last = len(row)
        for name, at in self.table.columns.items():
            if at < last:
                fields[name] = row[at]
        return MenuRow(fields)

    def check(self, row: Sequence[str]) -> None:
        """Raise BrokenRow for a row that is not as wide as the header, or more than one row."""
        width = len(self.table.header)
        if len(row) < width or any(map(str.strip, row[width:])):
            raise BrokenRow(
                "",
                self.table.delimiter.join(row),
                f"The row has {len(row)} fields, and the table has {width} columns.",
                "A text that holds the delimiter or a line break must stand in quotation marks.",
            )
        if "\n" in "".join(row) and any(map(self._looks_like_a_row, self._lines_within(row))):
            raise BrokenRow(
                "",
                self.table.delimiter.join(row),
                "The row runs on over what looks like other rows.",
                "Look for a quotation mark that is opened and never closed.",
            )

    def swallowed(self, row: Sequence[str]) -> list[str]:
        """Return the ids in lines that a stray quotation mark has made part of this bad row."""
        at = self.table.columns["external_id"]
        lines = (line for line in self._lines_within(row) if at < len(line))
        return [external_id for line in lines if (external_id := cells.plain(line[at].strip('"')))]

    def _lines_within(self, row: Sequence[str]) -> Iterator[list[str]]:
        for cell in row:
            if "\n" in cell:
                for line in cell.splitlines()[1:]:
                    yield line.split(self.table.delimiter)

    def _looks_like_a_row(self, line: Sequence[str]) -> bool:
        id_at, price_at = self.table.columns["external_id"], self.table.columns["price"]
        return (
            max(id_at, price_at) < len(line)
            and bool(line[id_at].strip())
            and _PRICE_LIKE.fullmatch(line[price_at]) is not None
        )
