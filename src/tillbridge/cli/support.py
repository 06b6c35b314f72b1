"""`tillbridge support-bundle`: one file for whoever is to help, seen before it is written."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.doctor import DoctorProgress, examined
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.settings import load_settings
from tillbridge.cli.status import current_status
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings
    from tillbridge.diagnostics.bundle import Bundle


def support_bundle(
    context: typer.Context,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help=_("The zip file; else one in this folder.")),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help=_("Only show what would be in it."))
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help=_("Write it without asking."))] = False,
    as_json: Json = False,
) -> None:
    """Write one zip file for support: versions, settings, status, doctor, log; nothing secret.

    Shows each file with its size and first lines before it is written. Secrets and customers' data
    are left out. Works also while the bridge is down.

    Example: tillbridge support-bundle --output support.zip
    """
    loaded = load_settings(context)
    if output is not None and output.exists():
        raise ConfigError(
            _("{path} is there already.").format(path=output),
            fix=_("Name another file, or remove that one."),
        )
    bundle = _gathered(loaded)
    if not as_json:
        _show(bundle)
    path = output or Path(bundle.file_name)
    if preview:
        written = False
    else:
        # On a terminal a person has just seen what is in it; in a pipe there is nobody to ask.
        asks = sys.stdin.isatty() and not yes and not as_json
        if asks and not typer.confirm(_("Write it to {path}?").format(path=path), err=True):
            raise typer.Exit(1)
        _write(path, bundle.zipped())
        written = True
    if as_json:
        told = {"file": str(path) if written else None, "files": bundle.preview()}
        say.document({"ok": True, **told})
    elif written:
        say.line(_("Written to {path}. Nothing was sent anywhere.").format(path=path), level="ok")


def _gathered(loaded: "LoadedSettings") -> "Bundle":
    from tillbridge.diagnostics.bundle import gather

    doctor = examined(loaded, DoctorProgress().tell)
    return gather(loaded, _status(loaded), doctor, now_ms=Clock().now_ms())


def _status(loaded: "LoadedSettings") -> Mapping[str, Any]:
    from tillbridge.config.toml import read_file

    configured = read_file(loaded.path)[1]
    try:
        return current_status(loaded.data_dir, configured)
    except CommandFailed:
        pass  # it hangs: the ledger tells what it can
    except BridgeError as failure:
        return {"error": failure.text}
    from tillbridge.web.stopped import status_from_ledger

    try:
        return status_from_ledger(loaded.data_dir, configured)
    except BridgeError as failure:
        return {"error": failure.text}


def _show(bundle: "Bundle") -> None:
    for each in bundle.preview():
        say.line(f"{each['name']:<20}{each['size']:>9,} B")
        for line in each["first"]:
            say.line("    " + say.clean(line))
    say.line()


def _write(path: Path, data: bytes) -> None:
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data)
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(path=path, detail=failure.strerror),
            fix=_("Name another file with --output."),
        ) from failure
