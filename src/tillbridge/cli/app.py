"""The program: its groups of commands, and what is common to all."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

# Each declares its commands.
from tillbridge.cli import (  # noqa: F401 -- (as above)
    access,
    adapter,
    config,
    connect,
    doctor,
    fleet,
    ledger,
    logs,
    orders,
    reach,
    run,
    service,
    setup,
    status,
    tables,
)
from tillbridge.cli.commands import COMMANDS, add_operations
from tillbridge.core.i18n import N_, SOURCE, _, reader

# As `tillbridge --help` lists them.
_FIRST = (
    "run signup connect status doctor reach logs support-bundle version migrate backup restore "
    "password sandbox demo"
).split()
_GROUPS = {
    "setup": _("How far the bridge is set up."),
    "integration": _("The integration of a store: show, change, renew, remove."),
    "problems": _("What is wrong, and what to do; stop alerts about it."),
    "alerts": _("Try the ways of telling people of problems."),
    "fleet": _("Many bridges, seen from one place."),
    "menu": _("See, push and approve menu changes."),
    "orders": _("Look at orders, try one again, cancel one."),
    "item": _("Take items off sale and put them back."),
    "store": _("Open and pause a store; its settings and taxes."),
    "tables": _("The floor plan, and QR codes to print."),
    "community": _("Communities: their catalogue, items off sale, orders, webhook."),
    "community webhook": _(
        "The webhook subscription of a community: test it, see its deliveries, make it anew."
    ),
    "token": _("App-level tokens, for scripts of your own."),
    "adapter": _("Write, check and try adapters for tills."),
    "audit": _("Who did what, chained by hash."),
    "config": _("Check and show the configuration."),
    "service": _("The bridge as a service of this machine."),
}

app = typer.Typer(
    name="tillbridge",
    help=_("The bridge between a restaurant's till and its online orders."),
    epilog=_(
        "Begin with: tillbridge demo. Then write bridge.toml and try: tillbridge config check"
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(config.version_line())
        raise typer.Exit


@app.callback()
def begin(
    context: typer.Context,
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help=_("The configuration; else ./bridge.toml, then /etc/tillbridge/bridge.toml."),
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help=_("Show the version.")
        ),
    ] = False,
) -> None:
    """Take what is common to all commands."""
    context.obj = config_file


def _add_commands() -> None:
    add_operations()
    groups = {"": app}
    for path, text in _GROUPS.items():
        parent, _space, name = path.rpartition(" ")
        groups[path] = typer.Typer(help=text, no_args_is_help=True)
        groups[parent].add_typer(groups[path], name=name)
    for path in (*_FIRST, *(each for each in COMMANDS if " " in each)):
        group, _space, name = path.rpartition(" ")
        groups[group].command(name)(COMMANDS[path])


_add_commands()


def program() -> Callable[..., object]:
    """Return the program, whose help is in the reader's language."""
    whole = typer.main.get_command(app)
    if reader().language != SOURCE:
        setattr(typer.core, "_", lambda message: str(_(message)))  # noqa: B010 -- its headings; it exports none
        _translate(whole)
    return whole


_EXAMPLE = N_("Example: {command}")


def _translate(command: Any) -> None:  # noqa: ANN401 -- typer keeps the type to itself
    for name in ("help", "epilog", "short_help"):
        if text := getattr(command, name, None):
            setattr(command, name, _translated(text))
    for parameter in command.params:
        if text := getattr(parameter, "help", None):
            parameter.help = str(_(text))
    for each in getattr(command, "commands", {}).values():
        _translate(each)


def paragraphs(text: str) -> list[tuple[str, str]]:
    """Return the paragraphs of a command's help, each with the command of an example."""
    found = (" ".join(each.split()) for each in text.split("\n\n"))
    return [
        (_EXAMPLE, each.partition(": ")[2]) if each.startswith("Example: ") else (each, "")
        for each in found
    ]


def _translated(text: str) -> str:
    return "\n\n".join(
        str(_(each).format(command=command) if command else _(each))
        for each, command in paragraphs(text)
    )
