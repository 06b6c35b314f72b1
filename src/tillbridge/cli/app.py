"""The commands and what is common to them."""

from pathlib import Path
from typing import Annotated

import typer

from tillbridge.cli import (
    adapter,
    alerts,
    audit,
    backup,
    community,
    config,
    connect,
    demo,
    doctor,
    fleet,
    integration,
    item,
    logs,
    menu,
    migrate,
    orders,
    password,
    problems,
    run,
    sandbox,
    service,
    setup,
    signup,
    status,
    store,
    support,
    tables,
    token,
    version,
    way_in,
)
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
app.command("signup")(signup.signup)
app.command("connect")(connect.connect)
app.add_typer(integration.app, name="integration")
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("reach")(way_in.reach)
app.command("logs")(logs.logs)
app.command("support-bundle")(support.support_bundle)
app.add_typer(problems.app, name="problems")
app.add_typer(alerts.app, name="alerts")
app.add_typer(fleet.app, name="fleet")
app.add_typer(menu.app, name="menu")
app.add_typer(orders.app, name="orders")
app.add_typer(item.app, name="item")
app.add_typer(store.app, name="store")
app.add_typer(tables.app, name="tables")
app.add_typer(community.app, name="community")
app.add_typer(token.app, name="token")
app.add_typer(adapter.app, name="adapter")
app.add_typer(audit.app, name="audit")
app.add_typer(config.app, name="config")
app.command("version")(version.version)
app.add_typer(service.app, name="service")
app.command("migrate")(migrate.migrate)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("password")(password.password)
app.command("sandbox")(sandbox.sandbox)
app.command("demo")(demo.demo)
