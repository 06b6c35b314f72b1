"""What an answer to a push means for its items. Pure.

`partial` says that something was not taken, and perhaps what. Names count only where the numbers
agree with them; where nobody can tell, nothing is acknowledged and the push is told in parts.
"""

from dataclasses import dataclass
from typing import Literal

from tillbridge.menu.narrowing import ids_of, named_in, only
from tillbridge.menu.plan import Step

_INCOMPLETE = frozenset({"partial", "failed", "error"})


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of a call.

    `refused` means that nothing of it was taken; `partial` that some of it was not, of which
    `named` are known by name (the rest is acknowledged), or that nobody can tell which (none are).
    `missing` are items that the service does not know. `reserved` says that every item was taken,
    but not everything about them: `message` tells what. `lacks`: it was refused for a category,
    add-on or group that the service was told before, and does not know now. `again`: the service
    failed at its own work; the same is told once more before any item is blamed.
    """

    verdict: Literal["taken", "partial", "refused"]
    message: str = ""
    named: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    reserved: bool = False
    lacks: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The service's answer in one shape; `count` is how many items it took, None: not told."""

    status: str
    message: str
    count: int | None = None
    missing: frozenset[str] = frozenset()


def judge(reply: Reply, step: Step) -> Sent:
    """Return what came of the call."""
    if reply.status not in _INCOMPLETE:
        return Sent("taken", reply.message, missing=reply.missing)
    named = named_in(reply.message, step)
    told = len(ids_of(step))
    if reply.count is not None and reply.count == told:
        return Sent("taken", reply.message, reserved=True)  # what was not taken is no item
    if named and reply.count is not None and reply.count != told - len(named):
        named = frozenset()  # the message does not name them all
    return Sent("partial", reply.message, named)


def taken_of(step: Step, sent: Sent) -> Step | None:
    """Return what of the step is to be acknowledged."""
    if sent.verdict == "taken":
        return only(step, ids_of(step) - sent.missing) if sent.missing else step
    if sent.verdict == "partial" and sent.named and sent.named != ids_of(step):
        return only(step, ids_of(step) - sent.named)
    return None
