"""`tillbridge alerts ...`: try the ways of telling people."""

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.reach import ask
from tillbridge.cli.settings import load_settings
from tillbridge.core.i18n import _

app = typer.Typer(help=_("Try the ways of telling people of problems."), no_args_is_help=True)


@app.command("test")
def send_test(context: typer.Context, as_json: Json = False) -> None:
    """Send a test by every way of telling people, and say what came of it.

    Ends with 1 where one of them does not work.

    Example: tillbridge alerts test
    """
    answer = ask(
        load_settings(context),
        lambda bridge: bridge.ask("POST", "alerts", "test"),
        lambda control: control.alerts.test(),
    )
    if as_json:
        say.document(answer)
    else:
        for each in answer["ways"]:
            say.line(
                say.clean(f"{each['way']:<10}{each['text']}"), level="ok" if each["ok"] else "down"
            )
            if each["fix"]:
                say.line(say.clean(f"{'':<10}{each['fix']}"))
        say.line(say.clean(answer["text"]))
    raise typer.Exit(0 if answer["ok"] else 1)
