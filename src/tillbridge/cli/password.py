"""`tillbridge password`: makes the line that lets somebody sign in on the page."""

import re
import sys
from typing import Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_ROLES = ("look", "staff", "technician")


def password(
    name: Annotated[str, typer.Argument(metavar="NAME", help=_("Who will sign in."))],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help=_("look, staff or technician."))
    ] = "technician",
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
