"""The ledger as the rest of the bridge sees it: open, write, read, close.

One thread owns the write connection and groups commits (invariant 7). Callers put their write into
the queue and wait. When the writer is idle it takes everything in the queue: deliveries become one
insert, each job runs in a savepoint of its own, one COMMIT makes all of it durable, and one wake-up
of the event loop answers all waiters.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar, overload

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.core.files import claim_folder
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger import facts, orders
from tillbridge.ledger.backup import bring_up_to_date
from tillbridge.ledger.database import (
    LEDGER_FILE,
    VAULT_FILE,
    LedgerLock,
    as_the_folder_is,
    close_to_others,
    driver_error,
    is_damage,
    is_read_only,
    is_storage_failure,
    reader_engine,
    writer_engine,
)
from tillbridge.ledger.models import Delivery
from tillbridge.ledger.recover import rebuild_if_damaged
from tillbridge.ledger.vault import Vault

log = get_logger()

P = ParamSpec("P")
T = TypeVar("T")
Job = Callable[..., Any]  # of a connection first

_READERS = 2
_VERIFY_EVERY_S = 5.0  # while writing: how often the file is read just to verify it
_QUIET_TURNS = 5  # a request takes two or three turns from the socket to the ledger
_LONGEST_S = 0.01  # under load without pauses
_MOST = 512
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

    work: Delivery | Job
    waiter: asyncio.Future[Any]
    args: Sequence[Any]
    more: Mapping[str, Any]


class _Answer(NamedTuple):
    waiter: asyncio.Future[Any]
    value: Any = None
    failure: Exception | None = None


class _Done(NamedTuple):
    """The result of a batch: an answer to each request, the jobs' events, and the disk's state."""

    answers: Sequence[_Answer]
    events: Sequence[object]
    storage: Storage


class _Opened(NamedTuple):
    """What opening has created, before anything is written."""

    lock: LedgerLock
    vault: Vault
    connection: Connection
    rebuilt_from: Path | None


class Ledger:
    """One data directory, owned by one process. `await Ledger.open(...)`, `await ledger.close()`.

    Used from the event loop. `rebuilt_from` is the damaged file that was set aside when opening,
    usually None. `storage` is the state of the disk; `vault` has the secrets. `writing_since` is
    when (monotonic, s) the current commit began; None: nothing is being written.
    """

    def __init__(self, data_dir: Path, opened: _Opened) -> None:
        """Use `open`, which creates what this needs."""
        self.data_dir = data_dir
        self.vault = opened.vault
        self.rebuilt_from = opened.rebuilt_from
        self.storage = Storage()
        self.writing_since: float | None = None
        self._lock = opened.lock
        self._connection = opened.connection  # used by the writer's thread only
        self._events = published(opened.connection)
        self._loop = asyncio.get_running_loop()
        self._storage_watchers: list[Callable[[Storage], None]] = []
        self._commit_watchers: list[Callable[[], None]] = []
        self._listeners: list[Callable[[object], None]] = []
        self._closed = False
        self._gathered: list[_Request] = []
        self._gathering_since: float | None = None  # counts turns until requests pause
        self._quiet_turns = 0
        self._last_size = 1  # of the last batch
        self._batches: SimpleQueue[list[_Request] | None] = SimpleQueue()
        self._verified_at = 0.0  # by the loop's clock
        self._verifying: asyncio.Task[None] | None = None
        self._reader = reader_engine(data_dir / LEDGER_FILE)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="ledger-reader")
        self._writer = threading.Thread(target=self._write_all, name="ledger-writer", daemon=True)
        self._writer.start()

    @classmethod
    async def open(cls, data_dir: Path, *, clock: Clock, key: str | None = None) -> Self:
        """Lock, check, repair and migrate the ledger in `data_dir`; create a missing one.

        `key` is the configured key of the stored secrets, None for that in the folder.
        Raises LedgerLocked while another process has it, LedgerError if it cannot be used.
        """
        claim_folder(data_dir)
        return cls(data_dir, await asyncio.to_thread(_open, data_dir, key, clock.now_ms()))

    async def close(self) -> None:
        """Write what is queued, close the file, release the lock."""
        if self._closed:
            return
        self._closed = True
        self._submit()
        self._batches.put(None)
        await asyncio.to_thread(self._writer.join)
        if self._verifying is not None:
            await self._verifying
        await asyncio.to_thread(self._readers.shutdown)
        self._reader.dispose()
        self._lock.release()

    @overload
    def write(self, work: Delivery) -> asyncio.Future[bool]: ...

    @overload
    def write(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> asyncio.Future[T]: ...

    def write(self, work: Delivery | Job, *args: Any, **more: Any) -> asyncio.Future[Any]:
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
            if cause is not None and is_damage(cause) and not self.storage.damaged:
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
            and now - self._gathering_since < _LONGEST_S
        ):
            self._loop.call_soon(self._gather)
        else:
            self._gathering_since = None
            self._submit()

    def _submit(self) -> None:
        """Give everything in the queue to the thread, as one batch."""
        if self._gathered:
            batch, self._gathered = self._gathered, []
            self.writing_since = self._loop.time()
            self._last_size = len(batch)
            self._batches.put(batch)

    def _settle(self, done: _Done, *, storage_changed: bool) -> None:
        """Answer the waiters of a batch; they continue after this turn of the event loop."""
        if storage_changed:
            self._storage_changed(done.storage)
        if not done.answers:  # a probe has none
            return
        for waiter, value, failure in done.answers:
            if waiter.done():
                continue  # it was cancelled in the meantime
            if failure is None:
                waiter.set_result(value)
            else:
                waiter.set_exception(failure)
        self.writing_since = None
        if self._gathered and self._gathering_since is None:
            self._gather()
        for event in done.events:
            for listener in tuple(self._listeners):
                listener(event)
        for callback in self._commit_watchers:
            callback()
        if not self._closed and self._loop.time() - self._verified_at >= _VERIFY_EVERY_S:
            self._verified_at = self._loop.time()
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
        while True:
            try:
                batch = self._batches.get(timeout=_PROBE_EVERY_S if storage.failure else None)
            except Empty:
                batch = []
            if batch is None:
                break
            done = self._commit(batch)
            settle = partial(self._settle, done, storage_changed=done.storage != storage)
            storage = done.storage
            # If the loop is closed, nobody is waiting any more.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle)
        self._connection.close()
        self._connection.engine.dispose()

    def _commit(self, batch: Sequence[_Request]) -> _Done:
        sql = self._connection.exec_driver_sql
        self._events.clear()
        deliveries = [each.work for each in batch if isinstance(each.work, Delivery)]
        alone = bool(batch) and len(deliveries) == len(batch)  # a single statement is a transaction
        try:
            if not alone:
                sql("BEGIN IMMEDIATE")
            if not batch:
                facts.put_fact(self._connection, "", "write_probe", _PROBE, at=0)
                facts.drop_fact(self._connection, "", "write_probe")
            are_new = iter(orders.record(self._connection, deliveries))
            answers = [
                _Answer(each.waiter, next(are_new))
                if isinstance(each.work, Delivery)
                else self._run_job(each.work, each)
                for each in batch
            ]
            if not alone:
                sql("COMMIT")
        except Exception as failure:  # noqa: BLE001 -- whatever it was, nobody may hear that it is written
            # Fails if SQLite has rolled back by itself, which is just as good.
            with contextlib.suppress(Exception):
                sql("ROLLBACK")
            if len(batch) > 1 and not is_storage_failure(failure):
                # One of them cannot be written at all: do not let the others fail with it.
                each_done = [self._commit([each]) for each in batch]
                return _Done(
                    [answer for each in each_done for answer in each.answers],
                    [event for each in each_done for event in each.events],
                    each_done[-1].storage,
                )
            storage = Storage(str(driver_error(failure) or failure), is_damage(failure))
            unwritten = [_Answer(each.waiter, failure=_unwritable(failure)) for each in batch]
            return _Done(unwritten, (), storage)
        return _Done(answers, tuple(self._events), Storage())

    def _run_job(self, job: Job, request: _Request) -> _Answer:
        sql, before = self._connection.exec_driver_sql, len(self._events)
        sql("SAVEPOINT job")
        try:
            value = job(self._connection, *request.args, **request.more)
        except Exception as failure:
            del self._events[before:]
            if is_storage_failure(failure):
                raise  # SQLite may have rolled back everything
            sql("ROLLBACK TO job")
            sql("RELEASE job")
            return _Answer(request.waiter, failure=failure)
        sql("RELEASE job")
        return _Answer(request.waiter, value)

    # -- in a reader's thread

    def _read(
        self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        try:
            with self._reader.connect() as connection:
                connection.exec_driver_sql("BEGIN")
                return query(connection, *args, **more)
        except DBAPIError as failure:
            if not is_storage_failure(failure):
                raise
            raise LedgerError(
                _("The database cannot be read: {detail}.").format(detail=driver_error(failure)),
                fix=_(
                    "Check the disk, then restart the bridge: it repairs a damaged database when "
                    "it starts."
                ),
            ) from failure


def _unwritable(failure: BaseException) -> LedgerUnwritable:
    detail = driver_error(failure) or failure
    if is_read_only(failure):
        fix = _(
            "Give the bridge's user permission to write to the data directory and its {file} "
            "files, then restart the bridge. Nothing was saved."
        ).format(file=LEDGER_FILE)
    else:
        fix = _("Free disk space, or repair the disk. Nothing was saved.")
    return LedgerUnwritable(
        _("The database cannot be written: {detail}.").format(detail=detail), fix=fix
    )


def _open(data_dir: Path, key: str | None, now_ms: int) -> _Opened:
    _make_folder(data_dir)
    lock = LedgerLock(data_dir)
    try:
        beside = [data_dir / f"{LEDGER_FILE}{kind}" for kind in ("", "-wal", "-shm")]
        close_to_others([*beside, data_dir / VAULT_FILE])
        vault = Vault(data_dir, key=key)
        rebuilt_from = rebuild_if_damaged(data_dir, at=now_ms)
        _make_file(data_dir / LEDGER_FILE)
        bring_up_to_date(data_dir, at=now_ms)
        connection = writer_engine(data_dir / LEDGER_FILE).connect()
        return _Opened(lock, vault, connection, rebuilt_from)
    except (DBAPIError, OSError) as failure:
        lock.release()
        raise LedgerError(
            _("The database in {data_dir} cannot be opened: {detail}.").format(
                data_dir=data_dir, detail=driver_error(failure) or failure
            ),
            fix=_(
                "Check the disk and its free space, and that the bridge's user has permission to "
                "write there."
            ),
        ) from failure
    except BaseException:
        lock.release()
        raise


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


def _make_file(path: Path) -> None:
    """Create the file for the owner only, before SQLite does; -wal and -shm inherit its mode."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        as_the_folder_is(path.parent, file)
    finally:
        os.close(file)
