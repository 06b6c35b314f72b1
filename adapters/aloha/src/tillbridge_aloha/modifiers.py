"""Modifiers: from MOD.DBF where it is there, else from what was sold below what. Pure.

Without MOD.DBF nothing says which modifiers an item may have; the day's sales (GNDITEM.DBF) say
which ones it had. That is less than the truth and never wrong: each was ordered so.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from tillbridge.adapter import AddOn, AddOnGroup
from tillbridge.adapter.texts import one_line
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


def declared(items: Sequence[Row], groups: Sequence[Row], known: Mapping[str, AddOn]) -> Modifiers:
    """Return the modifiers that MOD.DBF declares and the items name."""
    found = Modifiers()
    for row in groups:
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
        found.groups[identity] = AddOnGroup(
            identity, name, least, most or len(offered), least > 0, offered
        )
        found.add_ons |= {known[each].external_id: known[each] for each in members}
    for row in items:
        named = [number(row, mod) for mod in _MODS]
        used = tuple(dict.fromkeys(each for each in named if each in found.groups))
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
    return found


def number(row: Row, name: str) -> str:
    """Return an id as text; "" for none, which Aloha writes as 0."""
    value = row.get(name)
    try:
        # A column of another type holds text, bytes or a date: no id either.
        number = parse_decimal(value) if isinstance(value, Decimal) else None
    except ValueError:
        return ""
    return format(number, "f").split(".")[0] if number else ""


def label(row: Row, *names: str) -> str:
    r"""Return the first name that says something; a literal `\n` in it is a line break."""
    for name in names:
        clean = one_line(str(row.get(name) or "").replace("\\n", " "))
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
