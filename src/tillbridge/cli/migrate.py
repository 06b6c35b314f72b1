"""`tillbridge migrate`: the ledger brought to this version beforehand, or on trial."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _


def migrate(
    context: typer.Context,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help=_("Try it on a copy, and change nothing.")),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the ledger to this version, with a back-up first; where that fails it is as it was.

    The start of the bridge does this by itself. Packages do it beforehand, to keep the version
    from before where it fails.

    Example: tillbridge migrate --dry-run
    """
    from tillbridge.ledger.database import LEDGER_FILE

    loaded = load_settings(context)
    folder = loaded.data_dir
    answer: dict[str, Any] = {"ok": True, "dry_run": dry_run}
    if not (folder / LEDGER_FILE).exists():
        text = _("There is no ledger in {folder} yet: nothing to do.").format(folder=folder)
    elif dry_run:
        _tried(folder)
        text = _("The ledger can be brought to this version.")
    else:
        _brought(folder)
        text = _("The ledger is of this version.")
    say.answered({**answer, "text": text}, as_json=as_json)


def _brought(folder: Path) -> None:
    from tillbridge.core.clock import Clock
    from tillbridge.ledger.database import LedgerLock
    from tillbridge.ledger.migrate import bring_up_to_date

    with LedgerLock(folder):
        bring_up_to_date(folder, at=Clock().now_ms())


def _tried(folder: Path) -> None:
    import shutil
    import sqlite3

    from tillbridge.core.clock import Clock
    from tillbridge.ledger.backup import copy_database
    from tillbridge.ledger.database import LEDGER_FILE
    from tillbridge.ledger.migrate import bring_up_to_date

    # In the data folder: it has the rights, and the room that the back-up will take.
    trial = folder / ".trial"
    shutil.rmtree(trial, ignore_errors=True)
    try:
        trial.mkdir(mode=0o700)
        copy_database(folder / LEDGER_FILE, trial / LEDGER_FILE)
        bring_up_to_date(trial, at=Clock().now_ms())
    except (OSError, sqlite3.Error) as failure:
        raise LedgerError(
            _("The ledger could not be copied for a trial: {detail}.").format(detail=failure),
            fix=_("Free disk space, or run it as the bridge's user: sudo -u tillbridge ..."),
        ) from failure
    finally:
        shutil.rmtree(trial, ignore_errors=True)
