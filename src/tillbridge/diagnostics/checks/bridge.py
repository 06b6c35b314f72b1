"""The bridge and its machine: does it run, do alerts arrive, versions, clock, who reads secrets."""

import asyncio
import os
import platform
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

import tillbridge
from tillbridge.config.values import host_and_port
from tillbridge.core.errors import BridgeError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.network import port_taken
from tillbridge.core.problems import Found
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import (
    Finding,
    Subject,
    coded,
    detailed,
    failed,
    of_problem,
    ok,
    skipped,
    warning,
)
from tillbridge.diagnostics.network import trouble_of
from tillbridge.model.instant import to_iso

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel, HeartbeatProbe

_SLOW_LOOP_S = 1.0
_OLD_ORDER_S = 300.0


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the configuration, and whether somebody listens there ("" as trouble)."""

    name: str
    listen: str
    trouble: str = ""
    holder: str = ""  # " by NAME, process 12"
    fix: str = ""


async def check_bridge(subject: Subject) -> Finding:
    """Look at what only the bridge itself can know."""
    if subject.hung:
        return failed(
            _("The bridge is running but does not answer."),
            _("Restart the bridge. Its log may say why: tillbridge logs"),
        )
    if not subject.running:
        return await _not_running(subject)
    lag_s = await _lag_s()
    try:
        snapshot = await subject.snapshot()
    except LedgerError as failure:
        return failed(failure.text, failure.fix, lag_ms=round(lag_s * 1000))
    oldest = [s.oldest_waiting_at for s in snapshot.stores.values() if s.oldest_waiting_at]
    waited_s = (subject.clock.now_ms() - min(oldest)) / 1000 if oldest else 0.0
    waiting = sum(store.waiting for store in snapshot.stores.values())
    return lag_verdict(lag_s, waiting, waited_s)


async def _not_running(subject: Subject) -> Finding:
    """Return why it does not run, as the status has it."""
    if subject.status is not None:
        with suppress(BridgeError):
            for each in (await subject.status())["problems"]:
                if each["code"] in {"bridge.not_started", "bridge.stopped"}:
                    return coded(failed(each["text"], each["fix"]), each["code"])
    return of_problem(Found("bridge.stopped"))


def lag_verdict(lag_s: float, waiting: int, waited_s: float) -> Finding:
    """Return what a running bridge reports of itself; `waiting` orders are not in the till yet."""
    finding = _lag(lag_s, waiting, waited_s)
    lag_ms, oldest_s = round(lag_s * 1000), round(waited_s)
    return detailed(finding, lag_ms=lag_ms, waiting=waiting, oldest_s=oldest_s)


def _lag(lag_s: float, waiting: int, waited_s: float) -> Finding:
    if lag_s > _SLOW_LOOP_S:
        text = _("The bridge is slow: it took {seconds} seconds to respond.")
        return warning(
            text.format(seconds=f"{lag_s:.1f}"),
            _("Check what else uses this machine's processor and disk."),
        )
    if waited_s > _OLD_ORDER_S:
        text = _("{n} orders are waiting for the till, the oldest for {minutes} minutes.")
        return failed(
            text.format(n=waiting, minutes=int(waited_s // 60)),
            _("Check the till. See the orders: tillbridge orders list"),
        )
    return ok(_("The bridge is running. Orders waiting for the till: {n}.").format(n=waiting))


async def _lag_s() -> float:
    """Return how much longer a short sleep took than it should."""
    loop = asyncio.get_running_loop()
    worst = 0.0
    for _round in range(5):
        before = loop.time()
        await asyncio.sleep(0.02)
        worst = max(worst, loop.time() - before - 0.02)
    return worst


async def check_ports(subject: Subject) -> Finding:
    """Look who listens where the bridge should."""
    listeners = {
        "receiver": subject.loaded.settings.receiver.listen,
        "status_page": subject.loaded.settings.status_page.listen,
    }
    ports = [
        await in_thread(partial(_port, name, listen))
        for name, listen in listeners.items()
        if host_and_port(listen)[1]
    ]
    return ports_verdict(ports, running=subject.running or subject.hung)


def ports_verdict(ports: list[Port], *, running: bool) -> Finding:
    """Return what the ports mean: taken by the bridge, by another program, or free."""
    if not ports:
        return skipped(_("The bridge uses any free ports."))
    details = {port.name: port.trouble or "listening" for port in ports}
    return detailed(_ports(ports, running=running), **details)


def _ports(ports: list[Port], *, running: bool) -> Finding:
    if running:
        silent = [port for port in ports if port.trouble]
        if silent:
            return failed(
                _("Nothing answers at {listen}, the address of [{name}] ({trouble}).").format(
                    listen=silent[0].listen, name=silent[0].name, trouble=silent[0].trouble
                ),
                _("Check this machine's firewall, then restart the bridge."),
            )
        return ok(_("The bridge listens on its ports."))
    taken = [port for port in ports if not port.trouble]
    if taken:
        text = _("{listen}, the address of [{name}], is already in use{holder}.")
        return failed(
            text.format(listen=taken[0].listen, name=taken[0].name, holder=taken[0].holder),
            taken[0].fix,
        )
    return ok(_("The bridge's ports are free."))


def _port(name: str, listen: str) -> Port:
    host, port = host_and_port(listen)
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- recognised, not listened on
    try:
        socket.create_connection((reached, port), 2).close()
    except OSError as failure:
        return Port(name, listen, trouble_of(failure))
    holder, fix = port_taken(port, _("change listen in [{table}]").format(table=name))
    return Port(name, listen, holder=holder, fix=fix)


async def check_channel(channel: "Channel | HeartbeatProbe") -> Finding:
    """Check whether an alert channel, or the heartbeat, would work."""
    details: dict[str, Any] = {"way": channel.name}
    try:
        await channel.probe()
    except BridgeError as failure:
        text = _("Alerts by {way} cannot be sent: {detail}")
        if channel.name == "heartbeat":
            text = _("The heartbeat cannot be sent: {detail}")
        return failed(text.format(way=channel.name, detail=failure.text), failure.fix, **details)
    return ok(_PROBED.get(channel.name, _PROBED["webhook"]).format(way=channel.name), **details)


_PROBED = {
    "email": _("The mail server accepts the bridge's login. No mail was sent."),
    "webhook": _("The webhook's server can be reached. Nothing was sent."),
    "apprise": _("apprise is installed and knows every address. Nothing was sent."),
    "heartbeat": _("The heartbeat's server can be reached. No heartbeat was sent."),
}


async def check_no_alerts() -> Finding:
    """Report that no alerts are configured."""
    return skipped(
        _("Not set up: nobody is notified of problems."),
        _("Set up alerts: add [alerts.email] or [alerts.webhook] (docs/alerts.md)."),
    )


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
    month = to_iso(subject.clock.now_ms())[:7]
    return versions_verdict(await in_thread(versions), sys.version_info[:2], month)


def versions_verdict(found: Mapping[str, str], python: tuple[int, int], month: str) -> Finding:
    """Return what the versions mean in a month ("2026-11")."""
    ends = _PYTHON_ENDS.get(python)
    if ends is not None and month > ends:
        text = _("Python {version} has had no security fixes since {ends}.")
        return warning(
            text.format(version=found["python"], ends=ends),
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
        return skipped(_("Not checked: this machine has no timedatectl."))
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
    properties = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    if properties.get("NTPSynchronized") == "yes":
        return ok(_("The clock is set automatically."), **properties)
    if not properties:
        return skipped(_("timedatectl does not know how the clock is set."))
    if properties.get("NTP") == "yes":
        return warning(
            _("The clock should be set automatically, but has not been yet."),
            _("Check that the firewall allows time servers (UDP port 123)."),
            **properties,
        )
    return warning(
        _("The clock is not set automatically."), _("Run: timedatectl set-ntp true"), **properties
    )


async def check_service_manager(subject: Subject) -> Finding:
    """Look who would start the bridge again."""
    return manager_verdict(os.environ, running=subject.running)


def manager_verdict(environment: Mapping[str, str], *, running: bool) -> Finding:
    """Return what the environment of the daemon shows of its manager."""
    if not running:
        return skipped(_("Not checked: the bridge is not running."))
    if "INVOCATION_ID" not in environment and "NOTIFY_SOCKET" not in environment:
        return skipped(
            _("If the bridge stops, nothing starts it again: it does not run as a service."),
            _("Install it as a service: sudo tillbridge service install"),
        )
    watchdog = environment.get("WATCHDOG_USEC", "")
    seconds = int(watchdog) / 1e6 if watchdog.isdigit() else None
    return ok(_("systemd restarts the bridge if it stops."), watchdog_s=seconds)


async def check_secret_files(subject: Subject) -> Finding:
    """Look who may read what must stay secret."""
    return secret_files_verdict(await in_thread(lambda: list(open_files(_secret_paths(subject)))))


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
        return skipped(_("Not checked: file permissions on this system."))
    if not found:
        return ok(_("Only the bridge's user can read the files with secrets."))
    shown = ", ".join(f"{path} ({mode:o})" for path, mode in found[:4])
    return warning(
        _("Other users can read or change files with secrets: {files}.").format(files=shown),
        _("Run: chmod go= {files}").format(files=" ".join(path for path, _mode in found[:4])),
        files=[path for path, _mode in found],
    )


def _secret_paths(subject: Subject) -> Iterable[Path]:
    yield subject.loaded.data_dir
    for name in ("ledger.key", "ledger.vault", "ledger.db", "control.json"):
        yield subject.loaded.data_dir / name
    settings = subject.loaded.settings
    for secret in (settings.service.client_secret, settings.ledger.url, settings.ledger.key):
        if isinstance(secret, SecretStr):
            yield subject.loaded.path
        elif secret is not None and secret.file is not None:
            yield subject.loaded.base_dir / secret.file
    if subject.loaded.settings.receiver.tls_key is not None:
        yield subject.loaded.base_dir / subject.loaded.settings.receiver.tls_key
    for store in subject.loaded.settings.stores.values():
        for _table, _adapter, options in store.adapters:
            yield from (subject.loaded.base_dir / file for file in secret_files_of(options))


def secret_files_of(options: Mapping[str, object]) -> Iterable[str]:
    """Return the files that an adapter's options name for secrets: `{ file = "odoo.key" }`."""
    for value in options.values():
        if isinstance(value, Mapping) and value.keys() == {"file"}:
            yield str(value["file"])
