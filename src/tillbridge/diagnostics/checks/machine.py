"""The machine: versions, time synchronisation, the service manager, and who may read secrets."""

import asyncio
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path

import tillbridge
from tillbridge.config import SecretSource
from tillbridge.core.i18n import _
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.result import Finding, ok, skipped, warning
from tillbridge.diagnostics.subject import Subject

# The month in which a Python gets its last security fix.
_PYTHON_ENDS = {(3, 11): "2027-10", (3, 12): "2028-10", (3, 13): "2029-10", (3, 14): "2030-10"}
_LIBRARIES = ("aiohttp", "sqlalchemy", "cryptography", "truststore", "pydantic", "structlog")


def versions() -> dict[str, str]:
    """Return what runs here, by name."""
    found = {
        "tillbridge": tillbridge.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "sqlite": sqlite3.sqlite_version,
    }
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


async def check_versions(subject: Subject) -> Finding:
    """Look at the versions of what the bridge stands on."""
    month = _month(subject.clock.now_ms())
    return versions_verdict(await apart(versions), sys.version_info[:2], month)


def versions_verdict(found: Mapping[str, str], python: tuple[int, int], month: str) -> Finding:
    """Return what the versions mean in a month ("2026-11")."""
    ends = _PYTHON_ENDS.get(python)
    if ends is not None and month > ends:
        return warning(
            _("Python {version} gets no security fixes since {ends}.").format(
                version=found["python"], ends=ends
            ),
            _("Install the bridge with a newer Python."),
            **found,
        )
    return ok(
        _("tillbridge {tillbridge}, Python {python}, SQLite {sqlite}.").format(**found), **found
    )


async def check_time_sync() -> Finding:
    """Ask systemd whether the clock is set by itself."""
    program = shutil.which("timedatectl")
    if program is None:
        return skipped(_("There is no timedatectl here to ask about the clock."))
    process = await asyncio.create_subprocess_exec(
        program,
        "show",
        "--property=NTP",
        "--property=NTPSynchronized",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _err = await asyncio.wait_for(process.communicate(), 3)
    except TimeoutError:
        process.kill()
        return skipped(_("timedatectl does not answer."))
    return time_sync_verdict(out.decode("utf-8", "replace"))


def time_sync_verdict(shown: str) -> Finding:
    """Return what `timedatectl show` means."""
    told = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    if told.get("NTPSynchronized") == "yes":
        return ok(_("The clock is set by itself."), **told)
    if not told:
        return skipped(_("timedatectl cannot say how the clock is set."))
    if told.get("NTP") == "yes":
        return warning(
            _("The clock should be set by itself, but has not been yet."),
            _("Check that the machine may ask a time server (UDP port 123)."),
            **told,
        )
    return warning(_("The clock is not set by itself."), _("Run: timedatectl set-ntp true"), **told)


async def check_service_manager(subject: Subject) -> Finding:
    """Look who would start the bridge again."""
    return manager_verdict(os.environ, running=subject.running)


def manager_verdict(environment: Mapping[str, str], *, running: bool) -> Finding:
    """Return what the environment of the daemon tells of its manager."""
    if not running:
        return skipped(_("Only a running bridge knows who started it."))
    if "INVOCATION_ID" not in environment and "NOTIFY_SOCKET" not in environment:
        return skipped(
            _("No service manager has started this bridge: nobody starts it again if it ends."),
            _("For good, run it as a service of the system."),
        )
    watchdog = environment.get("WATCHDOG_USEC", "")
    seconds = int(watchdog) / 1e6 if watchdog.isdigit() else None
    return ok(_("systemd watches over the bridge."), watchdog_s=seconds)


async def check_secret_files(subject: Subject) -> Finding:
    """Look who may read what must stay secret."""
    return secret_files_verdict(await apart(lambda: list(open_files(_secret_paths(subject)))))


def open_files(paths: Iterable[Path]) -> Iterable[tuple[str, int]]:
    """Return the files and folders that others may read or write, each with its mode."""
    if os.name != "posix":
        return
    for path in paths:
        try:
            mode = path.stat().st_mode & 0o777
        except OSError:
            continue
        if mode & 0o077:
            yield str(path), mode


def secret_files_verdict(found: list[tuple[str, int]]) -> Finding:
    """Return what the files' rights mean."""
    if os.name != "posix":
        return skipped(_("Rights of files are not looked at on this system."))
    if not found:
        return ok(_("Files with secrets can be read by the bridge's user alone."))
    shown = ", ".join(f"{path} ({mode:o})" for path, mode in found[:4])
    return warning(
        _("Other users may read or change what must stay secret: {files}.").format(files=shown),
        _("Run: chmod go= {files}").format(files=" ".join(path for path, _mode in found[:4])),
        files=[path for path, _mode in found],
    )


def _secret_paths(subject: Subject) -> Iterable[Path]:
    yield subject.data_dir
    for name in ("ledger.key", "ledger.vault", "ledger.db", "control.json"):
        yield subject.data_dir / name
    secret = subject.settings.service.client_secret
    if not isinstance(secret, SecretSource):
        yield subject.config_path
    elif secret.file is not None:
        yield subject.base_dir / secret.file
    if subject.settings.receiver.tls_key is not None:
        yield subject.base_dir / subject.settings.receiver.tls_key
    for store in subject.settings.stores.values():
        for _table, _adapter, options in store.adapters:
            yield from (subject.base_dir / file for file in secret_files_of(options))


def secret_files_of(options: Mapping[str, object]) -> Iterable[str]:
    """Return the files that an adapter's options name for secrets: `{ file = "odoo.key" }`."""
    for value in options.values():
        if isinstance(value, Mapping) and value.keys() == {"file"}:
            yield str(value["file"])


def _month(now_ms: int) -> str:
    from tillbridge.model.instant import to_iso  # noqa: PLC0415 -- one name, where it is used

    return to_iso(now_ms)[:7]
