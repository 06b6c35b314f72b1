"""Asking a person before what cannot be undone as easily."""

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from tillbridge.cli import say
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

Yes = Annotated[bool, typer.Option("--yes", help=_("Do it without asking."))]


def confirm(effects: Iterable[str], *, yes: bool) -> None:
    """Let a person agree; ends with 1 where they do not. Raises ConfigError without a terminal."""
    if yes:
        return
    for effect in effects:
        typer.echo("- " + say.clean(effect), err=True)
    if not sys.stdin.isatty():
        raise ConfigError(
            _("This asks for a person's word, and there is no terminal to ask on."),
            fix=_("Add --yes to do it without asking."),
        )
    if not typer.confirm(_("Do it?"), err=True):
        raise typer.Exit(1)
