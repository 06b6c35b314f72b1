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
            "FOLDER",
            _("The folder to write to; nothing there is deleted. Default: the data folder."),
        ),
    ] = None,
) -> Answer:
    """Back up the database and check the copy. The bridge may be running.

    Includes the stored secrets, encrypted. Their key is not included: copy it to a safe place
    once. The data folder keeps the newest keep_backups.

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
                _("There is no database in {folder} yet.").format(folder=folder),
                fix=_("The bridge creates it at its first start: tillbridge run"),
            )
        if to is not None and not to.is_dir():
            raise BridgeError(
                _("The folder {path} does not exist.").format(path=to),
                fix=_("Mount its disk, or make it: mkdir {path}").format(path=to),
            )
        if to is None:
            saved = back_up(folder, at=now, newest=loaded.settings.bridge.keep_backups)
        else:
            saved = back_up_into(folder, to, at=now)
    except (OSError, sqlite3.Error) as failure:
        raise LedgerError(
            _("The backup failed: {detail}.").format(detail=failure),
            fix=_("Free disk space, or run it as the bridge's user: sudo -u tillbridge ..."),
        ) from failure
    if damage := find_damage(saved):
        raise LedgerError(
            _("The backup {path} is damaged: {damage}.").format(path=saved, damage=damage),
            fix=_("Check the disk, then restart the bridge: it repairs a damaged database."),
        )
    size = saved.stat().st_size
    text = _("Backup created: {path} ({kib} KiB).")
    text = text.format(path=saved, kib=round(size / 1024))
    return {"ok": True, "text": text, "path": str(saved), "bytes": size}


@command("restore")
def restore(
    loaded: "LoadedSettings",
    saved: Annotated[
        Path | None, Argument("BACKUP", _("The backup. Default: the newest one."))
    ] = None,
    *,
    yes: Yes = False,
) -> Answer:
    """Restore a backup. Stop the bridge first.

    Orders of the present database are carried over if it can be read. The bridge checks with the
    till before it writes an open order again, and sends menus as a whole. The present database
    stays beside the new one.

    Example: tillbridge restore
    """
    from tillbridge.ledger.backup import back_ups
    from tillbridge.ledger.recover import refuse_unsound
    from tillbridge.ledger.recover import restore as put_back

    if find_running(loaded.data_dir) is not None:
        raise BridgeError(
            _("The bridge is running and uses the database."),
            fix=_(
                "Stop it first, with Ctrl-C in its terminal or systemctl stop tillbridge. Start it "
                "again afterwards."
            ),
        )
    chosen = saved or next(iter(back_ups(loaded.data_dir)), None)
    if chosen is None:
        raise ConfigError(
            _("There is no backup in {folder}.").format(folder=loaded.data_dir / "backups"),
            fix=_("Give one: tillbridge restore PATH"),
        )
    if not yes:
        refuse_unsound(chosen)  # before anybody is asked
        say.confirm(
            (
                _("{path} replaces the present database.").format(path=chosen),
                _("The present database is saved in {folder}.").format(folder=loaded.data_dir),
            )
        )
    who, key = f"command:{os_user() or '?'}", loaded.ledger_key()
    done = put_back(loaded.data_dir, chosen, at=Clock().now_ms(), who=who, key=key)
    text = _("Restored to {path}.").format(path=chosen.name)
    asked = ngettext(
        "The bridge asks the till about {n} open order before it writes it.",
        "The bridge asks the till about {n} open orders before it writes them.",
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
    dry_run: Annotated[bool, Argument(help=_("Test it on a copy. Changes nothing."))] = False,
) -> Answer:
    """Update the database to this version, after a backup. If it fails, nothing has changed.

    The bridge does this when it starts. Packages do it before, so that the old version stays
    installed if it fails.

    Example: tillbridge migrate --dry-run
    """
    from tillbridge.ledger.backup import bring_up_to_date
    from tillbridge.ledger.database import LEDGER_FILE, LedgerLock

    folder = loaded.data_dir
    if not (folder / LEDGER_FILE).exists():
        text = _("There is no database in {folder} yet: nothing to do.").format(folder=folder)
    elif dry_run:
        _try_on_copy(folder)
        text = _("The database can be updated to this version.")
    else:
        with LedgerLock(folder):
            bring_up_to_date(folder, at=Clock().now_ms())
        text = _("The database matches this version.")
    return {"ok": True, "dry_run": dry_run, "text": text}


def _try_on_copy(folder: Path) -> None:
    import shutil
    import sqlite3

    from tillbridge.ledger.backup import bring_up_to_date, copy_database
    from tillbridge.ledger.database import LEDGER_FILE

    # In the data folder: it has the rights, and the room that the backup will take.
    trial = folder / ".trial"
    shutil.rmtree(trial, ignore_errors=True)
    try:
        trial.mkdir(mode=0o700)
        copy_database(folder / LEDGER_FILE, trial / LEDGER_FILE)
        bring_up_to_date(trial, at=Clock().now_ms())
    except (OSError, sqlite3.Error) as failure:
        raise LedgerError(
            _("The database could not be copied for the test: {detail}.").format(detail=failure),
            fix=_("Free disk space, or run it as the bridge's user: sudo -u tillbridge ..."),
        ) from failure
    finally:
        shutil.rmtree(trial, ignore_errors=True)
