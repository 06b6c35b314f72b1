"""Carries a plan out: step after step, each acknowledged as soon as the service accepted it.

A step that is refused is narrowed down to the items it is refused for; the others go through. An
item counts as refused only when it was refused by itself while something else of the same plan was
taken: a service that refuses everything says nothing about a single item.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tillbridge.core.clock import Clock
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.menu import Refusal, refuse_items
from tillbridge.menu.compare import Record
from tillbridge.menu.diff import ContentDigest
from tillbridge.menu.narrowing import Sent, divide, ids_of, only, singly
from tillbridge.menu.plan import Plan, PushBatch, Step
from tillbridge.menu.sending import Sender

log = get_logger()

MOST_CALLS = 80  # while narrowing one step down


@dataclass(frozen=True, slots=True)
class PushResult:
    """What came of a plan.

    `drifted` are items that the service turned out not to know. `failure` is why something of the
    plan was not taken, in words ("" if all was taken or is refused item by item). `reservation` is
    what the service did not take of items that it did, in its words. `lacks`: it was refused for
    something that the service has taken before and does not know now.
    """

    taken: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)
    drifted: frozenset[str] = frozenset()
    failure: str = ""
    reservation: str = ""
    lacks: bool = False


@dataclass(slots=True)
class _Course:
    taken: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    failure: str = ""
    reservation: str = ""
    lacks: bool = False


class Pusher:
    """Carries out the plans of one store."""

    def __init__(self, ledger: Ledger, sender: Sender, store: str, *, clock: Clock) -> None:
        self._ledger = ledger
        self._sender = sender
        self._store = store
        self._clock = clock

    async def run(
        self,
        store_id: str,
        plan: Plan,
        records: Mapping[str, Record],
        left: ContentDigest | None = None,
    ) -> PushResult:
        """Carry the plan out; `left` is the digest of the difference it stands for.

        Raises ServiceError or JobLost; what was accepted until then stays acknowledged.
        """
        course = _Course()
        for step in plan.steps:
            if course.lacks:
                break
            wanted = ids_of(step) - course.refused.keys()
            if wanted == ids_of(step):
                await self._settle(store_id, step, records, left, course)
            elif wanted:
                await self._settle(store_id, only(step, wanted), records, left, course)
        await self._write_refusals(course.refused, records)
        return PushResult(
            course.taken,
            course.refused,
            frozenset(course.drifted),
            course.failure,
            course.reservation,
            course.lacks,
        )

    async def _settle(
        self,
        store_id: str,
        step: Step,
        records: Mapping[str, Record],
        left: ContentDigest | None,
        course: _Course,
    ) -> None:
        """Send the step, divided as often as it takes to find what is refused."""
        queue: deque[Step] = deque([step])
        blamed: dict[str, str] = {}
        taken = told_again = False
        for _call in range(MOST_CALLS):
            if not queue:
                break
            part = queue.popleft()
            sent = await self._sender.send_menu(store_id, part, records, left)
            course.drifted |= sent.missing
            taken |= sent.verdict != "refused" or bool(sent.missing)
            if sent.reserved:
                course.reservation = sent.message or _("it does not say what.")
            if sent.verdict == "taken" or sent.missing:
                course.taken += len(ids_of(part) - sent.missing)
                continue
            if sent.again and not told_again:
                told_again = True  # a failed job: the whole menu once more
                queue.appendleft(part)
                continue
            course.failure = course.failure or sent.message
            if sent.lacks:  # no item is to blame
                course.lacks = True
                return
            smaller = _smaller(part, sent)
            if smaller:
                queue.extendleft(reversed(smaller))
            else:
                blamed |= dict.fromkeys(ids_of(part), sent.message)
        if queue:
            course.failure = course.failure or _("Too much of the menu is refused.")
        elif blamed and (taken or course.taken or len(ids_of(step)) == 1):
            self._blame(step, blamed, course)

    def _blame(self, step: Step, blamed: Mapping[str, str], course: _Course) -> None:
        undeletable = step.delete if isinstance(step, PushBatch) else ()
        course.refused |= {key: why for key, why in blamed.items() if key not in undeletable}
        if len(course.refused) and not blamed.keys() & set(undeletable):
            course.failure = ""

    async def _write_refusals(
        self, refused: Mapping[str, str], records: Mapping[str, Record]
    ) -> None:
        refusals = {
            key: Refusal(records[key].fingerprint or 0, why, records[key].from_export.name)
            for key, why in refused.items()
            if key in records
        }
        if refusals:
            log.warning("menu.refused", store=self._store, items=len(refusals))
            at = self._clock.now_ms()
            await self._ledger.write(
                lambda connection: refuse_items(connection, self._store, refusals, at=at)
            )


def _smaller(part: Step, sent: Sent) -> tuple[Step, ...]:
    """Return what to send next for a part that was not taken whole."""
    if sent.verdict == "partial" and sent.named and sent.named != ids_of(part):
        return singly(part, sent.named)  # the rest was taken
    return divide(part, sent.named)
