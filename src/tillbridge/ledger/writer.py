"""The one writer: a thread with the write connection, which groups commits (invariant 7).

Whoever wants something written leaves it in the queue and waits. The idle writer takes all that
has gathered: deliveries go in as one insert, each job runs in a savepoint of its own, one COMMIT
makes all of it durable, and one wake-up of the event loop tells every waiter.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import facts, inbox
from tillbridge.ledger.database import (
    LEDGER_FILE,
    driver_error,
    is_damage,
    is_read_only,
    is_storage_failure,
)
from tillbridge.ledger.models import Delivery

# -- events that follow from a write: handed out after its commit; an undone write publishes none


_KEY = "after_commit"


def publish(connection: Connection, event: object) -> None:
    """Hand `event` to those who listen (`Ledger.on_event`) once this write is committed."""
    _events(connection).append(event)


@contextmanager
def undone_together(connection: Connection) -> Iterator[None]:
    """Forget what was published inside if it raises: it is rolled back with it."""
    before = len(_events(connection))
    try:
        yield
    except BaseException:
        del _events(connection)[before:]
        raise


def take(connection: Connection) -> list[object]:
    """Return what was published since the last call, and forget it."""
    taken = list(_events(connection))
    _events(connection).clear()
    return taken


def _events(connection: Connection) -> list[object]:
    events: list[object] = connection.info.setdefault(_KEY, [])
    return events


T = TypeVar("T")

_QUIET_TURNS = 5  # a request takes two or three from the socket to the ledger
_LONGEST_S = 0.01  # under a load that never pauses
_MOST = 512


class Gathering(Generic[T]):
    """Used from the event loop only. One batch is under way at a time; `done` ends it."""

    def __init__(self, hand_over: Callable[[list[T]], None]) -> None:
        self._hand_over = hand_over
        self._loop = asyncio.get_running_loop()
        self._gathered: list[T] = []
        self._under_way = False
        self._watching = False
        self._quiet_turns = 0
        self._since = 0.0
        self._last = 1  # how many were in the last batch
        self.handed_over_at: float | None = None  # the batch under way, by the loop's clock

    def add(self, item: T) -> None:
        """Add something to the next batch."""
        self._gathered.append(item)
        self._quiet_turns = 0
        if self._last == 1 and not self._under_way:
            self.flush()
        else:
            self._watch()

    def done(self) -> None:
        """Tell that the batch handed over last has been dealt with."""
        self._under_way = False
        self.handed_over_at = None
        if self._gathered:
            self._watch()

    def flush(self) -> None:
        """Hand over what there is, at once."""
        if self._gathered:
            batch, self._gathered = self._gathered, []
            self._under_way = True
            self.handed_over_at = self._loop.time()
            self._last = len(batch)
            self._hand_over(batch)

    def _watch(self) -> None:
        if not self._under_way and not self._watching:
            self._watching = True
            self._quiet_turns = 0
            self._since = self._loop.time()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._quiet_turns += 1
        if (
            self._quiet_turns < _QUIET_TURNS
            and len(self._gathered) < _MOST
            and self._loop.time() - self._since < _LONGEST_S
        ):
            self._loop.call_soon(self._turn)
        else:
            self._watching = False
            self.flush()


log = get_logger()

Job = Callable[[Connection], Any]

_PROBE_EVERY_S = 2.0  # while writing fails: how often it is tried without being asked
_PROBE = "p" * 16_384  # more than the room a full disk may have left by chance


@dataclass(frozen=True, slots=True)
class Storage:
    """How the disk does.

    `failure` is its error ("" while it works); `damaged`: the file is no sound database.
    """

    failure: str = ""
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class _Delivery:
    """A delivery to be stored, and who waits for it."""

    delivery: Delivery
    waiter: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Job:
    """A job to be run, and who waits for it."""

    job: Job
    waiter: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Answer:
    waiter: asyncio.Future[Any]
    value: Any = None
    failure: Exception | None = None


_Asked = _Delivery | _Job


class Writer:
    """Runs what it is handed in a thread of its own. Made in, and asked from, the event loop.

    `on_storage` is called in the event loop whenever the disk's state changes, `on_written` after
    each commit with the events that its jobs published, before any of their waiters goes on.
    """

    def __init__(
        self,
        connection: Connection,
        on_storage: Callable[[Storage], None],
        on_written: Callable[[Sequence[object]], None],
    ) -> None:
        self._connection = connection
        self._on_storage = on_storage
        self._on_written = on_written
        self._loop = asyncio.get_running_loop()
        self._batches: SimpleQueue[list[_Asked] | None] = SimpleQueue()
        self._gathering = Gathering[_Asked](self._batches.put)
        self._closed = False
        self._storage = Storage()  # as the thread saw it last
        self._events: list[object] = []  # of commits that the event loop has not heard of
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def deliver(self, delivery: Delivery) -> asyncio.Future[bool]:
        """Queue a delivery; the future tells after the commit whether it is new."""
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._ask(_Delivery(delivery, waiter))
        return waiter

    def run(self, job: Job) -> asyncio.Future[Any]:
        """Queue a job; the future has its value after the commit that holds it."""
        waiter = self._loop.create_future()
        self._ask(_Job(job, waiter))
        return waiter

    @property
    def busy_since(self) -> float | None:
        """Since when (monotonic, s) the thread is at what it was handed last; None: it is idle."""
        return self._gathering.handed_over_at

    async def close(self) -> None:
        """Write what is queued, then end the thread."""
        if not self._closed:
            self._closed = True
            self._gathering.flush()
            self._batches.put(None)
        await asyncio.to_thread(self._thread.join)

    def _ask(self, asked: _Asked) -> None:
        if self._closed:
            raise LedgerError(_("The ledger is closed."))
        self._gathering.add(asked)

    def _settle(self, settled: tuple[Sequence[_Answer], Sequence[object]]) -> None:
        """Tell the waiters; those that were cancelled meanwhile need no answer."""
        answers, events = settled
        for answer in answers:
            if answer.waiter.done():
                continue
            if answer.failure is None:
                answer.waiter.set_result(answer.value)
            else:
                answer.waiter.set_exception(answer.failure)
        self._gathering.done()
        self._on_written(events)  # waiters go on only after this turn of the event loop

    # -- in the thread

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            answers = self._write(batch)
            events, self._events = self._events, []
            if batch:
                self._tell(self._settle, (answers, events))
        self._connection.close()
        self._connection.engine.dispose()

    def _next(self) -> list[_Asked] | None:
        """Sleep until there is a batch, None at the end. An empty one: a probe is due."""
        try:
            return self._batches.get(timeout=_PROBE_EVERY_S if self._storage.failure else None)
        except Empty:
            return []

    def _write(self, batch: Sequence[_Asked]) -> list[_Answer]:
        try:
            answers = self._transaction(batch)
        except Exception as failure:  # noqa: BLE001 -- whatever it was, nobody may hear that it is written
            self._roll_back()
            take(self._connection)
            if len(batch) > 1 and not is_storage_failure(failure):
                # One of them cannot be written at all: let it not cost the others.
                return [answer for asked in batch for answer in self._write([asked])]
            text = str(driver_error(failure) or failure)
            self._storage_is(Storage(text, damaged=is_damage(failure)))
            fix = _remedy(failure)
            return [_Answer(asked.waiter, failure=_unwritable(text, fix)) for asked in batch]
        self._storage_is(Storage())
        return answers

    def _transaction(self, batch: Sequence[_Asked]) -> list[_Answer]:
        deliveries = [asked for asked in batch if isinstance(asked, _Delivery)]
        jobs = [asked for asked in batch if isinstance(asked, _Job)]
        if deliveries and not jobs:
            return self._record(deliveries)  # one statement is a transaction by itself
        self._sql("BEGIN IMMEDIATE")
        if not batch:
            self._probe()
        answers = self._record(deliveries)
        answers += [self._run_job(asked) for asked in jobs]
        self._sql("COMMIT")
        self._events += take(self._connection)
        return answers

    def _record(self, asked: Sequence[_Delivery]) -> list[_Answer]:
        recorded = inbox.record(self._connection, [each.delivery for each in asked])
        return [_Answer(each.waiter, new) for each, new in zip(asked, recorded, strict=True)]

    def _run_job(self, asked: _Job) -> _Answer:
        self._sql("SAVEPOINT job")
        try:
            with undone_together(self._connection):
                value = asked.job(self._connection)
        except Exception as failure:
            if is_storage_failure(failure):
                raise  # SQLite may have rolled back all of it
            self._sql("ROLLBACK TO job")
            self._sql("RELEASE job")
            return _Answer(asked.waiter, failure=failure)
        self._sql("RELEASE job")
        return _Answer(asked.waiter, value)

    def _probe(self) -> None:
        facts.put_fact(self._connection, "", "write_probe", _PROBE, at=0)
        facts.drop_fact(self._connection, "", "write_probe")

    def _roll_back(self) -> None:
        # Fails where SQLite has rolled back by itself, which is as good.
        with contextlib.suppress(Exception):
            self._sql("ROLLBACK")

    def _storage_is(self, storage: Storage) -> None:
        if storage != self._storage:
            self._storage = storage
            self._tell(self._on_storage, storage)

    def _sql(self, sql: str) -> None:
        self._connection.exec_driver_sql(sql)

    def _tell(self, function: Callable[[Any], None], value: object) -> None:
        # A loop that is closed has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, value)


def _unwritable(text: str, fix: str) -> LedgerUnwritable:
    return LedgerUnwritable(
        _("The ledger cannot be written: {detail}.").format(detail=text), fix=fix
    )


def _remedy(failure: BaseException) -> str:
    if is_read_only(failure):
        return _(
            "Let the bridge's user write to the data directory and the {file} files in it, and"
            " restart the bridge; nothing was committed."
        ).format(file=LEDGER_FILE)
    return _("Free disk space or mend the disk; nothing was committed.")
