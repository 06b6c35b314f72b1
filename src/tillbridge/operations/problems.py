"""What is wrong and what to do, and taking note of it."""

from typing import TYPE_CHECKING, Annotated

from tillbridge.core.actor import Role, current_actor
from tillbridge.core.errors import ConfigError, nearest
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.operations.status import status as status_document

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tillbridge.core.problems import ProblemKind
    from tillbridge.operations.bridge import Bridge

_CODE = _("The problem's code, for example pos.offline.")


@operation("problems.list", role=Role.LOOK, reads=True, command="problems list")
async def open_problems(bridge: "Bridge") -> Answer:
    """List the open problems, the worst first, with what to do about each.

    Example: tillbridge problems list
    """
    status = await status_document(bridge)
    return {"verdict": status["verdict"], "problems": status["problems"]}


@operation("problems.show", role=Role.LOOK, reads=True, command="problems show")
async def show(
    bridge: "Bridge", code: Annotated[str, Argument("CODE", _CODE, complete="codes")]
) -> Answer:
    """Explain a problem by its code, and show where it is open.

    Example: tillbridge problems show pos.offline
    """
    from tillbridge.core.problems import anchor

    kind = _kind(code)
    problems = (await status_document(bridge))["problems"]
    return {
        "code": kind.code,
        "severity": str(kind.severity),
        "text": kind.text,
        "fix": kind.fix,
        "ends": kind.end,
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
        Argument(
            "STORE", _("Only where it is this store's problem."), complete="stores", audit="store"
        ),
    ] = None,
) -> Answer:
    """Take note of a problem: alerts about it stop until it is over; the page still shows it.

    Example: tillbridge problems ack pos.offline
    """
    from tillbridge.ledger.problems import acknowledge as write_down
    from tillbridge.orders.repository import OF_ONE, OF_SEVERAL, see

    # With "" for a store only the bridge's own problems of this code are meant.
    kind, by, at = _kind(code), current_actor().name, bridge.clock.now_ms()
    present = bridge.problems.current()
    which = [each for each in present if each.code == kind.code and store in {None, each.store}]
    if not which:
        return {
            "ok": False,
            "text": _("No problem {code} is open.").format(code=code),
            "fix": _("See what is: tillbridge problems list"),
            "acknowledged": 0,
        }

    def job(connection: "Connection") -> None:
        write_down(connection, which, present, by=by, at=at)
        if kind.ends_when_seen:  # those that follow from orders are over with this
            see(connection, which, at, by=by)

    await bridge.ledger.write(job)
    if kind.ends_when_seen:
        for each in which:
            if each.code not in OF_ONE | OF_SEVERAL:
                bridge.problems.close(each.code, each.store, each.subject)
    bridge.problems.noticed()
    if kind.ends_when_seen:
        text = _("You have taken note of it, so it is over.")
        return {"ok": True, "text": text, "acknowledged": len(which)}
    text = ngettext(
        "{n} problem {code} is acknowledged: no more alerts about it until it is over.",
        "{n} problems {code} are acknowledged: no more alerts about them until they are over.",
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
            else _("See which there are in docs/problems.md."),
        )
    return kind
