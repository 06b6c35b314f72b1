"""The tables of a point of sale: what each is called, and which one an order names."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tillbridge.adapter import Order
from tillbridge_odoo.names import Kind, number_of
from tillbridge_odoo.odoo import Odoo, Record
from tillbridge_odoo.register import Register, label, text

_MODEL = "restaurant.table"


@dataclass(frozen=True, slots=True)
class RestaurantTable:
    """A table. `name` is unique in the point of sale, `plain` what Odoo calls it on its floor."""

    id: int
    name: str
    plain: str
    floor: str
    seats: int | None


def read_tables(odoo: Odoo, register: Register, context: Record) -> list[RestaurantTable]:
    """Return the tables on the floors of the point of sale."""
    if not register.floors or not odoo.has_model(_MODEL):
        return []
    records = odoo.read(
        _MODEL,
        [["floor_id", "in", list(register.floors)], ["active", "=", True]],
        ["name", "table_number", "floor_id", "seats"],
        order="floor_id, id",
        context=context,
    )
    names = unique_names([(each["id"], _plain(each), label(each["floor_id"])) for each in records])
    return [
        RestaurantTable(
            id=each["id"],
            name=names[each["id"]],
            plain=_plain(each),
            floor=label(each["floor_id"]),
            seats=each["seats"] if isinstance(each["seats"], int) and each["seats"] > 0 else None,
        )
        for each in records
    ]


def unique_names(tables: Sequence[tuple[int, str, str]]) -> dict[int, str]:
    """Return a name for each table (id, name, floor) that no other has.

    A name that several floors have gets its floor's before it: "Patio 4". Where that does not tell
    two tables apart either, their ids do.
    """
    names = {each: plain for each, plain, _floor in tables}
    for longer in (
        {each: f"{floor} {plain}".strip() for each, plain, floor in tables},
        {each: f"{floor} {plain} ({each})".strip() for each, plain, floor in tables},
    ):
        counts = Counter(name.casefold() for name in names.values())
        names = {
            each: longer[each] if counts[name.casefold()] > 1 else name
            for each, name in names.items()
        }
    return names


def tables_called(tables: Iterable[RestaurantTable], wanted: int | str) -> list[RestaurantTable]:
    """Return the tables with that id, name or external id; several where the name is ambiguous."""
    number = wanted if isinstance(wanted, int) else number_of(wanted, Kind.TABLE)
    name = str(wanted).casefold()
    return [
        each
        for each in tables
        if each.id == number or name in (each.name.casefold(), each.plain.casefold())
    ]


def table_of(
    order: Order, tables: Sequence[RestaurantTable], field: str, words: Sequence[str]
) -> RestaurantTable | None:
    """Return the table that an order names: by external id in `field`, or in its instructions.

    Only an order to be eaten there is looked through; it names a table where its instructions begin
    with one of `words` and the table's name: "Table 4. No salt."
    """
    value = order.payload.get(field)
    number = number_of(value if isinstance(value, str) else None, Kind.TABLE)
    if number is not None:
        return next((each for each in tables if each.id == number), None)
    if order.order_type != "dine_in":
        return None
    return _named_in(order.special_instructions, tables, words)


def _named_in(
    instructions: str, tables: Sequence[RestaurantTable], words: Sequence[str]
) -> RestaurantTable | None:
    """Return the table with the longest name that fits; none where two have that name."""
    head = " ".join(instructions.split()).casefold()
    fitting: dict[int, list[RestaurantTable]] = {}
    for table in tables:
        for name in {table.name.casefold(), table.plain.casefold()}:
            begun = [f"{word.casefold()} {name}" for word in words]
            begun += [name for word in words if name.startswith(f"{word.casefold()} ")]
            if any(_begins(head, each) for each in begun):
                fitting.setdefault(len(name), []).append(table)
    longest = fitting[max(fitting)] if fitting else []
    return longest[0] if len(longest) == 1 else None


def _begins(head: str, words: str) -> bool:
    return re.match(rf"{re.escape(words)}(?!\w)", head) is not None


def _plain(record: Record) -> str:
    return text(record.get("name")) or str(record.get("table_number") or record["id"])
