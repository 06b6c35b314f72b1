"""Whether the public address has a name, leads to this bridge, and if not, what is dead.

A request from here to the public address takes the way the internet takes, with one exception: a
router that does not send its own network back to itself (no hairpin NAT). Then a failure from here
says nothing of outside, and other evidence has to: a recent delivery, or a prober outside. `judge`
is pure.
"""

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.worker import in_thread
from tillbridge.diagnostics.check import (
    Finding,
    Level,
    Role,
    Subject,
    detailed,
    failed,
    ok,
    skipped,
    warning,
)
from tillbridge.diagnostics.network import (
    Exchange,
    Lookup,
    any_public,
    is_literal,
    is_local_name,
    is_loopback,
    is_public,
    look_up,
    own_addresses,
    tunnel_of,
)

if TYPE_CHECKING:
    from tillbridge.receiver import Echo


Cause = Literal[
    "reached",
    "reached_outside",
    "this_machine_only",
    "local_address",
    "other_bridge",
    "wrong_target",
    "bridge_behind_proxy",
    "tunnel_down",
    "proxy_timeout",
    "name_unknown",
    "dns_trouble",
    "certificate",
    "refused",
    "silent",
    "no_route",
    "cut_off",
    "hairpin",
    "unclear",
]
RECENT_S = 6 * 3600.0

# What a tunnel's provider answers while the tunnel's own end is not connected.
_TUNNEL_DEAD = re.compile(
    r"error code:? ?(?:1033|1016|530)|\b1033\b.{0,80}tunnel|Argo Tunnel error|"
    r"ERR_NGROK_(?:3200|8012|3004)|tunnel (?:not found|.{0,60}not found|unavailable)|"
    r"no (?:funnel|serve) (?:config|handler)|504 - Tunnel",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_PROOF = re.compile(r"proof: [0-9a-f]{64}(?![0-9a-f])")


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known. `proven`: this bridge's own proof came back.

    `outside` is what the prober outside says: None if there is none or it failed. `delivery_s`
    is how long ago the last delivery came through; `running` whether a receiver listens at all.
    """

    url_host: str
    exchange: Exchange
    proven: bool = False
    outside: bool | None = None
    delivery_s: float | None = None
    own: frozenset[str] = field(default_factory=frozenset)
    service_is_local: bool = False
    running: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """`reachable`: None if nobody can say from here. `cause` is stable, for machines."""

    reachable: bool | None
    cause: Cause
    text: str
    fix: str = ""


def _reachable(cause: Cause, text: str) -> Judgement:
    return Judgement(reachable=True, cause=cause, text=text)


def _dead(cause: Cause, text: str, fix: str) -> Judgement:
    return Judgement(reachable=False, cause=cause, text=text, fix=fix)


def judge(evidence: Evidence) -> Judgement:
    """Return what the evidence says."""
    local = is_local_name(evidence.url_host)
    if evidence.proven and not local:
        return _reachable("reached", _("The public address leads to this bridge."))
    if evidence.proven and evidence.service_is_local:
        text = _("The practice service and the bridge are on the same machine or network.")
        return _reachable("reached", text)
    if not evidence.proven and evidence.outside is True:
        return _reachable(
            "reached_outside",
            _(
                "The internet reaches this bridge. Only devices in this network cannot use the "
                "public address (no hairpin NAT)."
            ),
        )
    if local and not evidence.service_is_local:
        unreachable = _not_public(evidence.url_host)
    else:
        unreachable = _no_answer(evidence) if evidence.exchange.trouble else _answered(evidence)
    if evidence.proven or evidence.outside is False or not _may_be_hairpin(evidence):
        return unreachable
    if evidence.delivery_s is not None and evidence.delivery_s < RECENT_S:
        text = _(
            "Devices in this network cannot use the public address (no hairpin NAT), but a "
            "delivery arrived {minutes} minutes ago."
        )
        return _reachable("hairpin", text.format(minutes=int(evidence.delivery_s // 60)))
    return Judgement(
        None,
        "unclear",
        _(
            "The public address does not answer from here: {text} It may still work from the "
            "internet, if this router does not support hairpin NAT."
        ).format(text=unreachable.text),
        _(
            "Open the address + /webhooks/healthz on a phone that is not in this network. To "
            "check it automatically, set outside_probe_url in [diagnostics] "
            "(docs/diagnostics.md)."
        ),
    )


def _not_public(host: str) -> Judgement:
    fix = _(
        "Set public_url in [receiver] to this machine's address on the internet. To see four "
        "ways to get one: tillbridge reach"
    )
    if is_loopback(host):
        text = _("The ordering service cannot reach public_url: it leads to this machine only.")
        return _dead("this_machine_only", text, fix)
    text = _("The ordering service cannot reach public_url: it is an address of this network only.")
    return _dead("local_address", text, fix)


def _may_be_hairpin(evidence: Evidence) -> bool:
    """Whether the way from here may differ from that of the internet."""
    seen = evidence.exchange
    if tunnel_of(evidence.url_host) or _from_provider(seen) or not any_public(seen.addresses):
        return False
    if set(seen.addresses) & evidence.own:
        return False  # the public address is this machine's own: nothing stands between
    # Or the router's own page answers, instead of what it forwards to.
    return seen.trouble in {"refused", "timeout", "no_route", "reset"} or (
        seen.status in {200, 301, 302, 307, 308, 401, 403, 404} and not _mark(seen)
    )


def _no_answer(evidence: Evidence) -> Judgement:
    host, seen = evidence.url_host, evidence.exchange
    provider = tunnel_of(host)
    table: dict[str, tuple[Cause, str, str]] = {
        "no_name": (
            "name_unknown",
            _("The name {host} is not known in the DNS."),
            _("Check the spelling of public_url, and the name's DNS entry at its provider."),
        ),
        "dns_timeout": (
            "dns_trouble",
            _("The name {host} cannot be looked up from here."),
            _("Check this machine's DNS servers and its internet connection."),
        ),
        "tls": (
            "certificate",
            _("The certificate of {host} is not valid ({detail}); the service refuses it too."),
            _("Renew it, or use a tunnel or proxy with a public certificate for this name."),
        ),
        "refused": (
            "refused",
            _("{host} refuses connections: no program listens there."),
            _("Check the port that the router forwards, and that the tunnel or proxy is running."),
        ),
        "timeout": (
            "silent",
            _("{host} does not answer."),
            _("Check the router's port forwarding, the firewall, and the tunnel."),
        ),
        "no_route": (
            "no_route",
            _("This machine cannot reach {host} ({detail})."),
            _("Check the internet connection."),
        ),
    }
    cause, text, fix = table.get(
        seen.trouble,
        (
            "cut_off",
            _("{host} accepts the connection and closes it ({detail})."),
            _("Check the tunnel, the proxy, and whether public_url should begin with https://."),
        ),
    )
    if provider and seen.trouble in {"refused", "timeout", "reset", "no_http", "no_name"}:
        cause, text = "tunnel_down", _("The tunnel is down: {provider} does not lead here.")
        fix = _("Start the tunnel's program on this machine. For its commands: tillbridge reach")
    return _dead(cause, text.format(host=host, detail=seen.detail, provider=provider), fix)


def _answered(evidence: Evidence) -> Judgement:
    host, seen = evidence.url_host, evidence.exchange
    provider = tunnel_of(host) or _from_provider(seen) or _("its provider")
    cause: Cause = "wrong_target"
    text = _("Another program answers at {host} ({status}{server}).")
    fix = _(
        "Forward /webhooks/ in the tunnel, proxy or router to listen of [receiver]. For "
        "the steps: tillbridge reach"
    )
    if _TUNNEL_DEAD.search(seen.body) or seen.status == 530:
        cause, text = (
            "tunnel_down",
            _("The tunnel is down: {provider} answers instead of the bridge."),
        )
        fix = _("Start the tunnel's program on this machine. For its commands: tillbridge reach")
    elif seen.status in {502, 503, 521, 523} and not _mark(seen):
        cause = "bridge_behind_proxy"
        text = _("A proxy or tunnel answers for {host}; the bridge behind it is not running.")
        if evidence.running:
            text = _(
                "A proxy or tunnel answers for {host}, but does not reach the bridge ({status})."
            )
        fix = _(
            "Let it forward to the address of listen in [receiver]. For the steps: tillbridge reach"
        )
    elif seen.status in {504, 522, 524}:
        cause = "proxy_timeout"
        text = _(
            "A proxy answers for {host}, but does not get an answer from this machine in time."
        )
        fix = _(
            "Check the connection from the proxy to this machine: port forwarding, firewall, line."
        )
    elif _OTHER_PROOF.search(seen.body):
        cause, text = "other_bridge", _("Another bridge answers at {host}, not this one.")
        fix = _("Two bridges share the address: give each its own public_url and tunnel.")
    named = f", {seen.headers['server'][:40]}" if seen.headers.get("server") else ""
    text = text.format(host=host, provider=provider, status=seen.status, server=named)
    return _dead(cause, text, fix)


def _mark(seen: Exchange) -> bool:
    """Whether the answer is of a bridge, be it this one or another."""
    return seen.headers.get("server") == "tillbridge" or bool(_OTHER_PROOF.search(seen.body))


def _from_provider(seen: Exchange) -> str:
    """Return the provider whose edge answered, "" where it looks like none."""
    if "cf-ray" in seen.headers:
        return "Cloudflare"
    if any(name.startswith("ngrok-") for name in seen.headers):
        return "ngrok"
    return ""


async def check_public(subject: Subject) -> Finding:
    """Examine the public address."""
    evidence = await gather(subject, delivered_at_ms=await _last_delivery(subject))
    return public_verdict(judge(evidence), evidence)


async def judged(subject: Subject) -> Judgement:
    """Send a nonce through the public address and judge what comes of it."""
    return judge(await gather(subject, delivered_at_ms=await _last_delivery(subject)))


async def gather(subject: Subject, *, delivered_at_ms: int | None) -> Evidence:
    """Send a nonce through the public address, and collect what else is known."""
    echo, proven, outside = subject.echo, False, None
    nonce = "" if echo is None else echo.new_nonce()
    seen = await in_thread(lambda: subject.fetch(_target(subject, nonce)))
    if echo is not None and not (proven := echo.proves(nonce, seen.body)):
        outside = await _asked_outside(subject, echo)
    since_ms = None if delivered_at_ms is None else subject.clock.now_ms() - delivered_at_ms
    return Evidence(
        subject.address("public").hostname or "",
        seen,
        proven=proven,
        outside=outside,
        delivery_s=None if since_ms is None else max(0.0, since_ms / 1000),
        own=await in_thread(own_addresses) if not proven else frozenset(),
        service_is_local=is_local_name(subject.address("service").hostname or ""),
        running=echo is not None,
    )


def _target(subject: Subject, nonce: str) -> str:
    url = f"{subject.loaded.settings.receiver.public_url}/webhooks/healthz"
    return f"{url}?nonce={nonce}" if nonce else url


async def _asked_outside(subject: Subject, echo: "Echo") -> bool | None:
    """Let the prober outside fetch our address; None if there is none, or it does not work."""
    prober = subject.loaded.settings.diagnostics.outside_probe_url
    if prober is None:
        return None
    nonce = echo.new_nonce()
    asking = f"{prober}?url={quote(_target(subject, nonce), safe='')}"
    seen = await in_thread(lambda: subject.fetch(asking))
    if echo.proves(nonce, seen.body):
        return True
    return False if seen.status == 200 and _is_report(seen.body) else None


def _is_report(body: str) -> bool:
    """Whether a prober says that it tried: JSON with `status`, as docs/diagnostics.md has it."""
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, dict) and "status" in document


async def _last_delivery(subject: Subject) -> int | None:
    try:
        snapshot = await asyncio.wait_for(subject.snapshot(), 3)
    except (LedgerError, TimeoutError):
        return None
    return snapshot.last_delivery_at


def public_verdict(judgement: Judgement, evidence: Evidence) -> Finding:
    """Return the finding of a judgement."""
    details = {
        "cause": judgement.cause,
        "addresses": list(evidence.exchange.addresses),
        "status": evidence.exchange.status,
        "outside": evidence.outside,
        "last_delivery_s": None if evidence.delivery_s is None else round(evidence.delivery_s),
    }
    if not evidence.running and judgement.cause in {"other_bridge", "wrong_target"}:
        return skipped(
            _("The public address answers, but no bridge is running here to compare it with."),
            _("Start the bridge, then run this again."),
            **details,
        )
    level = {True: Level.OK, False: Level.FAILED, None: Level.WARNING}[judgement.reachable]
    return Finding(level, judgement.text, judgement.fix, details)


async def check_names(subject: Subject, role: Role) -> Finding:
    """Look up the host of base_url, or of public_url."""
    host = subject.address(role).hostname or ""
    return names_verdict(await in_thread(lambda: look_up(host, subject.names)), role)


def names_verdict(found: Lookup, role: Role) -> Finding:
    """Return what a look-up means."""
    if is_literal(found.host) and not found.trouble:
        text = (
            _("The ordering service is at {host}: an IP address needs no DNS.")
            if role == "service"
            else _("The public address is {host}: an IP address needs no DNS.")
        )
        return ok(text.format(host=found.host))
    return detailed(_names(found, role), host=found.host, addresses=list(found.addresses))


def _names(found: Lookup, role: Role) -> Finding:
    host, setting = found.host, "base_url" if role == "service" else "public_url"
    if found.trouble == "no_name":
        text = _("The name {host} is not known in the DNS ({detail}).")
        fix = _("Check the spelling of {setting}, and the name's DNS entry at its provider.")
        return failed(text.format(host=host, detail=found.detail), fix.format(setting=setting))
    if found.trouble:
        text = _("The name {host} cannot be looked up: no DNS server answers ({detail}).")
        return failed(
            text.format(host=host, detail=found.detail),
            _("Check the internet connection and this machine's DNS servers."),
        )
    shown = ", ".join(found.addresses[:4])
    if not any_public(found.addresses) and not is_local_name(host):
        text = _("{host} is {addresses} here: an address of this network (split DNS).").format(
            host=host, addresses=shown
        )
        if role == "service":
            fix = _(
                "If that is not intended, something else answers for the service: check the DNS"
            )
            return warning(text, f"{fix}.")
        return warning(
            text,
            _("Not visible from here: check from outside that the name has its public address."),
        )
    mixed = any(not is_public(each) for each in found.addresses) and any_public(found.addresses)
    return ok(_("{host} is {addresses}.").format(host=host, addresses=shown), mixed=mixed)
