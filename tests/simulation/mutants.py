"""Planted defects: each has to be found, or the simulator does not see."""

import asyncio
import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from tests.simulation.machine import _machines
from tillbridge.adapter import PosFailure
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConsentLost, LedgerError, RateLimited, ServiceError, Unauthorised
from tillbridge.core.problems import Scope
from tillbridge.ledger.database import LedgerLock
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import NewDelivery
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders import state
from tillbridge.orders.flow import OrdersFlow
from tillbridge.orders.notifier import ServiceNotifier, StateEstimate
from tillbridge.orders.reconciler import UpdateReader
from tillbridge.orders.ticket_writer import TicketWriter, WriteQueue
from tillbridge.pos.call_lane import CallLane
from tillbridge.pos.runner import PosRunner
from tillbridge.receiver.deliveries import Deliveries
from tillbridge.service.answers import GiveUp
from tillbridge.service.caller import Gate, Write
from tillbridge.stores.reconciler import PosPause

Patches = list[Any]
MUTANTS: dict[str, Callable[[], Patches]] = {}


def mutant(make: Callable[[], Patches]) -> Callable[[], Patches]:
    MUTANTS[make.__name__] = make
    return make


def _module(name: str) -> Any:
    return import_module(f"tillbridge.{name}")


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Let the program have this defect."""
    with contextlib.ExitStack() as stack:
        for each in MUTANTS[name]():
            stack.enter_context(each)
        yield


async def _nothing(*_args: Any, **_more: Any) -> None:
    return None


# -- deliveries


@mutant
def commit_after_the_200() -> Patches:
    real = Ledger.write

    def write(self: Ledger, work: Any, *rest: Any, **given: Any) -> Any:
        written = real(self, work, *rest, **given)
        if not isinstance(work, NewDelivery):
            return written
        written.add_done_callback(lambda late: late.cancelled() or late.exception())
        done = asyncio.get_running_loop().create_future()
        done.set_result(True)
        return done

    return [patch.object(Ledger, "write", write)]


@mutant
def acknowledged_though_the_disk_is_full() -> Patches:
    real: Any = Deliveries._refused

    def refused(self: Deliveries, store: str, why: Any) -> Any:
        answer = real(self, store, why)
        if why.reason == "ledger_unwritable":
            answer.set_status(200)
        return answer

    return [patch.object(Deliveries, "_refused", refused)]


@mutant
def every_signature_is_right() -> Patches:
    return [patch.object(_module("receiver.deliveries"), "signer_of", lambda b, s, all_: all_[0])]


@mutant
def writes_are_not_synced() -> Patches:
    sqlite = _module("ledger.sqlite")
    pragmas = tuple(each for each in sqlite._WRITER_PRAGMAS if "synchronous" not in each)
    return [patch.object(sqlite, "_WRITER_PRAGMAS", pragmas)]


@mutant
def no_deduplication() -> Patches:
    ledger_orders, backend = _module("ledger.orders"), _module("ledger.backend").SQLite
    real, seen = backend.record, Counter[str]()

    def record(self: Any, connection: Any, deliveries: Any) -> Any:
        for each in deliveries:
            seen[each.event_id] += 1
            if seen[each.event_id] > 1:
                each.event_id = f"{each.event_id}~{seen[each.event_id]}"
        return real(connection, deliveries)

    def insert(connection: Any, row: Any) -> bool:
        connection.exec_driver_sql("DELETE FROM orders WHERE order_id = ?", (row.order_id,))
        return bool(inserted(connection, row))

    inserted = ledger_orders.insert_order
    return [
        patch.object(backend, "record", record),
        patch.object(ledger_orders, "insert_order", insert),
    ]


@mutant
def dedupe_without_event_id() -> Patches:
    backend = _module("ledger.backend").SQLite
    real = backend.record

    def record(self: Any, connection: Any, deliveries: Any) -> Any:
        for each in deliveries:
            each.event_id = each.delivery_id or each.event_id
        return real(connection, deliveries)

    return [patch.object(backend, "record", record)]


@mutant
def delivered_is_not_heard() -> Patches:
    intake = _module("orders.intake")
    return [patch.object(intake, "_delivered_id", lambda _data: "ord_0")]


@mutant
def inbox_is_not_looked_at_after_a_start() -> Patches:
    intake = _module("orders.intake").Intake
    real = intake.__init__

    def init(self: Any, *args: Any) -> None:
        real(self, *args)
        self.worker._wake_requested = False
        self.worker.wake = lambda: None
        self.deliveries_arrived = type(self.worker).wake.__get__(self.worker)

    return [patch.object(intake, "__init__", init)]


# -- tickets


@mutant
def forgotten_probe_before_a_rewrite() -> Patches:
    return [patch.object(PosRunner, "find_ticket", _nothing)]


@mutant
def write_begins_unmarked() -> Patches:
    async def begins(self: TicketWriter, row: Any) -> bool:
        return True

    return [patch.object(TicketWriter, "_begins", begins)]


@mutant
def nothing_is_resumed() -> Patches:
    return [patch.object(OrdersFlow, "_resume", _nothing)]


@mutant
def tickets_are_not_withdrawn() -> Patches:
    return [patch.object(state, "is_to_be_withdrawn", lambda _row: False)]


@mutant
def accepted_before_it_is_written() -> Patches:
    real = state.next_call

    def call_for(row: Any, at: Any = None) -> Any:
        if row.closed_at is not None:
            return None
        desired = max(row.desired_state, OrderState.ACCEPTED, key=lambda s: state.RANK.get(s, 9))
        return real(at or row.service_state, desired, row.refused)

    return [patch.object(_module("orders.notifier"), "call_for", call_for)]


@mutant
def till_is_not_tried_again() -> Patches:
    real = TicketWriter._back_off

    async def back_off(self: TicketWriter, entry: Any, failure: PosFailure) -> None:
        await real(self, entry, failure)
        entry.next_try = entry.deadline

    return [
        patch.object(TicketWriter, "_back_off", back_off),
        patch.object(WriteQueue, "try_again", lambda _self: None),
    ]


@mutant
def calls_of_the_till_do_not_wait_for_each_other() -> Patches:
    real = CallLane.submit

    def submit(self: CallLane, function: Any, name: str = "") -> Any:
        return real(CallLane("alone"), function, name)

    return [patch.object(CallLane, "submit", submit)]


@mutant
def news_is_confirmed_before_it_is_stored() -> Patches:
    real = UpdateReader.apply

    async def apply(self: UpdateReader, update: Any) -> None:
        await self._pos.update_handled(update)
        await asyncio.sleep(0.5)
        await real(self, update)

    return [patch.object(UpdateReader, "apply", apply)]


@mutant
def sold_out_is_told_as_other() -> Patches:
    reasons = _module("orders.reasons")
    real = reasons._kind_of

    def kind_of(failure: Any) -> Any:
        return dataclasses.replace(real(failure), code=ReasonCode.OTHER)

    return [patch.object(reasons, "_kind_of", kind_of)]


@mutant
def deadlines_by_the_wall_clock() -> Patches:
    return [patch.object(Clock, "monotonic", lambda self: self.now_ms() / 1000 - 1_750_000_000)]


@mutant
def a_published_change_is_lost() -> Patches:
    real, number = OrdersFlow._dispatch, iter(range(10**9))

    def dispatch(self: OrdersFlow, change: Any) -> None:
        if next(number) % 7 != 6:
            real(self, change)

    return [patch.object(OrdersFlow, "_dispatch", dispatch)]


# -- the service


@mutant
def last_word_lost() -> Patches:
    real = ServiceNotifier._wait

    async def wait(self: ServiceNotifier, report: Any, call: Any, failure: Any) -> None:
        await real(self, report, call, failure)
        report.due = float("inf")

    return [
        patch.object(ServiceNotifier, "_wait", wait),
        patch.object(ServiceNotifier, "service_back", lambda _self: None),
    ]


@mutant
def ready_is_not_reported() -> Patches:
    notifier = _module("orders.notifier")
    real = notifier.call_for

    def call_for(row: Any, at: Any = None) -> Any:
        call = real(row, at)
        return None if call is not None and call.value == "ready" else call

    return [patch.object(notifier, "call_for", call_for)]


@mutant
def lost_answers_are_taken_for_refusals() -> Patches:
    notifier = _module("orders.notifier")

    def after_conflict(estimate: StateEstimate, call: Any) -> StateEstimate | None:
        return None

    return [
        patch.object(notifier, "after_conflict", after_conflict),
        patch.object(_module("service.client"), "_TRANSITION", Write()),
    ]


@mutant
def a_restart_forgets_the_call_under_way() -> Patches:
    notifier = _module("orders.notifier")

    def estimate(known: Any, desired: Any, *, auto_accepted: bool) -> StateEstimate:
        return StateEstimate(known, frozenset({known}))

    def after_conflict(estimate: StateEstimate, call: Any) -> StateEstimate | None:
        return None if len(estimate.possible) == 1 else real(estimate, call)

    real = notifier.after_conflict
    return [
        patch.object(notifier, "estimate_after_restart", estimate),
        patch.object(notifier, "after_conflict", after_conflict),
    ]


@mutant
def retry_after_is_ignored() -> Patches:
    @contextlib.asynccontextmanager
    async def passage(self: Gate, priority: Any, *, patience_s: float) -> Any:
        yield

    caller = _module("service.caller")
    answers = _module("service.answers")

    def decide(failure: Any, attempt: int, **more: Any) -> Any:
        if isinstance(failure, RateLimited):
            return answers.Wait(0.2) if attempt < 5 else GiveUp()
        return answers.decide(failure, attempt, **more)

    return [patch.object(Gate, "passage", passage), patch.object(caller, "decide", decide)]


@mutant
def failures_are_repeated_without_a_pause() -> Patches:
    answers = _module("service.answers")

    def decide(failure: Any, attempt: int, **more: Any) -> Any:
        decided = answers.decide(failure, min(attempt, 2), **more)
        return answers.Wait(0.01) if isinstance(decided, answers.Wait) else decided

    return [patch.object(_module("service.caller"), "decide", decide)]


@mutant
def a_refused_token_is_not_refreshed() -> Patches:
    answers = _module("service.answers")

    def decide(failure: Any, attempt: int, **more: Any) -> Any:
        if isinstance(failure, Unauthorised):
            return GiveUp()
        return answers.decide(failure, attempt, **more)

    return [patch.object(_module("service.caller"), "decide", decide)]


@mutant
def secrets_are_logged() -> Patches:
    oauth = _module("service.oauth").OAuth
    real = oauth.refresh

    async def refresh(self: Any, refresh_token: str) -> Any:
        _module("core.log").get_logger().info("token.refreshed", token=refresh_token)
        return await real(self, refresh_token)

    return [patch.object(oauth, "refresh", refresh)]


@mutant
def secrets_are_written_beside_the_vault() -> Patches:
    vault = _module("ledger.vault").Vault
    real = vault.put

    def put(self: Any, name: str, value: str) -> None:
        real(self, name, value)
        (_machines[-1].folder / "data" / "vault.old").write_text(value)

    return [patch.object(vault, "put", put)]


@mutant
def a_lost_consent_is_taken_for_a_refusal() -> Patches:
    notifier = _module("orders.notifier")
    real = notifier.waits
    return [
        patch.object(notifier, "waits", lambda f: not isinstance(f, ConsentLost) and real(f)),
    ]


@mutant
def a_job_lost_in_a_deploy_is_taken_for_done() -> Patches:
    push = _module("menu.push")

    async def settled(*_args: Any) -> Any:
        return push.Reply("success")

    return [patch.object(push, "_by_sync_status", settled)]


@mutant
def settings_that_are_mended_are_still_a_problem() -> Patches:
    found = Scope("", frozenset({"config.restart_needed"}))
    return [patch.object(_module("daemon.reload"), "_FILE", found)]


@mutant
def two_bridges_at_once() -> Patches:
    def init(self: Any, _data_dir: Any) -> None:
        self._lock = SimpleNamespace(release=lambda: None)

    return [patch.object(LedgerLock, "__init__", init)]


@mutant
def a_ledger_of_a_newer_version_is_used() -> Patches:
    backend = _module("ledger.backend")
    real = backend.bring_up_to_date

    def bring_up_to_date(data_dir: Any, *, at: int) -> None:
        with contextlib.suppress(LedgerError):
            real(data_dir, at=at)

    return [patch.object(backend, "bring_up_to_date", bring_up_to_date)]


@mutant
def a_migration_forgets_open_orders() -> Patches:
    schema = _module("ledger.schema")
    real = schema.upgrade

    def upgrade(connection: Any, to: str) -> None:
        real(connection, to)
        connection.exec_driver_sql("DELETE FROM orders WHERE closed_at IS NULL")

    return [patch.object(schema, "upgrade", upgrade)]


@mutant
def the_event_loop_writes_too() -> Patches:
    facts, sqlite = _module("ledger.facts"), _module("ledger.sqlite")

    async def put_fact(self: Ledger, store: str, name: str, value: Any, *, at: int) -> None:
        with sqlite.writer_engine(self.data_dir / "ledger.db").connect() as connection:
            facts.put_fact(connection, store, name, value, at=at)

    return [patch.object(Ledger, "put_fact", put_fact)]


@mutant
def changes_are_published_as_their_committers_go_on() -> Patches:
    real, number = OrdersFlow._dispatch, iter(range(10**9))

    def dispatch(self: OrdersFlow, change: Any) -> None:
        if next(number) % 3:
            real(self, change)
        else:
            asyncio.get_running_loop().call_later(0.2, real, self, change)

    return [patch.object(OrdersFlow, "_dispatch", dispatch)]


# -- problems and the storefront


@mutant
def a_problem_is_left_open() -> Patches:
    real = ProblemTracker.report

    def report(self: ProblemTracker, scope: Any, found: Any) -> None:
        found = list(found)
        if found or "pos.offline" not in scope.codes:
            real(self, scope, found)

    return [patch.object(ProblemTracker, "report", report)]


@mutant
def an_open_problem_is_logged_at_each_look() -> Patches:
    real = ProblemTracker.report

    def report(self: ProblemTracker, scope: Any, found: Any) -> None:
        found = list(found)
        for each in found:
            self._open[scope.store].pop((each.code, scope.store, each.subject), None)
        real(self, scope, found)

    return [patch.object(ProblemTracker, "report", report)]


@mutant
def the_storefront_stays_paused() -> Patches:
    pos_changed = PosPause.pos_changed

    def only_away(self: PosPause, *, online: bool) -> None:
        if not online:
            pos_changed(self, online=online)

    return [patch.object(PosPause, "pos_changed", only_away)]


# -- the menu


@mutant
def no_guard() -> Patches:
    return [patch.object(_module("menu.plan"), "findings", lambda *_all: ())]


@mutant
def the_guard_counts_wrong() -> Patches:
    def is_mass(hits: int, known: int, percent: float, *, few: int = 5) -> bool:
        return hits * 10 > percent * known and hits > few

    return [patch.object(_module("menu.guard"), "is_mass", is_mass)]


@mutant
def the_guard_is_off_by_one() -> Patches:
    return [patch.object(_module("menu.guard"), "FEW", 6)]


@mutant
def removed_items_stay() -> Patches:
    compare = _module("menu.compare")

    def diff(*args: Any, **more: Any) -> Any:
        return dataclasses.replace(real(*args, **more), removed={})

    real = compare.diff
    return [patch.object(compare, "diff", diff)]


@mutant
def acknowledged_though_the_service_failed() -> Patches:
    push = _module("menu.push")

    async def call(*args: Any, **more: Any) -> Any:
        try:
            return await real(*args, **more)
        except ServiceError:
            return push.Sent("success")

    real = push.call
    return [patch.object(push, "call", call)]


@mutant
def an_approval_is_not_heard() -> Patches:
    return [patch.object(_module("menu.flow").MenuFlow, "approve", _nothing)]


@mutant
def restoring_is_not_sent() -> Patches:
    flow = _module("menu.flow").MenuFlow
    real = flow.restore

    async def restore(self: Any, external_id: str) -> bool:
        menu, self._availability = self._availability, SimpleNamespace(changed=lambda: None)
        try:
            return bool(await real(self, external_id))
        finally:
            self._availability = menu

    return [patch.object(flow, "restore", restore)]


@mutant
def off_sale_is_forgotten_by_the_menu() -> Patches:
    compare = _module("menu.compare")
    return [patch.object(compare, "apply_overlay", lambda item, overlay, **_more: item)]


@mutant
def jobs_are_not_followed() -> Patches:
    push = _module("menu.push")

    async def follow(*_args: Any, **_more: Any) -> Any:
        return push.Reply("success")

    return [patch.object(push, "follow_job", follow)]
