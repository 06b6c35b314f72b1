"""Modifiers: from MOD.DBF where it is there, else from what was sold below what. Pure.

Without MOD.DBF nothing says which modifiers an item may have; the day's sales (GNDITEM.DBF) say
which ones it had. That is less than the truth and never wrong: each was ordered so.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tillbridge.adapter import AddOn, AddOnGroup
from tillbridge.adapter.texts import _, one_line
from tillbridge.model.numbers import parse_decimal
from tillbridge_aloha.tables import Row

_MEMBER = re.compile(r"item(\d+)")
_MODS = tuple(f"mod{number}" for number in range(1, 11))


@dataclass(slots=True)
class Modifiers:
    """Groups by their id, the add-ons in them, and the groups of each item by its id."""

    groups: dict[str, AddOnGroup] = field(default_factory=dict)
    add_ons: dict[str, AddOn] = field(default_factory=dict)
    of_item: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # why a group cannot be chosen from
    places: dict[str, str] = field(default_factory=dict)  # where each group stands


def declared(items: Sequence[Row], groups: Sequence[Row], known: Mapping[str, AddOn]) -> Modifiers:
    """Return the modifiers that MOD.DBF declares and the items name."""
    found = Modifiers()
    for record, row in enumerate(groups, 1):
        identity = number(row, "id")
        members = [
            number(row, name)
            for name in sorted(row, key=_place)
            if _MEMBER.fullmatch(name) and number(row, name) in known
        ]
        if not identity or not members:
            continue
        least, most = _count(row, "minimum", "min"), _count(row, "maximum", "max")
        name = label(row, "longname", "name", "shortname") or f"Choice {identity}"
        offered = tuple(dict.fromkeys(known[each].external_id for each in members))
        most = most or len(offered)
        if least > min(most, len(offered)):
            found.refused[identity] = _(
                'its modifier group "{name}" wants {least}, allows {most} and offers {n}'
            ).format(name=name, least=least, most=most, n=len(offered))
            continue
        found.groups[identity] = AddOnGroup(identity, name, least, most, least > 0, offered)
        found.places[identity] = _("{file}, record {record}").format(file="MOD.DBF", record=record)
        found.add_ons |= {known[each].external_id: known[each] for each in members}
    for row in items:
        named = [number(row, mod) for mod in _MODS]
        used = tuple(
            dict.fromkeys(each for each in named if each in found.groups or each in found.refused)
        )
        if used:
            found.of_item[number(row, "id")] = used
    return found


def sold(sales: Sequence[Row], known: Mapping[str, AddOn]) -> Modifiers:
    """Return for each item a group of the modifiers that it was sold with."""
    below: dict[str, dict[str, None]] = {}
    for row in sales:
        parent, item = number(row, "parent"), number(row, "item")
        if parent and item in known and item != parent:
            below.setdefault(parent, {})[item] = None
    found = Modifiers()
    for parent, members in below.items():
        offered = tuple(known[each].external_id for each in sorted(members))
        identity = f"sold-with-{parent}"
        found.groups[identity] = AddOnGroup(
            identity, "Extras", 0, len(offered), required=False, add_ons=offered
        )
        found.add_ons |= {known[each].external_id: known[each] for each in members}
        found.of_item[parent] = (identity,)
        found.places[identity] = "GNDITEM.DBF"
    return found


def number(row: Row, name: str) -> str:
    """Return an id as text; "" for none, which Aloha writes as 0."""
    try:
        found = parse_decimal(row.get(name, ""))
    except ValueError:
        return ""
    return format(found, "f").split(".")[0] if found else ""


def label(row: Row, *names: str) -> str:
    r"""Return the first name that says something; a literal `\n` in it is a line break."""
    for name in names:
        clean = one_line(row.get(name, "").replace("\\n", " "))
        if clean:
            return clean
    return ""


def _place(name: str) -> int:
    found = _MEMBER.fullmatch(name)
    return int(found[1]) if found else 0


def _count(row: Row, *names: str) -> int:
    for name in names:
        if number(row, name):
            return int(number(row, name))
    return 0
