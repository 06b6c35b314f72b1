"""Whether the bridge runs, what is open in it, and whether its alerts arrive."""

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from tillbridge.config import host_and_port
from tillbridge.core.errors import BridgeError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.problems import Found
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.line import trouble_of
from tillbridge.diagnostics.port_holder import holder_of
from tillbridge.diagnostics.result import Finding, coded, failed, of_problem, ok, skipped, warning
from tillbridge.diagnostics.subject import Subject, Telling

_SLOW_LOOP_S = 1.0
_OLD_ORDER_S = 300.0


@dataclass(frozen=True, slots=True)
class Port:
    """A port of the configuration, and whether somebody listens there ("" as trouble)."""

    name: str
    listen: str
    trouble: str = ""
    holder: str = ""  # ": NAME, process 12"


async def check_bridge(subject: Subject) -> Finding:
    """Look at what only the bridge itself can know."""
    if subject.hung:
        return failed(
            _("The bridge is there, but does not answer."),
            _("Look at its log, then restart it: systemctl restart tillbridge"),
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
    """Return what a running bridge tells of itself; `waiting` orders are not in the till yet."""
    details = {"lag_ms": round(lag_s * 1000), "waiting": waiting, "oldest_s": round(waited_s)}
    if lag_s > _SLOW_LOOP_S:
        return warning(
            _("The bridge is slow: it took {seconds} seconds to come back to itself.").format(
                seconds=f"{lag_s:.1f}"
            ),
            _("See what else uses this machine's processor and disk."),
            **details,
        )
    if waited_s > _OLD_ORDER_S:
        return failed(
            _("{n} orders wait for the till, the oldest for {minutes} minutes.").format(
                n=waiting, minutes=int(waited_s // 60)
            ),
            _("Look at the till, and at: tillbridge orders list"),
            **details,
        )
    return ok(_("The bridge runs; {n} orders wait for the till.").format(n=waiting), **details)


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
        "receiver": subject.settings.receiver.listen,
        "status_page": subject.settings.status_page.listen,
    }
    ports = [
        await apart(partial(_port, name, listen))
        for name, listen in listeners.items()
        if host_and_port(listen)[1]
    ]
    return ports_verdict(ports, running=subject.running or subject.hung)


def ports_verdict(ports: list[Port], *, running: bool) -> Finding:
    """Return what the ports mean: taken by the bridge, by another program, or free."""
    details = {port.name: port.trouble or "listening" for port in ports}
    if not ports:
        return skipped(_("The bridge takes any free ports."))
    if running:
        silent = [port for port in ports if port.trouble]
        if silent:
            return failed(
                _("Nothing answers at {listen}, where [{name}] listens ({trouble}).").format(
                    listen=silent[0].listen, name=silent[0].name, trouble=silent[0].trouble
                ),
                _("Check that no firewall on this machine closes the port; restart the bridge."),
                **details,
            )
        return ok(_("The bridge listens where it should."), **details)
    taken = [port for port in ports if not port.trouble]
    if taken:
        return failed(
            _("Another program listens at {listen}, which [{name}] wants{holder}.").format(
                listen=taken[0].listen, name=taken[0].name, holder=taken[0].holder
            ),
            _("Stop that program, or change listen in [{name}].").format(name=taken[0].name),
            **details,
        )
    return ok(_("The ports that the bridge wants are free."), **details)


def _port(name: str, listen: str) -> Port:
    trouble = _trouble(listen)
    return Port(name, listen, trouble, "" if trouble else _holder(host_and_port(listen)[1]))


def _holder(port: int) -> str:
    holder = holder_of(port)
    return "" if holder is None else f": {holder}"


def _trouble(listen: str) -> str:
    host, port = host_and_port(listen)
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- recognised, not listened on
    try:
        socket.create_connection((reached, port), 2).close()
    except OSError as failure:
        return trouble_of(failure)
    return ""


async def check_telling(way: Telling) -> Finding:
    """Look whether a way of telling people, or the heartbeat, would work."""
    details: dict[str, Any] = {"way": way.name}
    try:
        await way.probe()
    except BridgeError as failure:
        text = _("Nobody would hear of problems by {way}: {detail}")
        if way.name == "heartbeat":
            text = _("The heartbeat would not be heard: {detail}")
        return failed(text.format(way=way.name, detail=failure.text), failure.fix, **details)
    return ok(_TOLD.get(way.name, _TOLD["webhook"]).format(way=way.name), **details)


_TOLD = {
    "email": _("The mail server lets the bridge in; nothing was sent."),
    "webhook": _("The webhook's server can be reached; nothing was sent."),
    "apprise": _("apprise is there and knows every address; nothing was sent."),
    "heartbeat": _("The heartbeat's server can be reached; it was not asked."),
}


async def check_nobody_told() -> Finding:
    """Say that nobody is told."""
    return skipped(
        _("Nobody is told of problems: no alerts are configured."),
        _("Add [alerts.email] or [alerts.webhook]: docs/alerts.md."),
    )
