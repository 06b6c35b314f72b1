"""Does the public address lead to this bridge, and if not, what is dead? Pure.

A request from here to the public address takes the way the internet takes, with one exception: a
router that does not send its own network back to itself (no hairpin NAT). Then a failure from here
says nothing of outside, and other evidence has to: a recent delivery, or a prober outside.
"""

import re
from dataclasses import dataclass, field
from typing import Literal

from tillbridge.core.i18n import _
from tillbridge.diagnostics.addresses import any_public, is_local_name, is_loopback, tunnel_of
from tillbridge.diagnostics.line import Exchange

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

    `outside` is what the prober outside says: None where there is none or it failed. `delivery_s`
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
    """`reachable`: None where nobody can say from here. `cause` is stable, for machines."""

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
    if evidence.proven:
        return _reached(evidence)
    if evidence.outside is True:
        return _reachable(
            "reached_outside",
            _(
                "The internet reaches this bridge; only from inside this network the public "
                "address does not answer (no hairpin NAT)."
            ),
        )
    unreachable = _from_here(evidence)
    if unreachable.reachable is False and _may_be_hairpin(evidence):
        if evidence.outside is False:
            return unreachable
        if evidence.delivery_s is not None and evidence.delivery_s < RECENT_S:
            return _reachable(
                "hairpin",
                _(
                    "The public address does not answer from inside this network (no hairpin "
                    "NAT), but a delivery came through {minutes} minutes ago."
                ).format(minutes=int(evidence.delivery_s // 60)),
            )
        return Judgement(
            None,
            "unclear",
            _(
                "The public address does not answer from here: {text} Whether it is dead, or this "
                "router only does not lead its own network back (hairpin NAT), cannot be told "
                "from inside."
            ).format(text=unreachable.text),
            _(
                "Open the address + /webhooks/healthz with a phone that is not in this network. "
                "For good: name a prober in [diagnostics] outside_probe_url (docs/diagnostics.md)."
            ),
        )
    return unreachable


def _reached(evidence: Evidence) -> Judgement:
    if not (is_loopback(evidence.url_host) or is_local_name(evidence.url_host)):
        return _reachable("reached", _("The public address leads to this bridge."))
    if evidence.service_is_local:
        text = _("The public address is one of this network, as the service's is: it works.")
        return _reachable("reached", text)
    return _not_public(evidence)


def _not_public(evidence: Evidence) -> Judgement:
    fix = _(
        "Set public_url in [receiver] to the address under which the internet reaches this "
        "machine; tillbridge reach shows ways to get one."
    )
    if is_loopback(evidence.url_host):
        text = _("public_url leads to this machine alone, which the service cannot reach.")
        return _dead("this_machine_only", text, fix)
    text = _("public_url is an address of this network alone, which the service cannot reach.")
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


def _from_here(evidence: Evidence) -> Judgement:
    seen = evidence.exchange
    if is_local_name(evidence.url_host) and not evidence.service_is_local:
        return _not_public(evidence)
    if seen.trouble:
        return _no_answer(evidence)
    return _answered(evidence)


def _no_answer(evidence: Evidence) -> Judgement:
    host, seen = evidence.url_host, evidence.exchange
    provider = tunnel_of(host)
    table: dict[str, tuple[Cause, str, str]] = {
        "no_name": (
            "name_unknown",
            _("The name {host} is not known in the DNS."),
            _("Check public_url, and the name's entry at its provider."),
        ),
        "dns_timeout": (
            "dns_trouble",
            _("The name {host} cannot be looked up from here."),
            _("Check this machine's DNS servers and its internet connection."),
        ),
        "tls": (
            "certificate",
            _("The certificate of {host} is not accepted ({detail}); the service refuses it too."),
            _("Renew it, or let the tunnel or proxy serve a public certificate for this name."),
        ),
        "refused": (
            "refused",
            _("{host} refuses connections: nothing listens there."),
            _("Check the port that the router forwards, and that tunnel or proxy is running."),
        ),
        "timeout": (
            "silent",
            _("{host} does not answer."),
            _("Check the router's port forwarding, the firewall, and the tunnel."),
        ),
        "no_route": (
            "no_route",
            _("There is no way to {host} from here ({detail})."),
            _("Check the internet connection."),
        ),
    }
    cause, text, fix = table.get(
        seen.trouble,
        (
            "cut_off",
            _("{host} takes the connection and cuts it off ({detail})."),
            _("Check what listens there: the tunnel, the proxy, the scheme in public_url."),
        ),
    )
    if provider and seen.trouble in {"refused", "timeout", "reset", "no_http", "no_name"}:
        cause, text = "tunnel_down", _("The tunnel is down: {provider} does not lead here.")
        fix = _("Start the tunnel's program on this machine; see: tillbridge reach")
    return _dead(cause, text.format(host=host, detail=seen.detail, provider=provider), fix)


def _answered(evidence: Evidence) -> Judgement:
    host, seen = evidence.url_host, evidence.exchange
    provider = tunnel_of(host) or _from_provider(seen)
    if _TUNNEL_DEAD.search(seen.body) or seen.status == 530:
        return _dead(
            "tunnel_down",
            _("The tunnel is down: {provider} answers in its stead.").format(
                provider=provider or _("its provider")
            ),
            _("Start the tunnel's program on this machine; see: tillbridge reach"),
        )
    if seen.status in {502, 503, 521, 523} and not _mark(seen):
        text = (
            _("A proxy or tunnel answers for {host}, but does not reach the bridge ({status}).")
            if evidence.running
            else _("A proxy or tunnel answers for {host}; the bridge behind it is not running.")
        )
        return _dead(
            "bridge_behind_proxy",
            text.format(host=host, status=seen.status),
            _("Let it lead to the address of listen in [receiver]; see: tillbridge reach"),
        )
    if seen.status in {504, 522, 524}:
        return _dead(
            "proxy_timeout",
            _("A proxy answers for {host}, but this machine does not answer it in time.").format(
                host=host
            ),
            _("Check the way from the proxy to here: port forwarding, firewall, line."),
        )
    if _OTHER_PROOF.search(seen.body):
        return _dead(
            "other_bridge",
            _("Another bridge answers at {host}, not this one.").format(host=host),
            _("Two bridges share the address: give each its own public_url and tunnel."),
        )
    return _dead(
        "wrong_target",
        _("Something that is not this bridge answers at {host} ({status}{server}).").format(
            host=host,
            status=seen.status,
            server=f", {seen.headers['server'][:40]}" if seen.headers.get("server") else "",
        ),
        _(
            "Let tunnel, proxy or router lead /webhooks/ to listen of [receiver]; see: "
            "tillbridge reach"
        ),
    )


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
