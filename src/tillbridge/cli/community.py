"""`tillbridge community ...`: look at a community, 86 items in it, see its orders and webhook."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.commands import Json
from tillbridge.cli.reach import Answer, ask
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.until import until_ms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tillbridge.config import LoadedSettings
    from tillbridge.web.ports import CommunitiesControl

    _ByItself = Callable[[CommunitiesControl], Awaitable[Answer]]

app = typer.Typer(
    help=_("Communities: their catalogue, items off sale, orders, webhook."), no_args_is_help=True
)
webhook = typer.Typer(
    help=_("The webhook subscription of a community: test it, see its deliveries, make it anew."),
    no_args_is_help=True,
)
app.add_typer(webhook, name="webhook")

_BY = "staff"
Name = Annotated[
    str,
    typer.Argument(
        metavar="COMMUNITY",
        help=_("The community's name in bridge.toml."),
        autocompletion=complete.communities,
    ),
]
Item = Annotated[
    str,
    typer.Argument(
        metavar="ITEM",
        autocompletion=complete.community_items,
        help=_("The item's id in the community; or in the till, where one store alone has it."),
    ),
]


@app.command()
def show(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Show how a community is: its catalogue here, its webhook, its orders.

    Example: tillbridge community show hall
    """
    loaded = _loaded(context, name)
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


@app.command()
def items(
    context: typer.Context,
    name: Name,
    off: Annotated[
        bool, typer.Option("--off", help=_("Only those that the community does not sell now."))
    ] = False,
    as_json: Json = False,
) -> None:
    """List the community's items: whether it sells them, and what this bridge says of them.

    An item is sold where both sides say so: its own store, and the community.

    Example: tillbridge community items hall --off
    """
    answer = _ask(context, name, "GET", ("items",), None, lambda control: control.items(name))
    found = [each for each in answer["items"] if not off or each["available"] is False]
    if as_json:
        say.document({**answer, "items": found})
        return
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
            for each in found
        ),
    )


@app.command()
def sync(
    context: typer.Context,
    name: Name,
    full: Annotated[bool, typer.Option("--full", help=_("All of it, not only changes."))] = False,
    as_json: Json = False,
) -> None:
    """Read the community's catalogue now.

    Example: tillbridge community sync hall --full
    """
    body = {"full": full}
    answer = _ask(
        context, name, "POST", ("sync",), body, lambda control: control.sync(name, full=full)
    )
    say.answered(answer, as_json=as_json)


@app.command("86")
def eighty_six(
    context: typer.Context,
    name: Name,
    item: Item,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help=_("Until when: 18:30, tomorrow, 2h, 2026-11-21T18:30. Else until restored."),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take an item off sale in the community; its store's own storefront goes on selling it.

    Carts that hold it fail in the community from then on. Times are the store's local time.

    Example: tillbridge community 86 hall B1 --until 18:30
    """
    loaded = _loaded(context, name)
    end = _end(until, loaded, name)
    body = {"item": item, "until_ms": end, "by": _BY}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "communities", name, "86", body=body),
        lambda control: control.communities.item_86(name, item, until_ms=end, by=_BY),
    )
    say.answered(answer, as_json=as_json)


@app.command()
def restore(context: typer.Context, name: Name, item: Item, as_json: Json = False) -> None:
    """Let the community sell an item again, and end its snooze.

    Example: tillbridge community restore hall B1
    """
    body = {"item": item, "by": _BY}
    answer = _ask(
        context,
        name,
        "POST",
        ("restore",),
        body,
        lambda control: control.item_restore(name, item, by=_BY),
    )
    say.answered(answer, as_json=as_json)


@app.command()
def orders(
    context: typer.Context,
    name: Name,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", metavar="N", min=1, max=1000, help=_("How many, the newest first.")
        ),
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the latest orders of the community, each with its parts; ours name their store.

    Example: tillbridge community orders hall --limit 5
    """
    answer = _ask(
        context,
        name,
        "POST",
        ("orders",),
        {"limit": limit},
        lambda control: control.orders(name, limit),
    )
    if as_json:
        say.document(answer)
        return
    if not answer["orders"]:
        say.line(_("No orders yet."))
    for order in answer["orders"]:
        head = f"{order['order_id']}  {order['order_number']}  {order['status']}"
        say.line(say.clean(f"{head}  {say.local_time(order['received_at'])}"))
        for child in order["children"]:
            ours = f"  ({child['store']}: {child['told']})" if child["store"] else ""
            where = child["store_name"] or child["store_id"]
            say.line(say.clean(f"  {child['order_id']}  {where}  {child['status']}{ours}"))


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
    answer = _ask(
        context,
        name,
        "POST" if push else "GET",
        ("hours",),
        {} if push else None,
        lambda control: control.push_hours(name) if push else control.hours(name),
    )
    if as_json:
        say.document(answer)
    else:
        if answer["text"]:
            say.line(say.clean(answer["text"]))
        for each in answer["stores"]:
            _show_hours(each)
    if answer["ok"] is False:
        raise typer.Exit(1)


@webhook.command("test")
def try_delivery(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Let the service send a test delivery, and tell whether it arrived.

    Example: tillbridge community webhook test hall
    """
    _act(context, name, ("webhook", "test"), lambda c: c.webhook_test(name), as_json=as_json)


@webhook.command()
def deliveries(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """List the service's attempts to deliver, and what it was answered.

    Example: tillbridge community webhook deliveries hall
    """
    answer = _ask(
        context,
        name,
        "GET",
        ("webhook", "deliveries"),
        None,
        lambda control: control.webhook_deliveries(name),
    )
    if as_json:
        say.document(answer)
        return
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


@webhook.command()
def remake(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Make a new subscription in place of the one there is, with a new signing secret.

    Example: tillbridge community webhook remake hall
    """
    _act(context, name, ("webhook", "remake"), lambda c: c.webhook_remake(name), as_json=as_json)


def _ask(
    context: typer.Context,
    name: str,
    method: str,
    path: tuple[str, ...],
    body: dict[str, Any] | None,
    by_itself: "_ByItself",
) -> Answer:
    return ask(
        _loaded(context, name),
        lambda bridge: bridge.ask(method, "communities", name, *path, body=body),
        lambda control: by_itself(control.communities),
    )


def _act(
    context: typer.Context,
    name: str,
    path: tuple[str, ...],
    by_itself: "_ByItself",
    *,
    as_json: bool,
) -> None:
    """Do it and say what came of it; end with 1 where it was not done."""
    answer = _ask(context, name, "POST", path, {}, by_itself)
    say.answered(answer, as_json=as_json)
    if answer.get("ok") is False:
        raise typer.Exit(1)


def _loaded(context: typer.Context, name: str) -> "LoadedSettings":
    loaded = load_settings(context)
    known = loaded.settings.communities
    if name not in known:
        raise ConfigError(
            _("{path} has no community {name}.").format(path=loaded.path, name=name),
            fix=_("It has: {names}.").format(names=", ".join(known))
            if known
            else _("Add a table [communities.{name}]; see docs/communities.md.").format(name=name),
        )
    return loaded


def _end(until: str | None, loaded: "LoadedSettings", name: str) -> int | None:
    if until is None:
        return None
    from zoneinfo import ZoneInfo

    settings = loaded.settings
    member = next(iter(settings.communities[name].stores or settings.stores))
    timezone = settings.stores[member].timezone
    zone = None if timezone is None else ZoneInfo(timezone)
    try:
        return until_ms(until, now_ms=time.time_ns() // 1_000_000, zone=zone)
    except ValueError as slip:
        raise typer.BadParameter(f"{slip}.", param_hint="--until") from None


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
