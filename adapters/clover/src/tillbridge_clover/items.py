"""Items of a workbook. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from tillbridge.adapter import BadRow, ExportUnreadable, Item, ItemTax, Variant
from tillbridge.adapter.claimed_ids import ClaimedIds, Clash
from tillbridge.adapter.export_items import MENU_ID, RowError, VariablePrice, sizes_of, tax_of
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.prices import BadPrice, PriceReader
from tillbridge.adapter.sale_options import NotForSale, SaleRules
from tillbridge.adapter.texts import _, one_line, without_markup
from tillbridge.adapter.xlsx_export import Sheet
from tillbridge_clover.groups import Group
from tillbridge_clover.options import CloverOptions
from tillbridge_clover.parts import Parts, category_of, names_in
from tillbridge_clover.workbook import Record, find_sheet, records

# Part of every fingerprint. Raise it when the same row comes to mean another item.
_READING_VERSION = 2
_READ = (
    *("clover id", "sku", "product code", "name", "description", "price", "price type", "hidden"),
    *("variant option", "modifier groups", "tax rates", "default tax rates"),
)
"""The columns that an item is made of, beside its categories; what is in stock is not read."""
_BLANKS = ("",) * len(_READ)
_READ_AS_LISTS = ("variant option", "modifier groups", "tax rates")


@dataclass(frozen=True, slots=True)
class Reading:
    """How records become items; `groups` are those that items can use, by name."""

    prices: PriceReader
    parts: Parts
    hidden: Literal["leave_out", "sold_out"]
    groups: Mapping[str, Group]
    rules: SaleRules

    @classmethod
    def of(cls, parts: Parts, options: CloverOptions, prices: PriceReader) -> "Reading":
        """Return how this workbook's records are read."""
        groups = parts.groups.usable()
        rules = SaleRules(
            options,
            groups={each.group.external_id: each.group for each in groups.values()},
            add_ons={
                add_on.external_id: add_on for each in groups.values() for add_on in each.add_ons
            },
            category_names={each.external_id: each.name for each in parts.categories.values()},
        )
        return cls(prices, parts, options.hidden, groups, rules)


@dataclass(slots=True)
class Found:
    """The items, the fingerprints of their records, and what could not be read.

    `used` are the ids of the categories of all items, known ones too: Clover may rename one.
    `groups` are the names of the groups that items use, in small letters, bad rows' too.
    """

    items: dict[str, Item] = field(default_factory=dict)
    fingerprints: dict[str, int] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    bad_rows: list[BadRow] = field(default_factory=list)


def changes_of(
    sheets: Mapping[str, Sheet], name: str, reading: Reading, known: AbstractSet[int]
) -> tuple[Found, KnownRecords]:
    """Return what the records of the workbook `name` say that are not known.

    Raises ExportUnreadable where it has no sheet of items.
    """
    sheet = find_sheet(sheets, "items", "inventory")
    if sheet is None:
        raise ExportUnreadable(
            _("{name} has no sheet Items; it has {names}.").format(
                name=name, names=", ".join(sheets)
            ),
            place=name,
            fix=_("Export the inventory: Clover dashboard, Inventory, Items, Export."),
        )
    found = Found()
    parts = reading.parts
    groups = {name: each.group.external_id for name, each in reading.groups.items()}
    about_items = (reading.prices, reading.hidden, groups, parts.taxes, parts.default_taxes)
    known_records = KnownRecords(known, _READING_VERSION, about_items, reading.rules.meaning())
    claimed = ClaimedIds()
    for family in _families(records(sheet, key=("clover id", "name"), first="name")):
        if reading.hidden == "leave_out" and all(_is(record, "hidden", "yes") for record in family):
            continue
        # An item may be the first to name a category, for all below: even one that is known.
        categories = _categories(family, parts)
        found.groups.update(map(str.casefold, _groups_named(family, parts)))
        fingerprint = known_records.fingerprint(_texts(family, categories))
        clash = claimed.claim(_ids(family), fingerprint)
        if clash is not None:
            if not clash.is_same:
                found.bad_rows.append(_twice(family, clash, sheet))
        elif known_records.is_known(fingerprint):
            found.used.update(categories)
        else:
            _take(family, categories, fingerprint, sheet, reading, found)
    return found, known_records


def _texts(family: Sequence[Record], categories: Sequence[str]) -> Iterable[str]:
    """Return all that an item is made of."""
    texts: list[str] = []
    for record in family:
        texts += map(record.values.get, _READ, _BLANKS)
        if record.more is not None:
            for column in _READ_AS_LISTS:
                texts += [column, *record.all(column)]
    texts += categories
    return texts


def _take(
    family: Sequence[Record],
    categories: Sequence[str],
    fingerprint: int,
    sheet: Sheet,
    reading: Reading,
    found: Found,
) -> None:
    first = family[0]
    identity = _identity(family)
    place = sheet.place(first.number)
    try:
        item = reading.rules.offered(_item(family, identity, categories, sheet, reading), place)
    except RowError as wrong:
        at = place if wrong.row is None else sheet.place(wrong.row)
        found.bad_rows.append(wrong.at(at, identity))
        return
    except NotForSale as failure:
        found.bad_rows.append(BadRow(place, failure.text, failure.fix, identity, field="Price"))
        return
    if item is None:
        return
    found.items[identity] = item
    found.fingerprints[identity] = fingerprint
    found.places[identity] = place
    found.used.update(categories)


def _ids(family: Sequence[Record]) -> Iterator[tuple[str, int]]:
    """Yield the ids of an item and of its variants, with their rows."""
    if identity := _identity(family):
        yield identity, family[0].number
    if family[0]["variant option"]:
        for record in family:
            yield _variant_id(record, identity), record.number


def _twice(family: Sequence[Record], clash: Clash, sheet: Sheet) -> BadRow:
    return BadRow(
        place=sheet.place(clash.row),
        text=_('"{name}" has the id {external_id!r} of row {first_row}.').format(
            name=one_line(family[0]["name"]),
            external_id=clash.external_id,
            first_row=clash.first_row,
        ),
        fix=_("Remove one of the two rows, or export again."),
        external_id=_identity(family),
        field="Clover ID",
        value=clash.external_id,
    )


def _families(rows: Sequence[Record]) -> Iterable[Sequence[Record]]:
    """Return records that are one item: alone, or as variants, which share their name."""
    families: dict[object, list[Record]] = {}
    for record in rows:
        # Clover demands that such names differ, so variants may stand apart.
        shared = record["name"] if record["variant option"] else id(record)
        family = families.setdefault(shared, [])
        if not any(record.equals(each) for each in family):
            family.append(record)
    return families.values()


def _identity(family: Sequence[Record]) -> str:
    """Return the item's id. Clover has none for a group of variants but its name."""
    first = family[0]
    if first["variant option"]:
        return f"group/{first['name']}"
    return first["clover id"] or first["sku"] or first["product code"]


def _categories(family: Sequence[Record], parts: Parts) -> tuple[str, ...]:
    """Return the ids of the categories: those the item names, else those that name the item."""
    named: list[str] = []
    for record in family:
        for written in record.all("categories"):
            named += [category_of(parts, each) for each in names_in(written, parts.categories)]
    if not named and parts.members:
        named = parts.members.get(family[0]["name"].casefold(), [])
    return tuple(dict.fromkeys(named)) if named else ()


def _item(
    family: Sequence[Record],
    identity: str,
    categories: Sequence[str],
    sheet: Sheet,
    reading: Reading,
) -> Item:
    first = family[0]
    name = one_line(first["name"])
    if not name:
        raise RowError("Name", "", _("It has no name."), _("Give the item a name in Clover."))
    if not identity:
        raise RowError(
            "Clover ID",
            "",
            _('"{name}" has no Clover ID.').format(name=name),
            _(
                "Export the inventory from Clover: a template that was filled in by hand has "
                "no ids."
            ),
        )
    variants: tuple[Variant, ...] = ()
    if first["variant option"]:
        variants = sizes_of(
            family,
            lambda record: _variant(record, identity, name, reading),
            lambda record: sheet.place(record.number),
            reading.rules,
        )
        price = min([variant.price for variant in variants])
        available = any(variant.available for variant in variants)
    else:
        price = _price(first, name, reading.prices)
        available = not _is(first, "hidden", "yes")
    return Item(
        external_id=identity,
        name=name,
        price=price,
        description=without_markup(first["description"]),
        available=available,
        categories=tuple(categories),
        addon_groups=_groups(_groups_named(family, reading.parts), name, reading),
        variants=variants,
        tax=_tax(first, reading.parts),
        menus=(MENU_ID,),
    )


def _variant(record: Record, identity: str, name: str, reading: Reading) -> Variant:
    return Variant(
        external_id=_variant_id(record, identity),
        variant_name=_variant_name(record),
        price=_price(record, f"{name} ({_variant_name(record)})", reading.prices),
        available=not _is(record, "hidden", "yes"),
    )


def _variant_name(record: Record) -> str:
    return " / ".join(record.all("variant option"))


def _variant_id(record: Record, identity: str) -> str:
    return record["clover id"] or f"{identity}/{_variant_name(record)}"


def _groups_named(family: Sequence[Record], parts: Parts) -> Sequence[str]:
    """Return the names of the groups that the family's rows give."""
    return [
        each
        for record in family
        for written in record.all("modifier groups")
        for each in names_in(written, parts.groups.names)
    ]


def _groups(named: Sequence[str], name: str, reading: Reading) -> tuple[str, ...]:
    found = []
    for each in named:
        group = reading.groups.get(each.casefold())
        if group is None:
            why, fix = reading.parts.groups.refusal(each)
            text = _('"{name}" has the modifier group "{group}", {why}.').format(
                name=name, group=each, why=why
            )
            raise RowError("Modifier Groups", each, text, fix)
        if group.add_ons:
            found.append(group.group.external_id)
    return tuple(dict.fromkeys(found))


def _price(record: Record, name: str, prices: PriceReader) -> int:
    written, kind = record["price"], record["price type"].casefold()
    if kind == "variable" or not written:
        raise VariablePrice(
            name,
            "Price",
            written,
            _('"{name}" has a variable price: a storefront cannot sell it.').format(name=name),
            _("Give it a fixed price in Clover, hide it, or sell it at the counter only."),
            row=record.number,
        )
    try:
        return prices.read(written, column="Price", name=name)
    except BadPrice as bad:
        raise RowError(bad.column, bad.value, bad.text, bad.fix, row=record.number) from bad


def _tax(record: Record, parts: Parts) -> ItemTax | None:
    known = {*parts.tax_names, "default"}
    names = [name for written in record.all("tax rates") for name in names_in(written, known)]
    if not names and not record["default tax rates"]:
        return None
    if _is(record, "default tax rates", "yes") or "default" in map(str.casefold, names):
        names = [*parts.default_taxes, *names]
    components = [
        parts.taxes[name.casefold()]
        for name in dict.fromkeys(names)
        if name.casefold() in parts.taxes
    ]
    return tax_of(components)


def _is(record: Record, column: str, value: str) -> bool:
    written = record[column]
    return bool(written) and written.casefold() == value
