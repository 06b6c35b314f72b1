"""`tillbridge token ...`: app-level tokens for scripts."""

from enum import StrEnum
from typing import Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, call
from tillbridge.cli.settings import load_settings
from tillbridge.core.i18n import _

app = typer.Typer(help=_("App-level tokens, for scripts of your own."), no_args_is_help=True)


class Scope(StrEnum):
    """The scopes of the reporting API, for the choice on the command line."""

    REPORTS_READ = "reports.read"
    CATALOGUE_WRITE = "catalogue.write"


@app.callback()
def tokens() -> None:
    """App-level tokens, for scripts of your own."""


@app.command()
def reporting(
    context: typer.Context,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help=_("reports.read (without it), catalogue.write; or both."),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a token for the reporting API; nothing else goes to stdout.

    It is the app's, not a merchant's, and the same one is printed until shortly before its end.
    The bridge itself calls no report: their endpoints are not shown.

    Example: tillbridge token reporting --scope reports.read
    """
    loaded = load_settings(context)
    wanted = " ".join(sorted({each.value for each in scope or [Scope.REPORTS_READ]}))
    answer = call(loaded, "reporting.token", {"scope": wanted})
    if as_json:
        say.document(answer)
    else:
        say.line(str(answer["access_token"]))
