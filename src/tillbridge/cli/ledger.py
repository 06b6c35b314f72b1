"""`tillbridge backup`, `restore` and `migrate`: the ledger copied, put back, brought up to date."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, argument, option
from tillbridge.cli.say import Yes, confirm
from tillbridge.cli.settings import load_settings
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.core.i18n import _, ngettext

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings


def backup(
    context: typer.Context,
    to: Annotated[
        Path | None,
        option(
            "--to",
            _("Put it there, and keep whatever is there; else into the data folder."),
            "FOLDER",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy the ledger whole, while the bridge runs or not, and check the copy.

    Beside it come the stored secrets, encrypted; their key is kept apart, so keep a copy of it
    elsewhere once. The newest keep_backups stay in the data folder's backups.

    Example: tillbridge backup --to /media/usb
    """
    loaded = load_settings(context)
    saved = _backed_up(loaded, to)
    size = saved.stat().st_size
    text = _("The ledger is backed up: {path} ({kib} KiB).").format(
        path=saved, kib=round(size / 1024)
    )
    say.answered({"ok": True, "text": text, "path": str(saved), "bytes": size}, as_json=as_json)


def restore(
    context: typer.Context,
    saved: Annotated[
        Path | None,
        argument("BACKUP", _("The back-up; else the newest one.")),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Put a back-up in the ledger's place, while the bridge is stopped.

    What the present ledger knows of orders is carried over where it can be read. Orders that may
    be in the till already are asked for there before any is written, and menus are pushed whole.
    The present ledger is kept beside the new one.

    Example: tillbridge restore
    """
    from tillbridge.cli.control import find_running, os_user
    from tillbridge.core.clock import Clock
    from tillbridge.ledger.recover import restore as put_back

    loaded = load_settings(context)
    if find_running(loaded.data_dir) is not None:
        raise BridgeError(
            _("The bridge runs, and has the ledger."),
            fix=_("Stop it first: systemctl stop tillbridge. Start it again afterwards."),
        )
    chosen = saved or _newest(loaded)
    confirm(
        (
            _("{path} becomes the ledger.").format(path=chosen),
            _("The present ledger is kept in {folder}.").format(folder=loaded.data_dir),
        ),
        yes=yes,
    )
    done = put_back(loaded.data_dir, chosen, at=Clock().now_ms(), who=f"command:{os_user() or '?'}")
    text = _("{path} is the ledger now.").format(path=chosen.name)
    asked = ngettext(
        "The till is asked about {n} open order before it is written.",
        "The till is asked about {n} open orders before one is written.",
        done.to_ask,
    ).format(n=done.to_ask)
    say.answered(
        {
            "ok": True,
            "text": f"{text} {asked}",
            "fix": _("Start the bridge: systemctl start tillbridge, or tillbridge run"),
            "path": str(chosen),
            "replaced": str(done.replaced) if done.replaced else None,
            "carried_over": done.carried_over,
            "to_ask": done.to_ask,
        },
        as_json=as_json,
    )


def _backed_up(loaded: "LoadedSettings", to: Path | None) -> Path:
    import sqlite3

    from tillbridge.core.clock import Clock
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
            saved = back_up(folder, at=now, keep=loaded.settings.bridge.keep_backups)
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
    return saved


def _newest(loaded: "LoadedSettings") -> Path:
    from tillbridge.ledger.backup import back_ups

    found = back_ups(loaded.data_dir)
    if not found:
        raise ConfigError(
            _("There is no back-up in {folder}.").format(folder=loaded.data_dir / "backups"),
            fix=_("Name one: tillbridge restore PATH"),
        )
    return found[0]


def migrate(
    context: typer.Context,
    dry_run: Annotated[
        bool,
        option("--dry-run", _("Try it on a copy, and change nothing.")),
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
