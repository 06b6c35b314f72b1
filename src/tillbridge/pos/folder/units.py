"""Rows of a mapped export as units: an item, and the rows of its sizes.

What the rows of an export say by columns, groups and parents becomes rows as our own CSV has them:
an item, and variants that name it. What they mean is read in one place, from those.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from tillbridge.adapter.sale_options import StockOptions, is_sold_out
from tillbridge.adapter.texts import _
from tillbridge.model.export_facts import LeftOut
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell, DuplicateId
from tillbridge.pos.folder.items import BLANK, Row
from tillbridge.pos.folder.mapping import MenuMapping

_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,6})?")
SIZE_MARK = " / "  # between the parts of a size's name: "Large / Red"
ANY = "*"


@dataclass(frozen=True, slots=True)
class Record:
    """One row of an export.

    `fields` are by our names, `sizes` what names the size, `filters` the cells of the columns that
    decide whether the row counts. `parent_key` is what others may mean by `parent_id`, `bad` what
    is wrong with the row as a whole.
    """

    number: int
    fields: Mapping[str, str]
    group: str = ""
    sizes: tuple[str, ...] = ()
    filters: Mapping[str, str] = field(default_factory=dict)
    parent_key: str = ""
    bad: BadCell | None = None

    def text(self, column: str) -> str:
        """Return what is in one of our columns, as one line."""
        return cells.plain(self.fields.get(column, ""))


Unit = list[tuple[int, Row, BadCell | None]]
"""The rows of one item by their numbers, and what is wrong with some of them."""


def texts_of(unit: Unit) -> Iterator[str]:
    """Yield all that an item is made of, in a fixed order."""
    for _number, row, bad in unit:
        yield from row.values()
        yield "" if bad is None else bad.text


def excluding_column(where: Mapping[str, Sequence[str]], cells_of: Mapping[str, str]) -> str:
    """Return the column whose word keeps a row out, "" for a row that counts.

    A row counts if each column of `where` holds one of its words, or nothing.
    """
    for column, values in where.items():
        held = [part.strip().casefold() for part in cells_of.get(column, "").split(",")]
        if not any(held):
            if ANY in values:
                return column
        elif ANY not in values and not {value.casefold() for value in values} & set(held):
            return column
    return ""


@dataclass(slots=True)
class UnitMaker:
    """Makes units of the records of one reading, and records those that are left out.

    `names` gives what the file calls a column of ours, `place` how a person finds a row.
    """

    mapping: MenuMapping
    options: StockOptions
    names: Mapping[str, str]
    place: Callable[[int], str]
    left_out: dict[int, LeftOut] = field(default_factory=dict)  # by the number of the row

    def units(self, records: Iterable[Record]) -> Iterator[Unit]:
        """Yield the units of an export, in the order of their first rows."""
        if self.mapping.group_by is not None or self.mapping.ids == "derived":
            return self._by_group(records)
        return self._by_parent(records)

    def _counts(self, record: Record, filters: Mapping[str, str]) -> bool:
        column = excluding_column(self.mapping.where, filters)
        if not column:
            return True
        name, size = record.text("name"), self._size(record)
        if name:
            self.left_out[record.number] = LeftOut(
                name=f"{name} ({size})" if size else name,
                reason="not_offered",
                detail=f"{column}: {filters.get(column, '')}",
                place=self.place(record.number),
            )
        return False

    def _by_parent(self, records: Iterable[Record]) -> Iterator[Unit]:
        """Yield items with the rows that name them as their parent."""
        every = list(records)
        ids = {each.parent_key: each.text("external_id") for each in every if each.parent_key}
        dropped: set[str] = set()
        units: dict[str, Unit] = {}
        variants: list[tuple[str, Record]] = []
        for number, record in enumerate(every):
            parent, own_id = self._parent(record, ids), record.text("external_id")
            if parent:
                variants.append((parent, record))
            elif not self._counts(record, record.filters):
                dropped.add(own_id)
            else:
                self._add(units.setdefault(own_id or f"\0{number}", []), record, self._row(record))
        for parent, record in variants:
            if parent not in dropped and self._counts(record, record.filters):
                size = self._size(record) or record.text("variant_name")
                row = self._row(record, parent_id=parent, variant_name=size)
                self._add(units.setdefault(parent, []), record, row)
        yield from units.values()

    def _by_group(self, records: Iterable[Record]) -> Iterator[Unit]:
        """Yield items whose rows have one key; the first row is the item and its first size."""
        groups: dict[str, list[Record]] = {}
        for number, record in enumerate(records):
            key = self._group(record)
            groups.setdefault(key or f"\0{number}", []).append(record)
        for key, group in groups.items():
            unit = self._grouped("" if key.startswith("\0") else key, group)
            if unit:
                yield unit

    def _group(self, record: Record) -> str:
        if self.mapping.group_by is not None:
            return record.group
        name = record.text("name")
        return derived_id(record.fields.get("category", "").split("|")[0], name) if name else ""

    def _grouped(self, key: str, group: Sequence[Record]) -> Unit:
        if not key:
            nameless = cells.empty(
                self.names["name" if self.mapping.group_by is None else "group_by"]
            )
            return [(each.number, self._row(each), each.bad or nameless) for each in group]
        first = group[0]
        here = [each for each in group if self._counts(each, _inherited(each, first))]
        if not here:
            return []
        # Rows with neither price nor size only add another picture of the item.
        sizes = [each for each in here if each.text("price") or self._size(each) or each.bad]
        sizes = sizes or here[:1]
        about = {
            column: _first(each.fields.get(column, "") for each in (*here, *group))
            for column in ("name", "description", "category", "image_url", "addon_groups")
        }
        if len(sizes) == 1 and not self._size(sizes[0]):
            row = self._row(sizes[0], external_id=key, **about)
            return [(sizes[0].number, row, sizes[0].bad)]
        unit: Unit = []
        if self.mapping.group_by is None and not any(map(self._size, sizes)):
            # Several rows of one name: the same dish twice, of which the first counts.
            for each in sizes:
                self._add(unit, each, self._row(each, external_id=key))
            return unit
        item = self._row(here[0], external_id=key, price="", **about)
        sold_out = all(self._sold_out(each) for each in sizes)
        item["available"] = "no" if sold_out else ""
        unit.append((here[0].number, item, None))
        for each in sizes:
            size = self._size(each)
            bad = None
            if not size:
                name = self.names["variant_name"]
                bad = BadCell(
                    name,
                    "",
                    _("{name} is empty, and other rows of {key!r} are sizes.").format(
                        name=name, key=key
                    ),
                    _("Give each size a name in the till."),
                )
            size_id = self._size_id(each, key)
            row = self._row(each, external_id=size_id, parent_id=key, variant_name=size)
            self._add(unit, each, row, bad)
        return unit

    def _add(self, unit: Unit, record: Record, row: Row, bad: BadCell | None = None) -> None:
        """Add a row to its unit; of two with one id the first counts, unless both say the same."""
        bad = record.bad or bad
        if bad is None:
            own = cells.plain(row["external_id"])
            same = (each for each in unit if cells.plain(each[1]["external_id"]) == own)
            if (first := next(same, None)) is not None:
                if first[1] == row:
                    return
                bad = self._duplicate(row, first[0])
        unit.append((record.number, row, bad))

    def _duplicate(self, row: Row, first: int) -> DuplicateId:
        parent = cells.plain(row["parent_id"])
        if parent:
            column = "variant_name"
        else:
            column = "name" if self.mapping.ids == "derived" else "external_id"
        name, value = self.names[column], cells.plain(row[column])
        what = _("{name} {value!r} of {parent!r}") if parent else "{name} {value!r}"
        return DuplicateId(
            name,
            value,
            _("{what} stands in {place} already.").format(
                what=what.format(name=name, value=value, parent=parent), place=self.place(first)
            ),
            _("Give each a {name} of its own; the first row counts.").format(name=name),
        )

    def _size_id(self, record: Record, item_id: str) -> str:
        """Return the id of a size: its row's own, else one of the item's and the size's name."""
        own = record.text("variant_id") or record.text("external_id")
        if own and own != item_id:
            return own
        return f"{item_id}/{derived_id(*self._size_parts(record))}"

    def _size(self, record: Record) -> str:
        return SIZE_MARK.join(self._size_parts(record))

    def _size_parts(self, record: Record) -> list[str]:
        names = [cells.plain(each) for each in record.sizes]
        if not names:
            names = [record.text("variant_name")]
        nothing = {each.casefold() for each in self.mapping.no_size}
        return [name for name in names if name and name.casefold() not in nothing]

    def _parent(self, record: Record, ids: Mapping[str, str]) -> str:
        value = record.text("parent_id")
        prefix = self.mapping.parent_prefix
        if prefix and value.casefold().startswith(prefix.casefold()):
            return value[len(prefix) :].strip()
        return ids.get(value, value) if self.mapping.parent_by is not None else value

    def _sold_out(self, record: Record) -> bool:
        try:
            return not cells.yes_or_no("", self._available(record), empty=True)
        except BadCell:  # reported where the size itself is read
            return False

    def _available(self, record: Record) -> str:
        if is_sold_out(self.options, _stock(record)):
            return "no"
        value = record.fields.get("available", "")
        word = cells.plain(value).casefold()
        if word in {each.casefold() for each in self.mapping.on_sale}:
            return "yes"
        return "no" if word in {each.casefold() for each in self.mapping.sold_out} else value

    def _row(self, record: Record, **own: str) -> dict[str, str]:
        fields = {**record.fields, **own, "available": self._available(record)}
        row = {name: fields.get(name, "") for name in BLANK}
        separator, levels = self.mapping.category_separator, self.mapping.category_levels
        names = [row["category"]]
        if separator is not None:
            # WooCommerce writes a separator inside of a name with a backslash before it.
            parts = re.split(rf"(?<!\\){re.escape(separator)}", row["category"])
            names = [part.replace(f"\\{separator}", separator).replace("|", "/") for part in parts]
        if levels is not None:
            names = [name.rsplit(levels, 1)[-1] for name in names]
        row["category"] = "|".join(names)
        if self.mapping.image_separator is not None:
            row["image_url"] = row["image_url"].split(self.mapping.image_separator, 1)[0]
        return row


def _stock(record: Record) -> Decimal | None:
    """Return how many are left, None if the till does not count them."""
    counted = record.text("stock_counted")
    if "stock_counted" in record.fields and counted.casefold() in {"", "0", "no", "false"}:
        return None
    text = record.text("stock").replace(",", ".")
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def _inherited(record: Record, first: Record) -> Mapping[str, str]:
    """Return the cells that decide, those that are empty as they are in the group's first row."""
    return {
        column: value if value.strip() else first.filters.get(column, "")
        for column, value in record.filters.items()
    }


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text.strip()), "")


_LONGEST_PART = 120


def derived_id(*parts: str) -> str:
    """Return the id that these names give; upper and lower case are the same."""
    return "/".join(_part(part) for part in parts)


def _part(name: str) -> str:
    text = cells.plain(unicodedata.normalize("NFC", name)).casefold()
    return text.replace("%", "%25").replace("/", "%2F")[:_LONGEST_PART]
