"""`tillbridge store ...`: open or paused, the store's settings and hours, its taxes."""

from collections.abc import Mapping
from typing import Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, add_operations
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

app = typer.Typer(help=_("Open and pause a store; its settings and taxes."), no_args_is_help=True)


def _show(answer: Answer, _given: Arguments) -> None:
    for text, level in _lines(answer):
        say.line(say.clean(text), level=level)


def _show_plan(answer: Answer, _given: Arguments) -> None:
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


def _show_tax(answer: Answer, _given: Arguments) -> None:
    for line in _tax_lines(answer["config"]):
        say.line(say.clean(line))
    for difference in answer["differences"]:
        say.line("! " + say.clean(difference), level="warning")
    if not answer["differences"]:
        say.line(_("Till, service and orders agree."), level="ok")


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


_SHOW = {"store.show": _show, "store.plan": _show_plan, "store.tax": _show_tax}
add_operations(app, "store", _SHOW)
