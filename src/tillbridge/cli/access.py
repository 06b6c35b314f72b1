"""`tillbridge password` and `token`: how people sign in on the page, and scripts at the service."""

import re
import sys
from enum import StrEnum
from typing import Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, argument, call, option
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_ROLES = ("look", "staff", "technician")


def password(
    name: Annotated[str, argument("NAME", _("Who will sign in."))],
    role: Annotated[str, option("--role", _("look, staff or technician."), "ROLE")] = "technician",
    as_json: Json = False,
) -> None:
    """Ask twice for a password, and print the lines for bridge.toml: a hash, never the password.

    Put them into bridge.toml and restart the bridge. From a pipe it reads one line.

    Example: tillbridge password anna --role staff
    """
    from tillbridge.web.passwords import password_hash

    if not _NAME.fullmatch(name):
        raise typer.BadParameter(_("Use letters, digits and . _ @ - for a name."))
    if role not in _ROLES:
        raise typer.BadParameter(
            _("There is no role {role}; there are: {roles}.").format(
                role=role, roles=", ".join(_ROLES)
            ),
            param_hint="--role",
        )
    made = password_hash(_asked())
    if as_json:
        say.document({"name": name, "role": role, "password": made})
        return
    table = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    say.line(f"[status_page.users.{table}]")
    say.line(f'role = "{role}"')
    say.line(f'password = "{made}"')


def _asked() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    import getpass

    first = getpass.getpass(_("Password: "))
    if getpass.getpass(_("Once more: ")) != first:
        raise ConfigError(_("The two are not the same."), fix=_("Try again."))
    return first


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
        option("--scope", _("reports.read (without it), catalogue.write; or both."), "SCOPE"),
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
