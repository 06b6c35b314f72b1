"""What commands and the page ask about problems, and about the alerts that tell of them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.nearest import nearest
from tillbridge.core.problems import PROBLEMS, ProblemKind, anchor
from tillbridge.daemon.rooms import House
from tillbridge.ledger.problems import acknowledge
from tillbridge.orders.commit import see
from tillbridge.orders.problems import OF_ONE, OF_SEVERAL
from tillbridge.web.ports import Answer

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel
    from tillbridge.alerts.message import Message


class ProblemOperations:
    """The operations about problems; `status` gives the status document."""

    def __init__(self, house: House, status: Callable[[], Awaitable[Answer]]) -> None:
        self._house = house
        self._status = status

    async def list(self) -> Answer:
        """Return what is open."""
        told = await self._status()
        return {"verdict": told["verdict"], "problems": told["problems"]}

    async def show(self, code: str) -> Answer:
        """Return what a code means, and what is open of it."""
        kind = _kind(code)
        told = await self._status()
        docs = self._house.settings.alerts.docs_url
        return {
            "code": kind.code,
            "severity": str(kind.severity),
            "text": kind.text,
            "fix": kind.fix,
            "ends": kind.end,
            "docs": f"{docs}#{anchor(kind.code)}",
            "open": [each for each in told["problems"] if each["code"] == code],
        }

    async def acknowledge(self, code: str, *, store: str | None, by: str) -> Answer:
        """Stop the alerts about what is open of this code."""
        kind = _kind(code)
        present = self._house.desk.current()
        which = [each for each in present if each.code == kind.code and store in {None, each.store}]
        if not which:
            return {
                "ok": False,
                "text": _("No problem {code} is open.").format(code=code),
                "fix": _("See what is: tillbridge problems list"),
                "acknowledged": 0,
            }
        at = self._house.clock.now_ms()

        def job(connection: Connection) -> None:
            acknowledge(connection, which, present, by=by, at=at)
            if kind.ends_when_seen:  # those that follow from orders are over with this
                see(connection, which, at, by=by)

        await self._house.ledger.write(job)
        if kind.ends_when_seen:
            for each in which:
                if each.code not in OF_ONE | OF_SEVERAL:
                    self._house.desk.close(each.code, each.store, each.subject)
        self._house.desk.noticed()
        if kind.ends_when_seen:
            text = _("You have taken note of it, so it is over.")
            return {"ok": True, "text": text, "acknowledged": len(which)}
        text = ngettext(
            "{n} problem {code} is acknowledged: no more alerts about it until it is over.",
            "{n} problems {code} are acknowledged: no more alerts about them until they are over.",
            len(which),
        ).format(n=len(which), code=code)
        return {"ok": True, "text": text, "acknowledged": len(which)}


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


def _kind(code: str) -> ProblemKind:
    kind = PROBLEMS.get(code)
    if kind is None:
        close = nearest(code, PROBLEMS)
        raise ConfigError(
            _("There is no problem with the code {code}.").format(code=code),
            fix=_("Did you mean {code}?").format(code=close)
            if close
            else _("See which there are in docs/problems.md."),
        )
    return kind
