"""Problems and their remedies, alerts, the fleet, and the reporting API."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.errors import BridgeError, ConfigError, nearest
from tillbridge.core.i18n import N_, _, ngettext
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.model.instant import to_iso
from tillbridge.operations.bridge import vault_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tillbridge.alerts.channels import Channel
    from tillbridge.alerts.episodes import Message
    from tillbridge.config.bridge import AlertSettings
    from tillbridge.core.problems import ProblemKind
    from tillbridge.operations.bridge import Bridge

_CODE = _("The problem's code, for example pos.offline.")


@operation("problems.list", role=Role.LOOK, reads=True, command="problems list")
async def open_problems(bridge: "Bridge") -> Answer:
    """List the open problems, the worst first, and what to do about each.

    Example: tillbridge problems list
    """
    from tillbridge.operations.status import status as status_document

    status = await status_document(bridge)
    return {"verdict": status["verdict"], "problems": status["problems"]}


@operation("problems.show", role=Role.LOOK, reads=True, command="problems show")
async def show(
    bridge: "Bridge",
    code: Annotated[str, Argument("CODE", _CODE, complete="codes")],
    *,
    store: Annotated[
        str, Argument("STORE", N_("Show the commands for this store."), complete="stores")
    ] = "",
) -> Answer:
    """Explain a problem: what it means for orders and guests, and what to do step by step.

    Example: tillbridge problems show pos.offline
    """
    from tillbridge.core.problems import anchor, help_of
    from tillbridge.operations.status import status as status_document

    kind = _kind(code)
    help_page = help_of(kind.code, store)
    problems = (await status_document(bridge))["problems"]
    return {
        "code": kind.code,
        "severity": str(kind.severity),
        "text": kind.text,
        "fix": kind.fix,
        "title": help_page.title,
        "means": help_page.means,
        "restaurant": list(help_page.restaurant),
        "technician": list(help_page.technician),
        "why": help_page.why,
        "ends": help_page.closes,
        "docs": f"{bridge.settings.alerts.docs_url}#{anchor(kind.code)}",
        "open": [each for each in problems if each["code"] == code],
    }


@operation("problems.acknowledge", role=Role.STAFF, command="problems ack")
async def acknowledge(
    bridge: "Bridge",
    code: Annotated[str, Argument("CODE", _CODE, complete="open_codes", audit="target")],
    *,
    store: Annotated[
        str | None,
        Argument("STORE", _("Only the problem of this store."), complete="stores", audit="store"),
    ] = None,
) -> Answer:
    """Acknowledge a problem: no more alerts about it; the page still shows it.

    Example: tillbridge problems ack pos.offline
    """
    from tillbridge.core.problems import Scope
    from tillbridge.ledger.community import key_of
    from tillbridge.ledger.problems import acknowledge as write_down
    from tillbridge.orders.repository import OF_ONE, OF_SEVERAL, see

    # With "" for a store only the bridge's own problems of this code are meant.
    kind, by, at = _kind(code), current_actor().name, bridge.clock.now_ms()
    if store and store in bridge.settings.stores:
        bridge.store(store)  # where another bridge serves it, that one does this
    which = [
        each
        for each in bridge.problems.all()
        if each.code == kind.code and store in {None, each.store}
    ]
    if not which:
        return {
            "ok": False,
            "text": _("The problem {code} is not open.").format(code=code),
            "fix": _("See the open problems: tillbridge problems list"),
            "acknowledged": 0,
        }

    communities = map(key_of, bridge.communities)
    here = [each for each in which if each.store in {"", *bridge.stores, *communities}]

    def job(connection: "Connection") -> None:
        write_down(connection, which, by=by, at=at)
        if kind.ends_when_seen:  # those that follow from orders are over with this
            see(connection, here, at, by=by)

    await bridge.ledger.write(job)
    if kind.ends_when_seen:
        for each in here:
            if each.code not in OF_ONE | OF_SEVERAL:
                bridge.problems.report(Scope.of_one(*each.key), ())
    bridge.problems.noticed()
    if kind.ends_when_seen:
        text = _("Acknowledged. The problem is closed.")
        return {"ok": True, "text": text, "acknowledged": len(which)}
    text = ngettext(
        "Acknowledged. You get no more alerts about this problem.",
        "Acknowledged. You get no more alerts about these {n} problems.",
        len(which),
    ).format(n=len(which), code=code)
    return {"ok": True, "text": text, "acknowledged": len(which)}


def _kind(code: str) -> "ProblemKind":
    from tillbridge.core.problems import PROBLEMS

    kind = PROBLEMS.get(code)
    if kind is None:
        close = nearest(code, PROBLEMS)
        raise ConfigError(
            _("There is no problem with the code {code}.").format(code=code),
            fix=_("Did you mean {code}?").format(code=close)
            if close
            else _("See all codes on the page under Help, or in docs/problems.md."),
        )
    return kind


# -- alerts and reports


@operation("alerts.test", role=Role.TECHNICIAN, command="alerts test")
async def send_test(bridge: "Bridge") -> Answer:
    """Send a test alert by every configured way, and show the results.

    Exit code 1: one of them does not work.

    Example: tillbridge alerts test
    """
    from tillbridge.alerts.channels import channels_of
    from tillbridge.alerts.episodes import trial

    ways = channels_of(await _saved_alerts(bridge), bridge.base_dir, vault_of(bridge))
    if not ways:
        raise ConfigError(
            _("No alerts are set up."),
            fix=_("Set one up on the page, under Settings, or in bridge.toml: docs/alerts.md."),
        )
    message = trial(bridge.clock.now_ms())
    results = [await _tried(way, message) for way in ways]
    failed = sum(not each["ok"] for each in results)
    text = ngettext(
        "{n} of {all} alerts could not be sent.", "{n} of {all} alerts could not be sent.", failed
    ).format(n=failed, all=len(results))
    return {
        "ok": not failed,
        "text": text if failed else _("Test sent. Check that it has arrived."),
        "ways": results,
    }


@operation("fleet.key", role=Role.TECHNICIAN, command="fleet key")
async def fleet_key(bridge: "Bridge") -> Answer:
    """Print this bridge's name and the public key that signs its reports.

    It is a line for the list of keys of `tillbridge fleet show`; `minisign -P` takes the key too.

    Example: tillbridge fleet key >> keys.txt
    """
    from tillbridge.fleet import signing_key

    public = signing_key(bridge.ledger.vault).public
    return {"name": bridge.settings.fleet.called, "key": str(public)}


class Fleet(TypedDict):
    """The bridges that report to this one, the worst first; `is_set_up`: where they do is named."""

    is_set_up: bool
    text: str
    bridges: list[dict[str, Any]]


@operation("fleet.bridges", role=Role.LOOK, reads=True)
async def fleet_bridges(bridge: "Bridge") -> Fleet:
    """Return how the bridges are whose reports are collected here, as `fleet show` does."""
    import asyncio

    from tillbridge.fleet import gathered, summary

    fleet = bridge.settings.fleet
    if fleet.reports is None or fleet.keys is None:
        return {"is_set_up": False, "text": "", "bridges": []}
    seen = await asyncio.to_thread(
        gathered,
        bridge.base_dir / fleet.reports,
        bridge.base_dir / fleet.keys,
        now_ms=bridge.clock.now_ms(),
        silent_after_s=fleet.silent_after_s,
    )
    return {"is_set_up": True, "text": summary(seen), "bridges": [asdict(each) for each in seen]}


@operation("reporting.token", role=Role.TECHNICIAN)
async def reporting_token(
    bridge: "Bridge", scope: Annotated[str, Argument(audit="scope")]
) -> Answer:
    """Return `access_token` for the reporting API; it is minted only where none is cached.

    `scope` is separated by spaces.
    """
    audience = bridge.settings.assumptions.reporting_audience
    token = bridge.link.app(audience=audience, scope=scope).token
    text = await token.access_token()
    return {
        "ok": True,
        "access_token": text,
        "expires_at": to_iso(token.expires_at_ms),
        "audience": audience,
        "scope": token.access.scope,
    }


async def _saved_alerts(bridge: "Bridge") -> "AlertSettings":
    """Return the alerts as they are in the file: what was just saved there is what one tests."""
    import asyncio

    from tillbridge.config.loading import load

    try:
        return (await asyncio.to_thread(load, bridge.loaded.path)).settings.alerts
    except ConfigError:
        return bridge.settings.alerts


async def _tried(way: "Channel", message: "Message") -> Answer:
    try:
        await way.send(message)
    except BridgeError as failure:
        return {"way": way.name, "ok": False, "text": failure.text, "fix": failure.fix}
    return {"way": way.name, "ok": True, "text": _("sent"), "fix": ""}
