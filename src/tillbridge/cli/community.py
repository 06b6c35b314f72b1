"""`tillbridge community ...`: look at a community, 86 items in it, see its orders and webhook."""

from typing import Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.commands import Arguments, Json, add_operations, call
from tillbridge.cli.reach import ask
from tillbridge.cli.settings import check_community, load_settings
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

app = typer.Typer(
    help=_("Communities: their catalogue, items off sale, orders, webhook."), no_args_is_help=True
)
webhook = typer.Typer(
    help=_("The webhook subscription of a community: test it, see its deliveries, make it anew."),
    no_args_is_help=True,
)
app.add_typer(webhook, name="webhook")

Name = Annotated[
    str,
    typer.Argument(
        metavar="COMMUNITY",
        help=_("The community's name in bridge.toml."),
        autocompletion=complete.communities,
    ),
]


@app.command()
def show(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Show how a community is: its catalogue here, its webhook, its orders.

    Example: tillbridge community show hall
    """
    loaded = load_settings(context)
    check_community(loaded, name)
    answer = ask(
        loaded, lambda bridge: bridge.ask("GET", "status"), lambda control: control.status()
    )
    told: dict[str, Any] = answer["communities"][name]
    key = f"communities/{name}"
    told["problems"] = [each for each in answer["problems"] if each["store"] == key]
    if as_json:
        say.document(told)
        return
    for head, text in _lines(told):
        say.line(say.clean(f"{head:<10}{text}"))
    for problem in told["problems"]:
        say.line(say.clean(problem["text"]), level=problem["severity"])
        say.line("  " + say.clean(problem["fix"]))


def _show_items(answer: Answer, _given: Arguments) -> None:
    say.table(
        (_("ITEM"), _("TILL"), _("STORE"), _("SOLD"), _("OUR WORD"), _("NAME")),
        (
            (
                each["item_id"],
                each["external_id"] or "",
                each["store_name"] or each["store_id"],
                {True: _("yes"), False: _("no"), None: "?"}[each["available"]],
                _own(each["own"]),
                each["name"],
            )
            for each in answer["items"]
        ),
    )


def _show_orders(answer: Answer, _given: Arguments) -> None:
    if not answer["orders"]:
        say.line(_("No orders yet."))
    for order in answer["orders"]:
        head = f"{order['order_id']}  {order['order_number']}  {order['status']}"
        say.line(say.clean(f"{head}  {say.local_time(order['received_at'])}"))
        for child in order["children"]:
            ours = f"  ({child['store']}: {child['told']})" if child["store"] else ""
            where = child["store_name"] or child["store_id"]
            say.line(say.clean(f"  {child['order_id']}  {where}  {child['status']}{ours}"))


add_operations(
    app, "community", {"communities.items": _show_items, "communities.orders": _show_orders}
)


@app.command()
def hours(
    context: typer.Context,
    name: Name,
    push: Annotated[
        bool, typer.Option("--push", help=_("Push them now, whether they have changed or not."))
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the opening hours as the community is to have them, from the stores' hours files.

    They are pushed by themselves when a file changes, and when a dated exception comes or goes.

    Example: tillbridge community hours hall --push
    """
    loaded = load_settings(context)
    check_community(loaded, name)
    operation = "communities.push_hours" if push else "communities.hours"
    answer = call(loaded, operation, {"community": name})
    if as_json:
        say.document(answer)
    else:
        if answer["text"]:
            say.line(say.clean(answer["text"]))
        for each in answer["stores"]:
            _show_hours(each)
    if answer["ok"] is False:
        raise typer.Exit(1)


def _show_deliveries(answer: Answer, _given: Arguments) -> None:
    say.table(
        (_("WHEN"), _("EVENT"), _("DELIVERY"), _("ANSWER"), _("WORDS")),
        (
            (
                say.local_time(each["attempted_at"]),
                each["event_type"],
                each["delivery_id"],
                str(each["response_status"] or _("none")),
                each["response_body"] or each["error"],
            )
            for each in answer["deliveries"]
        ),
    )


add_operations(webhook, "community webhook", {"communities.webhook_deliveries": _show_deliveries})


def _show_hours(each: dict[str, Any]) -> None:
    told = each["hours"]
    pushed = say.local_time(each["pushed_at"])
    state = _("pushed {when}").format(when=pushed) if pushed else _("not pushed yet")
    say.line(say.clean(f"{each['store']} ({told['timezone']}): {state}"))
    for day, spans in told["weekly"].items():
        text = ", ".join(f"{span['open']}-{span['close']}" for span in spans)
        say.line(f"  {day:<10} {text or _('closed')}")
    for override in told["overrides"]:
        say.line(say.clean(f"  {override['date']}  {_('closed')}  {override['reason']}").rstrip())


def _own(own: dict[str, Any]) -> str:
    if own["available"]:
        return "" if own["told"] else _("on sale again (to be told)")
    text = _("off sale")
    if own["until"]:
        text = _("off sale until {until}").format(until=say.local_time(own["until"]))
    return text if own["told"] else text + " " + _("(to be told)")


def _lines(told: dict[str, Any]) -> list[tuple[str, str]]:
    catalogue, hook, orders_ = told["catalogue"], told["webhook"], told["orders"]
    counts = ", ".join(f"{count} {status}" for status, count in orders_["by_status"].items())
    return [
        (_("community"), told["community_id"]),
        (
            _("catalogue"),
            _("{items} items of {stores} stores, read {when}").format(
                items=catalogue["items"],
                stores=catalogue["stores"],
                when=say.local_time(catalogue["read_at"]) or _("never"),
            ),
        ),
        (
            _("webhook"),
            _("{id}, checked {when}").format(
                id=hook["webhook_id"] or _("none"),
                when=say.local_time(hook["checked_at"]) or _("never"),
            ),
        ),
        (_("orders"), counts or _("none yet")),
    ]
