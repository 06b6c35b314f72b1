"""Modifier groups of a workbook, which items refer to by name. Pure.

The first layout of the export has no ids for groups, and in neither do items name them by id. A
name that stands for two groups that differ is therefore no name of either: an item that uses it is
refused. Most exports have many groups that no item uses; of these nothing is pushed, and of what
is wrong with them nothing is reported.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal

from tillbridge.adapter import AddOn, AddOnGroup, BadRow
from tillbridge.adapter.prices import PriceReader
from tillbridge.adapter.texts import _, joined
from tillbridge.adapter.xlsx_export import Sheet
from tillbridge.model.numbers import parse_decimal
from tillbridge_clover.workbook import Record, records

_HEAD = ("modifier group id", "modifier group name")
_MAX_MODIFIERS = 10_000
_SWITCHED_OFF = "(disabled)"


@dataclass(frozen=True, slots=True)
class Group:
    """A group with what it offers, or with what is wrong with it."""

    place: str
    group: AddOnGroup
    add_ons: tuple[AddOn, ...] = ()
    wrong: str = ""

    def is_like(self, other: "Group") -> bool:
        """Return whether a guest would choose the same, for the same prices."""
        return not (self.wrong or other.wrong) and self.choice() == other.choice()

    def choice(self) -> object:
        """Return what there is to choose, and how much of it."""
        offered = [(each.name, each.price) for each in self.add_ons]
        return offered, self.group.min_select, self.group.max_select


@dataclass(slots=True)
class Groups:
    """The groups by name, in small letters; several of one name where they differ."""

    by_name: dict[str, list[Group]] = field(default_factory=dict)

    @property
    def names(self) -> Collection[str]:
        """All names, those that no item can use too."""
        return self.by_name.keys()

    def usable(self) -> Mapping[str, Group]:
        """Return the groups that items can use, by name."""
        return {
            name: found[0]
            for name, found in self.by_name.items()
            if len(found) == 1 and not found[0].wrong
        }

    def refusal(self, name: str) -> tuple[str, str]:
        """Return why an item cannot use that name, and what to do."""
        found = self.by_name.get(name.casefold(), [])
        if len(found) > 1:
            places = joined(_(" and "), [each.place for each in found])
            return (
                _("and groups of that name differ: {places}").format(places=places),
                _("Give each of these groups a name of its own in Clover, and export again."),
            )
        if found:
            return _("which cannot be read"), _("Correct the group in Clover, and export again.")
        return (
            _("which the export does not have"),
            _("Export again; if it stays, take the group off the item in Clover and put it back."),
        )

    def bad_rows(self, used: AbstractSet[str]) -> list[BadRow]:
        """Return what is wrong with those of the groups that items use."""
        return [
            BadRow(
                place=each.place,
                text=_('The modifier group "{name}" cannot be read: {wrong}.').format(
                    name=each.group.name, wrong=each.wrong
                ),
                fix=_("Correct it in Clover, and export again."),
                external_id=each.group.external_id,
            )
            for name, found in self.by_name.items()
            if name in used
            for each in found
            if each.wrong
        ]


def groups_of(sheet: Sheet, prices: PriceReader) -> Groups:
    """Return the groups of the sheet: a group's rows stand below each other."""
    groups = Groups()
    owners: dict[str, str] = {}  # name by id
    family: list[Record] = []
    for record in records(sheet, key=(*_HEAD, "modifier"), first="modifier group name"):
        if any(record[column] for column in _HEAD) and family:
            _take(groups, _group(sheet, family, prices, owners))
            family = []
        family.append(record)
    if family:
        _take(groups, _group(sheet, family, prices, owners))
    return groups


def _take(groups: Groups, new: Group) -> None:
    found = groups.by_name.setdefault(new.group.name.casefold(), [])
    if not any(new.is_like(each) for each in found):
        found.append(new)


def _group(
    sheet: Sheet, family: Sequence[Record], prices: PriceReader, owners: dict[str, str]
) -> Group:
    first = family[0]
    name = first["modifier group name"]
    identity = first["modifier group id"] or name
    place = sheet.place(first.number)
    try:
        _check_id(identity, name, owners)
        add_ons = _add_ons(identity, family, prices)
        least = _count(first["required quantity"])
        most = _count(first["max quantity"]) or max(len(add_ons), least)
        _check_choice(least, most, len(add_ons))
    except ValueError as failure:
        return Group(place, AddOnGroup(identity, name, 0, 0), wrong=failure.args[0])
    offered = tuple(add_on.external_id for add_on in add_ons)
    group = AddOnGroup(identity, name, least, most, least > 0, offered)
    return Group(place, group, tuple(add_ons))


def _check_id(identity: str, name: str, owners: dict[str, str]) -> None:
    owner = owners.setdefault(identity, name)
    if owner.casefold() != name.casefold():
        raise ValueError(_('it has the id of "{owner}"').format(owner=owner))


def _check_choice(least: int, most: int, offered: int) -> None:
    if least > min(most, offered):
        raise ValueError(
            _("it wants {least}, allows {most} and offers {offered}").format(
                least=least, most=most, offered=offered
            )
        )


def _add_ons(group: str, family: Sequence[Record], prices: PriceReader) -> list[AddOn]:
    """Return what a group offers. Modifiers have no ids in the export, so their names are.

    The export marks one that is switched off in its name, and has no other column that says so.
    """
    found: dict[str, AddOn] = {}
    for row in family:
        name = row["modifier"]
        if name and not name.casefold().endswith(_SWITCHED_OFF):
            price = prices.read(row["price"] or "0", column="Price", name=name)
            add_on = AddOn(f"{group}/{name}", name, price)
            if found.setdefault(name, add_on) != add_on:
                raise ValueError(
                    _('it offers "{name}" twice, for different prices').format(name=name)
                )
    return list(found.values())


def _count(text: str) -> int:
    if not text:
        return 0
    try:
        number = parse_decimal(text)
    except ValueError:
        number = Decimal(-1)
    if not 0 <= number <= _MAX_MODIFIERS:
        raise ValueError(_("{text!r} is no number of modifiers").format(text=text))
    return int(number)
