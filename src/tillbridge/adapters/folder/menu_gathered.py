"""The things of a JSON menu as they are found in its body."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from xxhash import xxh3_64_intdigest

from tillbridge.adapter import AddOn, AddOnGroup, BadRow, Catalogue, Category, Item, Menu
from tillbridge.adapters.folder import json_values as values
from tillbridge.adapters.folder import menu_parts
from tillbridge.adapters.folder.cells import BadCell

_Thing = TypeVar("_Thing", Category, AddOn, AddOnGroup)

_MENU_ID = "menu"  # of the flat shape, which names its menu and gives it no id
_READING_VERSION = 1  # part of every fingerprint, as in menu_csv
_TO_SIGNED = 1 << 63


@dataclass(slots=True)
class Gathered:
    """The things of a body as they are found; of two with one id the first counts."""

    file: str
    _items: dict[str, Item] = field(default_factory=dict)
    _contents: dict[str, int] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)
    _categories: dict[str, Category] = field(default_factory=dict)
    _add_ons: dict[str, AddOn] = field(default_factory=dict)
    _groups: dict[str, AddOnGroup] = field(default_factory=dict)
    _group_places: dict[str, str] = field(default_factory=dict)
    _menus: dict[str, Menu] = field(default_factory=dict)
    _bad_rows: list[BadRow] = field(default_factory=list)
    _strange: set[tuple[str, str]] = field(default_factory=set)  # kinds and fields not ours

    def take_body(self, body: object, menu_name: str) -> None:
        """Take all of the body. Raises BadCell for one whose shape is wrong as a whole."""
        top = values.as_object("the body", body)
        if "menus" not in top:
            if "items" not in top:
                raise BadCell(
                    "menus", "", "It has neither menus nor items.", "Export a menu push body."
                )
            name = values.text(top, "menu_name") or menu_name
            self._take_menu(top, Menu(_MENU_ID, name), "")
            return
        if "items" in top:
            raise BadCell("items", "", "It has both menus and items.", "Put each item on a menu.")
        self._take_parts(top, "")
        for each in values.things(top, "menus"):
            menu = values.as_object("menus", each)
            about = Menu(
                values.external_id(menu),
                values.needed(menu, "name"),
                values.paragraph(menu, "description"),
            )
            self._take_menu(menu, about, f' of menu "{about.name}"')

    def catalogue(self) -> Catalogue:
        """Return all that was taken, and was good."""
        self._drop_groups_of_nothing()
        fingerprints = {
            external_id: _number_of((self._contents[external_id], item.menus))
            for external_id, item in self._items.items()
        }
        return Catalogue(
            items=self._items,
            categories=self._categories,
            add_ons=self._add_ons,
            addon_groups=self._groups,
            menus=self._menus,
            bad_rows=tuple(self._bad_rows),
            fingerprints=fingerprints,
        )

    def _take_menu(self, menu: Mapping[str, Any], about: Menu, where: str) -> None:
        self._menus.setdefault(about.external_id, about)
        self._take_parts(menu, where)
        for number, each in enumerate(values.things(menu, "items"), 1):
            self._take_item(each, f"{self.file}, item {number}{where}", about.external_id)

    def _take_parts(self, menu: Mapping[str, Any], where: str) -> None:
        kinds = (
            ("category", "categories"),
            ("add-on", "add_ons"),
            ("add-on group", "addon_groups"),
        )
        for kind, name in kinds:
            for number, each in enumerate(values.things(menu, name), 1):
                self._take_part(kind, each, f"{self.file}, {kind} {number}{where}")

    def _take_part(self, kind: str, each: object, place: str) -> None:
        try:
            thing = values.as_object(kind, each)
            self._look_for_misspelt(kind, thing, place)
            if kind == "category":
                _put(self._categories, thing, menu_parts.category, kind)
            elif kind == "add-on":
                _put(self._add_ons, thing, menu_parts.add_on, kind)
            else:
                group = _put(self._groups, thing, menu_parts.addon_group, kind)
                self._group_places.setdefault(group.external_id, place)
        except BadCell as bad:
            self._bad_rows.append(bad.at(place))

    def _take_item(self, each: object, place: str, menu_id: str) -> None:
        external_id = ""
        try:
            thing = values.as_object("item", each)
            external_id = values.id_if_any(thing)
            self._look_for_misspelt("item", thing, place)
            item = menu_parts.item(thing)
        except BadCell as bad:
            stands_for = "" if external_id in self._items else external_id
            self._bad_rows.append(bad.at(place, external_id=stands_for))
            return
        content = _number_of((_READING_VERSION, json.dumps(thing, sort_keys=True, default=str)))
        first = self._items.get(item.external_id)
        if first is None:
            self._items[item.external_id] = replace(item, menus=(menu_id,))
            self._contents[item.external_id] = content
            self._places[item.external_id] = place
            return
        self._items[item.external_id] = replace(
            first, menus=tuple(dict.fromkeys((*first.menus, menu_id)))
        )
        if content != self._contents[item.external_id]:
            above = self._places[item.external_id]
            other = BadCell(
                "external_id",
                item.external_id,
                f"external_id {item.external_id!r} is another item in {above}.",
                "Give items that differ ids of their own; the first counts.",
            )
            self._bad_rows.append(other.at(place))

    def _drop_groups_of_nothing(self) -> None:
        for external_id, group in list(self._groups.items()):
            unknown = [each for each in group.add_ons if not self._is_add_on(each)]
            if unknown:
                del self._groups[external_id]
                bad = BadCell(
                    "add_ons",
                    unknown[0],
                    f"Add-on group {external_id!r} names add-on {unknown[0]!r}, which is nowhere.",
                    "Export the add-on too, or take it out of the group.",
                )
                self._bad_rows.append(bad.at(self._group_places[external_id]))

    def _is_add_on(self, external_id: str) -> bool:
        item = self._items.get(external_id)
        return external_id in self._add_ons or (item is not None and item.product_type == "addon")

    def _look_for_misspelt(self, kind: str, thing: Mapping[str, Any], place: str) -> None:
        """Note a field that is surely meant to be one of ours: its value would be lost silently."""
        ours = menu_parts.FIELDS[kind]
        for name in thing.keys() - ours:
            if (kind, name) in self._strange:
                continue
            self._strange.add((kind, name))
            # Only for files with such a field: it need not weigh on every start.
            from difflib import get_close_matches  # noqa: PLC0415 -- (as above)

            near = get_close_matches(name, ours - thing.keys(), n=1, cutoff=0.8)
            if near:
                misspelt = BadCell(
                    name,
                    thing[name],
                    f"{name!r} is not one of the fields that belong here ({kind}).",
                    f"Did you mean {near[0]}? This is told once; there may be more.",
                )
                self._bad_rows.append(misspelt.at(place))


def _put(
    known: dict[str, _Thing],
    thing: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], _Thing],
    kind: str,
) -> _Thing:
    new = read(thing)
    first = known.setdefault(new.external_id, new)
    if first != new:
        raise BadCell(
            "external_id",
            new.external_id,
            f"external_id {new.external_id!r} is another {kind} above.",
            "Give those that differ ids of their own; the first counts.",
        )
    return new


def _number_of(value: object) -> int:
    return xxh3_64_intdigest(repr(value).encode()) - _TO_SIGNED
