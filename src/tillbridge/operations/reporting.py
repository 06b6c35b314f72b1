"""What the bridge reports to others: alerts, reports to a fleet, tokens of the reporting API."""

from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument, operation

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel
    from tillbridge.alerts.episodes import Message
    from tillbridge.operations.bridge import Bridge


@operation("alerts.test", role=Role.TECHNICIAN, command="alerts test")
async def send_test(bridge: "Bridge") -> Answer:
    """Send a test by every way of telling people, and say what came of it.

    Ends with 1 where one of them does not work.

    Example: tillbridge alerts test
    """
    from tillbridge.alerts.channels import channels_of
    from tillbridge.alerts.episodes import trial

    ways = channels_of(bridge.settings.alerts, bridge.base_dir)
    if not ways:
        raise ConfigError(
            _("No way of telling people is configured."),
            fix=_("Add [alerts.email], [alerts.webhook] or [alerts.apprise]: docs/alerts.md."),
        )
    message = trial(bridge.clock.now_ms())
    told = [await _tried(way, message) for way in ways]
    failed = sum(not each["ok"] for each in told)
    text = ngettext(
        "{n} of {all} ways does not work.", "{n} of {all} ways do not work.", failed
    ).format(n=failed, all=len(told))
    return {
        "ok": not failed,
        "text": text if failed else _("The test is sent: see whether it arrives."),
        "ways": told,
    }


@operation("fleet.key", role=Role.TECHNICIAN, command="fleet key")
async def fleet_key(bridge: "Bridge") -> Answer:
    """Print this bridge's name and the public key of its reports.

    It is a line for the list of keys of `tillbridge fleet show`; `minisign -P` takes the key too.

    Example: tillbridge fleet key >> keys.txt
    """
    from tillbridge.fleet.report import signing_key

    public = signing_key(bridge.ledger.vault).public
    return {"name": bridge.settings.fleet.called, "key": str(public)}


@operation("reporting.token", role=Role.TECHNICIAN)
async def reporting_token(
    bridge: "Bridge", scope: Annotated[str, Argument(audit="scope")]
) -> Answer:
    """Return `access_token` for the reporting API; it is minted only where none is cached.

    `scope` is separated by spaces.
    """
    from tillbridge.model.instant import to_iso

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


async def _tried(way: "Channel", message: "Message") -> Answer:
    try:
        await way.send(message)
    except BridgeError as failure:
        return {"way": way.name, "ok": False, "text": failure.text, "fix": failure.fix}
    return {"way": way.name, "ok": True, "text": _("sent"), "fix": ""}
