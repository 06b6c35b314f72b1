"""The problems of orders, as a function of their rows. Pure: the same rows, the same problems."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.problems import Found
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.orders import UNWRITTEN, is_on_paper
from tillbridge.model.instant import to_iso
from tillbridge.model.money import to_major
from tillbridge.model.order import OrderState, parse_order
from tillbridge.orders.reasons import CAUSES, TOLD_BY_TILL
from tillbridge.orders.state import CANCELLED_UNSEEN, TAKEN_BACK, is_held

# What is told of each order by itself, and what is told of several at once.
OF_ONE = frozenset(
    {
        "order.not_written",
        "order.held",
        "order.not_in_till",
        "order.not_withdrawn",
        TAKEN_BACK,
        "order.closed_by_service",
        "order.unknown_item",
        "order.price_differs",
        "order.quantity_unclear",
        "service.refused",
    }
)
OF_SEVERAL = frozenset({CANCELLED_UNSEEN, "order.other_currency"})

# A failure that is not the POS being offline, so often in a row, is a person's business.
_FAILURES_TOLD = 2
_CALLS = {"preparing": "status"}  # the specification's name of the call
_LISTED = 12
_LONGEST_NUMBER = 32
_MEANT = 10
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def problems_of(row: OrderRow) -> list[Found]:
    """Return what a person has to know of this one order now."""
    found: dict[str, dict[str, object]] = {}
    words = row.last_failure.partition(": ")[2] or row.last_failure
    if row.closed_at is None and row.ticket in UNWRITTEN and _is_wanted(row):
        if is_held(row):
            found["order.held"] = {"detail": words}
        elif row.attempts > _FAILURES_TOLD and row.last_failure.partition(":")[0] != "offline":
            found["order.not_written"] = {"detail": words}
    if is_on_paper(row) and _is_wanted(row):
        found["order.not_in_till"] = {"why": words or _("it did not answer")}
    if row.refused:
        calls = sorted(row.refused)
        found["service.refused"] = {
            "operation": ", ".join(_CALLS.get(each, each) for each in calls),
            "detail": "; ".join(dict.fromkeys(row.refused[each] for each in calls)),
        }
    for code, what in row.unseen.items():
        if code in OF_ONE:
            found[code] = {name: each for name, each in what.items() if name != "at"}
    known = {"order": called(row), "id": _for_a_command(row)}
    return [Found(code, row.order_id, {**known, **detail}) for code, detail in found.items()]


def problems_of_several(rows: Iterable[OrderRow], now_ms: int) -> list[Found]:
    """Return what a person has to know of these orders of one store together, grouped by cause."""
    groups: dict[tuple[str, str], list[OrderRow]] = defaultdict(list)
    for row in rows:
        for code in OF_SEVERAL & row.unseen.keys():
            what = row.unseen[code]
            groups[code, str(what.get("cause") or what.get("theirs") or "")].append(row)
    return [
        Found(code, subject, _detail_of_several(code, subject, of_it, now_ms))
        for (code, subject), of_it in groups.items()
    ]


def _detail_of_several(
    code: str, subject: str, rows: Sequence[OrderRow], now_ms: int
) -> dict[str, object]:
    since = min(_at(row, code) for row in rows)
    names = [called(row) for row in rows[:_LISTED]]
    more = len(rows) - len(names)
    if more:
        names.append(_("and {count} more").format(count=more))
    detail: dict[str, object] = {
        "count": len(rows),
        "orders": ", ".join(names),
        "since": _clock_time(since, now_ms),
        "ids": [row.order_id for row in rows],
    }
    if code == CANCELLED_UNSEEN:
        amount = _amount(rows)
        why = CAUSES.get(subject, CAUSES["other"])
        if len(rows) == 1 and subject in TOLD_BY_TILL and rows[0].message:
            why = f"{why}: {rows[0].message}"
        return {
            **detail,
            "why": why,
            "amount": f"; {amount}" if amount else "",
            "worth": f" ({amount})" if amount else "",
        }
    what = rows[0].unseen[code]
    return {**detail, "theirs": what.get("theirs", "?"), "ours": what.get("ours", "?")}


def _at(row: OrderRow, code: str) -> int:
    at = row.unseen[code].get("at")
    return at if isinstance(at, int) else row.received_at


def _amount(rows: Iterable[OrderRow]) -> str:
    """Return what the orders came to together, by currency; "" where none of them says."""
    sums: dict[str, int] = defaultdict(int)
    for row in rows:
        try:
            order = parse_order(json.loads(row.payload))
        except ValueError:  # forgotten, or it never said
            continue
        if order.total_amount is not None:
            sums[order.currency] += order.total_amount
    return ", ".join(_money(each, currency) for currency, each in sums.items())


def _money(amount: int, currency: str) -> str:
    try:
        return f"{to_major(amount, currency)} {currency}"
    except (ArithmeticError, ValueError):
        return f"{amount} {currency}".strip()


def _is_wanted(row: OrderRow) -> bool:
    return row.desired_state is not OrderState.CANCELLED


def _for_a_command(row: OrderRow) -> str:
    """Return what to name the order by in a command: nothing that a shell would read otherwise."""
    name = called(row)
    return name if _PLAIN.fullmatch(name) else row.order_id


def _clock_time(at_ms: int, now_ms: int) -> str:
    """Return an instant in this machine's time: of today the time, else with its date."""
    at, now = (datetime.fromtimestamp(ms / 1000).astimezone() for ms in (at_ms, now_ms))
    return at.strftime("%H:%M" if at.date() == now.date() else "%d %b %H:%M")


# -- what people call an order, and which order they mean by it


def called(row: OrderRow) -> str:
    """Return what people call the order: its number, or its id where it has none."""
    number = row.order_number.strip()
    printable = number.isprintable() and len(number) <= _LONGEST_NUMBER
    return number if number and printable else row.order_id


def the_one(rows: Sequence[OrderRow], name: str) -> OrderRow:
    """Return the order that is meant by an id or a number.

    Raises BridgeError where there is none, or where several have that number: it lists them.
    """
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise BridgeError(
            _("There is no order {order}.").format(order=name),
            fix=_("See which there are with: tillbridge orders list"),
        )
    listed = [f"{row.order_id} ({row.store}, {to_iso(row.received_at)})" for row in rows[:_MEANT]]
    more = len(rows) - len(listed)
    if more:
        listed.append(_("and {count} more").format(count=more))
    raise BridgeError(
        _("Several orders have the number {order}: {orders}.").format(
            order=name, orders=", ".join(listed)
        ),
        fix=_("Name the one you mean by its id."),
    )
