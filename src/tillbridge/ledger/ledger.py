"""The ledger as the rest of the bridge sees it: open, write, read, close.

One thread owns the write connection and groups commits (invariant 7). Callers put their write into
the queue and wait. When the writer is idle it takes everything in the queue: deliveries become one
insert, each job runs in a savepoint of its own, one COMMIT makes all of it durable, and one wake-up
of the event loop answers all waiters. A batch that takes long, as on a busy server, is committed in
parts.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, overload

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LeaseLost, LedgerError
from tillbridge.core.files import claim_folder
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import facts
from tillbridge.ledger.backend import Backend, SQLite
from tillbridge.ledger.database import LEDGER_FILE, VAULT_FILE, LedgerLock, close_to_others
from tillbridge.ledger.facts import refuse_marked
from tillbridge.ledger.models import NewDelivery
from tillbridge.ledger.reading import BRIDGES, need_driver
from tillbridge.ledger.vault import Vault

log = get_logger()

P = ParamSpec("P")
T = TypeVar("T")
Job = Callable[..., Any]  # of a connection first

_READERS = 2
_VERIFY_EVERY_S = 5.0  # while writing: how often the file is read just to verify it
_QUIET_TURNS = 5  # a request takes two or three turns from the socket to the ledger
_LONGEST_S = 0.01  # under load without pauses
_COMMITS = 2  # ... and while so many are made: what is next is read beside a quick commit
_MOST = 512
_PART_S = 0.5  # after so long, the jobs of a batch that were run are committed
_PROBE_EVERY_S = 2.0  # while writing fails: how often to try without being asked
_PROBE = "p" * 16_384  # more than a full disk may have left by chance


def published(connection: Connection) -> list[object]:
    """Return the list of this write's events, for listeners of the ledger (`Ledger.on_event`).

    Events added to it are delivered after the commit; if the job is rolled back, so are they.
    """
    events: list[object] = connection.info.setdefault("published", [])
    return events


@dataclass(frozen=True, slots=True)
class Storage:
    """The state of the disk.

    `failure` is its error ("" while it works); `damaged`: the file is not a sound database.
    """

    failure: str = ""
    damaged: bool = False


class _Request(NamedTuple):
    """A delivery to store or a job to run, and who is waiting for it."""

    work: NewDelivery | Job
    waiter: asyncio.Future[Any]
    args: Sequence[Any]
    more: Mapping[str, Any]


class _Answer(NamedTuple):
    waiter: asyncio.Future[Any]
    value: Any = None
    failure: Exception | None = None

    def give(self) -> None:
        """Let the waiter continue, unless it was cancelled in the meantime."""
        if self.waiter.done():
            return
        if self.failure is None:
            self.waiter.set_result(self.value)
        else:
            self.waiter.set_exception(self.failure)


class _Done(NamedTuple):
    """The result of a batch: an answer to each request, the jobs' events, and the disk's state.

    `rest` are the jobs that are still to be run, and not answered.
    """

    answers: Sequence[_Answer]
    events: Sequence[object]
    storage: Storage
    rest: Sequence[_Request] = ()


class _Opened(NamedTuple):
    """What opening has created, before anything is written."""

    backend: Backend
    lock: LedgerLock
    vault: Vault
    connection: Connection
    rebuilt_from: Path | None


class Ledger:
    """A ledger, and a data directory owned by one process. `await Ledger.open(...)`, `close()`.

    Used from the event loop. `rebuilt_from` is the damaged file that was set aside when opening,
    usually None. `storage` is the state of the disk; `vault` has the secrets. `writing_since` is
    when (monotonic, s) the current commit began; None: nothing is being written.
    """

    def __init__(self, data_dir: Path, opened: _Opened) -> None:
        """Use `open`, which creates what this needs."""
        self.data_dir = data_dir
        self.url: str | None = None  # of the database that several bridges may share
        self.vault = opened.vault
        self.rebuilt_from = opened.rebuilt_from
        self.storage = Storage()
        self.writing_since: float | None = None
        self._backend = opened.backend
        self._lock = opened.lock
        self._connection = opened.connection  # used by the writer's thread only
        self._events = published(opened.connection)
        self._loop = asyncio.get_running_loop()
        self._storage_watchers: list[Callable[[Storage], None]] = []
        self._commit_watchers: list[Callable[[], None]] = []
        self._listeners: list[Callable[[object], None]] = []
        # Called in the event loop when a write was refused: another bridge serves its store.
        self.on_lease_lost: Callable[[], None] = lambda: None
        self._closed = False
        self._gathered: list[_Request] = []
        self._in_hand = 0  # requests that the writer has not answered yet
        self._gathering_since: float | None = None  # counts turns until requests pause
        self._quiet_turns = 0
        self._last_size = 1  # of the last batch
        self._took_s = _LONGEST_S  # what the last batch took
        self._words: list[str] = []  # SQL to run before the next statement
        self._doubtful: Sequence[object] | None = None  # events of a commit without an answer
        self._late: Sequence[object] = ()  # those, once it is known that it took place
        self._batches: SimpleQueue[list[_Request] | None] = SimpleQueue()
        self._waiting: list[_Request] = []  # in the writer's thread: taken from there
        self._ending = False
        self._verified_at = 0.0  # by the loop's clock
        self._verifying: asyncio.Task[None] | None = None
        self._reader = opened.backend.readers()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="ledger-reader")
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="ledger-beside")
        self._writer = threading.Thread(target=self._write_all, name="ledger-writer", daemon=True)
        self._writer.start()

    @classmethod
    async def open(
        cls,
        data_dir: Path,
        *,
        clock: Clock,
        url: str | None = None,
        key: str | None = None,
        name: str = "",
    ) -> Self:
        """Lock, check, repair and migrate the ledger in `data_dir`; create a missing one.

        With `url` the ledger is in that PostgreSQL database, which several bridges may share; this
        one has its own rows under its `name`. `key` is the configured key of the
        stored secrets, None for that in the folder. Raises LedgerLocked while another process has
        the directory, LedgerError if the ledger cannot be used.
        """
        claim_folder(data_dir)
        own = f"{BRIDGES}{name}" if name else ""
        opened = await asyncio.to_thread(_open, data_dir, url, own, key, clock.now_ms())
        ledger = cls(data_dir, opened)
        ledger.url = url
        return ledger

    async def close(self) -> None:
        """Write what is queued, close the file, release the lock."""
        if self._closed:
            return
        self._closed = True
        self._submit()
        self._batches.put(None)  # the last
        await asyncio.to_thread(self._writer.join)
        if self._verifying is not None:
            await self._verifying
        await asyncio.to_thread(self._readers.shutdown)
        await asyncio.to_thread(self._beside.shutdown)
        self._reader.dispose()
        self._lock.release()

    @overload
    def write(self, work: NewDelivery) -> asyncio.Future[bool]: ...

    @overload
    def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> asyncio.Future[T]: ...

    def write(self, work: NewDelivery | Job, *args: Any, **more: Any) -> asyncio.Future[Any]:
        """Store a delivery, or run a job with these arguments in the writer's thread.

        It is done after its commit.

        For a delivery the result is True if it is new, False if its event is known; both are on
        disk. For a job it is the job's value, which must not be an unread result. Concurrent writes
        share a commit, each job in a savepoint: a job that raises is rolled back alone, and its
        exception is raised here. Raises LedgerUnwritable if nothing was committed. Cancelling the
        caller does not roll back anything.
        """
        if self._closed:
            raise LedgerError(_("The database is closed."))
        waiter: asyncio.Future[Any] = self._loop.create_future()
        self._gathered.append(_Request(work, waiter, args, more))
        self._quiet_turns = 0
        if self.writing_since is None:
            if self._last_size == 1:
                self._submit()
            elif self._gathering_since is None:
                self._gather()
        return waiter

    def write_beside(
        self, job: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> asyncio.Future[T]:
        """Run a job whose statements commit by themselves, in a connection and thread of its own.

        Such jobs run in their order, and wait for no other write, nor anybody for their locks. For
        a database on a server; the fence takes them for nobody's. Raises LedgerUnwritable.
        """
        if self._closed:
            raise LedgerError(_("The database is closed."))
        writing = partial(self._write_beside, job, *args, **more)
        return self._loop.run_in_executor(self._beside, writing)

    async def read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        """Run `query` with these arguments in a reader's thread, in one committed state.

        Raises LedgerError if the file cannot be read.
        """
        if self._closed:
            raise LedgerError(_("The database is closed."))
        try:
            reading = partial(self._read, query, *args, **more)
            return await self._loop.run_in_executor(self._readers, reading)
        except LedgerError as failure:
            cause = failure.__cause__
            if cause is not None and self._backend.is_damage(cause) and not self.storage.damaged:
                # A reader may be the first to notice; the next start repairs it.
                self._storage_changed(Storage(failure.text, damaged=True))
            raise

    @overload
    async def get_fact(self, store: str, name: str) -> Any: ...  # noqa: ANN401 -- any JSON value

    @overload
    async def get_fact(self, store: str, name: str, kind: type[T]) -> T | None: ...

    async def get_fact(self, store: str, name: str, kind: Any = None) -> Any:
        """Return a fact in a read of its own; see `facts.get_fact`."""
        return await self.read(facts.get_fact, store, name, kind)

    async def put_fact(self, store: str, name: str, value: object, *, at: int) -> None:
        """Store a fact in a write of its own; see `facts.put_fact`."""
        await self.write(facts.put_fact, store, name, value, at=at)

    async def drop_fact(self, store: str, name: str) -> None:
        """Delete a fact in a write of its own."""
        await self.write(facts.drop_fact, store, name)

    @property
    def is_shared(self) -> bool:
        """Whether other bridges may use the same database."""
        return self.url is not None

    @property
    def writable(self) -> bool:
        """Whether the last write succeeded."""
        return not self.storage.failure

    def on_writable_changed(self, callback: Callable[[Storage], None]) -> None:
        """Call `callback` in the event loop when writing starts to fail or works again."""
        self._storage_watchers.append(callback)

    def on_written(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the event loop after each commit."""
        self._commit_watchers.append(callback)

    def on_event(self, callback: Callable[[object], None]) -> Callable[[], None]:
        """Call `callback` in the event loop with each event of a commit (`published`).

        It is called before whoever waits for that write continues. Returns what ends that.
        """
        self._listeners.append(callback)
        return partial(self._listeners.remove, callback)

    # -- gathering, and answering

    def _gather(self) -> None:
        """Count turns of the event loop until requests pause, then submit them."""
        now = self._loop.time()
        if self._gathering_since is None:
            self._gathering_since = now
        else:
            self._quiet_turns += 1
        if (
            self._quiet_turns < _QUIET_TURNS
            and len(self._gathered) < _MOST
            and now - self._gathering_since < min(_LONGEST_S, _COMMITS * self._took_s)
        ):
            self._loop.call_soon(self._gather)
        else:
            self._gathering_since = None
            self._submit()

    def _submit(self) -> None:
        """Give everything in the queue to the thread, as one batch."""
        if self._gathered:
            batch, self._gathered = self._gathered, []
            self._last_size = len(batch)
            self._hand_over(batch)

    def _hand_over(self, batch: list[_Request]) -> None:
        self._in_hand += len(batch)
        if self.writing_since is None:
            self.writing_since = self._loop.time()
        self._batches.put(batch)

    def _settle(self, done: _Done, *, storage_changed: bool) -> None:
        """Answer the waiters of a batch; they continue after this turn of the event loop."""
        if storage_changed:
            self._storage_changed(done.storage)
        if not (done.answers or done.events):  # as of a probe
            return
        for each in done.answers:
            each.give()
        now = self._loop.time()
        self._took_s = now - (self.writing_since or now)
        self._in_hand -= len(done.answers)
        self.writing_since = now if self._in_hand else None
        if self._in_hand:  # the writer goes on by itself: what came meanwhile comes with the rest
            self._submit()
        elif self._gathered and self._gathering_since is None:
            self._gather()
        for event in done.events:
            for listener in tuple(self._listeners):
                listener(event)
        for callback in self._commit_watchers:
            callback()
        if any(isinstance(each.failure, LeaseLost) for each in done.answers):
            self.on_lease_lost()
        if not self._closed and now - self._verified_at >= _VERIFY_EVERY_S:
            self._verified_at = now
            self._verifying = self._loop.create_task(self._verify())

    async def _verify(self) -> None:
        """Read what was written: the writer has its pages in memory and does not notice damage."""
        with contextlib.suppress(LedgerError):  # `read` reports it
            await self.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM holds").scalar())

    def _storage_changed(self, storage: Storage) -> None:
        self.storage = storage
        if storage.failure:
            log.error("ledger.unwritable", detail=storage.failure, damaged=storage.damaged)
        else:
            log.info("ledger.writable")
        for callback in self._storage_watchers:
            callback(storage)

    # -- in the writer's thread

    def _write_all(self) -> None:
        """Commit batch after batch; while the disk fails, try an empty one now and then."""
        storage = Storage()
        while (batch := self._next_batch(failing=bool(storage.failure))) is not None:
            done = self._commit(batch)
            self._waiting[:0] = done.rest
            settle = partial(self._settle, done, storage_changed=done.storage != storage)
            storage = done.storage
            # If the loop is closed, nobody is waiting any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle)
        self._connection.close()
        self._connection.engine.dispose()

    def _next_batch(self, *, failing: bool) -> Sequence[_Request] | None:
        """Wait for what is to be written; nothing is a probe. None: the ledger is closed."""
        has_rest = bool(self._waiting)
        try:
            waits_s = 0.0 if has_rest or self._ending else _PROBE_EVERY_S if failing else None
            handed = self._batches.get(timeout=waits_s)
        except Empty:
            handed = None if self._ending else []
        if handed is None:
            self._ending = True
            if not has_rest:
                return None
        else:
            self._waiting += handed
        batch, self._waiting = self._waiting, []
        return batch

    def _commit(self, batch: Sequence[_Request]) -> _Done:
        deliveries = [each.work for each in batch if isinstance(each.work, NewDelivery)]
        alone = bool(batch) and len(deliveries) == len(batch)  # a single statement is a transaction
        # Said together before the next statement, in as few round trips as the database allows.
        self._words = [] if alone else [self._backend.begin]
        committing, began = False, time.monotonic()
        try:
            if self._backend.is_lost(self._connection):
                self._reconnect()
            self._events.clear()
            if not batch:
                self._say()
                facts.put_fact(self._connection, "", "write_probe", _PROBE, at=0)
                facts.drop_fact(self._connection, "", "write_probe")
            are_new: Iterator[bool] = iter(())
            if deliveries:
                self._say()
                are_new = iter(self._backend.record(self._connection, deliveries))
            rest: list[_Request] = []
            answers = []
            for each in batch:
                if isinstance(each.work, NewDelivery):
                    answers.append(_Answer(each.waiter, next(are_new)))
                elif rest or (answers and time.monotonic() - began > _PART_S):
                    rest.append(each)
                else:
                    answers.append(self._run_job(each.work, each))
            if not alone:
                committing = True
                self._say("COMMIT")
        except Exception as failure:  # noqa: BLE001 -- whatever it was, nobody may hear that it is written
            is_storage_failure = self._backend.is_storage_failure(failure)
            if committing and is_storage_failure:
                self._doubtful = tuple(self._events)
            # Fails if the database has rolled back by itself, which is just as good.
            with contextlib.suppress(Exception):
                self._words.clear()
                self._backend.give_up(self._connection, is_storage_failure=is_storage_failure)
            if len(batch) > 1 and not is_storage_failure:
                # One of them cannot be written at all: do not let the others fail with it.
                each_done = [self._commit([each]) for each in batch]
                return _Done(
                    [answer for each in each_done for answer in each.answers],
                    [event for each in each_done for event in each.events],
                    each_done[-1].storage,
                )
            storage = Storage(self._backend.reason(failure), self._backend.is_damage(failure))
            refused = self._backend.unwritable(failure)
            return _Done([_Answer(each.waiter, failure=refused) for each in batch], (), storage)
        late, self._late = self._late, ()
        return _Done(answers, (*late, *self._events), Storage(), rest)

    def _reconnect(self) -> None:
        """Connect again. What a commit has changed is published even if its answer was lost.

        Whoever waited for it was not told that it is written: of that, only an answer is proof.
        """
        self._connection.close()
        self._connection = self._backend.writer()
        self._events = published(self._connection)
        if self._doubtful is not None and self._backend.was_committed(self._connection):
            self._late = (*self._late, *self._doubtful)
        self._doubtful = None

    def _run_job(self, job: Job, request: _Request) -> _Answer:
        before = len(self._events)
        self._say("SAVEPOINT job")
        try:
            value = job(self._connection, *request.args, **request.more)
        except Exception as failure:
            if self._backend.is_storage_failure(failure):
                raise  # the database may have rolled back everything
            del self._events[before:]
            self._words += ["ROLLBACK TO job", "RELEASE job"]
            return _Answer(request.waiter, failure=self._backend.refusal(failure))
        self._words.append("RELEASE job")
        return _Answer(request.waiter, value)

    def _say(self, *words: str) -> None:
        said, self._words = [*self._words, *words], []
        if said:
            self._backend.say(self._connection, said)

    # -- in other threads

    def _write_beside(
        self, job: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        try:
            with self._reader.connect() as connection:
                return job(connection, *args, **more)
        except DBAPIError as failure:
            if not self._backend.is_storage_failure(failure):
                raise
            self._batches.put([])  # the writer looks whether it can write
            raise self._backend.unwritable(failure) from failure

    def _read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        try:
            with self._reader.connect() as connection:
                connection.exec_driver_sql(self._backend.begin_reading)
                return query(connection, *args, **more)
        except DBAPIError as failure:
            if not self._backend.is_storage_failure(failure):
                raise
            raise self._backend.unreadable(failure) from failure


def _open(data_dir: Path, url: str | None, own: str, key: str | None, now_ms: int) -> _Opened:
    _make_folder(data_dir)
    backend = _backend_of(data_dir, url, own)
    try:
        with contextlib.ExitStack() as undo:
            lock = undo.enter_context(LedgerLock(data_dir))
            beside = [data_dir / f"{LEDGER_FILE}{kind}" for kind in ("", "-wal", "-shm")]
            close_to_others([*beside, data_dir / VAULT_FILE])
            vault, rebuilt_from = backend.prepare(key, now_ms)
            undo.callback(backend.readers().dispose)
            writer = undo.enter_context(contextlib.closing(backend.writer()))
            refuse_marked(writer)
            undo.pop_all()
            return _Opened(backend, lock, vault, writer, rebuilt_from)
    except (DBAPIError, OSError) as failure:
        raise LedgerError(
            _("The database in {data_dir} cannot be opened: {detail}.").format(
                data_dir=data_dir, detail=backend.reason(failure)
            ),
            fix=_(
                "Check the disk and its free space, and that the bridge's user has permission to "
                "write there."
            ),
        ) from failure


def _backend_of(data_dir: Path, url: str | None, own: str) -> Backend:
    """Return the database: SQLite in the directory, or what the URL says. Raises LedgerError."""
    if url is None:
        return SQLite(data_dir)
    need_driver()
    from tillbridge.ledger.postgresql import PostgreSQL  # noqa: PLC0415 -- most do without it

    return PostgreSQL(data_dir, url, own)


def _make_folder(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as failure:
        raise LedgerError(
            _("The data directory {data_dir} cannot be created: {detail}.").format(
                data_dir=data_dir, detail=failure.strerror
            ),
            fix=_(
                "Create it for the bridge's user, or choose another below [bridge] in "
                'bridge.toml: data_dir = "data"'
            ),
        ) from failure
