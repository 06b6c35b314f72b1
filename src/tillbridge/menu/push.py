"""Push a plan: step after step, each acknowledged as soon as the service accepted it.

Each call is recorded before it is sent, and the record ends with what became of it. What the
service accepted is acknowledged here, and nowhere else (invariant 3). A push whose end stays
unknown (time-out, failure of the service, crash) leaves its items unconfirmed: they are sent again.
A push that the service makes a job of is followed until it ends. The service remembers a job for an
hour after its last update; one that it no longer knows is settled by the sync status: where
`last_synced_at` has moved since the job began, it succeeded. Specification: Menu sync job; Limits.

A step that is refused is narrowed down to the items it is refused for; the others go through. An
item counts as refused only when it was refused by itself while something else of the same plan was
accepted: a service that refuses everything says nothing about a single item.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceDown, ServiceError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import menu, pushes
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.menu_codec import AcceptedItem, PushContent
from tillbridge.ledger.models import Push
from tillbridge.menu.compare import availability_of
from tillbridge.menu.describe import FIELD_LABELS, PushDetail
from tillbridge.menu.diff import ContentDigest
from tillbridge.menu.lane import PORTION, JobLost, MenuContext
from tillbridge.menu.plan import Assessment, Step, portions
from tillbridge.menu.verdict import Reply, Sent, accepted_part, divide, judge, named_in, refused_for
from tillbridge.model.catalogue import Item
from tillbridge.service.caller import LATE_S
from tillbridge.service.types import PushAccepted

log = get_logger()

MOST_CALLS = 80  # while narrowing one step down
JOB_NOT_FOUND = "menu.job_not_found"
GIVE_UP_S = 2 * 3600.0  # a job that has not ended by then has been forgotten by the service
REMEMBERED = 6  # items of a call, in its record
_AGAIN = "menu_again"  # the fact: {until, ids, whole} of `CallsInFlight`, and never removed
_LONG_OVER_S = 600.0  # it was sent long ago
_BASELINE = "menu_job"  # the fact that holds what `last_synced_at` was when the job began
Targets = Mapping[str, AcceptedItem]


@dataclass(slots=True)
class PushResult:
    """What came of a plan.

    `drifted` are items that the service turned out not to know. `failure` is why something of the
    plan was not accepted, in words ("" if all was, or is refused item by item). `reservation` is
    what the service left out of items that it accepted, in its words. `lacks`: it was refused for
    something that the service accepted before and does not know now. `refusals` are all that hold
    where the plan was carried out.
    """

    accepted: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    failure: str = ""
    reservation: str = ""
    lacks: bool = False
    refusals: Mapping[str, menu.Refusal] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether the service has all of it, apart from what it refused item by item."""
        return not (self.drifted or self.failure or self.lacks)


Finish = Callable[[Connection, str, PushResult], None]


async def push(
    ctx: MenuContext, store_id: str, assessment: Assessment, finish: Finish | None = None
) -> PushResult:
    """Carry the plan out; an approval stands for what is left of it.

    Where the service has all of it, apart from what it refused item by item, `finish` records that:
    in the transaction that acknowledges the last call, if that one was accepted whole.

    Raises ServiceError or JobLost; what was accepted until then stays acknowledged.
    """
    left = None
    if assessment.approved:
        left = await asyncio.to_thread(ContentDigest, assessment.comparison.changes)
    steps = assessment.plan.steps
    pusher = Pusher(ctx, store_id, assessment.comparison.targets, left, finish)
    with ctx.underway("sending", sum(len(each.ids) for each in steps)):
        for number, step in enumerate(steps, 1):
            await pusher.push_step(step, is_last=number == len(steps))
        if pusher.result.refused or pusher.finish is not None:
            await pusher.finish_plan()
    return pusher.result


async def send_availability(ctx: MenuContext, store_id: str, items: Sequence[Item]) -> Sent:
    """Send an availability call of its own lane, whose turn it is.

    Items of which a menu call under way carries another availability come back as `named`, and are
    not acknowledged.
    """
    step = Step("availability", tuple(items))
    with ctx.calls.availability(step.availability) as clashed:
        sent = await Pusher(ctx, store_id, None).send_recorded(step, clashed)
        return replace(sent, named=frozenset(clashed)) if sent.state == "success" else sent


@dataclass(slots=True)
class Pusher:
    """Carries out one plan; `targets` are its items as acknowledged (None: availability alone).

    `left` is the digest of what is left of an approved difference. `finish` is None once done.
    """

    ctx: MenuContext
    store_id: str
    targets: Targets | None
    left: ContentDigest | None = None
    finish: Finish | None = None
    result: PushResult = field(default_factory=PushResult)

    async def push_step(self, step: Step, *, is_last: bool) -> None:
        """Send the step, divided as often as it takes to find what is refused."""
        ids, result, ctx = frozenset(step.ids), self.result, self.ctx
        if result.lacks or (ids and ids <= result.refused.keys()):
            return
        if ids & result.refused.keys():
            step = step.only(ids - result.refused.keys())
        queue: deque[Step] = deque([step])
        blamed: dict[str, str] = {}
        accepted = repeated = False
        for _call_number in range(MOST_CALLS):
            if not queue:
                break
            part = queue.popleft()
            sent = await self.send(part, is_last=is_last and not (queue or blamed))
            result.drifted |= sent.missing
            accepted |= sent.state != "failed" or bool(sent.missing)
            if sent.reserved:
                result.reservation = sent.message or _("it does not say why.")
            if sent.state == "success" or sent.missing:
                done = min(ctx.progress["total"], ctx.progress["done"] + len(part.ids))
                ctx.progress = {**ctx.progress, "done": done}
                result.accepted += len(set(part.ids) - sent.missing)
                continue
            if sent.again and not repeated:
                repeated = True  # a failed job: the whole menu once more
                queue.appendleft(part)
                continue
            result.failure = result.failure or sent.message
            if sent.lacks:  # no item is to blame
                result.lacks = True
                return
            if smaller := divide(part, sent):
                queue.extendleft(reversed(smaller))
            else:
                blamed |= dict.fromkeys(part.ids, sent.message)
        if queue:
            result.failure = result.failure or _("Too much of the menu is refused.")
        elif blamed and (accepted or result.accepted or len(step.ids) == 1):
            self._blame(step, blamed)

    def _blame(self, step: Step, blamed: Mapping[str, str]) -> None:
        undeletable = blamed.keys() & set(step.delete)
        result = self.result
        result.refused |= {key: why for key, why in blamed.items() if key not in undeletable}
        if result.refused and not undeletable:
            result.failure = ""

    async def send(self, step: Step, *, is_last: bool) -> Sent:
        """Send a step. Raises ServiceError or JobLost if it was not answered.

        What the availability lane sent since the plan was made is in it; where that is all the step
        carries, nothing is sent.
        """
        ctx, calls = self.ctx, self.ctx.calls
        with ExitStack() as under_way:
            async with calls.turn:
                if calls.sent:
                    step = step.with_availability(calls.sent)
                if step.kind != "availability":
                    carried = await asyncio.to_thread(lambda: step.availability)
                    if carried:
                        under_way.enter_context(calls.menu(carried))
                else:
                    already = {
                        each.external_id: each
                        for each in step.items
                        if each.external_id in calls.sent
                    }
                    if already:
                        at = ctx.clock.now_ms()
                        await ctx.write(acknowledge_availability, already, self.targets, at=at)
                        step = step.only(frozenset(step.ids) - already.keys())
                    if not step.items:
                        return Sent("success")
                    return await self.send_recorded(step, is_last=is_last)
            return await self.send_recorded(step, is_last=is_last)

    async def send_recorded(
        self, step: Step, clashed: AbstractSet[str] = frozenset(), *, is_last: bool = False
    ) -> Sent:
        """Record the call, make it, and acknowledge what was accepted of it, `clashed` items apart.

        Where nothing of it is to be acknowledged, its record has ended.
        """
        ctx = self.ctx
        pending = await asyncio.to_thread(PushContent(ids=step.ids).text)
        targets = self.targets or {}
        gone = step.delete[:REMEMBERED]
        names = {key: targets[key].item.name for key in gone if key in targets}
        summary: dict[str, Any] = {**step.summary}
        if details := details_of(step, names):
            summary["details"] = details
        if step.kind == "patch":
            (item,) = step.items
            summary |= {"item": item.external_id, "name": item.name}
            del summary["external_id"]
        at = ctx.clock.now_ms()
        push_id = await ctx.write(pushes.begin_push, step.kind, summary, pending, at=at)
        ctx.calls.push_ids.add(push_id)  # ours to end
        try:
            sent = await self._call(push_id, step)
            if sent.state != "failed":
                await self._acknowledge(push_id, step, sent, clashed, is_last=is_last)
            return sent
        except ServiceError as failure:
            lost = isinstance(failure, OutcomeUnknown | ServiceDown)
            unconfirmed = step.ids if lost else ()
            await end(ctx, push_id, "lost" if lost else "failed", failure.text, unconfirmed)
            if (refusal := refused_for(failure, step)) is None:
                raise
            return refusal
        finally:
            ctx.calls.push_ids.discard(push_id)

    async def _call(self, push_id: int, step: Step) -> Sent:
        """Make the call; remember it if one of its tries may arrive after later calls."""
        calls, service = self.ctx.calls, self.ctx.service
        if await calls.note_contradictions(step):
            await remember_again(self.ctx)
        before = service.unanswered_at
        try:
            return await call(self.ctx, self.store_id, push_id, step, self.targets or {})
        finally:
            if service.unanswered_at > before:
                calls.may_be_late(step, service.unanswered_at + LATE_S)

    async def _acknowledge(
        self, push_id: int, step: Step, sent: Sent, clashed: AbstractSet[str], *, is_last: bool
    ) -> None:
        """Acknowledge what was accepted, and end the record of the call.

        An approval stands for what is left of its plan.
        """
        ctx, left, targets = self.ctx, self.left, self.targets
        accepted, content, at = accepted_part(step, sent), PushContent(), ctx.clock.now_ms()
        toggled: dict[str, Item] = {}  # of a call of availability alone
        finish: Finish | None = None
        if accepted is not None:
            if clashed:
                accepted = accepted.only(set(accepted.ids) - clashed)
            if accepted.kind == "availability":
                toggled = {each.external_id: each for each in accepted.items}
            else:
                content = await asyncio.to_thread(content_of, accepted, targets or {})
            if left is not None:
                left.accepted(accepted.ids)
            if is_last and accepted is step and self.result.is_complete and not self.result.refused:
                finish, self.finish = self.finish, None

        if len(content.items) > PORTION:
            content = await acknowledge_all_but_last(ctx, content, at=at)

        def record(connection: Connection, store: str) -> None:
            menu.acknowledge(connection, store, content, at=at)
            if toggled:
                acknowledge_availability(connection, store, toggled, targets, at=at)
            if accepted is not None and left is not None:
                pushes.carry_approval(connection, store, left.text)
            if finish is not None:
                finish(connection, store, self.result)
            pushes.end_push(connection, push_id, sent.state, sent.message, at=at)

        await ctx.write(record)
        if targets is None:  # news to the menu's plan
            ctx.calls.sent.update((key, availability_of(each)) for key, each in toggled.items())

    async def finish_plan(self) -> None:
        """Record what the service refused item by item, which is not sent again as it is."""
        targets, result, at = self.targets or {}, self.result, self.ctx.clock.now_ms()
        refusals = {
            key: menu.Refusal(targets[key].fingerprint or 0, why, targets[key].item.name)
            for key, why in result.refused.items()
            if key in targets
        }
        finish = self.finish if result.is_complete else None

        def record(connection: Connection, store: str) -> None:
            menu.refuse_items(connection, store, refusals, at=at)
            if finish is not None:
                finish(connection, store, result)

        if refusals:
            log.warning("menu.refused", store=self.ctx.store, items=len(refusals))
        if refusals or finish is not None:
            await self.ctx.write(record)


# -- what is to be sent once more, because an earlier call may come later


async def remember_again(ctx: MenuContext) -> None:
    """Store what is to be sent once more, for a bridge that is restarted until then."""
    at, calls = ctx.clock.now_ms(), ctx.calls
    ids, whole = sorted(calls.again), sorted(calls.whole_again)
    fact = {"until": at + round(LATE_S * 1000), "ids": ids, "whole": whole}
    await ctx.write(put_fact, _AGAIN, fact, at=at)


async def recall_again(ctx: MenuContext) -> None:
    """Have sent once more what a bridge that has ended did not come to."""
    known = await ctx.read(get_fact, _AGAIN)
    if known is None:
        return
    left_s = (known["until"] - ctx.clock.now_ms()) / 1000
    if left_s > -_LONG_OVER_S:
        until = asyncio.get_running_loop().time() + min(max(0.0, left_s), LATE_S)
        ctx.calls.again |= dict.fromkeys(known["ids"], until)
        ctx.calls.whole_again |= dict.fromkeys(known["whole"], until)


# -- the record of a call: from before it is sent until its end is known


def details_of(step: Step, names: Mapping[str, str]) -> list[PushDetail]:
    """Return the first items of a call; `names` are those of the items that it removes, by id.

    A push of the whole menu has none.
    """
    details: list[PushDetail] = []
    for item in () if step.kind == "full" else step.items[:REMEMBERED]:
        before = step.before.get(item.external_id)
        if step.kind == "availability":
            details.append({"kind": "on_sale" if item.available else "sold_out", "name": item.name})
        elif before is None:
            details.append({"kind": "added", "name": item.name, "price": item.price})
        else:
            fields = [each for each in FIELD_LABELS if getattr(before, each) != getattr(item, each)]
            detail: PushDetail = {"kind": "changed", "name": item.name, "fields": fields}
            if "price" in fields:
                detail |= {"was": before.price, "price": item.price}
            details.append(detail)
    gone = step.delete[: REMEMBERED - len(details)]
    details += [{"kind": "removed", "name": names.get(key, key)} for key in gone]
    return details


def content_of(step: Step, targets: Targets) -> PushContent:
    """Return what is acknowledged once the step is accepted."""
    items = (replace(targets[each.external_id], item=each, doubtful=False) for each in step.items)
    return PushContent(step.delete, tuple(items), step.parts)


async def acknowledge_all_but_last(
    ctx: MenuContext, content: PushContent, *, at: int
) -> PushContent:
    """Acknowledge items of a large menu by portions; return the last portion, and the rest."""
    last = (len(content.items) - 1) // PORTION * PORTION
    for portion in portions(content.items[:last], PORTION):
        await ctx.write(menu.acknowledge, PushContent(items=tuple(portion)), at=at)
    return replace(content, items=content.items[last:])


async def end(
    ctx: MenuContext, push_id: int, state: str, message: str, unconfirmed: Collection[str] = ()
) -> None:
    """Record how a push ended of which nothing is acknowledged.

    Of the `unconfirmed` items nobody knows what the service has.
    """
    await ctx.write_portions(menu.mark_unconfirmed, unconfirmed)
    at = ctx.clock.now_ms()
    await ctx.ledger.write(pushes.end_push, push_id, state, message, at=at)


def acknowledge_availability(
    connection: Connection,
    store: str,
    sent: Mapping[str, Item],
    targets: Targets | None = None,
    *,
    at: int,
) -> None:
    """Acknowledge availability alone; `targets` where a reading of the export gave it.

    Where other changes of such an item still wait, its record is left open, so that each reading
    finds it again. Without targets, where the items come from stays as it is.
    """
    accepted = []
    for external_id, known in menu.items_by_id(connection, store, sent).items():
        item = sent[external_id]
        toggled = replace(known.item, available=item.available, snooze_until=item.snooze_until)
        now = replace(known, item=toggled)
        if targets is not None:
            target = targets[external_id]
            if toggled == item:
                now = replace(target, item=item, doubtful=known.doubtful)
            else:
                now = replace(
                    now,
                    fingerprint=None,
                    pos_available=target.pos_available,
                    pos_until=target.pos_until,
                )
        accepted.append(now)
    menu.change_items(connection, store, accepted, at=at)


# -- one call, and the job it may become


async def call(ctx: MenuContext, store_id: str, push_id: int, step: Step, targets: Targets) -> Sent:
    """Make the call, and return what came of it. Raises ServiceError or JobLost."""
    service = ctx.service
    body = step.body() if len(step.items) == 1 else await asyncio.to_thread(step.body)
    if step.kind == "batch":
        batch = await service.batch(store_id, body)
        counts = [each for each in (batch.added, batch.updated, batch.deleted) if each is not None]
        return judge(Reply(batch.status, batch.message, sum(counts) if counts else None), step)
    if step.kind == "patch":
        patch = await service.patch_item(store_id, step.ids[0], body)
        return judge(Reply(patch.status, patch.message), step)
    if step.kind == "availability":
        answer = await service.set_availability(store_id, body["items"])
        missing = frozenset(answer.not_found) & set(step.ids)
        return Sent("success", answer.message, missing=missing)
    pushed = await service.push_menus(store_id, body)
    if not isinstance(pushed, PushAccepted):
        return judge(Reply(pushed.status, pushed.message, pushed.counts.items), step)
    with ctx.underway("importing", len(step.items)):
        ended = await _become_job(ctx, store_id, push_id, pushed, step, targets)
    if ended.status == "success":
        whole = ended.count is None or ended.count >= len(step.items)
        return judge(ended if whole else replace(ended, status="partial"), step)
    await end(ctx, push_id, ended.status, ended.message, unconfirmed=step.ids)
    if ended.status == "lost":
        raise JobLost(ended.message)
    return Sent("failed", ended.message, named_in(ended.message, step), again=True)


async def _become_job(
    ctx: MenuContext, store_id: str, push_id: int, job: PushAccepted, step: Step, targets: Targets
) -> Reply:
    """Record that the push became a job, and return its end.

    Raises ServiceError if the service cannot be asked any more; the job is then resumed by the
    next round, or after a restart.
    """
    at = ctx.clock.now_ms()
    pending = await asyncio.to_thread(lambda: content_of(step, targets).text())

    def remember(connection: Connection, store: str) -> None:
        pushes.push_became_job(
            connection, push_id, job_id=job.job_id, poll_url=job.poll_url, pending=pending
        )
        baseline = {"job_id": job.job_id, "synced_at": job.synced_before}
        put_fact(connection, store, _BASELINE, baseline, at=at)

    await ctx.write(remember)
    log.info("menu.job_started", store=ctx.store, job=job.job_id)
    return await follow_job(ctx, store_id, job.job_id, job.poll_url, at)


async def follow_job(
    ctx: MenuContext, store_id: str, job_id: str, poll_url: str, began: int
) -> Reply:
    """Poll the job until it ends. Raises ServiceError."""
    give_up = ctx.clock.monotonic() + GIVE_UP_S
    while ctx.clock.monotonic() < give_up:
        try:
            job = await ctx.service.menu_job(store_id, job_id, poll_url=poll_url)
        except Refused as failure:
            if failure.code != JOB_NOT_FOUND:
                raise
            return await _by_sync_status(ctx, store_id, job_id, began)
        if job.ended:
            state = "success" if job.status == "success" else "failed"
            log.info("menu.job_ended", store=ctx.store, job=job_id, state=state)
            return Reply(state, job.message, job.counts.items)
        await asyncio.sleep(ctx.service_settings.job_poll_s)
    return Reply("lost", _("The service has been processing the menu update for hours."))


async def _by_sync_status(ctx: MenuContext, store_id: str, job_id: str, began: int) -> Reply:
    """Return by the sync status what became of a job that the service no longer knows."""
    baseline = await ctx.read(get_fact, _BASELINE)
    synced = (await ctx.service.menu_status(store_id)).last_synced_at
    log.info("menu.job_settled", store=ctx.store, job=job_id, last_synced_at=synced)
    if baseline is not None and baseline["job_id"] == job_id and baseline["synced_at"]:
        began = baseline["synced_at"] + 1
    if synced is not None and synced >= began:
        return Reply("success")
    return Reply("lost", _("The service no longer knows the menu update, and reports none since."))


async def settle_push(ctx: MenuContext, store_id: str, push: Push) -> None:
    """Settle a push whose end nobody knows: the bridge stopped, or the service was away.

    A job is followed on. What any other push carried is unconfirmed. Raises ServiceError.
    """
    state, message = "lost", ""
    if push.job_id is not None:
        log.info("menu.job_resumed", store=ctx.store, job=push.job_id)
        ended = await follow_job(ctx, store_id, push.job_id, push.poll_url or "", push.started_at)
        state, message = ended.status, ended.message
        if ended.count is not None and ended.count < push.summary.get("items", 0):
            state = "lost"  # some items were refused: pushing again finds which
    text = await ctx.ledger.read(pushes.pending_of, push.id)
    content = await asyncio.to_thread(PushContent.of_text, text or "")
    at = ctx.clock.now_ms()
    if state == "success":
        content = replace(content, ids=())
        if len(content.items) > PORTION:
            content = await acknowledge_all_but_last(ctx, content, at=at)

        def record(connection: Connection, store: str) -> None:
            menu.acknowledge(connection, store, content, at=at)
            put_fact(connection, store, "last_synced_at", at, at=at)
            pushes.end_push(connection, push.id, state, message, at=at)

        await ctx.write(record)
    else:
        ids = {*content.ids, *(each.item.external_id for each in content.items)}
        await end(ctx, push.id, state, message, unconfirmed=ids)
    log.info("menu.push_settled", store=ctx.store, kind=push.kind, state=state)
