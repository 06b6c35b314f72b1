"""The ledger backed up, restored, brought up to date, and copied to a server or back."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tillbridge.cli import say
from tillbridge.cli.commands import Yes, command
from tillbridge.cli.control import find_running, os_user
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.core.formats import number
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings
    from tillbridge.ledger.copying import Side


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
    from tillbridge.ledger.backup import back_up, back_up_into, checked
    from tillbridge.ledger.database import LEDGER_FILE

    def copied() -> Path:
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
            return back_up(folder, at=now, newest=loaded.settings.bridge.keep_backups)
        return back_up_into(folder, to, at=now)

    _refuse_server(loaded)
    folder, now = loaded.data_dir, Clock().now_ms()
    fix = _("Free disk space, or run it as the bridge's user: sudo -u tillbridge ...")
    saved = checked(copied, fix=fix)
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

    _refuse_server(loaded)
    _refuse_running(loaded)
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

    folder, url = loaded.data_dir, loaded.ledger_url()
    if url is not None:
        text = _migrated_on_server(url, dry_run=dry_run)
    elif not (folder / LEDGER_FILE).exists():
        text = _("There is no database in {folder} yet: nothing to do.").format(folder=folder)
    elif dry_run:
        _try_on_copy(folder)
        text = _("The database can be updated to this version.")
    else:
        with LedgerLock(folder):
            bring_up_to_date(folder, at=Clock().now_ms())
        text = _("The database matches this version.")
    return {"ok": True, "dry_run": dry_run, "text": text}


def _migrated_on_server(url: str, *, dry_run: bool) -> str:
    """Update the schema on a server, or do so and roll it back; return what that means."""
    from tillbridge.ledger.reading import need_driver

    need_driver()
    from tillbridge.ledger.postgresql import prepare_schema

    prepare_schema(url, dry_run=dry_run)
    if dry_run:
        return _("The database can be updated to this version.")
    return _("The database matches this version.")


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


def _refuse_server(loaded: "LoadedSettings") -> None:
    """Raise ConfigError for a ledger on a server, whose own tools copy it better."""
    from tillbridge.ledger.backup import refuse_server

    refuse_server(loaded.settings)


def _refuse_running(loaded: "LoadedSettings") -> None:
    if find_running(loaded.data_dir) is not None:
        raise BridgeError(
            _("The bridge is running and uses the database."),
            fix=_(
                "Stop it first, with Ctrl-C in its terminal or systemctl stop tillbridge. Start it "
                "again afterwards."
            ),
        )


# -- from the data folder to a server, and back

_FOLDER = "sqlite"


@command("ledger copy")
def copy(
    loaded: "LoadedSettings",
    *,
    to: Annotated[
        str,
        Argument(
            "PLACE",
            _(
                "A file with the URL of a database, or the URL without a password; or sqlite, for "
                "the data folder."
            ),
        ),
    ],
) -> Answer:
    """Copy the database with its secrets to a PostgreSQL server, or back. Stop every bridge first.

    Compares every row, and only then the copy counts: the present database stays, and no bridge
    starts with it any more. If it is interrupted, run it again: it goes on.

    Example: tillbridge ledger copy --to database_url
    """
    from tillbridge.ledger.copying import copy_ledger
    from tillbridge.ledger.database import LedgerLock

    source_url = loaded.ledger_url()
    target_url = None if to == _FOLDER else _url_given(to)
    if source_url == target_url:
        raise ConfigError(
            _("The database is there already."),
            fix=_("Give another place, or set url in [ledger] to where it is now."),
        )
    _refuse_running(loaded)
    now, phase = Clock().now_ms(), (str(_("Still working")), 0, 0)

    def show_progress(what: str, done: int, total: int) -> None:
        nonlocal phase
        phase = (what, done, total)

    with LedgerLock(loaded.data_dir):
        source, target = _side(loaded, source_url, now), _side(loaded, target_url, now, new=True)
        with say.progress(how_far=lambda: phase), source as here, target as there:
            done = copy_ledger(here, there, at=now, report=show_progress)
    rows = sum(done.rows.values())
    text = _("Copied and compared {rows} rows and {secrets} secrets: {place}.").format(
        rows=number(rows), secrets=number(done.secrets), place=there.place
    )
    fix = _("Now set url in [ledger] of {path} to it, and start the bridge.")
    if target_url is None:
        fix = _("Now remove url from [ledger] of {path}, and start the bridge.")
    return {
        "ok": True,
        "text": text,
        "fix": fix.format(path=loaded.path),
        "from": here.place,
        "to": there.place,
        "rows": done.rows,
        "secrets": done.secrets,
    }


def _url_given(to: str) -> str:
    """Return the URL that is in a file, or is given itself. Raises ConfigError."""
    from urllib.parse import urlsplit

    from tillbridge.config.secrets import SecretSource, database_url, resolve_secret

    if "://" not in to:
        found = resolve_secret(SecretSource(file=Path(to)), key="--to", base_dir=Path.cwd())
        return database_url(found.get_secret_value(), "--to")
    url = database_url(to, "--to")
    if urlsplit(url).password:
        raise ConfigError(
            _("A password in a command can be read by everybody on this machine."),
            fix=_(
                "Write the URL into a file that only you can read, and give its name: "
                "tillbridge ledger copy --to FILE"
            ),
        )
    return url


def _side(
    loaded: "LoadedSettings", url: str | None, now: int, *, new: bool = False
) -> "AbstractContextManager[Side]":
    from tillbridge.ledger import copy_sides
    from tillbridge.ledger.reading import need_driver

    folder, key = loaded.data_dir, loaded.ledger_key()
    if url is None:
        return (copy_sides.new_file if new else copy_sides.present_file)(folder, key, at=now)
    need_driver()
    on_server = copy_sides.new_on_server if new else copy_sides.present_server
    return on_server(url, folder, key, name=loaded.settings.bridge.known_as)
