"""`tillbridge backup`, `restore` and `migrate`: the ledger copied, put back, brought up to date."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tillbridge.cli import say
from tillbridge.cli.commands import Yes, command
from tillbridge.cli.control import find_running, os_user
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings


@command("backup")
def backup(
    loaded: "LoadedSettings",
    *,
    to: Annotated[
        Path | None,
        Argument(
            "FOLDER", _("Put it there, and keep whatever is there; else into the data folder.")
        ),
    ] = None,
) -> Answer:
    """Copy the ledger whole, while the bridge runs or not, and check the copy.

    Beside it come the stored secrets, encrypted; their key is kept apart, so keep a copy of it
    elsewhere once. The newest keep_backups stay in the data folder's backups.

    Example: tillbridge backup --to /media/usb
    """
    import sqlite3

    from tillbridge.ledger.backup import back_up, back_up_into
    from tillbridge.ledger.database import LEDGER_FILE
    from tillbridge.ledger.recover import find_damage

    folder, now = loaded.data_dir, Clock().now_ms()
    try:
        if not (folder / LEDGER_FILE).exists():
            raise BridgeError(
                _("There is no ledger in {folder} yet.").format(folder=folder),
                fix=_("The first start of the bridge begins it: tillbridge run"),
            )
        if to is None:
            saved = back_up(folder, at=now, newest=loaded.settings.bridge.keep_backups)
        else:
            saved = back_up_into(folder, to, at=now)
    except (OSError, sqlite3.Error) as failure:
        raise LedgerError(
            _("The ledger could not be backed up: {detail}.").format(detail=failure),
            fix=_("Free disk space, or run it as the bridge's user: sudo -u tillbridge ..."),
        ) from failure
    if damage := find_damage(saved):
        raise LedgerError(
            _("The back-up {path} is damaged: {damage}.").format(path=saved, damage=damage),
            fix=_("Look at the disk; restart the bridge: it mends a damaged ledger at start."),
        )
    size = saved.stat().st_size
    text = _("The ledger is backed up: {path} ({kib} KiB).")
    text = text.format(path=saved, kib=round(size / 1024))
    return {"ok": True, "text": text, "path": str(saved), "bytes": size}


@command("restore")
def restore(
    loaded: "LoadedSettings",
    saved: Annotated[
        Path | None, Argument("BACKUP", _("The back-up; else the newest one."))
    ] = None,
    *,
    yes: Yes = False,
) -> Answer:
    """Put a back-up in the ledger's place, while the bridge is stopped.

    What the present ledger knows of orders is carried over where it can be read. Orders that may
    be in the till already are asked for there before any is written, and menus are pushed whole.
    The present ledger is kept beside the new one.

    Example: tillbridge restore
    """
    from tillbridge.ledger.backup import back_ups
    from tillbridge.ledger.recover import restore as put_back

    if find_running(loaded.data_dir) is not None:
        raise BridgeError(
            _("The bridge runs, and has the ledger."),
            fix=_(
                "Stop it first, with Ctrl-C in its terminal or systemctl stop tillbridge. Start it "
                "again afterwards."
            ),
        )
    chosen = saved or next(iter(back_ups(loaded.data_dir)), None)
    if chosen is None:
        raise ConfigError(
            _("There is no back-up in {folder}.").format(folder=loaded.data_dir / "backups"),
            fix=_("Name one: tillbridge restore PATH"),
        )
    if not yes:
        say.confirm(
            (
                _("{path} becomes the ledger.").format(path=chosen),
                _("The present ledger is kept in {folder}.").format(folder=loaded.data_dir),
            )
        )
    done = put_back(loaded.data_dir, chosen, at=Clock().now_ms(), who=f"command:{os_user() or '?'}")
    text = _("{path} is the ledger now.").format(path=chosen.name)
    asked = ngettext(
        "The till is asked about {n} open order before it is written.",
        "The till is asked about {n} open orders before one is written.",
        done.to_ask,
    ).format(n=done.to_ask)
    return {
        "ok": True,
        "text": f"{text} {asked}",
        "fix": _("Start the bridge: tillbridge run, or systemctl start tillbridge"),
        "path": str(chosen),
        "replaced": str(done.replaced) if done.replaced else None,
        "carried_over": done.carried_over,
        "to_ask": done.to_ask,
    }


@command("migrate")
def migrate(
    loaded: "LoadedSettings",
    *,
    dry_run: Annotated[bool, Argument(help=_("Try it on a copy, and change nothing."))] = False,
) -> Answer:
    """Bring the ledger to this version, with a back-up first; where that fails it is as it was.

    The start of the bridge does this by itself. Packages do it beforehand, to keep the version
    from before where it fails.

    Example: tillbridge migrate --dry-run
    """
    from tillbridge.ledger.database import LEDGER_FILE, LedgerLock
    from tillbridge.ledger.migrate import bring_up_to_date

    folder = loaded.data_dir
    if not (folder / LEDGER_FILE).exists():
        text = _("There is no ledger in {folder} yet: nothing to do.").format(folder=folder)
    elif dry_run:
        _try_on_copy(folder)
        text = _("The ledger can be brought to this version.")
    else:
        with LedgerLock(folder):
            bring_up_to_date(folder, at=Clock().now_ms())
        text = _("The ledger is of this version.")
    return {"ok": True, "dry_run": dry_run, "text": text}


def _try_on_copy(folder: Path) -> None:
    import shutil
    import sqlite3

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
