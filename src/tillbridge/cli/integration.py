"""`tillbridge integration ...`: the link between a store and this bridge."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, Json, Store, add_operations, call
from tillbridge.cli.say import Yes, confirm
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings

app = typer.Typer(
    help=_("The integration of a store: show, change, renew, remove."), no_args_is_help=True
)


_FIELDS = (
    "webhook_url",
    "menu_sync_direction",
    "auto_accept_orders",
    "external_store_id",
    "notification_email",
)


def _show(answer: Answer, given: Arguments) -> None:
    say.line(_STATES[answer["state"]])
    service = answer["service"] or {}
    say.table(
        (_("FIELD"), _("AT THE SERVICE"), _("CONFIGURED")),
        (
            (field, _value(service.get(field)), _value(answer["configured"].get(field)))
            for field in _FIELDS
        ),
    )
    say.line(_SECRETS[answer["secret"]].format(since=say.local_time(answer["secret_since"])))
    if answer["old_secret_until"]:
        until = say.local_time(answer["old_secret_until"])
        say.line(_("Deliveries signed with the one before are taken until {at}.").format(at=until))
    if answer["removed_since"]:
        since = say.local_time(answer["removed_since"])
        say.line(_("It was taken off this bridge at {at}.").format(at=since))
    if answer["plan"]["kind"] != "nothing":
        say.line(_next(answer["plan"], given["store"]))


def _show_plan(answer: Answer, given: Arguments) -> None:
    for text in answer["lines"]:
        say.line("  " + say.clean(text))
    say.line(_next(answer, given["store"]))
    for text in answer["costs"]:
        say.line("  " + text)


add_operations(app, "integration", {"integration.show": _show, "integration.plan": _show_plan})


@app.command()
def apply(context: typer.Context, store: Store, yes: Yes = False, as_json: Json = False) -> None:
    """Bring the integration in line with the configuration; only what differs is sent.

    The running bridge does this by itself (integration_changes). Another location, or a webhook
    secret that is not known here, takes a new integration, and that asks before it begins.

    Example: tillbridge integration apply main
    """
    loaded = _loaded(context, store)
    answer = call(loaded, "integration.plan", {"store": store})
    if answer["kind"] in {"reintegrate", "rotate"}:
        confirm([*answer["lines"], *answer["costs"]], yes=yes)
    _do(loaded, "integration.apply", store, as_json=as_json)


@app.command("rotate-secret")
def rotate_secret(
    context: typer.Context, store: Store, yes: Yes = False, as_json: Json = False
) -> None:
    """Get a new webhook secret; the old one is honoured for old_secret_s, and orders go on.

    Example: tillbridge integration rotate-secret main
    """
    loaded = _loaded(context, store)
    _confirm_new_secret(loaded, store, yes=yes)
    _do(loaded, "integration.rotate_secret", store, as_json=as_json)


@app.command()
def remove(context: typer.Context, store: Store, yes: Yes = False, as_json: Json = False) -> None:
    """Take a store off this bridge, at the ordering service and here.

    The bridge goes on with its other stores. tillbridge connect brings the store back.

    Example: tillbridge integration remove main
    """
    loaded = _loaded(context, store)
    if not yes:
        shown = call(loaded, "integration.show", {"store": store})
        confirm(_what_removing_does(shown, loaded), yes=yes)
    _do(loaded, "integration.remove", store, as_json=as_json)


@app.command()
def reintegrate(
    context: typer.Context, store: Store, yes: Yes = False, as_json: Json = False
) -> None:
    """Remove the integration and make it anew; no new consent is needed while one lasts.

    Example: tillbridge integration reintegrate main
    """
    from tillbridge.stores.integration_plan import Kind, costs_of

    loaded = _loaded(context, store)
    confirm(costs_of(Kind.REINTEGRATE), yes=yes)
    _do(loaded, "integration.reintegrate", store, as_json=as_json)


def rotate_now(loaded: "LoadedSettings", store: str) -> None:
    """Ask a person on a terminal whether to get a new secret at once, and do it."""
    if not sys.stdin.isatty():
        return
    if typer.confirm(_("Get a new webhook secret now?")):
        _do(loaded, "integration.rotate_secret", store, as_json=False)


def _loaded(context: typer.Context, store: str) -> "LoadedSettings":
    loaded = load_settings(context)
    store_of(loaded, store)
    return loaded


def _do(loaded: "LoadedSettings", operation: str, store: str, *, as_json: bool) -> None:
    answer = call(loaded, operation, {"store": store})
    say.answered(answer, as_json=as_json)
    if answer.get("ok") is False:
        raise typer.Exit(1)


def _confirm_new_secret(loaded: "LoadedSettings", store: str, *, yes: bool) -> None:
    if yes:
        return
    costs = call(loaded, "integration.show", {"store": store})["rotation_costs"]
    if costs:
        confirm(costs, yes=yes)


def _what_removing_does(answer: Answer, loaded: "LoadedSettings") -> list[str]:
    from tillbridge.core.spans import span

    count = answer["open_orders"]
    old = span(loaded.settings.receiver.old_secret_s)
    waiting = ngettext(
        "{n} order is not over: the kitchen has it or still gets it, but the service is told no "
        "more of it, and only the merchant's dashboard can finish or cancel it.",
        "{n} orders are not over: the kitchen has them or still gets them, but the service is "
        "told no more of them, and only the merchant's dashboard can finish or cancel them.",
        count,
    ).format(n=count)
    return [
        _("No more orders arrive from the ordering service for this store."),
        *([waiting] if count else []),
        _("The menu, sold-out items and tables are no longer pushed; the service refuses them."),
        _("The ledger keeps orders, menu and history; nothing in the till changes."),
        _(
            "Deliveries under way are taken for {span}, then the webhook secret is forgotten."
        ).format(span=old),
        _("The merchant's consent stays until it ends; connect brings the store back."),
    ]


def _next(answer: dict[str, Any], store: str) -> str:
    return _NEXT[answer["kind"]].format(store=store)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "-" if value is None else str(value)


_STATES = {
    "integrated": _("The store is integrated with this bridge's app."),
    "not_integrated": _("The store is not integrated."),
    "disabled": _("The ordering service has disabled the integration."),
    "pending": _("The ordering service has not yet made the integration active."),
}
_SECRETS = {
    "known": _("The webhook secret is known here, since {since}."),
    "unknown": _("The webhook secret is not known here: orders are refused."),
    "none": _("There is no webhook secret without an integration."),
}
_NEXT = {
    "nothing": _("Nothing to do: the service has it as configured."),
    "change": _("Apply it with: tillbridge integration apply {store}"),
    "reintegrate": _(
        "Another location takes a new integration: tillbridge integration apply {store}"
    ),
    "rotate": _("Get a new webhook secret with: tillbridge integration rotate-secret {store}"),
    "integrate": _("Integrate it with: tillbridge integration reintegrate {store}"),
    "wait": _("Others must act first; see: tillbridge status"),
}
