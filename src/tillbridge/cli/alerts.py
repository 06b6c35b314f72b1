"""`tillbridge alerts ...`: try the ways of telling people."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Arguments, add_operations
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer

app = typer.Typer(help=_("Try the ways of telling people of problems."), no_args_is_help=True)


def _show(answer: Answer, _given: Arguments) -> None:
    for each in answer["ways"]:
        say.line(
            say.clean(f"{each['way']:<10}{each['text']}"), level="ok" if each["ok"] else "down"
        )
        if each["fix"]:
            say.line(say.clean(f"{'':<10}{each['fix']}"))
    say.line(say.clean(answer["text"]))


add_operations(app, "alerts", {"alerts.test": _show})
