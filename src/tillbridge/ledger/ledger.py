"""The ledger as the rest of the bridge sees it: open, write, read, deliver, close."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.files import claim_folder
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.ledger.backup import back_up
from tillbridge.ledger.database import (
    LEDGER_FILE,
    VAULT_FILE,
    LedgerLock,
    as_the_folder_is,
    close_to_others,
    driver_error,
    is_damage,
    is_storage_failure,
    reader_engine,
    writer_engine,
)
from tillbridge.ledger.migrate import bring_up_to_date
from tillbridge.ledger.models import Delivery
from tillbridge.ledger.recover import rebuild_if_damaged
from tillbridge.ledger.vault import Vault
from tillbridge.ledger.writer import Storage, Writer

log = get_logger()

T = TypeVar("T")

_READERS = 2
_VERIFY_EVERY_S = 5.0  # while something is written: how often the file is read for its own sake


@dataclass(frozen=True, slots=True)
class _Opened:
    """What opening has made, before there is a writer."""

    lock: LedgerLock
    vault: Vault
    connection: Connection
    rebuilt_from: Path | None


class Ledger:
    """One data directory, held by one process. `await Ledger.open(...)`, `await ledger.close()`.

    `rebuilt_from` is the damaged file that was set aside at open, None as a rule. `storage` is how
    the disk does now; `vault` holds the secrets.
    """

    def __init__(self, data_dir: Path, opened: _Opened, clock: Clock) -> None:
        """Use `open`, which makes what this needs."""
        self.data_dir = data_dir
        self.vault = opened.vault
        self.rebuilt_from = opened.rebuilt_from
        self.storage = Storage()
        self._clock = clock
        self._lock = opened.lock
        self._watchers: list[Callable[[Storage], None]] = []
        self._lookers: list[Callable[[], None]] = []
        self._listeners: list[Callable[[object], None]] = []
        self._writer = Writer(opened.connection, self._storage_changed, self._written)
        self._readers = reader_engine(data_dir / LEDGER_FILE)
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="ledger-reader")
        self._closed = False
        self._verified_at = 0.0  # by the loop's clock
        self._verifying: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, data_dir: Path, *, clock: Clock) -> Self:
        """Lock, check, mend and migrate the ledger in `data_dir`; a missing one is begun.

        Raises LedgerLocked while another process has it, LedgerError where it cannot be used.
        """
        claim_folder(data_dir)
        opened = await asyncio.to_thread(_open, data_dir, clock)
        return cls(data_dir, opened, clock)

    async def close(self) -> None:
        """Write what is queued, close the file, release the lock."""
        if self._closed:
            return
        self._closed = True
        await self._writer.close()
        if self._verifying is not None:
            await self._verifying
        await asyncio.to_thread(self._threads.shutdown)
        self._readers.dispose()
        self._lock.release()

    async def write(self, job: Callable[[Connection], T]) -> T:
        """Run `job` in the writer's thread; return its value after the commit that holds it.

        Concurrent jobs share a commit, each in a savepoint: one that raises is undone alone, and
        what it raised comes back here. Raises LedgerUnwritable where nothing was committed. A
        caller that is cancelled undoes nothing. The value must not be an unread result.
        """
        return cast("T", await self._writer.submit(job))

    def deliver(self, delivery: Delivery) -> asyncio.Future[bool]:
        """Store a delivery: True if it is new, False if its event is known. Both are on disk.

        Raises LedgerUnwritable.
        """
        return self._writer.submit(delivery)

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Run `query` in a reader's thread, on one committed state.

        Raises LedgerError if the file cannot be read.
        """
        if self._closed:
            raise LedgerError(_("The ledger is closed."))
        reading = asyncio.get_running_loop().run_in_executor(self._threads, self._read, query)
        try:
            return await reading
        except LedgerError as failure:
            cause = failure.__cause__
            if cause is not None and is_damage(cause) and not self.storage.damaged:
                # A reader may be the first to see it; the next start mends it.
                self._storage_changed(Storage(failure.text, damaged=True))
            raise

    async def back_up(self) -> Path:
        """Copy the whole ledger into `backups/` while it is in use. Raises LedgerError."""
        try:
            return await self.read(
                lambda _connection: back_up(self.data_dir, at=self._clock.now_ms())
            )
        except OSError as failure:
            raise LedgerError(
                _("The ledger could not be backed up: {detail}.").format(detail=failure),
                fix=_("Free disk space, or let the bridge's user write to the data directory."),
            ) from failure

    @property
    def writable(self) -> bool:
        """Whether the last write worked."""
        return not self.storage.failure

    @property
    def writing_since(self) -> float | None:
        """Since when (monotonic, s) one commit is under way; None: nothing is to be written."""
        return self._writer.busy_since

    def on_writable_changed(self, callback: Callable[[Storage], None]) -> None:
        """Call `callback` in the event loop when writing begins to fail, or works again."""
        self._watchers.append(callback)

    def on_written(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the event loop after each commit: something may look different."""
        self._lookers.append(callback)

    def on_event(self, callback: Callable[[object], None]) -> None:
        """Call `callback` in the event loop with each event of a commit (`writer.published`).

        It is called before whoever waits for that write goes on.
        """
        self._listeners.append(callback)

    def _written(self, events: Sequence[object]) -> None:
        for event in events:
            for listener in self._listeners:
                listener(event)
        for callback in self._lookers:
            callback()
        loop = asyncio.get_running_loop()
        if not self._closed and loop.time() - self._verified_at >= _VERIFY_EVERY_S:
            self._verified_at = loop.time()
            self._verifying = loop.create_task(self._verify())

    async def _verify(self) -> None:
        """Read what was written: the writer itself has its pages in memory, and misses damage."""
        with contextlib.suppress(LedgerError):  # `read` reports it
            await self.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM holds").scalar())

    def _storage_changed(self, storage: Storage) -> None:
        self.storage = storage
        if storage.failure:
            log.error("ledger.unwritable", detail=storage.failure, damaged=storage.damaged)
        else:
            log.info("ledger.writable")
        for callback in self._watchers:
            callback(storage)

    def _read(self, query: Callable[[Connection], T]) -> T:
        try:
            with self._readers.connect() as connection:
                connection.exec_driver_sql("BEGIN")
                return query(connection)
        except DBAPIError as failure:
            if not is_storage_failure(failure):
                raise
            raise LedgerError(
                _("The ledger cannot be read: {detail}.").format(detail=driver_error(failure)),
                fix=_(
                    "Look at the disk, and restart the bridge: it mends a damaged ledger at start."
                ),
            ) from failure


def _open(data_dir: Path, clock: Clock) -> _Opened:
    _make_folder(data_dir)
    lock = LedgerLock(data_dir)
    try:
        beside = [data_dir / f"{LEDGER_FILE}{kind}" for kind in ("", "-wal", "-shm")]
        close_to_others([*beside, data_dir / VAULT_FILE])
        vault = Vault(data_dir)
        rebuilt_from = rebuild_if_damaged(data_dir, at=clock.now_ms())
        _make_file(data_dir / LEDGER_FILE)
        bring_up_to_date(data_dir, at=clock.now_ms())
        connection = writer_engine(data_dir / LEDGER_FILE).connect()
        return _Opened(lock, vault, connection, rebuilt_from)
    except (DBAPIError, OSError) as failure:
        lock.release()
        raise LedgerError(
            _("The ledger in {data_dir} cannot be opened: {detail}.").format(
                data_dir=data_dir, detail=driver_error(failure) or failure
            ),
            fix=_("Check the disk, its free space, and that the bridge's user may write there."),
        ) from failure
    except BaseException:
        lock.release()
        raise


def _make_folder(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as failure:
        raise LedgerError(
            _("The data directory {data_dir} cannot be made: {detail}.").format(
                data_dir=data_dir, detail=failure.strerror
            ),
            fix=_("Make it for the bridge's user, or change data_dir in [bridge]."),
        ) from failure


def _make_file(path: Path) -> None:
    """Make the file ours alone before SQLite does; its -wal and -shm files take the same mode."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        as_the_folder_is(path.parent, file)
    finally:
        os.close(file)
