"""The menu as the specification's menu push body, in either of its two shapes.

Nothing is guessed: a price of 4.5 or "450" is refused, since either may mean two things. What reads
a field takes the object and the field's name, and returns the value or raises `BadCell`.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Category,
    ExportUnreadable,
    Item,
    ItemTax,
    Menu,
    Source,
    TaxComponent,
    Variant,
)
from tillbridge.adapter.export_files import reading_whole
from tillbridge.adapter.texts import _
from tillbridge.pos.folder import cells
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.json_pieces import (
    KNOWN,
    Elements,
    IsKnown,
    NeedsFullRead,
    json_text,
    parsed_json,
    value_at,
)
from tillbridge.pos.folder.mapping import format_hint
from tillbridge.pos.folder.options import FolderOptions

FLAT_MENU_ID = "menu"
"""Of the menu of the flat shape, which names it and gives it no id."""

_READING_VERSION = 2  # part of every fingerprint, as in items
_TO_SIGNED = 1 << 63
_MAX_RATE_DIGITS = 20

_Thing = Mapping[str, Any]
_Reader = Callable[[_Thing, str], Any]


# -- fields


def _text(thing: _Thing, field: str) -> str:
    value = thing.get(field)
    if value is not None and not isinstance(value, str):
        raise _wrong(field, value, "text")
    return value or ""


def _line(thing: _Thing, field: str) -> str:
    return cells.text(field, _text(thing, field))


def _needed(thing: _Thing, field: str) -> str:
    return cells.text(field, _text(thing, field), needed=True)


def _paragraph(thing: _Thing, field: str) -> str:
    return cells.paragraph(_text(thing, field))


def _id(thing: _Thing, field: str = "external_id") -> str:
    """Return the id; a whole number is taken as its digits."""
    value = thing.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _needed(thing, field)


def _id_if_any(thing: object) -> str:
    """Return the id as far as it can be read, "" where it cannot."""
    try:
        return _id(thing) if isinstance(thing, Mapping) else ""
    except BadCell:
        return ""


def _price(thing: _Thing, field: str) -> int:
    value = thing.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(
            field, value, _("a whole number of minor units (450 for 4.50 EUR, 1500 for 1500 JPY)")
        )
    return cells.checked_price(field, value, shown=value)


def _count(thing: _Thing, field: str) -> int:
    value = thing[field] if thing[field] is not None else 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise _wrong(field, value, _("a whole number that is not negative"))
    return value


def _flag(thing: _Thing, field: str, *, null: bool) -> bool:
    value = thing[field] if thing[field] is not None else null
    if not isinstance(value, bool):
        raise _wrong(field, value, _("true or false"))
    return value


def _list(thing: _Thing, field: str, what: str = _("a list")) -> list[Any]:
    value = thing.get(field)
    if value is not None and not isinstance(value, list):
        raise _wrong(field, value, what)
    return value or []


def _ids(thing: _Thing, field: str) -> tuple[str, ...]:
    ids = _list(thing, field, _("a list of external ids"))
    if not all(isinstance(each, str) for each in ids):
        raise _wrong(field, ids, _("a list of external ids"))
    return tuple(dict.fromkeys(cells.text(field, each, needed=True) for each in ids))


def _percent(thing: _Thing, field: str) -> str:
    """Return a rate as plain decimal text."""
    value = thing.get(field)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        rate = Decimal(value)
        digits = abs(rate.adjusted()) + len(rate.as_tuple().digits)
        if rate.is_finite() and rate >= 0 and digits < _MAX_RATE_DIGITS:
            return format(rate, "f")
    raise _wrong(field, value, _("a rate in percent, such as 8.25"))


def _object(field: str, value: object) -> _Thing:
    if not isinstance(value, dict):
        raise _wrong(field, value, _("an object"))
    return value


def _wrong(field: str, value: object, wanted: str) -> BadCell:
    if value is None:
        return BadCell(
            field,
            "",
            _("{field} is missing.").format(field=field),
            _("It must be {wanted}.").format(wanted=wanted),
        )
    match value:
        case bool():
            shown = "true" if value else "false"
        case dict() | list():
            shown = _("an object") if isinstance(value, dict) else _("a list")
        case _:
            shown = (repr(value) if isinstance(value, str) else str(value))[:80]
    return BadCell(
        field,
        value,
        _("{field} is {shown}.").format(field=field, shown=shown),
        _("It must be {wanted}.").format(wanted=wanted),
    )


# -- things


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of thing: what one is called, and what reads its fields, in the order of faults."""

    name: str
    make: Callable[..., Any]
    needed: Mapping[str, _Reader]
    may_lack: Mapping[str, _Reader] = field(default_factory=dict)

    def read(self, thing: _Thing, **more: object) -> Any:  # noqa: ANN401 -- what `make` makes
        """Return the thing. Raises BadCell."""
        fields = {name: read(thing, name) for name, read in self.needed.items()}
        for name, read in self.may_lack.items():
            if name in thing:
                fields[name] = read(thing, name)
        return self.make(**fields, **more)

    def each(self, thing: _Thing, field: str) -> tuple[Any, ...]:
        """Return the things in a list of an object. Raises BadCell."""
        return tuple(self.read(_object(field, each)) for each in _list(thing, field))


def _variants(thing: _Thing, field: str) -> tuple[Variant, ...]:
    variants: dict[str, Variant] = {}
    for variant in _VARIANT.each(thing, field):
        variants.setdefault(variant.external_id, variant)
    return tuple(variants.values())


def _tax(thing: _Thing, field: str) -> ItemTax | None:
    if thing[field] is None:
        return None
    tax: ItemTax = _TAX.read(_object(field, thing[field]))
    return tax


_VARIANT = _Kind(
    "variant",
    Variant,
    {"external_id": _id, "variant_name": _needed, "price": _price},
    {"available": partial(_flag, null=True)},
)
_COMPONENT = _Kind("component", TaxComponent, {"agency": _needed, "rate": _percent})
_TAX = _Kind("tax", ItemTax, {"name": _needed, "components": _COMPONENT.each})
_ITEM = _Kind(
    "item",
    Item,
    {"external_id": _id, "name": _needed, "price": _price},
    {
        "description": _paragraph,
        "image_url": _line,
        "available": partial(_flag, null=True),
        "categories": _ids,
        "addon_groups": _ids,
        "variants": _variants,
        "variant_type": _line,
        "tax": _tax,
        "product_type": _line,
    },
)
# The parts of a menu by the names of their lists.
_PARTS: Mapping[str, _Kind] = {
    "categories": _Kind(_("category"), Category, {"external_id": _id, "name": _needed}),
    "add_ons": _Kind(_("add-on"), AddOn, {"external_id": _id, "name": _needed, "price": _price}),
    "addon_groups": _Kind(
        _("add-on group"),
        AddOnGroup,
        {"external_id": _id, "name": _needed},
        {
            "min_select": _count,
            "max_select": _count,
            "required": partial(_flag, null=False),
            "add_ons": _ids,
        },
    ),
}


# -- the menu


class PlainJson:
    """Reads the body; its prices are minor units of any currency."""

    def __init__(self, path: Path, options: FolderOptions) -> None:
        self._path = path
        self._options = options

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`.

        What is known is not read, unless what is new has to do with it. Raises ExportUnreadable.
        """
        try:
            return self._read(known, skip=True)
        except NeedsFullRead:
            return self._read(known, skip=False)

    def _read(self, fingerprints: AbstractSet[int], *, skip: bool) -> CatalogueChanges:
        path = self._path
        with reading_whole(path):
            text = json_text(path, self._options.encoding)
            known = _KnownItems(fingerprints, text)
            body = parsed_json(path.name, text, known.on_menu if skip else None)
        menu = _Body(path.name, known)
        try:
            menu.read(body, self._options.menu_name)
        except BadCell as bad:
            hint = format_hint(body, path) if isinstance(body, dict) else ""
            raise ExportUnreadable(
                _("{name} is not a menu as the ordering service has it.").format(name=path.name)
                if hint
                else _("{name} is not a menu: {why}").format(name=path.name, why=bad.text),
                place=path.name,
                fix=hint or bad.fix,
            ) from bad
        fresh = menu.fresh()
        items_read = len(fingerprints) - len(known.unseen) + len(fresh.items)
        return CatalogueChanges(fresh, frozenset(known.unseen), items_read)


class _KnownItems:
    """The fingerprints of a reading: of the text of each item, and the menus it is on.

    An item with odd fields, which are reported, has a fingerprint by which it is not known before
    it is read.
    """

    def __init__(self, fingerprints: AbstractSet[int], text: str) -> None:
        self._fingerprints = fingerprints
        self._text = text
        self.skipped: dict[int, int] = {}  # digest of an item -> where its text begins
        self.unseen = set(fingerprints)

    def on_menu(self, members: Mapping[str, Any] | None) -> IsKnown | None:
        """Return the function that recognises known items; None while the menu's id is unknown."""
        menu_id = FLAT_MENU_ID if members is None else _id_if_any(members)
        if not menu_id:
            return None
        seed, known = _seed((menu_id,), odd=False), self._fingerprints
        see, skip = self.unseen.discard, self.skipped.setdefault

        def is_known(digest: int, begin: int) -> bool:
            fingerprint = (digest ^ seed) - _TO_SIGNED
            if fingerprint not in known:
                return False
            see(fingerprint)
            skip(digest, begin)
            return True

        return is_known

    @cached_property
    def begins(self) -> Mapping[str, int]:
        """Where skipped items begin, by id. It takes its time, and few exports need it."""
        begins: dict[str, int] = {}
        for begin in self.skipped.values():
            begins.setdefault(_id_if_any(value_at(self._text, begin)), begin)
        return begins

    def product_type(self, external_id: str) -> str:
        """Return that of a skipped item."""
        return _line(value_at(self._text, self.begins[external_id]), "product_type")


@lru_cache(maxsize=1024)
def _seed(menus: tuple[str, ...], *, odd: bool) -> int:
    return xxh3_64_intdigest(repr((_READING_VERSION, menus, odd)).encode())


@dataclass(slots=True)
class _Read:
    """What an item was read from: its text, what it says, and where it is."""

    begin: int
    digest: int
    thing: _Thing
    place: str
    is_odd: bool


@dataclass(slots=True)
class _Body:
    """The things of a body as they are found; of two with one id the first counts."""

    file: str
    known: _KnownItems
    _items: dict[str, Item] = field(default_factory=dict)
    _read: dict[str, _Read] = field(default_factory=dict)
    _parts: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in _PARTS})
    _part_places: dict[str, str] = field(default_factory=dict)
    _menus: dict[str, Menu] = field(default_factory=dict)
    _bad_rows: list[BadRow] = field(default_factory=list)
    _strange: set[tuple[str, str]] = field(default_factory=set)  # kinds and fields not ours

    def read(self, body: object, menu_name: str) -> None:
        """Read all of the body. Raises BadCell for one whose shape is wrong as a whole.

        `menu_name` is for a flat body that does not name its menu.
        """
        top = {} if isinstance(body, list) else _object(_("the body"), body)
        if "menus" not in top:
            if "items" not in top:
                raise BadCell(
                    "menus",
                    "",
                    _("It has neither menus nor items."),
                    _(
                        "Export the body of a menu push, or describe the document in a mapping of "
                        "your own: option format."
                    ),
                )
            self._add_menu(top, Menu(FLAT_MENU_ID, _line(top, "menu_name") or menu_name), "")
            return
        if "items" in top:
            raise BadCell(
                "items", "", _("It has both menus and items."), _("Put each item on a menu.")
            )
        self._add_parts(top, "")
        for each in _list(top, "menus"):
            menu = _object("menus", each)
            about = Menu(_id(menu), _needed(menu, "name"), _paragraph(menu, "description"))
            self._add_menu(menu, about, _(' of menu "{menu}"').format(menu=about.name))

    def fresh(self) -> Catalogue:
        """Return all that was read, was good and is not known."""
        self._drop_groups_of_nothing()
        items: dict[str, Item] = {}
        fingerprints: dict[str, int] = {}
        for external_id, item in self._items.items():
            read = self._read[external_id]
            fingerprint = (read.digest ^ _seed(item.menus, odd=read.is_odd)) - _TO_SIGNED
            if fingerprint in self.known.unseen:
                self.known.unseen.remove(fingerprint)
            else:
                items[external_id] = item
                fingerprints[external_id] = fingerprint
        return Catalogue(
            items=items,
            categories=self._parts["categories"],
            add_ons=self._parts["add_ons"],
            addon_groups=self._parts["addon_groups"],
            menus=self._menus,
            bad_rows=tuple(self._bad_rows),
            fingerprints=fingerprints,
            source=Source(
                {key: read.place for key, read in self._read.items()},
                part_places=self._part_places,
            ),
        )

    def _add_menu(self, menu: _Thing, about: Menu, where: str) -> None:
        self._menus.setdefault(about.external_id, about)
        self._add_parts(menu, where)
        items = _list(menu, "items")
        if isinstance(items, Elements):  # else there are none
            for number, each in enumerate(items):
                if each is not KNOWN:
                    place = _("{file}, item {number}{where}").format(
                        file=self.file, number=number + 1, where=where
                    )
                    begin, digest = items.begins[number], items.digests[number]
                    self._add_item(each, begin, digest, place, about.external_id)

    def _add_parts(self, menu: _Thing, where: str) -> None:
        for name, kind in _PARTS.items():
            for number, each in enumerate(_list(menu, name), 1):
                place = _("{file}, {kind} {number}{where}").format(
                    file=self.file, kind=kind.name, number=number, where=where
                )
                try:
                    thing = _object(kind.name, each)
                    self._is_odd(kind, thing, place)
                    part = kind.read(thing)
                    if self._parts[name].setdefault(part.external_id, part) != part:
                        raise _another(part.external_id, kind.name)
                    self._part_places.setdefault(part.external_id, place)
                except BadCell as bad:
                    self._bad_rows.append(bad.at(place))

    def _add_item(self, each: object, begin: int, digest: int, place: str, menu_id: str) -> None:
        if digest in self.known.skipped:
            raise NeedsFullRead  # it is on another menu, too
        try:
            thing = _object("item", each)
            is_odd = self._is_odd(_ITEM, thing, place)
            item: Item = _ITEM.read(thing, menus=(menu_id,))
        except BadCell as bad:
            affected_id = _id_if_any(each)
            if affected_id and (
                affected_id in self._read or self.known.begins.get(affected_id, begin) < begin
            ):
                affected_id = ""  # the one above counts
            self._bad_rows.append(bad.at(place, external_id=affected_id))
            return
        first = self._items.get(item.external_id)
        if first is None:
            self._items[item.external_id] = item
            self._read[item.external_id] = _Read(begin, digest, thing, place, is_odd)
            return
        menus = tuple(dict.fromkeys((*first.menus, menu_id)))
        self._items[item.external_id] = replace(first, menus=menus)
        read = self._read[item.external_id]
        if thing != read.thing:
            other = _another(item.external_id, "", read.place)
            self._bad_rows.append(other.at(place))

    def _drop_groups_of_nothing(self) -> None:
        groups = self._parts["addon_groups"]
        for external_id, group in list(groups.items()):
            unknown = next((each for each in group.add_ons if not self._is_add_on(each)), None)
            if unknown is not None:
                del groups[external_id]
                bad = BadCell(
                    "add_ons",
                    unknown,
                    _(
                        "Add-on group {external_id!r} names add-on {unknown!r}, which is nowhere."
                    ).format(external_id=external_id, unknown=unknown),
                    _("Export the add-on too, or take it out of the group."),
                )
                self._bad_rows.append(bad.at(self._part_places[external_id]))

    def _is_add_on(self, external_id: str) -> bool:
        if external_id in self._parts["add_ons"]:
            return True
        read, begin = self._read.get(external_id), self.known.begins.get(external_id)
        if begin is not None and (read is None or begin < read.begin):
            return self.known.product_type(external_id) == "addon"
        return read is not None and self._items[external_id].product_type == "addon"

    def _is_odd(self, kind: _Kind, thing: _Thing, place: str) -> bool:
        """Return whether it has a field that is not ours.

        One that is surely meant to be ours is reported: its value would be lost silently.
        """
        ours = kind.needed.keys() | kind.may_lack.keys()
        strange = thing.keys() - ours
        for name in strange:
            if (kind.name, name) in self._strange:
                continue
            self._strange.add((kind.name, name))
            if near := get_close_matches(name, ours - thing.keys(), n=1, cutoff=0.8):
                misspelt = BadCell(
                    name,
                    thing[name],
                    _("{name!r} is not one of the fields that belong here ({kind}).").format(
                        name=name, kind=kind.name
                    ),
                    _("Did you mean {near}? This is told once; there may be more.").format(
                        near=near[0]
                    ),
                )
                self._bad_rows.append(misspelt.at(place))
        return bool(strange)


def _another(external_id: str, kind: str, place: str = "") -> BadCell:
    """Return what is wrong with a thing that has the id of another one: an item's is at `place`."""
    if place:
        text = _("external_id {external_id!r} is another item in {place}.")
        fix = _("Give items that differ ids of their own; the first counts.")
    else:
        text = _("external_id {external_id!r} is another {kind} above.")
        fix = _("Give those that differ ids of their own; the first counts.")
    said = text.format(external_id=external_id, kind=kind, place=place)
    return BadCell("external_id", external_id, said, fix)
