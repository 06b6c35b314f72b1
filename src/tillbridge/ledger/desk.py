"""The problem desk: what is open now, for whoever asks, and the reports of state in memory.

The desk answers from memory, so it works while the ledger cannot be written too; what is reported
to it is written as soon as it can be. Problems that follow from what is in the ledger are reported
in the transaction that changes it (`ledger.problems.report`); the desk follows.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Self

from sqlalchemy import Connection

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Found, Scope
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.open_problem import OpenProblem
from tillbridge.ledger.problem_history import PastProblem, keep_past
from tillbridge.ledger.problems import (
    ProblemsChanged,
    close_problem,
    open_problem,
    open_problems,
)
from tillbridge.ledger.writer import Storage
from tillbridge.model.texts import is_storable, printable

log = get_logger()

_Key = tuple[str, str, str]  # code, store, subject

_MAX_SUBJECT = 500
_PAST_KEPT = 1000  # problems that came and went while the disk did not work


class ProblemDesk:
    """The open problems of a running bridge; used from the event loop. Logs transitions only."""

    def __init__(self, ledger: Ledger, clock: Clock, known: tuple[OpenProblem, ...]) -> None:
        """Use `start`, which reads what is known."""
        self._ledger = ledger
        self._clock = clock
        self._open = {(each.code, each.store, each.subject): each for each in known}
        self._unwritten: set[_Key] = set()
        self._past: list[PastProblem] = []
        self._writing: asyncio.Task[None] | None = None
        self._lookers: list[Callable[[], None]] = []
        ledger.on_writable_changed(self._writable_changed)
        ledger.on_event(self._follow)

    @classmethod
    async def start(cls, ledger: Ledger, *, clock: Clock) -> Self:
        """Return the desk with the problems that the ledger knows; a rebuilt ledger is one more."""
        desk = cls(ledger, clock, await ledger.read(open_problems))
        if ledger.rebuilt_from:
            desk.open("ledger.rebuilt", detail=ledger.rebuilt_from.name)
        desk._writable_changed(ledger.storage)
        return desk

    def report(self, scope: Scope, found: Iterable[Found]) -> None:
        """Make what is open within the scope exactly what is found now.

        For state that is in memory (a probe, a clock, a file that was read). What stays open keeps
        its `since`. ValueError for a problem outside the scope, KeyError for an unknown code.
        """
        now = {(each.code, _storable(each.subject)): each for each in found}
        outside = [
            each for each in now.values() if not scope.covers(each.code, scope.store, each.subject)
        ]
        if outside:
            msg = f"{outside[0].code} is outside the scope of the report"
            raise ValueError(msg)
        for code, store, subject in tuple(self._open):
            if scope.covers(code, store, subject) and (code, subject) not in now:
                self.close(code, store, subject)
        for each in now.values():
            self.open(each.code, scope.store, each.subject, **each.detail)

    def open(self, code: str, store: str = "", subject: str = "", **detail: object) -> None:
        """Report a problem; of one that is open only the detail changes. KeyError: no such code."""
        key = (PROBLEMS[code].code, store, _storable(subject))
        before = self._open.get(key)
        if before is None:
            self._open[key] = OpenProblem(*key, self._clock.now_ms(), detail)
            _log_opened(self._open[key])
            self.noticed()
        elif before.detail == detail:
            return
        else:
            self._open[key] = replace(before, detail=detail)
        self._write_down(key)

    def close(self, code: str, store: str = "", subject: str = "") -> None:
        """Report that a problem is over; nothing where it was not open. KeyError: no such code."""
        kind = PROBLEMS[code]
        key = (kind.code, store, _storable(subject))
        over = self._open.pop(key, None)
        if over is not None:
            until = self._clock.now_ms()
            self._past.append(PastProblem(code, store, subject, over.since, until))
            log.info("problem.closed", code=code, store=store, subject=subject)
            self.noticed()
            self._write_down(key)

    def is_open(self, code: str, store: str = "", subject: str = "") -> bool:
        """Whether this problem is open."""
        return (code, store, _storable(subject)) in self._open

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the event loop whenever a problem comes or goes, or is acknowledged.

        It must not report problems itself.
        """
        self._lookers.append(callback)

    def noticed(self) -> None:
        """Tell of a change that is no report: somebody has acknowledged a problem."""
        for callback in self._lookers:
            callback()

    def current(self) -> tuple[OpenProblem, ...]:
        """Return what is open, oldest first."""
        return tuple(sorted(self._open.values(), key=lambda each: (each.since, each.code)))

    async def settle(self) -> None:
        """Wait until what is known is written, or cannot be. Call it before the ledger closes."""
        while self._writing is not None:
            await asyncio.shield(self._writing)

    def _follow(self, event: object) -> None:
        """Take over what a committed write has reported."""
        if not isinstance(event, ProblemsChanged):
            return
        for each in event.over:
            if self._open.pop(_key(each), None) is not None:
                log.info("problem.closed", code=each.code, store=each.store, subject=each.subject)
        for each in event.present:
            if _key(each) not in self._open:
                _log_opened(each)
            self._open[_key(each)] = each
        self.noticed()

    # -- writing it down

    def _write_down(self, key: _Key) -> None:
        self._unwritten.add(key)
        if self._writing is None and self._ledger.writable:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._unwritten:
                keys, self._unwritten = self._unwritten, set()
                past, self._past = self._past, []
                now = {key: self._open.get(key) for key in keys}
                try:
                    await self._ledger.write(partial(_apply, now=now, past=past))
                except LedgerError:
                    self._unwritten |= keys  # written when the disk works again
                    self._past = (past + self._past)[-_PAST_KEPT:]
                    return
        finally:
            self._writing = None

    def _writable_changed(self, storage: Storage) -> None:
        if storage.failure:
            self.open("ledger.unwritable", detail=storage.failure, path=str(self._ledger.data_dir))
            return
        self.close("ledger.unwritable")
        for key in tuple(self._unwritten):
            self._write_down(key)


def _key(problem: OpenProblem) -> _Key:
    return (problem.code, problem.store, problem.subject)


def _log_opened(problem: OpenProblem) -> None:
    log.warning(
        "problem.opened",
        code=problem.code,
        severity=problem.kind.severity,
        store=problem.store,
        subject=problem.subject,
    )


def _storable(subject: str) -> str:
    """Return the subject as the ledger can hold it: a file's name may be in no encoding."""
    if is_storable(subject) and len(subject) <= _MAX_SUBJECT:
        return subject
    return printable(subject, most=_MAX_SUBJECT)


def _apply(
    connection: Connection, now: dict[_Key, OpenProblem | None], past: list[PastProblem]
) -> None:
    for each in past:
        keep_past(connection, each)
    for (code, store, subject), problem in now.items():
        if problem is None:
            close_problem(connection, code, store, subject)
        else:
            open_problem(connection, code, store, subject, problem.detail, problem.since)
