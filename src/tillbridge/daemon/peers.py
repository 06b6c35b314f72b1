"""What this bridge asks of others on the same ledger, and they of it; and their notifications.

A click on a store that another bridge serves is a row of `requests`: that bridge performs the
operation as its own dispatcher does, with the same actor, and its answer or failure comes back.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from tillbridge.core import errors, operation
from tillbridge.core.actor import Actor, Role
from tillbridge.core.errors import BridgeError, LedgerError, NotServedHere, ServedElsewhere
from tillbridge.core.i18n import _, to_plain
from tillbridge.core.log import get_logger
from tillbridge.core.operation import Answer, Dispatcher
from tillbridge.core.worker import Supervisor, Worker
from tillbridge.daemon.leases import Leases
from tillbridge.daemon.served import ServedStores
from tillbridge.ledger import leases as rows
from tillbridge.ledger.leases import Cluster
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import BridgeRequest
from tillbridge.ledger.problems import open_problems
from tillbridge.operations.bridge import Bridge

log = get_logger()

_PATIENCE_S = 110.0  # with a bridge that is alive: less than who asks has, and than a request lasts
_GONE_MS = 20_000  # not seen for so long: nobody else was there to declare it dead
_ALONE_S = 0.2  # between looks of a command that nobody wakes


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Who waits for the answer of another bridge's run; None: that run is gone."""

    holder: str
    answered: "asyncio.Future[BridgeRequest | None]"


class Peers:
    """The other bridges, as this one talks to them. Run `worker`; used from the event loop."""

    def __init__(
        self,
        bridge: Bridge,
        leases: Leases,
        served: ServedStores,
        dispatcher: Dispatcher,
    ) -> None:
        self._bridge = bridge
        self._leases = leases
        self._served = served
        self._dispatcher = dispatcher
        self._waiting: dict[str, _Waiting] = {}
        self._performing: dict[str, asyncio.Task[None]] = {}
        leases.on_renewed = self._renewed
        supervisor = Supervisor("", bridge.problems)
        self.worker = Worker("peers", self._look, supervisor, bridge.clock)

    def on_notification(self, text: str) -> None:
        """Do at once what would be noticed at the next look."""
        kind, _space, about = text.partition(" ")
        if kind == "inbox":
            self._served.deliveries_arrived(about)
        elif kind == "answer" and about not in self._waiting:
            return
        elif kind in {"answer", "secret"}:
            self.worker.wake()
        elif kind != "request" or about == self._leases.holder:
            self._leases.worker.wake()

    def notify_owner(self, key: str) -> None:
        """Notify the bridge that serves this store or community of a delivery."""
        notified = self._bridge.ledger.write(rows.notify, f"inbox {key}")
        # Where it fails, the other one finds the delivery when it looks.
        notified.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def ask(
        self, elsewhere: ServedElsewhere, name: str, given: Mapping[str, Any], actor: Actor
    ) -> Answer:
        """Let another bridge perform an operation; return its answer. Raises its failure.

        It is waited for as long as that bridge is alive: a large menu takes its time.
        """
        request_id = await _asked(self._bridge.ledger, elsewhere, name, given, actor)
        answered: asyncio.Future[BridgeRequest | None]
        answered = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = _Waiting(elsewhere.holder, answered)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                done = await answered
        except TimeoutError:
            done = None
        finally:
            del self._waiting[request_id]
        return await _answer_of(self._bridge.ledger, request_id, done)

    async def drain(self) -> None:
        """Return once what others have asked for is done."""
        await asyncio.gather(*self._performing.values(), return_exceptions=True)

    def _renewed(self, cluster: Cluster) -> None:
        asked = {each.id for each in cluster.requests}
        for request_id in [each for each in self._performing if each not in asked]:
            if self._performing[request_id].done():
                del self._performing[request_id]  # it is answered
        for each in cluster.requests:
            if each.id not in self._performing:  # one whose answer was lost is not done twice
                task = asyncio.create_task(self._perform(each), name=f"request {each.name}")
                self._performing[each.id] = task
        self.worker.wake()

    async def _perform(self, request: BridgeRequest) -> None:
        """Do what another bridge asks for; both check the role."""
        role = request.actor.get("role")
        actor = Actor(str(request.actor.get("who")), None if role is None else Role(role))
        try:
            answer = await self._dispatcher.perform_here(request.name, request.arguments, actor)
            plain = to_jsonable_python(to_plain(answer), fallback=str)
            result: dict[str, Any] = {"answer": plain}
        except BridgeError as failure:
            result = {"failure": plain_failure(failure)}
        except Exception as failure:
            log.exception("request.failed", name=request.name)
            text = _("The bridge that serves this store has a defect: {kind}.")
            defect = BridgeError(text.format(kind=type(failure).__name__))
            result = {"failure": plain_failure(defect)}
        try:
            await self._bridge.ledger.write(rows.answer, request.id, **result)
        except Exception:
            log.exception("request.not_answered", name=request.name)

    async def _look(self) -> None:
        """Take the answers that have come, and read what other bridges have changed."""
        bridge = self._bridge
        try:
            if self._waiting:
                cluster = bridge.cluster  # as it was before: what came in time is an answer
                for done in await bridge.ledger.write(rows.take_answers, tuple(self._waiting)):
                    self._answered(done.id, done)
                for request_id, waiting in self._waiting.items():
                    if cluster is not None and not _is_alive(cluster, waiting.holder):
                        self._answered(request_id, None)
            await self._served.read_secrets()
            found = await bridge.ledger.read(open_problems)
        except LedgerError:
            return  # the leases' own failure has been logged
        bridge.problems.read_elsewhere(found, {*bridge.stores, *self._served.keys})

    def _answered(self, request_id: str, done: BridgeRequest | None) -> None:
        waiting = self._waiting.get(request_id)
        if waiting is not None and not waiting.answered.done():
            waiting.answered.set_result(done)


async def ask_alone(
    ledger: Ledger, elsewhere: ServedElsewhere, name: str, given: Mapping[str, Any], actor: Actor
) -> Answer:
    """Do as `Peers.ask`, for a command of a machine on which no bridge runs."""
    request_id = await _asked(ledger, elsewhere, name, given, actor)
    for _attempt in range(round(_PATIENCE_S / _ALONE_S)):
        await asyncio.sleep(_ALONE_S)
        cluster = await ledger.read(rows.read_cluster)
        for done in await ledger.write(rows.take_answers, [request_id]):
            return await _answer_of(ledger, request_id, done)
        if not _is_alive(cluster, elsewhere.holder):
            break
    return await _answer_of(ledger, request_id, None)


async def _asked(
    ledger: Ledger, elsewhere: ServedElsewhere, name: str, given: Mapping[str, Any], actor: Actor
) -> str:
    who = {"who": actor.who, "role": None if actor.role is None else int(actor.role)}
    request_id = await ledger.write(rows.ask, elsewhere.holder, name, given, who)
    if request_id is None:
        raise _no_answer(NotServedHere)
    return request_id


def _is_alive(cluster: Cluster, holder: str) -> bool:
    return any(
        each.holder == holder and cluster.now_ms - each.seen_at < _GONE_MS
        for each in cluster.bridges
    )


async def _answer_of(ledger: Ledger, request_id: str, done: BridgeRequest | None) -> Answer:
    if done is None:
        await ledger.write(rows.withdraw, request_id)
        raise _no_answer()
    if done.failure is not None:
        raise failure_of(done.failure)
    answer: Answer = done.answer
    return answer


def _no_answer(kind: type[BridgeError] = BridgeError) -> BridgeError:
    return kind(
        _("The bridge that serves this store does not answer."),
        fix=_("Try again in a moment: another bridge takes the store over."),
    )


def plain_failure(failure: BridgeError) -> dict[str, Any]:
    """Return a failure as JSON."""
    kind = type(failure).__name__
    return {"kind": kind, "text": to_plain(failure.text), "fix": to_plain(failure.fix)}


def failure_of(plain: Mapping[str, Any]) -> BridgeError:
    """Return the failure again; one of a kind that cannot be made anew is a BridgeError."""
    name = str(plain.get("kind"))
    kind = getattr(operation, name, None) or getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BridgeError)):
        kind = BridgeError
    try:
        return kind(plain.get("text", ""), fix=plain.get("fix", ""))
    except TypeError:
        return BridgeError(plain.get("text", ""), fix=plain.get("fix", ""))
