"""The menu as the specification's menu push body, in either of its two shapes."""

import json
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tillbridge.adapter import (
    BadRow,
    Catalogue,
    CatalogueChanges,
    ExportUnreadable,
    Item,
    Menu,
    Source,
)
from tillbridge.adapter.decoding import guess_by_head, is_cut_short
from tillbridge.adapter.export_files import reading_whole, still_being_written
from tillbridge.adapter.sharing import read_shared
from tillbridge.pos.folder import json_parts, json_pieces
from tillbridge.pos.folder.cells import BadCell
from tillbridge.pos.folder.json_pieces import (
    FLAT_MENU_ID,
    KNOWN,
    Elements,
    KnownItems,
    fingerprint_of,
    parse_one,
)
from tillbridge.pos.folder.mapping import format_hint
from tillbridge.pos.folder.options import FolderOptions


class PlainJson:
    """Reads the body; its prices are minor units of any currency."""

    def __init__(self, path: Path, options: FolderOptions) -> None:
        self._path = path
        self._options = options

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        """Return the menu's difference from the items whose fingerprints are `known`.

        The ids of known items are not looked at, as in a CSV. Raises ExportUnreadable.
        """
        path, items = self._path, KnownItems(known)
        with reading_whole(path):
            text = json_text(path, self._options.encoding)
            body = parsed_json(path.name, text, items)
        gathered = _Gathered(path.name, text, items)
        try:
            gathered.take_body(body, self._options.menu_name)
        except BadCell as bad:
            hint = format_hint(body, path) if isinstance(body, dict) else ""
            raise ExportUnreadable(
                f"{path.name} is not a menu"
                + (" as the ordering service has it." if hint else f": {bad.text}"),
                place=path.name,
                fix=hint or bad.fix,
            ) from bad
        fresh = gathered.fresh()
        return CatalogueChanges(
            fresh=fresh,
            unseen=frozenset(items.unseen),
            items_read=len(known) - len(items.unseen) + len(fresh.items),
        )


def json_text(path: Path, encoding: str | None) -> str:
    """Return the text of a JSON file. Raises ExportUnreadable, OSError."""
    content = read_shared(path)
    encoding = encoding or guess_by_head(content[:4096]).encoding
    try:
        return content.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError as failure:
        if is_cut_short(failure):
            raise still_being_written(path.name, "ends inside a character") from failure
        raise ExportUnreadable(
            f"{path.name} is not written in {encoding}.",
            place=path.name,
            fix="JSON is UTF-8. If the till writes something else, set encoding.",
        ) from failure


def parsed_json(name: str, text: str, known: KnownItems | None = None) -> Any:  # noqa: ANN401 -- any JSON value
    """Return what the JSON of the file `name` says. Raises ExportUnreadable."""
    try:
        return json_pieces.parse(text, known)
    except json.JSONDecodeError as failure:
        raise ExportUnreadable(
            f"{name} is not whole JSON: {failure.msg}.",
            place=f"{name}, line {failure.lineno}, column {failure.colno}",
            fix="Nothing to do while the till writes it. If this stays, export again.",
            passing=True,
        ) from failure
    except (ValueError, RecursionError) as failure:
        raise ExportUnreadable(
            f"{name} is not a menu: {failure}.",
            place=name,
            fix="Export again.",
        ) from failure


_Position = tuple[int, int]  # the number of the menu, and of the item on it
_Thing = Mapping[str, Any]

# The parts of a menu: their list, what one is called, and what reads it.
_PARTS: Mapping[str, tuple[str, Callable[[_Thing], Any]]] = {
    "categories": ("category", json_parts.category),
    "add_ons": ("add-on", json_parts.add_on),
    "addon_groups": ("add-on group", json_parts.addon_group),
}


@dataclass(slots=True)
class _Read:
    """What an item was read from: the digest of its text, what it says, and where it stands."""

    digest: int
    thing: _Thing
    at: _Position
    is_odd: bool = False


@dataclass(slots=True)
class _Gathered:
    """The things of a body as they are found; of two with one id the first counts.

    Items that are `known` are left out, unless what else the body says has to do with them.
    """

    file: str
    text: str
    known: KnownItems
    _items: dict[str, Item] = field(default_factory=dict)
    _read: dict[str, _Read] = field(default_factory=dict)
    _passed: list[tuple[Elements, str]] = field(default_factory=list)  # and where they stand
    _known_by_id: dict[str, _Read] = field(default_factory=dict)
    _indexed: int = 0  # of so many lists the known items are there
    _parts: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in _PARTS})
    _part_places: dict[str, str] = field(default_factory=dict)
    _menus: dict[str, Menu] = field(default_factory=dict)
    _bad_rows: list[BadRow] = field(default_factory=list)
    _strange: set[tuple[str, str]] = field(default_factory=set)  # kinds and fields not ours

    def take_body(self, body: object, menu_name: str) -> None:
        """Take all of the body. Raises BadCell for one whose shape is wrong as a whole.

        `menu_name` is for a flat body that does not name its menu.
        """
        top = json_parts.as_object("the body", body)
        if "menus" not in top:
            if "items" not in top:
                raise BadCell(
                    "menus", "", "It has neither menus nor items.", "Export a menu push body."
                )
            name = json_parts.text(top, "menu_name") or menu_name
            self._take_menu(top, Menu(FLAT_MENU_ID, name), "")
            return
        if "items" in top:
            raise BadCell("items", "", "It has both menus and items.", "Put each item on a menu.")
        self._take_parts(top, "")
        for each in json_parts.things(top, "menus"):
            menu = json_parts.as_object("menus", each)
            about = Menu(
                json_parts.external_id(menu),
                json_parts.needed(menu, "name"),
                json_parts.paragraph(menu, "description"),
            )
            self._take_menu(menu, about, f' of menu "{about.name}"')

    def fresh(self) -> Catalogue:
        """Return all that was taken, was good and is not known."""
        self._drop_groups_of_nothing()
        items: dict[str, Item] = {}
        fingerprints: dict[str, int] = {}
        for external_id, item in self._items.items():
            read = self._read[external_id]
            fingerprint = fingerprint_of(read.digest, item.menus, odd=read.is_odd)
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
                {key: self._place(read.at) for key, read in self._read.items()},
                part_places=self._part_places,
            ),
        )

    def _take_menu(self, menu: _Thing, about: Menu, where: str) -> None:
        self._menus.setdefault(about.external_id, about)
        self._take_parts(menu, where)
        items = json_parts.things(menu, "items")
        if not isinstance(items, Elements):  # there are none
            return
        self._passed.append((items, where))
        menu_number = len(self._passed)
        for number, (each, digest) in enumerate(zip(items, items.digests, strict=True), 1):
            if each is not KNOWN:
                self._take_item(each, digest, (menu_number, number), about.external_id)

    def _take_parts(self, menu: _Thing, where: str) -> None:
        for name, (kind, read) in _PARTS.items():
            for number, each in enumerate(json_parts.things(menu, name), 1):
                place = f"{self.file}, {kind} {number}{where}"
                try:
                    thing = json_parts.as_object(kind, each)
                    self._look_for_misspelt(kind, thing, place)
                    part = read(thing)
                    if self._parts[name].setdefault(part.external_id, part) != part:
                        raise BadCell(  # noqa: TRY301 -- worded where every bad row is
                            "external_id",
                            part.external_id,
                            f"external_id {part.external_id!r} is another {kind} above.",
                            "Give those that differ ids of their own; the first counts.",
                        )
                    self._part_places.setdefault(part.external_id, place)
                except BadCell as bad:
                    self._bad_rows.append(bad.at(place))

    def _take_item(self, each: object, digest: int, at: _Position, menu_id: str) -> None:
        self._read_passed(digest)
        place = self._place(at)
        try:
            thing = json_parts.as_object("item", each)
            is_odd = self._look_for_misspelt("item", thing, place)
            item = json_parts.item(thing, menu_id)
        except BadCell as bad:
            external_id = json_parts.id_if_any(each) if isinstance(each, Mapping) else ""
            first = self._first(external_id)
            stands_for = external_id if first is None or first.at > at else ""
            self._bad_rows.append(bad.at(place, external_id=stands_for))
            return
        known = self._items.get(item.external_id)
        if known is None:
            self._items[item.external_id] = item
            self._read[item.external_id] = _Read(digest, thing, at, is_odd)
            return
        menus = tuple(dict.fromkeys((*known.menus, menu_id)))
        self._items[item.external_id] = replace(known, menus=menus)
        read = self._read[item.external_id]
        if thing != read.thing:
            other = BadCell(
                "external_id",
                item.external_id,
                f"external_id {item.external_id!r} is another item in {self._place(read.at)}.",
                "Give items that differ ids of their own; the first counts.",
            )
            self._bad_rows.append(other.at(place))

    def _place(self, at: _Position) -> str:
        return f"{self.file}, item {at[1]}{self._passed[at[0] - 1][1]}"

    def _read_passed(self, digest: int) -> None:
        """Read the known item with this text: it stands on another menu, too."""
        for menu, (items, _where) in enumerate(self._passed, 1):
            if digest in items.passed and items.menu_id is not None:
                begins = items.passed.pop(digest)
                self.known.put_back(digest, items.menu_id)
                at = (menu, items.digests.index(digest) + 1)
                self._take_item(parse_one(self.text, begins), digest, at, items.menu_id)

    def _first(self, external_id: str) -> _Read | None:
        """Return the first item with this id, known or not; None for none."""
        both = (self._known_things().get(external_id), self._read.get(external_id))
        return min(filter(None, both), key=lambda each: each.at, default=None)

    def _known_things(self) -> Mapping[str, _Read]:
        """Return what known items say, by id; it takes its time, and few exports need it."""
        for menu, (items, _where) in enumerate(self._passed, 1):
            if menu > self._indexed and items.passed:
                for number, (each, digest) in enumerate(zip(items, items.digests, strict=True), 1):
                    if each is KNOWN and digest in items.passed:
                        thing = parse_one(self.text, items.passed[digest])
                        read = _Read(digest, thing, (menu, number))
                        self._known_by_id.setdefault(json_parts.id_if_any(thing), read)
        self._indexed = len(self._passed)
        return self._known_by_id

    def _drop_groups_of_nothing(self) -> None:
        groups = self._parts["addon_groups"]
        for external_id, group in list(groups.items()):
            unknown = [each for each in group.add_ons if not self._is_add_on(each)]
            if unknown:
                del groups[external_id]
                bad = BadCell(
                    "add_ons",
                    unknown[0],
                    f"Add-on group {external_id!r} names add-on {unknown[0]!r}, which is nowhere.",
                    "Export the add-on too, or take it out of the group.",
                )
                self._bad_rows.append(bad.at(self._part_places[external_id]))

    def _is_add_on(self, external_id: str) -> bool:
        if external_id in self._parts["add_ons"]:
            return True
        first = self._first(external_id)
        return first is not None and first.thing.get("product_type") == "addon"

    def _look_for_misspelt(self, kind: str, thing: _Thing, place: str) -> bool:
        """Note a field that is surely meant to be one of ours: its value would be lost silently.

        Return whether there is any that is not ours.
        """
        ours = json_parts.FIELDS[kind]
        if ours.issuperset(thing):
            return False
        for name in thing.keys() - ours:
            if (kind, name) in self._strange:
                continue
            self._strange.add((kind, name))
            near = get_close_matches(name, ours - thing.keys(), n=1, cutoff=0.8)
            if near:
                misspelt = BadCell(
                    name,
                    thing[name],
                    f"{name!r} is not one of the fields that belong here ({kind}).",
                    f"Did you mean {near[0]}? This is told once; there may be more.",
                )
                self._bad_rows.append(misspelt.at(place))
        return True
