"""`tillbridge audit ...`: who did what, and whether anybody changed it afterwards."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, add_operations
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

app = typer.Typer(help=_("Who did what, chained by hash."), no_args_is_help=True)


def _show_list(answer: Answer, _given: Arguments) -> None:
    if not answer["entries"]:
        say.line(_("Nothing has been done by hand yet."))
        return
    say.table(
        (_("WHEN"), _("WHO"), _("WHAT"), _("STORE"), _("ON"), _("DONE")),
        (
            (
                say.local_time(each["at"]),
                each["who"],
                each["action"],
                each["store"],
                each["target"],
                _("yes") if each["detail"].get("ok", True) else _("no"),
            )
            for each in answer["entries"]
        ),
    )


add_operations(app, "audit", {"audit.list": _show_list})
