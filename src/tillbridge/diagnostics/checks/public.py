"""Whether the public address has a name, leads here, and lets deliveries in."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, urlsplit

from tillbridge.core.errors import LedgerError
from tillbridge.core.i18n import _
from tillbridge.diagnostics.addresses import (
    any_public,
    is_literal,
    is_local_name,
    is_loopback,
    is_public,
    own_addresses,
)
from tillbridge.diagnostics.apart import apart
from tillbridge.diagnostics.line import Trouble, look_up
from tillbridge.diagnostics.outside import Evidence, Judgement, judge
from tillbridge.diagnostics.result import Finding, Level, failed, ok, skipped, warning
from tillbridge.diagnostics.subject import Echo, Subject


async def check_public(subject: Subject) -> Finding:
    """Examine the public address."""
    evidence = await gather(subject, delivered_at_ms=await _last_delivery(subject))
    judgement = judge(evidence)
    return public_verdict(judgement, evidence)


async def gather(subject: Subject, *, delivered_at_ms: int | None) -> Evidence:
    """Send a nonce through the public address, and collect what else is known."""
    receiver, service = subject.settings.receiver, subject.settings.service
    host = urlsplit(receiver.public_url).hostname or ""
    echo = subject.echo
    nonce = "" if echo is None else echo.new_nonce()
    target = f"{receiver.public_url}/webhooks/healthz" + (f"?nonce={nonce}" if nonce else "")
    seen = await apart(lambda: subject.fetch(target))
    proven = echo is not None and echo.proves(nonce, seen.body)
    outside = None
    if not proven and echo is not None:
        outside = await _asked_outside(subject, echo)
    since_s = (
        None
        if delivered_at_ms is None
        else max(0.0, (subject.clock.now_ms() - delivered_at_ms) / 1000)
    )
    service_host = urlsplit(service.base_url).hostname or ""
    return Evidence(
        host,
        seen,
        proven=proven,
        outside=outside,
        delivery_s=since_s,
        own=await apart(own_addresses) if not proven else frozenset(),
        service_is_local=is_loopback(service_host) or is_local_name(service_host),
        running=echo is not None,
    )


async def _asked_outside(subject: Subject, echo: Echo) -> bool | None:
    """Let the prober outside fetch our address; None where there is none, or it does not work."""
    prober = subject.settings.diagnostics.outside_probe_url
    if prober is None:
        return None
    nonce = echo.new_nonce()
    target = f"{subject.settings.receiver.public_url}/webhooks/healthz?nonce={nonce}"
    asking = f"{prober}?url={quote(target, safe='')}"
    seen = await apart(lambda: subject.fetch(asking))
    if echo.proves(nonce, seen.body):
        return True
    return False if seen.status == 200 and _is_report(seen.body) else None


def _is_report(body: str) -> bool:
    """Whether a prober says that it tried: JSON with `status`, as docs/diagnostics.md has it."""
    try:
        told = json.loads(body)
    except ValueError:
        return False
    return isinstance(told, dict) and "status" in told


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
            _("The public address answers, but no bridge runs here that could be told apart."),
            _("Start the bridge and run this again."),
            **details,
        )
    level = {True: Level.OK, False: Level.FAILED, None: Level.WARNING}[judgement.reachable]
    return Finding(level, judgement.text, judgement.fix, details)


Role = Literal["service", "public"]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a look-up gave."""

    host: str
    addresses: Sequence[str]
    trouble: Trouble = ""
    detail: str = ""


async def check_names(subject: Subject, role: Role) -> Finding:
    """Look up the host of base_url, or of public_url."""
    settings = subject.settings
    url = settings.service.base_url if role == "service" else settings.receiver.public_url
    host = urlsplit(url).hostname or ""
    addresses, trouble, detail = await apart(lambda: look_up(host, subject.names))
    return names_verdict(Lookup(host, addresses, trouble, detail), role)


def names_verdict(found: Lookup, role: Role) -> Finding:
    """Return what a look-up means."""
    host, setting = found.host, "base_url" if role == "service" else "public_url"
    details = {"host": host, "addresses": list(found.addresses)}
    if found.trouble == "no_name":
        return failed(
            _("The name {host} is not known in the DNS ({detail}).").format(
                host=host, detail=found.detail
            ),
            _("Check the spelling of {setting}, and the name's entry at its provider.").format(
                setting=setting
            ),
            **details,
        )
    if found.trouble:
        return failed(
            _("The name {host} cannot be looked up: no DNS server answers ({detail}).").format(
                host=host, detail=found.detail
            ),
            _("Check the internet connection, and the DNS servers this machine asks."),
            **details,
        )
    if is_literal(host):
        return ok(_("{host} is an address; nothing has to be looked up.").format(host=host))
    shown = ", ".join(found.addresses[:4])
    if not any_public(found.addresses) and not is_local_name(host):
        text = _("{host} is {addresses} here: an address of this network (split DNS).").format(
            host=host, addresses=shown
        )
        if role == "service":
            fix = _("If that is not meant, something answers in the service's stead: check the DNS")
            return warning(text, f"{fix}.", **details)
        return warning(
            text,
            _(
                "From here the way of the internet cannot be seen. Check from outside that the "
                "name has its public address there."
            ),
            **details,
        )
    mixed = any(not is_public(each) for each in found.addresses) and any_public(found.addresses)
    return ok(
        _("{host} is {addresses}.").format(host=host, addresses=shown), **details, mixed=mixed
    )
