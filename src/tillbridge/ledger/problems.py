"""Problems: reported, stored, tracked while the bridge runs, acknowledged, remembered.

Problems that follow from the ledger are reported in the transaction that changes it (`report`);
those that follow from state in memory are reported to the `ProblemTracker`, which is also notified
about the others.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Self

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlmodel import col

from tillbridge.core.clock import Clock
from tillbridge.core.errors import LeaseLost, LedgerError
from tillbridge.core.i18n import from_plain
from tillbridge.core.log import get_logger
from tillbridge.core.problems import PROBLEMS, Found, OpenProblem, Scope
from tillbridge.ledger.database import all_rows, json_text, upsert
from tillbridge.ledger.facts import get_fact, hold_fact, own_key, put_fact
from tillbridge.ledger.ledger import Ledger, Storage, published
from tillbridge.ledger.models import PastProblem, ProblemRow
from tillbridge.ledger.reading import BRIDGES
from tillbridge.ledger.snapshot import ACKNOWLEDGED, ProblemKey, by_problem, row_of
from tillbridge.model.numbers import is_storable, printable

_Key = tuple[str, str, str]  # code, store, subject

# -- past problems, for the history of a day


def store_past(connection: Connection, past: PastProblem) -> None:
    """Store a past problem, unless it ended before it began."""
    if past.until > past.since:
        row = {**past.model_dump(exclude={"id"}), "store": past.store or own_key(connection)}
        connection.execute(insert(PastProblem).values(row))


def past_problems(connection: Connection, *, ended_after: int) -> list[PastProblem]:
    """Return the problems that ended after that instant, oldest first."""
    query = select(PastProblem).where(col(PastProblem.until) > ended_after)
    return all_rows(connection, query.order_by(col(PastProblem.since)))


# -- reports: the open problems within a scope become exactly those found

_OPEN = select(*(col(getattr(ProblemRow, each.name)) for each in fields(OpenProblem)))
_OPEN_OF_STORE = _OPEN.where(
    col(ProblemRow.store) == bindparam("of_store"), col(ProblemRow.code).in_(bindparam("codes"))
)
_CLOSED = delete(ProblemRow).where(
    col(ProblemRow.code) == bindparam("of_code"),
    col(ProblemRow.store) == bindparam("of_store"),
    col(ProblemRow.subject) == bindparam("of_subject"),
)


@dataclass(frozen=True, slots=True)
class ProblemsChanged:
    """What a report has changed: problems that are new or have new details, and closed ones."""

    present: tuple[OpenProblem, ...] = ()
    over: tuple[OpenProblem, ...] = ()


def changes(
    scope: Scope, found: Iterable[Found], before: Iterable[OpenProblem], at: int
) -> ProblemsChanged:
    """Return what a report at `at` (ms) changes in the problems open `before`. Pure.

    A problem that stays open keeps its `since`. ValueError for a problem outside the scope,
    KeyError for an unknown code.
    """
    if unknown := scope.codes - PROBLEMS.keys():
        raise KeyError(*unknown)
    if scope.subject is not None:
        scope = replace(scope, subject=_storable(scope.subject))
    now: dict[_Key, Mapping[str, Any]] = {}
    for each in found:
        key = (each.code, scope.store, _storable(each.subject))
        if not scope.covers(*key):
            msg = f"{each.code} of {each.subject!r} is outside the scope of the report"
            raise ValueError(msg)
        now[key] = json.loads(json_text(each.detail), object_hook=from_plain)
    known = {each.key: each for each in before if scope.covers(*each.key)}
    present = tuple(
        OpenProblem(*key, known[key].since if key in known else at, detail)
        for key, detail in now.items()
        if key not in known or known[key].detail != detail
    )
    over = tuple(each for key, each in known.items() if key not in now)
    return ProblemsChanged(present, over)


def report(connection: Connection, scope: Scope, found: Iterable[Found], at: int) -> None:
    """Make the open problems within the scope exactly those found, at `at` (ms).

    Call it in the transaction that changes the state from which the problems follow. Raises the
    same as `changes`. Listeners of the ledger are notified after the commit (`ProblemsChanged`).
    """
    place = scope.store or own_key(connection)
    of_scope = {"of_store": place, "codes": sorted(scope.codes)}
    before = [
        replace(OpenProblem(*row), store=scope.store)
        for row in connection.execute(_OPEN_OF_STORE, of_scope)
    ]
    changed = changes(scope, found, before, at)
    for each in changed.over:
        close_problem(connection, *each.key)
        store_past(connection, _over(each, at))
    for each in changed.present:
        open_problem(connection, *each.key, each.detail, each.since)
    if changed.present or changed.over:
        published(connection).append(changed)


def _over(problem: OpenProblem, at: int) -> PastProblem:
    code, store, subject = problem.key
    return PastProblem(code=code, store=store, subject=subject, since=problem.since, until=at)


def open_problem(
    connection: Connection, code: str, store: str, subject: str, detail: Mapping[str, Any], at: int
) -> None:
    """Open the problem; if it is open already, update its detail."""
    place = store or own_key(connection)
    row = ProblemRow(code=code, store=place, subject=subject, since=at, detail=detail)
    connection.execute(upsert(ProblemRow, "detail"), dict(row))


def close_problem(connection: Connection, code: str, store: str, subject: str) -> None:
    """Close the problem, if it is open."""
    place = store or own_key(connection)
    key = {"of_code": code, "of_store": place, "of_subject": subject}
    connection.execute(_CLOSED, key)


def open_problems(connection: Connection) -> tuple[OpenProblem, ...]:
    """Return the open problems, oldest first, without codes that this version does not know.

    What another bridge reports of itself is left out.
    """
    own = own_key(connection)
    rows = connection.execute(_OPEN.order_by(col(ProblemRow.since), col(ProblemRow.code)))
    found = (OpenProblem(*row) for row in rows if row.code in PROBLEMS)
    return tuple(
        replace(each, store="") if each.store == own else each
        for each in found
        if each.store == own or not each.store.startswith(BRIDGES)
    )


# -- acknowledgements: of one particular problem; `since` distinguishes it from a later one


def acknowledge(connection: Connection, which: Iterable[OpenProblem], *, by: str, at: int) -> None:
    """Acknowledge `which` at `at` (ms); drop acknowledgements of problems that are closed."""
    hold_fact(connection, "", ACKNOWLEDGED, at=at)
    noted = {row_of(each): {"at": at, "by": by} for each in which}
    present = noted.keys() | _open_anywhere(connection)
    rows = [
        {"code": code, "store": store, "subject": subject, "since": since, **by_whom}
        for (code, store, subject, since), by_whom in {
            **noted,
            **by_problem(get_fact(connection, "", ACKNOWLEDGED)),
        }.items()
        if (code, store, subject, since) in present
    ]
    put_fact(connection, "", ACKNOWLEDGED, rows, at=at)


def _open_anywhere(connection: Connection) -> set[ProblemKey]:
    """Return the identities of all open problems, with those that other bridges have themselves."""
    rows = connection.execute(_OPEN)
    return {
        (row.code, "" if row.store.startswith(BRIDGES) else row.store, row.subject, row.since)
        for row in rows
    }


# -- the open problems of a running bridge, and reports from state in memory


log = get_logger()

_MAX_SUBJECT = 500
_MOST_PAST = 1000  # problems that were opened and closed while the disk failed


class ProblemTracker:
    """The open problems of a running bridge; used from the event loop. Logs only transitions."""

    def __init__(self, ledger: Ledger, clock: Clock, known: tuple[OpenProblem, ...]) -> None:
        """Use `start`, which reads the stored problems."""
        self._ledger = ledger
        self._clock = clock
        # By store, since a report is about one: comparing it with all would be quadratic.
        self._open: defaultdict[str, dict[_Key, OpenProblem]] = defaultdict(dict)
        for each in known:
            self._open[each.store][each.key] = each
        self._elsewhere: tuple[OpenProblem, ...] = ()
        # The stores whose problems are followed here, and "" for the bridge's own; None: all.
        self.followed = frozenset({""}) if ledger.is_shared else None
        self._unwritten: set[_Key] = set()
        self._past: list[PastProblem] = []
        self._writing: asyncio.Task[None] | None = None
        self._lookers: list[Callable[[], None]] = []
        ledger.on_writable_changed(self._writable_changed)
        ledger.on_event(self._follow)

    @classmethod
    async def start(cls, ledger: Ledger, *, clock: Clock) -> Self:
        """Return the tracker with the stored problems, plus one if the ledger was rebuilt."""
        known = await ledger.read(open_problems)
        if ledger.is_shared:  # those of a store are taken over with the store
            known = tuple(each for each in known if not each.store)
        tracker = cls(ledger, clock, known)
        if ledger.rebuilt_from:
            found = Found("ledger.rebuilt", detail={"detail": ledger.rebuilt_from.name})
            tracker.report(Scope.of_one(found.code), [found])
        tracker._writable_changed(ledger.storage)
        return tracker

    def report(self, scope: Scope, found: Iterable[Found]) -> None:
        """Make the open problems within the scope exactly those found now.

        For state in memory (a probe, a clock, a file that was read). Raises the same as `changes`.
        """
        now_ms = self._clock.now_ms()
        changed = changes(scope, found, self._open[scope.store].values(), now_ms)
        if not (changed.present or changed.over):
            return
        self._past += [_over(each, now_ms) for each in changed.over]
        if self._apply(changed):
            self.noticed()
        self._write_down(each.key for each in (*changed.over, *changed.present))

    def is_open(self, code: str, store: str = "", subject: str = "") -> bool:
        """Return whether this problem is open."""
        return (code, store, _storable(subject)) in self._open[store]

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` in the event loop when a problem is opened, closed or acknowledged.

        It must not report problems itself.
        """
        self._lookers.append(callback)

    def noticed(self) -> None:
        """Notify about a change that is not a report: somebody has acknowledged a problem."""
        for callback in self._lookers:
            callback()

    def current(self) -> tuple[OpenProblem, ...]:
        """Return the open problems, oldest first: the bridge's own and those of its stores."""
        return tuple(sorted(self._own(), key=_age))

    def all(self) -> tuple[OpenProblem, ...]:
        """Return also those of stores that other bridges serve, as they were last read."""
        return tuple(sorted((*self._own(), *self._elsewhere), key=_age))

    def _own(self) -> Iterator[OpenProblem]:
        return chain.from_iterable(each.values() for each in self._open.values())

    def read_elsewhere(self, found: Iterable[OpenProblem], own: Collection[str]) -> None:
        """Take over what was read of stores that other bridges serve; `own` are not."""
        seen = tuple(each for each in found if each.store and each.store not in own)
        if seen != self._elsewhere:
            self._elsewhere = seen
            self.noticed()

    async def adopt(self, stores: Collection[str]) -> None:
        """Take over the problems of stores that this bridge serves from now on."""
        for each in await self._ledger.read(open_problems):
            if each.store in stores:
                self._open[each.store].setdefault(each.key, each)
        if self.followed is not None:
            self.followed |= frozenset(stores)
        self.noticed()

    def give_up(self, store: str) -> None:
        """Leave the problems of a store to the bridge that serves it from now on."""
        self._open.pop(store, None)
        self._unwritten = {key for key in self._unwritten if key[1] != store}
        self._past = [each for each in self._past if each.store != store]
        if self.followed is not None:
            self.followed -= {store}
        self.noticed()

    async def settle(self) -> None:
        """Wait until everything is written, or cannot be. Call it before closing the ledger."""
        while self._writing is not None:
            await asyncio.shield(self._writing)

    def _follow(self, event: object) -> None:
        """Take over what a committed write has reported."""
        if isinstance(event, ProblemsChanged):
            self._apply(event)
            self.noticed()

    def _apply(self, changed: ProblemsChanged) -> bool:
        """Apply and log the change; return whether a problem was opened or closed."""
        transitions = False
        for each in changed.over:
            if self._open[each.store].pop(each.key, None) is not None:
                transitions = True
                log.info("problem.closed", code=each.code, store=each.store, subject=each.subject)
        for each in changed.present:
            if each.key not in self._open[each.store]:
                transitions = True
                log.warning(
                    "problem.opened",
                    code=each.code,
                    severity=each.kind.severity,
                    store=each.store,
                    subject=each.subject,
                )
            self._open[each.store][each.key] = each
        return transitions

    # -- storing

    def _write_down(self, keys: Iterable[_Key] = ()) -> None:
        self._unwritten.update(keys)
        if self._unwritten and self._writing is None and self._ledger.writable:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._unwritten:
                keys, self._unwritten = self._unwritten, set()
                past, self._past = self._past, []
                now = {key: self._open[key[1]].get(key) for key in keys}
                try:
                    await self._ledger.write(_apply, now=now, past=past)
                except LeaseLost:
                    # Which store it was does not matter: whoever serves it has written its own.
                    for store in {key[1] for key in keys}:
                        of_store = {key: each for key, each in now.items() if key[1] == store}
                        past_of_store = [each for each in past if each.store == store]
                        with suppress(LedgerError):
                            await self._ledger.write(_apply, now=of_store, past=past_of_store)
                except LedgerError:
                    self._unwritten |= keys  # written when the disk works again
                    self._past = (past + self._past)[-_MOST_PAST:]
                    return
        finally:
            self._writing = None

    def _writable_changed(self, storage: Storage) -> None:
        detail = {"detail": storage.failure, "path": str(self._ledger.data_dir)}
        found = [Found("ledger.unwritable", detail=detail)] if storage.failure else []
        self.report(Scope.of_one("ledger.unwritable"), found)
        self._write_down()


def _age(each: OpenProblem) -> tuple[int, str]:
    return each.since, each.code


def _storable(subject: str) -> str:
    """Return the subject in a storable form: a file name may be in no valid encoding."""
    if is_storable(subject) and len(subject) <= _MAX_SUBJECT:
        return subject
    return printable(subject, most=_MAX_SUBJECT)


def _apply(
    connection: Connection, now: dict[_Key, OpenProblem | None], past: list[PastProblem]
) -> None:
    for each in past:
        store_past(connection, each)
    for (code, store, subject), problem in now.items():
        if problem is None:
            close_problem(connection, code, store, subject)
        else:
            open_problem(connection, code, store, subject, problem.detail, problem.since)
