"""The program: its groups of commands, and what is common to all."""

import sys
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._click.formatting import HelpFormatter  # typer shows it nowhere else

# Each declares its commands.
from tillbridge.cli import (  # noqa: F401 -- (as above)
    adapter,
    adapter_files,
    config,
    connect,
    doctor,
    ledger,
    orders,
    run,
    service,
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
    "setup": _("See how far the set-up is, and save it."),
    "integration": _("A store's connection to the ordering service: show, apply, renew, remove."),
    "problems": _("Open problems: what they mean, what to do, and acknowledge them."),
    "alerts": _("Test the alerts."),
    "fleet": _("See many bridges in one place."),
    "menu": _("See, push and approve menu changes."),
    "orders": _("See orders, try one again, cancel one."),
    "item": _("Mark items as sold out, and put them back on sale."),
    "store": _("Pause and open a store; its settings and taxes."),
    "tables": _("Tables: the floor plan, and QR codes to print."),
    "community": _("Communities: catalogue, sold-out items, orders, webhook."),
    "community webhook": _("A community's webhook: test it, see its deliveries, renew it."),
    "token": _("Access tokens for your own scripts."),
    "adapter": _("Write, check and try adapters for tills."),
    "audit": _("Activity: who did what."),
    "config": _("Check and show the configuration."),
    "ledger": _("Copy the database to a server, and back."),
    "service": _("Run the bridge as a service of this machine."),
}

app = typer.Typer(
    name="tillbridge",
    help=_("The bridge between a restaurant's till and its online orders."),
    epilog=_("To try it out: tillbridge demo. To set it up: tillbridge run"),
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
            help=_(
                "The configuration file. Default: ./bridge.toml, else /etc/tillbridge/bridge.toml."
            ),
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

# To make all commands takes as long as to open the ledger, and a start needs one.
_starting = copy(app)
_starting.registered_groups = []
_starting.registered_commands = [each for each in app.registered_commands if each.name == "run"]


def _only_starts(arguments: list[str]) -> bool:
    """Return whether they are those of a service: `run`, `--config FILE run`."""
    return arguments == ["run"] or (arguments[:1], arguments[2:]) == (["--config"], ["run"])


def program() -> Any:  # noqa: ANN401 -- typer keeps the type to itself
    """Return the program, a `click.Command`, whose help is in the reader's language."""
    whole = typer.main.get_command(_starting if _only_starts(sys.argv[1:]) else app)
    if reader().language != SOURCE:
        setattr(typer.core, "_", lambda message: _FOR_USAGE.get(message) or str(_(message)))  # noqa: B010 -- its headings; it exports none
        _translate(whole)
    return whole


# What usage.py says in words of its own.
_FOR_USAGE = {each: each for each in ("Missing command.", "No such command {name!r}.")}


_OF_GROUPS = N_("[OPTIONS] COMMAND [ARGS]...")
_OF_COMMANDS = N_("[OPTIONS]")


class _HelpText(HelpFormatter):
    """The texts of a command's help that typer does not let others translate."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        for words in (_OF_GROUPS, _OF_COMMANDS):
            args = args.replace(words, str(_(words)))
        super().write_usage(prog, args, prefix or str(_("Usage: ")))

    def write_dl(self, rows: Any, *sizes: int) -> None:  # noqa: ANN401 -- (as above)
        super().write_dl(
            [(name, str(_(text)) if text in _OF_TYPER else text) for name, text in rows], *sizes
        )


class _Context(typer.Context):
    formatter_class = _HelpText


# What typer says of its own options.
_OF_TYPER = {
    N_("Show this message and exit."),
    N_("Install completion for the current shell."),
    N_("Show completion for the current shell, to copy it or customize the installation."),
}


_EXAMPLE = N_("Example: {command}")


def _translate(command: Any) -> None:  # noqa: ANN401 -- (as above)
    command.context_class = _Context
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
