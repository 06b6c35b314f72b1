"""`tillbridge service ...`: the bridge as a service of this machine, under systemd."""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, option
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.cli.service_steps import Step

app = typer.Typer(help=_("The bridge as a service of this machine."), no_args_is_help=True)

Name = Annotated[
    str,
    option("--name", _("Which of several bridges on this machine."), "NAME"),
]
DryRun = Annotated[bool, option("--dry-run", _("Say what would be done, and do nothing."))]


@app.command()
def install(
    context: typer.Context,
    name: Name = "",
    no_start: Annotated[
        bool, option("--no-start", _("Let it start with the machine, not now."))
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Run the bridge as a service of systemd, as a user of its own that may write little.

    Makes the user, moves the ledger's key out of the data folder, opens the folders of the tills
    for the service, and backs up every night. Safe to repeat: do it when a till moves.

    Example: tillbridge --config /etc/tillbridge/bridge.toml service install --dry-run
    """
    from tillbridge.cli import service_steps

    loaded = load_settings(context)
    found = service_steps.look(loaded, _checked(name))
    steps = service_steps.plan_install(found, start=not no_start)
    service = service_steps.unit_names(name)[0]
    text = _("{unit} is installed.").format(unit=service)
    fix = _("See how it is with: tillbridge service status")
    _carry_out(steps, dry_run=dry_run, as_json=as_json, text=text, fix=fix)


@app.command()
def uninstall(
    name: Name = "",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Stop the service and take it off this machine; configuration and data stay.

    A package's own files stay too: removing those is the package manager's affair.

    Example: tillbridge service uninstall --dry-run
    """
    from tillbridge.cli import service_steps

    steps = service_steps.plan_uninstall(_checked(name), service_steps.ours(name))
    service = service_steps.unit_names(name)[0]
    text = _("{unit} is taken off.").format(unit=service)
    fix = _("Configuration, credentials and data are still there; delete them where you want.")
    _carry_out(steps, dry_run=dry_run, as_json=as_json, text=text, fix=fix)


@app.command()
def status(name: Name = "", as_json: Json = False) -> None:
    """Show what systemd says of the service. Ends with 0 while it is active, else with 1.

    Example: tillbridge service status
    """
    from tillbridge.cli import service_steps

    service, timer = service_steps.unit_names(_checked(name))
    found, backup = service_steps.state_of(service), service_steps.state_of(timer)
    active = found["ActiveState"] == "active"
    if as_json:
        say.document({"ok": active, "unit": service, "service": found, "backup_timer": backup})
    else:
        say.line(
            _("{unit}: {active} ({sub}), {enabled} at start").format(
                unit=service,
                active=found["ActiveState"],
                sub=found["SubState"],
                enabled=found["UnitFileState"] or _("not installed"),
            ),
            level="ok" if active else "down",
        )
        if found["StatusText"]:
            say.line("  " + say.clean(found["StatusText"]))
        say.line(
            _("  process {pid}, started again {n} times, last result: {result}").format(
                pid=found["MainPID"], n=found["NRestarts"], result=found["Result"]
            )
        )
        say.line(
            _("{unit}: {active}, {enabled} at start").format(
                unit=timer,
                active=backup["ActiveState"],
                enabled=backup["UnitFileState"] or _("not installed"),
            )
        )
    raise typer.Exit(0 if active else 1)


def _carry_out(
    steps: "Sequence[Step]", *, dry_run: bool, as_json: bool, text: str, fix: str
) -> None:
    from tillbridge.cli import service_steps

    if not dry_run and hasattr(os, "geteuid") and os.geteuid() != 0:
        raise ConfigError(
            _("Only root installs services."),
            fix=_("Begin the command with sudo, or see what it would do with --dry-run."),
        )
    lines = [line for step in steps for line in service_steps.told(step)]
    if not as_json:
        for line in lines:
            say.line(line)
    if not dry_run:
        for step in steps:
            service_steps.do(step)
    answer = {"ok": True, "dry_run": dry_run, "text": text, "fix": fix}
    if dry_run:
        answer |= {"text": _("Nothing was done."), "fix": _("Run it without --dry-run to do it.")}
    say.answered({**answer, "steps": lines} if as_json else answer, as_json=as_json)


def _checked(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ConfigError(
            _("{name} is no name for a bridge.").format(name=name),
            fix=_("Take letters, digits, dots, dashes and underscores."),
        )
    return name
