"""The one writer: a thread with the write connection, which groups commits (invariant 7).

Whoever wants something written leaves it in the queue and waits. The idle writer takes all that
has gathered: deliveries go in as one insert, each job runs in a savepoint of its own, one COMMIT
makes all of it durable, and one wake-up of the event loop answers every waiter.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from sqlalchemy import Connection

from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.ledger import facts, orders
from tillbridge.ledger.database import (
    LEDGER_FILE,
    driver_error,
    is_damage,
    is_read_only,
    is_storage_failure,
)
from tillbridge.ledger.models import Delivery

Job = Callable[[Connection], Any]

_QUIET_TURNS = 5  # a request takes two or three from the socket to the ledger
_LONGEST_S = 0.01  # under a load that never pauses
_MOST = 512
_PROBE_EVERY_S = 2.0  # while writing fails: how often it is tried without being asked
_PROBE = "p" * 16_384  # more than the room a full disk may have left by chance


def published(connection: Connection) -> list[object]:
    """Return the events of this write, for whoever listens to the ledger (`Ledger.on_event`).

    What is added is handed out after the commit; a job that is undone takes its events with it.
    """
    events: list[object] = connection.info.setdefault("published", [])
    return events


@dataclass(frozen=True, slots=True)
class Storage:
    """How the disk does.

    `failure` is its error ("" while it works); `damaged`: the file is no sound database.
    """

    failure: str = ""
    damaged: bool = False


class _Request(NamedTuple):
    """A delivery to be stored or a job to be run, and who waits for it."""

    work: Delivery | Job
    waiter: asyncio.Future[Any]


class _Answer(NamedTuple):
    waiter: asyncio.Future[Any]
    value: Any = None
    failure: Exception | None = None


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
        self._sql = connection.exec_driver_sql
        self._on_storage = on_storage
        self._on_written = on_written
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._gathered: list[_Request] = []
        self._watching = False  # turns of the event loop are counted until requests pause
        self._quiet_turns = 0
        self._watching_since = 0.0
        self._last_size = 1  # of the last batch
        # Since when (monotonic, s) the thread is at what it was handed last; None: it is idle.
        self.busy_since: float | None = None
        self._batches: SimpleQueue[list[_Request] | None] = SimpleQueue()
        self._storage = Storage()  # as the thread saw it last
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Delivery | Job) -> asyncio.Future[Any]:
        """Queue a delivery or a job; the future is done after the commit that holds it.

        It says whether the delivery is new, or has the value of the job.
        """
        if self._closed:
            raise LedgerError(_("The ledger is closed."))
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._gathered.append(_Request(work, waiter))
        self._quiet_turns = 0
        if self._last_size == 1 and self.busy_since is None:
            self._hand_over()
        else:
            self._watch()
        return waiter

    async def close(self) -> None:
        """Write what is queued, then end the thread."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._batches.put(None)
        await asyncio.to_thread(self._thread.join)

    def _hand_over(self) -> None:
        """Give the thread all that has gathered, as one batch."""
        if self._gathered:
            batch, self._gathered = self._gathered, []
            self.busy_since = self._loop.time()
            self._last_size = len(batch)
            self._batches.put(batch)

    def _watch(self) -> None:
        """Gather until the thread is idle and requests pause."""
        if self.busy_since is None and not self._watching:
            self._watching = True
            self._quiet_turns = 0
            self._watching_since = self._loop.time()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._quiet_turns += 1
        if (
            self._quiet_turns < _QUIET_TURNS
            and len(self._gathered) < _MOST
            and self._loop.time() - self._watching_since < _LONGEST_S
        ):
            self._loop.call_soon(self._turn)
        else:
            self._watching = False
            self._hand_over()

    def _settle(self, answers: Sequence[_Answer], events: Sequence[object]) -> None:
        """Answer the waiters of a batch; one that was cancelled meanwhile needs none."""
        for waiter, value, failure in answers:
            if waiter.done():
                continue
            if failure is None:
                waiter.set_result(value)
            else:
                waiter.set_exception(failure)
        self.busy_since = None
        if self._gathered:
            self._watch()
        self._on_written(events)  # waiters go on only after this turn of the event loop

    # -- in the thread

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            answers = self._write(batch)
            if batch:
                events = published(self._connection)
                self._call_in_loop(self._settle, answers, tuple(events))
                events.clear()
        self._connection.close()
        self._connection.engine.dispose()

    def _next(self) -> list[_Request] | None:
        """Sleep until there is a batch, None at the end. An empty one: a probe is due."""
        try:
            return self._batches.get(timeout=_PROBE_EVERY_S if self._storage.failure else None)
        except Empty:
            return []

    def _write(self, batch: Sequence[_Request]) -> list[_Answer]:
        events = published(self._connection)
        before = len(events)
        try:
            answers = self._transaction(batch)
        except Exception as failure:  # noqa: BLE001 -- whatever it was, nobody may hear that it is written
            del events[before:]
            # Fails where SQLite has rolled back by itself, which is as good.
            with contextlib.suppress(Exception):
                self._sql("ROLLBACK")
            if len(batch) > 1 and not is_storage_failure(failure):
                # One of them cannot be written at all: let it not cost the others.
                return [answer for request in batch for answer in self._write([request])]
            self._report(Storage(str(driver_error(failure) or failure), is_damage(failure)))
            return [_Answer(each.waiter, failure=_unwritable(failure)) for each in batch]
        self._report(Storage())
        return answers

    def _transaction(self, batch: Sequence[_Request]) -> list[_Answer]:
        deliveries = [each.work for each in batch if isinstance(each.work, Delivery)]
        alone = bool(batch) and len(deliveries) == len(batch)
        if not alone:  # one statement is a transaction by itself
            self._sql("BEGIN IMMEDIATE")
        if not batch:
            facts.put_fact(self._connection, "", "write_probe", _PROBE, at=0)
            facts.drop_fact(self._connection, "", "write_probe")
        are_new = iter(orders.record(self._connection, deliveries))
        answers = [
            _Answer(waiter, next(are_new))
            if isinstance(work, Delivery)
            else self._run_job(work, waiter)
            for work, waiter in batch
        ]
        if not alone:
            self._sql("COMMIT")
        return answers

    def _run_job(self, job: Job, waiter: asyncio.Future[Any]) -> _Answer:
        events = published(self._connection)
        before = len(events)
        self._sql("SAVEPOINT job")
        try:
            value = job(self._connection)
        except Exception as failure:
            del events[before:]
            if is_storage_failure(failure):
                raise  # SQLite may have rolled back all of it
            self._sql("ROLLBACK TO job")
            self._sql("RELEASE job")
            return _Answer(waiter, failure=failure)
        self._sql("RELEASE job")
        return _Answer(waiter, value)

    def _report(self, storage: Storage) -> None:
        if storage != self._storage:
            self._storage = storage
            self._call_in_loop(self._on_storage, storage)

    def _call_in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        # A loop that is closed has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)


def _unwritable(failure: BaseException) -> LedgerUnwritable:
    detail = driver_error(failure) or failure
    if is_read_only(failure):
        fix = _(
            "Let the bridge's user write to the data directory and the {file} files in it, and"
            " restart the bridge; nothing was committed."
        ).format(file=LEDGER_FILE)
    else:
        fix = _("Free disk space or mend the disk; nothing was committed.")
    return LedgerUnwritable(
        _("The ledger cannot be written: {detail}.").format(detail=detail), fix=fix
    )
