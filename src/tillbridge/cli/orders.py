"""`tillbridge orders ...`: look at orders, try one again, cancel one, see to one by hand."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.commands import Json, add_operations, argument, option
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tillbridge.cli.order_reading import FoundOrder
    from tillbridge.ledger.models import OrderRow

app = typer.Typer(help=_("Look at orders, try one again, cancel one."), no_args_is_help=True)

OrderId = Annotated[
    str,
    argument("ID", _("The order's number, or its id (ord_...)."), autocompletion=complete.orders),
]


@app.command("list")
def list_orders(
    context: typer.Context,
    store: Annotated[
        str | None,
        option("--store", _("Only this store's orders."), "STORE", autocompletion=complete.stores),
    ] = None,
    limit: Annotated[
        int,
        option("--limit", _("How many, the newest first."), "N", min=1, max=10_000),
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the latest orders: how far each is in the till, and what the service was told.

    Example: tillbridge orders list --limit 5
    """
    from tillbridge.cli.order_reading import latest

    loaded = load_settings(context)
    if store is not None:
        store_of(loaded, store)
    rows = latest(loaded.data_dir, None if store is None else (store,), limit)
    if as_json:
        from tillbridge.orders.views import order_view

        say.document([order_view(row) for row in rows])
    elif not rows:
        say.line(_("No orders yet."))
    else:
        say.table(
            [_("ID"), _("NUMBER"), _("STORE"), _("RECEIVED"), _("TICKET"), _("TOLD"), _("NOTE")],
            [_cells(row) for row in rows],
        )


@app.command()
def show(context: typer.Context, order_id: OrderId, as_json: Json = False) -> None:
    """Show an order whole: its lines, and all that happened to it.

    Example: tillbridge orders show ord_123
    """
    from tillbridge.cli.order_reading import one

    loaded = load_settings(context)
    found = one(loaded.data_dir, order_id)
    if as_json:
        say.document(_whole(found))
    else:
        _show(found)


@app.command()
def figures(
    context: typer.Context,
    store: Annotated[
        str | None,
        option("--store", _("Only this store's figures."), "STORE", autocompletion=complete.stores),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how well it goes: time to ticket, time to accept, how many orders needed a hand.

    Over the last 24 hours and the last 7 days, by the bridge's own ledger.

    Example: tillbridge orders figures
    """
    from tillbridge.cli.order_reading import all_figures

    loaded = load_settings(context)
    if store is not None:
        store_of(loaded, store)
    names = list(loaded.settings.stores) if store is None else [store]
    known = all_figures(loaded.data_dir)
    told = {name: known[name].to_json() for name in names if name in known}
    if as_json:
        say.document(told)
    elif not told:
        say.line(_("No orders within the last 7 days."))
    else:
        say.table(
            [
                _("STORE"),
                _("WITHIN"),
                _("ORDERS"),
                _("TO TICKET"),
                _("TO ACCEPT"),
                _("NEEDED A HAND"),
                _("LOST"),
            ],
            [
                [name, span, *_figure_cells(each)]
                for name, by_span in told.items()
                for span, each in by_span.items()
            ],
        )


def _figure_cells(figures: "Mapping[str, Any]") -> list[str]:
    def times(told: "Mapping[str, Any] | None") -> str:
        if told is None:
            return "-"
        return _("{median:.1f} s (95%: {p95:.1f} s)").format(median=told["median"], p95=told["p95"])

    share = figures["needed_a_hand_share"]
    return [
        str(figures["orders"]),
        times(figures["time_to_ticket_s"]),
        times(figures["time_to_accept_s"]),
        "-" if share is None else f"{figures['needed_a_hand']} ({share:.1%})",
        str(figures["lost"]),
    ]


def _cells(row: "OrderRow") -> list[str]:
    told = row.service_state.value
    if row.desired_state is not row.service_state:
        told += f" -> {row.desired_state.value}"
    note = row.last_failure if row.closed_at is None else ""
    return [
        row.order_id,
        row.order_number,
        row.store,
        say.local_time(row.received_at),
        row.ticket.value,
        told,
        row.reason_code.value if row.reason_code else note,
    ]


def _whole(found: "FoundOrder") -> dict[str, Any]:
    import json

    from tillbridge.orders.views import log_view, order_view

    row, parent = found.row, found.parent
    return {
        **order_view(row, found.handled),
        "community_order": None
        if parent is None
        else {
            "community": parent.community.partition("/")[2],
            "order_id": parent.order_id,
            "order_number": parent.order_number,
            "status": parent.status,
        },
        "order": json.loads(row.payload) if row.payload else None,
        "life": log_view(row, found.life, found.delivery),
    }


def _show(found: "FoundOrder") -> None:
    import json

    from tillbridge.model.order import parse_order
    from tillbridge.orders.views import log_view

    row = found.row
    more = [(_("part of"), _part_of(found)), (_("handled by hand"), _by_hand(found))]
    for name, text in [*_facts(row), *more]:
        if text:
            say.line(say.clean(f"{name:<18}{text}"))
    say.line()
    if row.payload:
        order = parse_order(json.loads(row.payload))
        for line in order.lines:
            price = _price(line.unit_price, order.currency)
            say.line(say.clean(f"{line.quantity_text} x {line.product_name}{price}"))
            for option in line.options:
                say.line(say.clean(f"      {option.quantity_text} x {option.product_name}"))
        if order.special_instructions:
            say.line(say.clean(f"! {order.special_instructions}"))
    else:
        say.line(_("(What was ordered has been forgotten: keep_personal_data_days.)"))
    say.line()
    for entry in log_view(row, found.life, found.delivery):
        say.line(say.clean(f"{say.local_time(entry['at'])}  {entry['event']:<18}{entry['text']}"))


def _price(amount: int | None, currency: str) -> str:
    from tillbridge.model.money import to_major

    if amount is None or not currency:
        return ""
    try:
        return f"  {to_major(amount, currency)} {currency}"
    except (ArithmeticError, LookupError, ValueError):  # more digits than any money has
        return f"  {amount} {currency}"


def _part_of(found: "FoundOrder") -> str:
    parent = found.parent
    if parent is None:
        return ""
    name = parent.community.partition("/")[2]
    return f"{name}: {parent.order_id} {parent.order_number} ({parent.status})"


def _by_hand(found: "FoundOrder") -> str:
    if found.handled is None:
        return ""
    from tillbridge.core.actor import by_whom

    return _("by {who}").format(who=by_whom(found.handled.detail.get("by")))


def _facts(row: "OrderRow") -> list[tuple[str, str]]:
    return [
        (_("order"), f"{row.order_id} {row.order_number}".strip()),
        (_("store"), row.store),
        (_("received"), say.local_time(row.received_at)),
        (_("ticket"), f"{row.ticket.value} {row.ticket_reference}".strip()),
        (_("told the service"), row.service_state.value),
        (
            _("to be told"),
            row.desired_state.value if row.desired_state is not row.service_state else "",
        ),
        (_("reason"), row.reason_code.value if row.reason_code else ""),
        (_("message"), row.message),
        (_("last failure"), row.last_failure),
        (_("tries"), str(row.attempts)),
    ]


add_operations(app, "orders")
