"""Telling people: would each way work? Nothing is sent."""

from typing import Any

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.diagnostics.result import Finding, failed, ok, skipped
from tillbridge.diagnostics.subject import Telling


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
