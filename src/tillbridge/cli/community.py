"""`tillbridge community ...`: look at a community, 86 items in it, see its orders and webhook."""

from typing import Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.commands import Json, add_operations, argument, call, option, perform
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
    argument(
        "COMMUNITY", _("The community's name in bridge.toml."), autocompletion=complete.communities
    ),
]


@app.command()
def show(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Show how a community is: its catalogue here, its webhook, its orders.

    Example: tillbridge community show hall
    """
    loaded = load_settings(context)
    check_community(loaded, name)
    answer = call(loaded, "status", {})
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


add_operations(app, "community")


@app.command()
def hours(
    context: typer.Context,
    name: Name,
    push: Annotated[
        bool, option("--push", _("Push them now, whether they have changed or not."))
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
    perform(loaded, operation, {"community": name}, _show_hours, as_json=as_json)


add_operations(webhook, "community webhook")


def _show_hours(answer: Answer) -> None:
    if answer["text"]:
        say.line(say.clean(answer["text"]))
    for each in answer["stores"]:
        told = each["hours"]
        pushed = say.local_time(each["pushed_at"])
        state = _("pushed {when}").format(when=pushed) if pushed else _("not pushed yet")
        say.line(say.clean(f"{each['store']} ({told['timezone']}): {state}"))
        for day, spans in told["weekly"].items():
            text = ", ".join(f"{span['open']}-{span['close']}" for span in spans)
            say.line(f"  {day:<10} {text or _('closed')}")
        for override in told["overrides"]:
            text = f"  {override['date']}  {_('closed')}  {override['reason']}"
            say.line(say.clean(text).rstrip())


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
