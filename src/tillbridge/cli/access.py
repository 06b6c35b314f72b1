"""`tillbridge password` and `token`: how people sign in on the page, and scripts at the service."""

import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli.commands import call, command
from tillbridge.cli.say import Arguments, Lines
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_ROLES = ("look", "staff", "technician")


def _show_user(answer: Answer, _given: Arguments) -> Lines:
    name = answer["name"]
    table = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    yield f"[status_page.users.{table}]"
    yield f'role = "{answer["role"]}"'
    yield f'password = "{answer["password"]}"'


@command("password", _show_user)
def password(
    _context: typer.Context,
    name: Annotated[str, Argument("NAME", _("The name to sign in with."))],
    *,
    role: Annotated[str, Argument("ROLE", _("look, staff or technician."))] = "technician",
) -> Answer:
    """Set a password for the page: prints the lines for bridge.toml, with a hash.

    Asks twice. Put the lines into bridge.toml and restart the bridge. From a pipe it reads one
    line.

    Example: tillbridge password anna --role staff
    """
    from tillbridge.web.passwords import password_hash

    if not _NAME.fullmatch(name):
        raise typer.BadParameter(_("Use only letters, digits and . _ @ - in a name."))
    if role not in _ROLES:
        raise typer.BadParameter(
            _("There is no role {role}. Use one of: {roles}.").format(
                role=role, roles=", ".join(_ROLES)
            ),
            param_hint="--role",
        )
    return {"name": name, "role": role, "password": password_hash(_asked())}


def _asked() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    import getpass

    first = getpass.getpass(_("Password: "))
    if getpass.getpass(_("Repeat: ")) != first:
        raise ConfigError(_("The passwords do not match."), fix=_("Try again."))
    return first


class Scope(StrEnum):
    """The scopes of the reporting API, for the choice on the command line."""

    REPORTS_READ = "reports.read"
    CATALOGUE_WRITE = "catalogue.write"


@command("token reporting", lambda answer, _given: [answer["access_token"]])
def reporting(
    loaded: "LoadedSettings",
    *,
    scope: Annotated[
        list[Scope] | None,
        Argument("SCOPE", _("reports.read (default), catalogue.write, or both.")),
    ] = None,
) -> Answer:
    """Print a token for the reporting API, and nothing else on stdout.

    The token belongs to the app, not to a store. The same one is printed until shortly before it
    expires. The bridge itself does not use the reporting API.

    Example: tillbridge token reporting --scope reports.read
    """
    wanted = " ".join(sorted({each.value for each in scope or [Scope.REPORTS_READ]}))
    answer: Answer = call(loaded, "reporting.token", {"scope": wanted})
    return answer
