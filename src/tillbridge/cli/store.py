"""`tillbridge store ...`: open or paused, the store's settings and hours, its taxes."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.control import os_user
from tillbridge.cli.menu import Json, Store
from tillbridge.cli.reach import Answer, ask
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings, StoreSettings

app = typer.Typer(help=_("Open and pause a store; its settings and taxes."), no_args_is_help=True)

Full = Annotated[bool, typer.Option("--full", help=_("Everything, not only what differs."))]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help=_("Who says so; else this machine's user.")),
]


@app.command()
def show(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Show whether a store takes orders, who says so, its hours today and its taxes.

    Example: tillbridge store show main
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("GET", "stores", store, "standing"),
        lambda control: control.store.show(store),
    )
    if as_json:
        say.document(answer)
        return
    for text, level in _lines(answer):
        say.line(say.clean(text), level=level)


@app.command()
def plan(context: typer.Context, store: Store, full: Full = False, as_json: Json = False) -> None:
    """Show what of the store's settings would be sent, in words; nothing is sent.

    With --json also the body as the ordering service gets it.

    Example: tillbridge store plan main
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("POST", "stores", store, "settings", "plan", body={"full": full}),
        lambda control: control.store.plan(store, full=full),
    )
    if as_json:
        say.document(answer)
        return
    if answer["body"]:
        say.line(_("This would be sent ({keys}):").format(keys=", ".join(sorted(answer["body"]))))
        for line in answer["lines"]:
            say.line("  " + say.clean(line))
    else:
        say.line(_("Nothing to send: the service has what the files say."))
    if answer["unsaid"]:
        keys = say.clean(", ".join(answer["unsaid"]))
        say.line(_("No longer said, and kept by the service: {keys}.").format(keys=keys))
    for note in answer["notes"]:
        say.line(_("Note: {note}").format(note=say.clean(note)), level="warning")


@app.command()
def push(context: typer.Context, store: Store, full: Full = False, as_json: Json = False) -> None:
    """Send the store's settings that have changed, now; with --full all of them.

    Example: tillbridge store push main --full
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("POST", "stores", store, "settings", "push", body={"full": full}),
        lambda control: control.store.push(store, full=full),
    )
    _end(answer, as_json=as_json)


@app.command()
def pause(
    context: typer.Context,
    store: Store,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help=_("Why, for whoever looks later."))
    ] = "",
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help=_("Until when: 18:30, tomorrow, 2h, 2026-11-21T18:30. Else until resumed."),
        ),
    ] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Let a store take no orders, whatever its hours say and its till does.

    Nobody but a person opens it again, or the time you give.

    Example: tillbridge store pause main --until 18:30 --reason "too busy"
    """
    loaded = _loaded(context, store)
    end, who = _until(until, store_of(loaded, store)), by or os_user()
    body = {"by": who, "reason": reason, "until_ms": end}
    answer = ask(
        loaded,
        lambda bridge: bridge.ask("POST", "stores", store, "pause", body=body),
        lambda control: control.store.pause(store, by=who, reason=reason, until_ms=end),
    )
    _end(answer, as_json=as_json)


@app.command()
def resume(context: typer.Context, store: Store, by: By = None, as_json: Json = False) -> None:
    """Let a store take orders again, whoever paused it; against its schedule until that changes.

    While the till is away the store stays closed, and opens by itself when the till is back.
    A till that comes and goes keeps it closed for longer; this opens it at once.

    Example: tillbridge store resume main
    """
    who = by or os_user()
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("POST", "stores", store, "resume", body={"by": who}),
        lambda control: control.store.resume(store, by=who),
    )
    _end(answer, as_json=as_json)


@app.command()
def tax(context: typer.Context, store: Store, as_json: Json = False) -> None:
    """Compare the taxes of the till's items and of the latest orders with the service's, now.

    Ends with 1 where they differ.

    Example: tillbridge store tax main
    """
    answer = ask(
        _loaded(context, store),
        lambda bridge: bridge.ask("POST", "stores", store, "tax", body={}),
        lambda control: control.store.tax(store),
    )
    if as_json:
        say.document(answer)
    else:
        for line in _tax_lines(answer["config"]):
            say.line(say.clean(line))
        for difference in answer["differences"]:
            say.line("! " + say.clean(difference), level="warning")
        if not answer["differences"]:
            say.line(_("Till, service and orders agree."), level="ok")
    if answer["differences"]:
        raise typer.Exit(1)


def _loaded(context: typer.Context, store: str) -> "LoadedSettings":
    loaded = load_settings(context)
    store_of(loaded, store)
    return loaded


def _end(answer: Answer, *, as_json: bool) -> None:
    """Say the answer; end with 1 where it says that it was not done."""
    say.answered(answer, as_json=as_json)
    if answer.get("ok") is False:
        raise typer.Exit(1)


def _until(text: str | None, store: "StoreSettings") -> int | None:
    if text is None:
        return None
    from zoneinfo import ZoneInfo

    from tillbridge.core.until import until_ms

    zone = None if store.timezone is None else ZoneInfo(store.timezone)
    try:
        return until_ms(text, now_ms=time.time_ns() // 1_000_000, zone=zone)
    except ValueError as slip:
        raise typer.BadParameter(f"{slip}.", param_hint="--until") from None


def _lines(answer: Answer) -> list[tuple[str, str]]:
    lines = [standing_line(answer)]
    if answer["next_change_at"]:
        when = say.local_time(answer["next_change_at"])
        lines.append((_("The schedule changes that next at {when}.").format(when=when), ""))
    settings = answer["settings"]
    if settings and settings["hours_today"] is not None:
        hours = ", ".join(settings["hours_today"]) or _("closed")
        lines.append((_("Hours today: {hours}").format(hours=hours), ""))
    if answer["tax"]["checked_at"]:
        count = len(answer["tax"]["differences"])
        when = say.local_time(answer["tax"]["checked_at"])
        text = _("Taxes: compared at {when}").format(when=when)
        lines.append((text + (f"; {count} !" if count else ""), "warning" if count else ""))
        lines += [(f"  ! {each}", "warning") for each in answer["tax"]["differences"]]
    return lines


def standing_line(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return how the store stands in one line, and its level."""
    if answer["status"] == "active":
        return _("The store takes orders."), "ok"
    who = {
        "person": _("{by} paused it").format(by=answer["by"]),
        "somebody else": _("somebody else closed it at the ordering service"),
        "bridge": _("the bridge paused it")
        if answer["reason"]
        else _("the bridge paused it because the till is away"),
        "till": _("the till takes no orders"),
        "schedule": _("the schedule closes it"),
    }[answer["paused_by"]]
    reason = f" ({answer['reason']})" if answer["reason"] else ""
    since = say.local_time(answer["since"])
    text = _("The store takes no orders: {who}{reason}, since {since}").format(
        who=who, reason=reason, since=since
    )
    if answer["until"]:
        text += _(", until {until}").format(until=say.local_time(answer["until"]))
    return text + ".", "warning"


def _tax_lines(config: dict[str, Any]) -> list[str]:
    if not config["enabled"]:
        return [_("The service takes no tax.")]
    modes = {"inclusive": _("prices include tax"), "exclusive": _("tax is added to prices")}
    mode = modes.get(config["pricing_mode"], "?")
    head = _("The service taxes by {level}; {mode}:").format(
        level=config["level"] or "?", mode=mode
    )
    lines = [head]
    for each in config["taxes"]:
        parts = ", ".join(
            f"{agency} {rate} %" + (_(" on top of the others") if compound else "")
            for rate, compound, agency in each["components"]
        )
        lines.append(f"  {each['name'] or each['tax_id']}: {parts or '0 %'}")
    return lines
