"""The adapter: the menu of an Aloha till, from its DBF files."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AddOn,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Category,
    ExportUnreadable,
    Item,
    Menu,
    Source,
)
from tillbridge.adapter.export_files import still_being_written
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.adapter.prices import amount_fault
from tillbridge.adapter.sale_options import NotForSale, SaleRules
from tillbridge.adapter.texts import _
from tillbridge.model.money import to_minor
from tillbridge.model.numbers import parse_decimal
from tillbridge_aloha.modifiers import Modifiers, declared, label, number, sold
from tillbridge_aloha.options import AlohaOptions
from tillbridge_aloha.tables import Row, find_table, read_table

_MENU = Menu("menu", "Menu")
# Part of every fingerprint. Raise it when the same records come to mean another item.
_READING_VERSION = 2
_NAMES = ("longname", "shortname", "chitname")
_TABLES = ("ITM", "CAT", "CIT", "MOD", "GNDITEM")
_COLUMNS = {
    "external_id": "ID",
    "name": "LONGNAME",
    "price": "PRICE",
    "categories": "CATEGORY",
    "addon_groups": _("MOD1 to MOD10"),
    "categories.external_id": "ID",
    "categories.name": "NAME",
    "add_ons.name": "LONGNAME",
    "add_ons.price": "PRICE",
    "addon_groups.name": "LONGNAME",
    "addon_groups.min_select": "MINIMUM",
    "addon_groups.max_select": "MAXIMUM",
}


@dataclass(frozen=True, slots=True)
class _Priced:
    """A record of ITM.DBF: where it stands, and its price in minor units."""

    place: str
    identity: str
    name: str
    price: int


class AlohaAdapter:
    """Reads ITM, CAT and CIT; and MOD or GNDITEM for modifiers."""

    def __init__(self, options: AlohaOptions, context: AdapterContext) -> None:
        self._folder = context.base_dir / options.folder
        self._options = options
        self._currency = context.currency
        self._seen: set[str] = set()

    def catalogue_files(self) -> Sequence[Path]:
        """Return the files that make the menu, those of modifiers where they are there."""
        modifiers = () if self._options.modifiers == "none" else ("MOD", "GNDITEM")
        there = [path for name in modifiers if (path := self._path(name)) is not None]
        menu = [self._path(name) or self._folder / f"{name}.DBF" for name in ("ITM", "CAT", "CIT")]
        return [*menu, *there]

    def availability_files(self) -> Sequence[Path]:
        """Return none: the stop list is a category."""
        return []

    def table_files(self) -> Sequence[Path]:
        """Return none: tables are not read."""
        return []

    def update_folders(self) -> Sequence[Path]:
        """Return none: Aloha does not report the progress of orders by files."""
        return []

    def read_catalogue(self) -> Catalogue:
        """Return the menu. Raises ExportUnreadable."""
        return self.read_changes(frozenset()).fresh

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the items whose records are not `known`. Raises ExportUnreadable."""
        rows = {name: self._rows(name) for name in _TABLES}
        if rows["ITM"] is None:
            raise ExportUnreadable(
                _("{folder} has no ITM.DBF.").format(folder=str(self._folder)),
                place=str(self._folder),
                fix=_("Correct the option folder: it is Aloha's DATA or NEWDATA."),
                passing=True,
            )
        bad_rows: list[BadRow] = []
        priced = {each.identity: each for each in self._priced(rows["ITM"], bad_rows)}
        names = {number(row, "id"): label(row, "name") for row in rows["CAT"] or ()}
        members = _members(rows["CIT"] or (), names)
        modifiers = self._modifiers(rows, priced)
        stopped = (self._options.stop_list or "").casefold()
        stops = {category for category, name in names.items() if name.casefold() == stopped}
        rules = SaleRules(self._options, modifiers.groups, modifiers.add_ons, names)
        records = KnownRecords(known, _READING_VERSION, rules.meaning())
        items: dict[str, Item] = {}
        fingerprints: dict[str, int] = {}
        used: set[str] = set()
        for identity, each in priced.items():
            categories = members.get(identity, ())
            listed = tuple([category for category in categories if category not in stops])
            available = len(listed) == len(categories)
            groups = modifiers.of_item.get(identity, ())
            if wrong := [
                modifiers.refused[group] for group in groups if group in modifiers.refused
            ]:
                slip = _Slip(
                    _('"{name}" cannot be ordered: {wrong}.').format(name=each.name, wrong=wrong[0])
                )
                bad_rows.append(_bad_row(each.place, slip, identity))
                continue
            state = (identity, each.name, str(each.price), "on" if available else "off")
            fingerprint = records.new((*state, *listed, "groups", *groups))
            if fingerprint is not None:
                item = _item(each, listed, groups, available=available)
                if not self._is_offered(item, each.place, rules, bad_rows):
                    continue
                items[identity] = item
                fingerprints[identity] = fingerprint
            used.update(listed)
        return records.changes(
            Catalogue.of(
                items.values(),
                categories=[Category(each, name) for each, name in names.items() if each in used],
                add_ons=modifiers.add_ons.values(),
                addon_groups=modifiers.groups.values(),
                menus=[_MENU],
                bad_rows=bad_rows,
                fingerprints=fingerprints,
                facts=rules.facts("CAT.DBF"),
                source=Source(
                    {identity: each.place for identity, each in priced.items()},
                    _COLUMNS,
                    _part_places(rows["CAT"] or (), modifiers, priced),
                ),
            )
        )

    @staticmethod
    def _is_offered(item: Item, place: str, rules: SaleRules, bad_rows: list[BadRow]) -> bool:
        try:
            return rules.offered(item, place) is not None
        except NotForSale as failure:
            bad_rows.append(
                BadRow(place, failure.text, failure.fix, item.external_id, "PRICE", "0")
            )
            return False

    def _path(self, name: str) -> Path | None:
        try:
            return find_table(self._folder, name)
        except ExportUnreadable:
            return None

    def _rows(self, name: str) -> Sequence[Row] | None:
        path = find_table(self._folder, name)
        if path is None:
            if name in self._seen:
                raise still_being_written(f"{name}.DBF", _("was there, and is missing now"))
            return None
        rows = read_table(path, self._options.encoding)
        if name != "GNDITEM":  # the day's sales come and go
            self._seen.add(name)
        return rows

    def _priced(self, rows: Sequence[Row], bad_rows: list[BadRow]) -> Iterator[_Priced]:
        seen: dict[str, Row] = {}
        for place, row in enumerate(rows, 1):
            identity, name = number(row, "id"), label(row, *_NAMES)
            try:
                if seen.get(identity) == row:
                    continue  # the same record once more
                _check_id(identity, name, seen)
                price = _price(row, name, self._currency)
            except _Slip as slip:
                bad_rows.append(
                    _bad_row(
                        _("{file}, record {record}").format(file="ITM.DBF", record=place),
                        slip,
                        identity,
                    )
                )
                continue
            seen[identity] = row
            yield _Priced(
                _("{file}, record {record}").format(file="ITM.DBF", record=place),
                identity,
                name,
                price,
            )

    def _modifiers(
        self, rows: Mapping[str, Sequence[Row] | None], priced: Mapping[str, _Priced]
    ) -> Modifiers:
        if self._options.modifiers == "none" or not (rows["MOD"] or rows["GNDITEM"]):
            return Modifiers()
        # An item may be a modifier too, and one id must not stand for both.
        known = {
            key: AddOn(f"modifier-{key}", each.name, each.price) for key, each in priced.items()
        }
        if rows["MOD"] is not None:
            return declared(rows["ITM"] or (), rows["MOD"], known)
        return sold(rows["GNDITEM"] or (), known)


def _item(
    each: _Priced, categories: tuple[str, ...], groups: tuple[str, ...], *, available: bool
) -> Item:
    return Item(
        external_id=each.identity,
        name=each.name,
        price=each.price,
        available=available,
        categories=categories,
        addon_groups=groups,
        menus=(_MENU.external_id,),
    )


def _part_places(
    categories: Sequence[Row], modifiers: Modifiers, priced: Mapping[str, _Priced]
) -> Mapping[str, str]:
    """Return where categories, groups and add-ons stand, by their ids."""
    return {
        **{
            number(row, "id"): _("{file}, record {record}").format(file="CAT.DBF", record=at)
            for at, row in enumerate(categories, 1)
        },
        **modifiers.places,
        **{f"modifier-{key}": each.place for key, each in priced.items()},
    }


class _Slip(Exception):
    """What is wrong with a row: in which column, and what stands there."""

    def __init__(self, text: str, column: str = "", value: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.column = column
        self.value = value


def _bad_row(place: str, slip: _Slip, identity: str) -> BadRow:
    return BadRow(
        place=place,
        text=slip.text,
        fix=_("Correct the item in Aloha Manager; it counts after the next refresh."),
        external_id=identity,
        field=slip.column,
        value=slip.value,
    )


def _check_id(identity: str, name: str, seen: Mapping[str, Row]) -> None:
    if not identity:
        raise _Slip(
            _('"{name}" has no id.').format(name=name) if name else _("It has no id."), "ID"
        )
    if identity in seen:
        first = label(seen[identity], *_NAMES)
        raise _Slip(_('It has the id of "{first}".').format(first=first), "ID", identity)


def _price(row: Row, name: str, currency: str) -> int:
    if not name:
        raise _Slip(_("It has no name."), "LONGNAME")
    if row.get("askprice") == "Y":
        raise _Slip(
            _('"{name}" has an open price: a storefront cannot sell it.').format(name=name),
            "ASKPRICE",
            "Y",
        )
    written = row.get("price", "0")
    try:
        # A number of the file, not a text of a person: its point is a point.
        price = to_minor(parse_decimal(written), currency)
    except ValueError as failure:
        text = _('The price of "{name}" is wrong: PRICE {what}.').format(
            name=name, what=amount_fault(failure)
        )
        raise _Slip(text, "PRICE", written) from failure
    if price < 0:
        raise _Slip(_('"{name}" has a price below zero.').format(name=name), "PRICE", written)
    return price


def _members(rows: Sequence[Row], names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the categories of each item, in the order of CAT.DBF."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(number(row, "itemid"), set()).add(number(row, "category"))
    return {
        item: tuple(category for category in names if category in categories)
        for item, categories in found.items()
    }


ADAPTER = Adapter(
    name="aloha",
    summary="Aloha, by its folder of DBF files",
    options=AlohaOptions,
    open=AlohaAdapter,
)
