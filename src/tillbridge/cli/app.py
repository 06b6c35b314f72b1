"""The commands and what is common to them."""

from pathlib import Path
from typing import Annotated

import typer

from tillbridge.cli import (
    access,
    adapter,
    community,
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
    version,
)
from tillbridge.cli.commands import group
from tillbridge.core.i18n import _

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
        typer.echo(version.in_short())
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


app.command("run")(run.run)
app.add_typer(setup.app, name="setup")
app.command("signup")(connect.signup)
app.command("connect")(connect.connect)
app.add_typer(group("integration", _("The integration of a store: show, change, renew, remove.")))
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("reach")(reach.reach)
app.command("logs")(logs.logs)
app.command("support-bundle")(doctor.support_bundle)
app.add_typer(group("problems", _("What is wrong, and what to do; stop alerts about it.")))
app.add_typer(group("alerts", _("Try the ways of telling people of problems.")))
app.add_typer(fleet.app, name="fleet")
app.add_typer(group("menu", _("See, push and approve menu changes.")))
app.add_typer(orders.app, name="orders")
app.add_typer(group("item", _("Take items off sale and put them back.")))
app.add_typer(group("store", _("Open and pause a store; its settings and taxes.")))
app.add_typer(tables.app, name="tables")
app.add_typer(community.app, name="community")
app.add_typer(access.app, name="token")
app.add_typer(adapter.app, name="adapter")
app.add_typer(group("audit", _("Who did what, chained by hash.")))
app.add_typer(config.app, name="config")
app.command("version")(version.version)
app.add_typer(service.app, name="service")
app.command("migrate")(ledger.migrate)
app.command("backup")(ledger.backup)
app.command("restore")(ledger.restore)
app.command("password")(access.password)
app.command("sandbox")(run.sandbox)
app.command("demo")(run.demo)
