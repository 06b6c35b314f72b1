"""What commands and the page ask about problems, and about the alerts that tell of them."""

from typing import TYPE_CHECKING

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.daemon.rooms import House
from tillbridge.web.ports import Answer

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel
    from tillbridge.alerts.message import Message


class AlertOperations:
    """The operations about alerts."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def test(self) -> Answer:
        """Send a test by every way, one after the other."""
        # Only where alerts are configured, and only when somebody asks.
        from tillbridge.alerts.message import trial  # noqa: PLC0415 -- (as above)
        from tillbridge.daemon.alerting import channels_of  # noqa: PLC0415 -- (as above)

        ways = channels_of(self._house.settings.alerts, self._house.base_dir)
        if not ways:
            raise ConfigError(
                _("No way of telling people is configured."),
                fix=_("Add [alerts.email], [alerts.webhook] or [alerts.apprise]: docs/alerts.md."),
            )
        message = trial(self._house.clock.now_ms())
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


async def _tried(way: "Channel", message: "Message") -> Answer:
    try:
        await way.send(message)
    except BridgeError as failure:
        return {"way": way.name, "ok": False, "text": failure.text, "fix": failure.fix}
    return {"way": way.name, "ok": True, "text": _("sent"), "fix": ""}
