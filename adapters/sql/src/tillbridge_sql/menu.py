"""The menu, read by named queries in one moment's state of the database."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    BadRow,
    Catalogue,
    Category,
    ExportUnreadable,
    Item,
    ItemTax,
    Menu,
    Source,
    TaxComponent,
    Variant,
)
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.sale_options import NotForSale, SaleRules
from tillbridge.adapter.texts import _
from tillbridge.model.export_facts import ExportFacts, LeftOut
from tillbridge_sql import cells
from tillbridge_sql.asking import Asking
from tillbridge_sql.cells import CellError, Row
from tillbridge_sql.options import SqlOptions

_MENU = Menu("menu", "Menu")
# Part of every fingerprint. Raise it when the same rows come to mean another item.
_READING_VERSION = 1
# What the queries call what the ordering service calls otherwise.
_COLUMNS = {
    "categories": "category_id",
    "addon_groups": "group_id",
    "tax": "tax_id",
    **{f"variants.{name}": name for name in ("external_id", "variant_name", "price")},
}


@dataclass(slots=True)
class _Found:
    """What was read so far; of two with one id the first counts."""

    prices: PriceReader
    items: dict[str, Item] = field(default_factory=dict)
    bad_rows: list[BadRow] = field(default_factory=list)
    places: dict[str, dict[str, str]] = field(default_factory=dict)  # by query and id
    # What items name, and is wrong: by kind and id. Such items stay as they were.
    odd: dict[tuple[str, str], str] = field(default_factory=dict)

    def each(self, name: str, rows: Sequence[Row], take: Callable[[Row], None], key: str) -> None:
        """Take each row. One that is wrong is told, and so are the items that name its `key`."""
        places = self.places.setdefault(name, {})
        for number, row in enumerate(rows, 1):
            place = _("{file}, row {row}").format(file=name, row=number)
            places.setdefault(cells.text_of(row, "external_id").strip(), place)
            try:
                take(row)
            except CellError as wrong:
                named = cells.text_of(row, key).strip()
                if name != "items":
                    self.odd.setdefault((name, named), f"{place}: {wrong.text}")
                self.bad_rows.append(
                    BadRow(
                        place=place,
                        text=wrong.text,
                        fix=wrong.fix,
                        external_id=named if name in {"items", "variants"} else "",
                        field=wrong.column,
                        value=wrong.value,
                    )
                )

    def must_be_right(self, kind: str, named: str) -> None:
        """Raise CellError where what an item names is wrong."""
        if (kind, named) in self.odd:
            raise CellError(
                kind, _("What it names is wrong: {odd}").format(odd=self.odd[kind, named])
            )


def read_menu(
    asking: Asking, connection: Connection, currency: str, options: SqlOptions
) -> Catalogue:
    """Return what the till sells. Raises ExportUnreadable for queries without their columns."""

    def rows(name: str, *columns: str) -> Sequence[Row]:
        return _with_columns(name, asking.rows(connection, name), columns)

    items = rows("items", "external_id", "name", "price")
    sizes = rows("variants", "item_id", "external_id", "variant_name", "price")
    offers = rows("addons", "external_id", "name", "price", "group_id")
    written = [row.get("price") for each in (items, sizes, offers) for row in each]
    texts = [price for price in written if isinstance(price, str)]
    found = _Found(PriceReader.of(texts, currency, options.decimal))
    categories = _categories(found, rows("categories", "external_id", "name"))
    of_item = _links(rows("item_categories", "item_id", "category_id"), "category_id")
    groups_of = _links(rows("item_addon_groups", "item_id", "group_id"), "group_id")
    taxes = _taxes(found, rows("taxes", "external_id", "rate"))
    add_ons, members = _add_ons(found, offers)
    groups = _groups(found, rows("addon_groups", "external_id", "name"), members)
    variants = _variants(found, sizes)
    names = {key: each.name for key, each in categories.items()}
    rules = SaleRules(options, groups, add_ons, names)
    seen: dict[str, Row] = {}

    def take(row: Row) -> None:
        external_id = cells.id_of(row)
        if seen.get(external_id) == row:
            return  # as a join gives it
        if external_id in seen:
            raise CellError("external_id", _("Its external_id appears twice."), external_id)
        if cells.flag_of(row, "no_dish", default=False):
            seen[external_id] = row
            rules.leave_out(
                LeftOut(
                    cells.name_of(row),
                    "not_a_dish",
                    place=_("item {external_id}").format(external_id=external_id),
                )
            )
            return
        tax_id = cells.text_of(row, "tax_id").strip()
        its_groups = groups_of.get(external_id, ())
        found.must_be_right("variants", external_id)
        found.must_be_right("taxes", tax_id)
        for group in its_groups:
            found.must_be_right("addons", group)
            found.must_be_right("addon_groups", group)
        if refused := cells.text_of(row, "refused").strip():
            raise CellError("refused", refused)
        own = [cells.text_of(row, "category_id").strip(), *of_item.get(external_id, ())]
        its_variants = tuple(variants.get(external_id, ()))
        item = Item(
            external_id=external_id,
            name=cells.name_of(row),
            price=_item_price(row, found.prices, its_variants),
            description=cells.paragraph_of(row, "description"),
            image_url=cells.text_of(row, "image_url").strip(),
            available=cells.flag_of(row, "available", default=True),
            categories=tuple(dict.fromkeys(each for each in own if each in categories)),
            addon_groups=tuple(each for each in its_groups if each in groups),
            variants=its_variants,
            tax=taxes.get(tax_id),
            menus=(_MENU.external_id,),
        )
        offered = _offered(item, rules)
        seen[external_id] = row
        if offered is not None:
            found.items[external_id] = offered

    found.each("items", items, take, "external_id")
    return _catalogue(found, rules.facts(_("query items")), categories, groups, add_ons)


def _offered(item: Item, rules: SaleRules) -> Item | None:
    """Return the item as it is sold, None if it is left out. Raises CellError."""
    try:
        return rules.offered(item, _("item {external_id}").format(external_id=item.external_id))
    except NotForSale as refused:
        raise CellError("price", refused.text, fix=refused.fix) from refused


def _catalogue(
    found: _Found,
    facts: ExportFacts,
    categories: Mapping[str, Category],
    groups: Mapping[str, AddOnGroup],
    add_ons: Mapping[str, AddOn],
) -> Catalogue:
    items = found.items.values()
    in_use = {each for item in items for each in item.categories}
    groups_in_use = {each for item in items for each in item.addon_groups}
    chosen = {each for name in groups_in_use for each in groups[name].add_ons}
    return Catalogue.of(
        items,
        categories=[each for key, each in categories.items() if key in in_use],
        add_ons=[each for key, each in add_ons.items() if key in chosen],
        addon_groups=[each for key, each in groups.items() if key in groups_in_use],
        menus=[_MENU],
        bad_rows=found.bad_rows,
        facts=facts,
        fingerprints={
            key: _fingerprint(item, categories, groups, add_ons)
            for key, item in found.items.items()
        },
        source=Source(
            {**found.places["variants"], **found.places["items"]},
            _COLUMNS,
            {
                **found.places["categories"],
                **found.places["addons"],
                **found.places["addon_groups"],
            },
        ),
    )


def _fingerprint(
    item: Item,
    categories: Mapping[str, Category],
    groups: Mapping[str, AddOnGroup],
    add_ons: Mapping[str, AddOn],
) -> int:
    """Return a number of the item and of all it names: it is new whenever any of that is."""
    its_groups = [groups[each] for each in item.addon_groups]
    parts = (
        _READING_VERSION,
        item,
        [categories[each] for each in item.categories],
        its_groups,
        [add_ons[each] for group in its_groups for each in group.add_ons],
    )
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _item_price(row: Row, prices: PriceReader, variants: tuple[Variant, ...]) -> int:
    if variants and row.get("price") is None:
        return min(each.price for each in variants)
    return cells.price_of(row, prices)


def _variants(found: _Found, rows: Sequence[Row]) -> Mapping[str, list[Variant]]:
    """Return the variants by item.

    An item of which one is wrong stays as it was: a variant that is missing is deactivated.
    """
    variants: dict[str, list[Variant]] = {}
    seen: dict[str, Row] = {}

    def take(row: Row) -> None:
        external_id = cells.id_of(row)
        if seen.get(external_id) == row:
            return  # as a join gives it
        if external_id in seen:
            raise CellError("external_id", _("Its external_id appears twice."), external_id)
        variant = Variant(
            external_id,
            cells.name_of(row, "variant_name"),
            cells.price_of(row, found.prices),
            cells.flag_of(row, "available", default=True),
        )
        seen[external_id] = row
        variants.setdefault(cells.text_of(row, "item_id").strip(), []).append(variant)

    found.each("variants", rows, take, "item_id")
    return variants


def _taxes(found: _Found, rows: Sequence[Row]) -> Mapping[str, ItemTax]:
    """Return the taxes; several rows with one id are the parts of one tax."""
    names: dict[str, str] = {}
    parts: dict[str, list[TaxComponent]] = {}

    def take(row: Row) -> None:
        key = cells.id_of(row)
        rate = cells.rate_of(row)
        names.setdefault(key, " ".join(cells.text_of(row, "name").split()) or "Tax")
        agency = " ".join(cells.text_of(row, "component").split()) or names[key]
        parts.setdefault(key, []).append(TaxComponent(agency, rate))

    found.each("taxes", rows, take, "external_id")
    return {key: ItemTax(name, tuple(parts[key])) for key, name in names.items()}


def _add_ons(
    found: _Found, rows: Sequence[Row]
) -> tuple[Mapping[str, AddOn], Mapping[str, list[str]]]:
    """Return the add-ons, and those of each group in the query's order."""
    add_ons: dict[str, AddOn] = {}
    members: dict[str, list[str]] = {}

    def take(row: Row) -> None:
        key = cells.id_of(row)
        add_on = AddOn(key, cells.name_of(row), cells.price_of(row, found.prices))
        if add_ons.setdefault(key, add_on) != add_on:
            raise CellError("external_id", _("Its external_id appears twice, and differs."), key)
        its = members.setdefault(cells.text_of(row, "group_id").strip(), [])
        if key not in its:
            its.append(key)

    found.each("addons", rows, take, "group_id")
    return add_ons, members


def _groups(
    found: _Found, rows: Sequence[Row], members: Mapping[str, list[str]]
) -> Mapping[str, AddOnGroup]:
    """Return the groups that offer something."""
    groups: dict[str, AddOnGroup] = {}

    def take(row: Row) -> None:
        key = cells.id_of(row)
        offered = tuple(members.get(key, ()))
        if not offered:
            return
        least = max(0, cells.number_of(row, "min_select") or 0)
        most = max(0, cells.number_of(row, "max_select") or 0)
        if least > min(most or least, len(offered)):
            text = _("It wants {least}, allows {most} and offers {n}.").format(
                least=least, most=most or _("any number"), n=len(offered)
            )
            raise CellError("min_select", text, least)
        groups[key] = AddOnGroup(
            external_id=key,
            name=cells.name_of(row),
            min_select=least,
            max_select=most,
            required=cells.flag_of(row, "required", default=least > 0),
            add_ons=offered,
        )

    found.each("addon_groups", rows, take, "external_id")
    return groups


def _categories(found: _Found, rows: Sequence[Row]) -> Mapping[str, Category]:
    """Return those with an id and a name; what lacks one is nothing that an item could name."""
    categories: dict[str, Category] = {}

    def take(row: Row) -> None:
        key, name = cells.text_of(row, "external_id").strip(), cells.text_of(row, "name")
        if key and (shown := " ".join(name.split())):
            categories.setdefault(key, Category(key, shown))

    found.each("categories", rows, take, "external_id")
    return categories


def _links(rows: Sequence[Row], column: str) -> Mapping[str, tuple[str, ...]]:
    """Return what each item names, in the query's order."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        owner = found.setdefault(cells.text_of(row, "item_id").strip(), {})
        owner[cells.text_of(row, column).strip()] = None
    return {owner: tuple(named) for owner, named in found.items()}


def _with_columns(name: str, rows: Sequence[Row], columns: Sequence[str]) -> Sequence[Row]:
    if rows and (missing := [column for column in columns if column not in rows[0]]):
        raise ExportUnreadable(
            _("The query {name} gives no column {missing}.").format(name=name, missing=missing[0]),
            place=_("query {name}").format(name=name),
            fix=_("Let it give {names} (SELECT ... AS {missing}).").format(
                names=", ".join(columns), missing=missing[0]
            ),
        )
    return rows
