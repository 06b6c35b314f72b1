"""The orders of ours that Odoo holds, refunds apart: which are live, and how each goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tillbridge.adapter import ListedTicket
from tillbridge_odoo.odoo import Odoo
from tillbridge_odoo.options import OdooOptions
from tillbridge_odoo.reference import Reference, key_in
from tillbridge_odoo.register import NoSuchRegister, find_register, number, text

ORDER = "pos.order"
LINE = "pos.order.line"
_FOLLOWED = timedelta(days=2)
_SINCE = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class Listed:
    """One order of ours; `given_back` where all of it has been refunded."""

    key: str
    id: int
    state: str
    given_back: bool = False

    @property
    def live(self) -> bool:
        """Whether it stands in Odoo: neither cancelled nor given back."""
        return self.state != "cancel" and not self.given_back


class Listing:
    """The orders of the last two days in one point of sale."""

    def __init__(self, odoo: Odoo, options: OdooOptions) -> None:
        self._odoo = odoo
        self._options = options

    def orders(self) -> list[Listed]:
        """Return them, oldest first. Raises NoAnswer, LoginRefused, Fault."""
        word, since = self._options.reference, (datetime.now(UTC) - _FOLLOWED).strftime(_SINCE)
        config = self._config()
        if config is None:
            return []
        records = self._odoo.read(
            ORDER,
            [
                ["pos_reference", "=like", f"{word} %"],
                ["create_date", ">=", since],
                ["config_id", "=", config],
            ],
            ["pos_reference", "state"],
        )
        refunds, given_back = self._refunds(since) if records else (set(), set())
        found = []
        for record in records:
            key = key_in(text(record["pos_reference"]), word)
            if key is not None and record["id"] not in refunds:
                back = record["id"] in given_back
                found.append(Listed(key, record["id"], str(record["state"]), back))
        return found

    def tickets(self) -> list[ListedTicket]:
        """Return them as the core lists tickets."""
        word = self._options.reference
        return [
            ListedTicket(each.key, Reference(word, each.key).digits, f"id {each.id}", each.live)
            for each in self.orders()
        ]

    def _config(self) -> int | None:
        try:
            return find_register(self._odoo, self._options.pos).id
        except NoSuchRegister:
            return None

    def _refunds(self, since: str) -> tuple[set[int], set[int]]:
        """Return the orders that are refunds, and those of which nothing is left."""
        lines = self._odoo.read(
            LINE,
            [["refunded_orderline_id", "!=", False], ["create_date", ">=", since]],
            ["order_id", "refunded_orderline_id"],
        )
        refunds = {number(line["order_id"]) or 0 for line in lines}
        taken = [number(line["refunded_orderline_id"]) or 0 for line in lines]
        if not taken:
            return refunds, set()
        refunded = self._odoo.read_ids(LINE, sorted(set(taken)), ["order_id"])
        orders = sorted({number(each["order_id"]) or 0 for each in refunded.values()})
        left = left_of(self._odoo, orders)
        return refunds, {order for order in orders if not left.get(order)}


def left_of(odoo: Odoo, orders: Sequence[int]) -> Mapping[int, dict[int, float]]:
    """Return by order what is in no refund: lines by id, each with its quantity.

    A refund that was cancelled does not count.
    """
    lines = odoo.read(LINE, [["order_id", "in", list(orders)]], ["order_id", "qty"])
    ids = [each["id"] for each in lines]
    taken = odoo.read(
        LINE, [["refunded_orderline_id", "in", ids]], ["order_id", "qty", "refunded_orderline_id"]
    )
    states = odoo.read_ids(
        ORDER, sorted({number(each["order_id"]) or 0 for each in taken}), ["state"]
    )
    back: dict[int, float] = {}
    for each in taken:
        if states.get(number(each["order_id"]) or 0, {}).get("state") not in {None, "cancel"}:
            line = number(each["refunded_orderline_id"]) or 0
            back[line] = back.get(line, 0) - float(each["qty"])
    found: dict[int, dict[int, float]] = {}
    for each in lines:
        left = float(each["qty"]) - back.get(each["id"], 0)
        if left > 0:
            found.setdefault(number(each["order_id"]) or 0, {})[each["id"]] = left
    return found
