"""`tillbridge orders list`, `show` and `figures`: read from the ledger's file, daemon or not."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

from tillbridge.cli import say
from tillbridge.cli.commands import command, show_zone_of
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _, joined, reader
from tillbridge.core.operation import Argument
from tillbridge.operations.orders import OrderId, day_of_orders, span_of_day

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tillbridge.config.loading import LoadedSettings
    from tillbridge.ledger.figures import FiguresView
    from tillbridge.orders.views import BriefOrder, OrderDetails, Ordered, OrderView

P = ParamSpec("P")
T = TypeVar("T")


def _read(
    loaded: "LoadedSettings",
    query: "Callable[Concatenate[Connection, P], T]",
    *args: P.args,
    **more: P.kwargs,
) -> T:
    from tillbridge.ledger.backend import connected
    from tillbridge.ledger.reading import place_in

    with connected(place_in(loaded)) as connection:
        return query(connection, *args, **more)


def order_id_called(loaded: "LoadedSettings", name: str) -> str:
    """Return the id of the order with this id or number; the name itself where there is none.

    Raises BridgeError, which lists them, where several have that number; LedgerError.
    """
    from tillbridge.ledger.orders import find_called
    from tillbridge.orders.views import single_order

    rows = _read(loaded, find_called, name)
    return single_order(rows, name).order_id if rows else name


# -- list


def _reported(order: "OrderView") -> str:
    from tillbridge.orders.sentences import reported_text

    state, wanted = reported_text(order["state"]), reported_text(order["wanted"])
    return f"{state}" if state == wanted else f"{state} -> {wanted}"


def _note(order: "OrderView") -> str:
    from tillbridge.orders.sentences import failure_text, reason_text

    code = order["reason_code"]
    return (
        reason_text(code)
        if code
        else ""
        if order["closed_at"]
        else failure_text(order["last_failure"])
    )


def _way(order: Mapping[str, Any]) -> str:
    """Return how an order leaves the restaurant, with its table."""
    from tillbridge.orders.sentences import kind_text

    return joined(" ", filter(None, (kind_text(order["kind"]), order["table"])))


def _show_list(orders: "Sequence[BriefOrder]", given: Arguments) -> Lines:
    from tillbridge.orders.sentences import ticket_text

    if not orders:
        yield _("No orders match.") if given["search"] or given["day"] else _("No orders yet.")
        return
    columns: list[say.Column] = [
        (_("ORDER"), lambda each: each["order_number"] or each["id"]),
        (_("STORE"), "store"),
        (_("RECEIVED"), lambda each: say.local_time(each["received_at"])),
        (_("TYPE"), _way),
        (_("TOTAL"), lambda each: _amount(each["total"], each["currency"])),
        (_("TICKET"), lambda each: ticket_text(each["ticket"])),
        (_("REPORTED"), _reported),
        (_("NOTE"), _note),
    ]
    if len({each["store"] for each in orders}) == 1:
        del columns[1]  # its key says nothing where there is one store
    yield from say.rows(columns, orders)


@command("orders list", _show_list)
def list_orders(
    loaded: "LoadedSettings",
    *,
    store: Annotated[
        str | None,
        Argument("STORE", _("Only this store's orders."), complete="stores", audit="store"),
    ] = None,
    search: Annotated[
        str, Argument("TEXT", _("Part of a number, a dish, a table, a guest's name or an id."))
    ] = "",
    day: Annotated[
        str, Argument("DAY", _("Only this day's orders: 2026-11-21, today."), complete="days")
    ] = "",
    limit: Annotated[
        int, Argument("N", _("How many, the newest first."), least=1, most=10_000)
    ] = 20,
) -> "list[BriefOrder]":
    """List the latest orders: how far each is in the till, and what the service knows of it.

    With --json also their ids, which every command takes in place of a number.

    Example: tillbridge orders list --day today --search pizza
    """
    from tillbridge.ledger.orders import OrderFilter, latest_orders
    from tillbridge.orders.views import brief_order

    since, until = _span(day) if day else (None, None)
    chosen = OrderFilter(search, stores=store and (store,), since=since, until=until)
    rows = _read(loaded, latest_orders, chosen, limit)
    return [brief_order(row) for row in rows]


def _span(typed: str) -> tuple[int, int]:
    """Return when a day that was typed begins and ends (ms). Raises ConfigError."""
    from tillbridge.core.clock import Clock
    from tillbridge.model.instant import day_of

    is_today = typed.strip().lower() == "today"
    day = day_of(Clock().now_ms(), reader().zone) if is_today else day_of_orders(typed.strip())
    if day is None:
        raise ConfigError(
            _("{text} is not a day.").format(text=typed), fix=_("Write it like 2026-11-21.")
        )
    return span_of_day(day)


# -- show


def _show_order(order: "OrderDetails", _given: Arguments) -> Lines:
    from tillbridge.orders.sentences import (
        failure_text,
        is_ticket_number,
        reason_text,
        reported_text,
        ticket_text,
    )

    reference = order["ticket_reference"]
    ticket = ticket_text(order["ticket"])
    parent, handled, ordered = order["community_order"], order["handled"], order["ordered"]
    facts = (
        (_("order"), order["order_number"] or order["id"]),
        (_("store"), order["store"]),
        (_("received"), say.local_time(order["received_at"])),
        (_("type"), ordered and _way(ordered)),
        (_("ticket"), f"{ticket} {reference}" if is_ticket_number(reference) else ticket),
        (_("reported"), reported_text(order["state"])),
        (
            _("to be reported"),
            "" if order["wanted"] == order["state"] else reported_text(order["wanted"]),
        ),
        (_("reason"), reason_text(order["reason_code"])),
        (_("message"), order["message"]),
        (_("guest was informed"), order["guest_text"]),
        (_("last failure"), failure_text(order["last_failure"])),
        (_("tries"), order["attempts"]),
        (
            _("part of"),
            parent and "{community}: {order_id} {order_number} ({status})".format_map(parent),
        ),
        (_("handled"), handled and _("by {who}").format(who=handled["by"])),
        (_("id"), order["id"] if order["order_number"] else ""),
    )
    yield from say.pairs([each for each in facts if each[1] not in {None, ""}], least=18)
    for other in order["same_number"]:
        yield _("Another order {number}: {time}, {store}, {id}").format(
            number=order["order_number"],
            time=say.local_time(other["received_at"]),
            store=other["store"],
            id=other["id"],
        )
    yield ""
    if ordered is None:
        yield _("(What was ordered was deleted, as keep_personal_data_days says.)")
    else:
        yield from _lines_of(ordered)
    yield ""
    for entry in order["life"]:
        yield f"{say.local_time(entry['at'])}  {entry['text']}"


def _lines_of(ordered: "Ordered") -> Lines:
    from tillbridge.orders.sentences import bill_lines

    currency = ordered["currency"]
    for line in ordered["lines"]:
        price = _amount(line["unit_price"], currency)
        yield f"{line['quantity']} x {line['name']}  {price}".rstrip()
        for option in line["options"]:
            extra = _amount(option["unit_price"], currency)
            yield f"      {option['quantity']} x {option['name']}  {extra}".rstrip()
    if ordered["instructions"]:
        yield f"! {ordered['instructions']}"
    bill = bill_lines(ordered["bill"])
    yield from say.pairs([(name, _amount(each, currency)) for name, each in bill], least=18)


def _amount(amount: int | None, currency: str) -> str:
    from tillbridge.core.formats import money

    return money(amount, currency) if currency else ""


@command("orders show", _show_order)
def show(loaded: "LoadedSettings", order: OrderId) -> "OrderDetails":
    """Show an order whole: its lines, and all that happened to it.

    Example: tillbridge orders show 1007
    """
    from tillbridge.orders.views import details_called

    found = _read(loaded, details_called, order)
    show_zone_of(loaded, found["store"])
    return found


# -- figures


def _show_figures(figures: "Mapping[str, Mapping[str, FiguresView]]", _given: Arguments) -> Lines:
    if not figures:
        yield _("No orders within the last 7 days.")
        return
    columns: list[say.Column] = [
        (_("STORE"), "store"),
        (_("WITHIN"), "span"),
        (_("ORDERS"), "orders"),
        (_("TO TICKET"), lambda each: _times(each["time_to_ticket_s"])),
        (_("TO ACCEPT"), lambda each: _times(each["time_to_accept_s"])),
        (_("NEEDED A HAND"), _by_hand),
        (_("LOST"), "lost"),
    ]
    yield from say.rows(
        columns,
        [
            {"store": store, "span": span, **each}
            for store, by_span in figures.items()
            for span, each in by_span.items()
        ],
    )


def _times(times: Mapping[str, Any] | None) -> str:
    return "-" if times is None else _("{median:.1f} s (95%: {p95:.1f} s)").format_map(times)


def _by_hand(figures: "FiguresView") -> str:
    share = figures["needed_a_hand_share"]
    return "-" if share is None else f"{figures['needed_a_hand']} ({share:.1%})"


@command("orders figures", _show_figures)
def show_figures(
    loaded: "LoadedSettings",
    *,
    store: Annotated[
        str | None,
        Argument("STORE", _("Only this store's figures."), complete="stores", audit="store"),
    ] = None,
) -> "dict[str, dict[str, FiguresView]]":
    """Show how well it goes: time to ticket, time to accept, how many orders needed a hand.

    Over the last 24 hours and the last 7 days, from the bridge's database.

    Example: tillbridge orders figures
    """
    from tillbridge.core.clock import Clock
    from tillbridge.ledger.figures import take_figures

    now_ms = Clock().now_ms()
    known = _read(loaded, take_figures, now_ms)
    names = loaded.settings.stores if store is None else [store]
    return {name: known[name].to_json() for name in names if name in known}
