"""Orders: each is written in one transaction, with our key in it, and looked for first.

How "once" is kept: the key stands in a column that is unique, in the same transaction as head,
lines, options and payment. It is looked for at the start of that transaction; where two write at
once, the database refuses the second, which then finds the first. Only a COMMIT whose answer is
lost leaves the outcome unknown.
"""

import time
from collections.abc import Callable, Mapping
from decimal import Decimal

from sqlalchemy import Connection, event
from sqlalchemy.exc import SQLAlchemyError

from tillbridge.adapter import (
    ItemUnavailable,
    Order,
    PosFailure,
    PosOffline,
    StoreClosed,
    Ticket,
    TicketOutcomeUnknown,
)
from tillbridge.adapter.texts import _
from tillbridge_sql import cells
from tillbridge_sql.asking import Asking, StatementFailed, offline_as, rows_of
from tillbridge_sql.engines import check_tables
from tillbridge_sql.order_values import OrderValues, Values, of_key
from tillbridge_sql.statements import Statement
from tillbridge_sql.trouble import Trouble, is_certain, message_of, trouble_of

_TRIES = 4
_FIRST_PAUSE_S = 0.02
# What a character that a table cannot hold is replaced with, step by step: everything as it is,
# without what needs four bytes (MySQL's utf8), with what every Western table can hold.
_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: "".join("?" if ord(each) > 0xFFFF else each for each in text),
    lambda text: text.encode("latin-1", "replace").decode("latin-1"),
)


class Orders:
    """Writes, finds and cancels orders. Used from the thread of tickets."""

    def __init__(self, asking: Asking, currency: str, *, budget_s: float) -> None:
        self._asking = asking
        self._queries = asking.queries
        self._database = asking.database
        self._currency = currency
        self._budget_s = budget_s
        self._checked = False

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order unless it is there. Raises a PosFailure."""
        values = OrderValues(order, key, self._currency)

        def work(connection: Connection, spell: Callable[[str], str]) -> Ticket | None:
            run = _Run(connection, spell, self._asking.everywhere())
            if (found := self._found(run, key)) is not None:
                return found
            if not self._checked:
                check_tables(connection, self._database.name, self._queries)
                self._checked = True
            self._write(run, values)
            found = self._found(run, key)
            if found is None:
                raise PosFailure(
                    _(
                        "The statements for orders wrote nothing that find_order finds. Nothing is"
                        " kept of it. Correct them: the key :key must be written with the order."
                    )
                )
            connection.commit()
            return found

        ticket = self._in_transaction(work, lambda: self.find_ticket(key))
        if ticket is None:
            raise TicketOutcomeUnknown(_("The order is neither there nor refused."))
        return ticket

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket that was written with the key. Raises PosOffline."""
        return self._asking.reading(
            lambda connection: self._found(
                _Run(connection, _SPELLINGS[0], self._asking.everywhere()), key
            )
        )

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Cancel the order, once; one that never was is left alone. Raises a PosFailure."""

        def work(connection: Connection, spell: Callable[[str], str]) -> Ticket | None:
            run = _Run(connection, spell, self._asking.everywhere())
            about = {**of_key(key), "cancel_reason": reason}
            find = self._queries.one("find_order")
            found = None if find is None else run.one(find, about)
            done = self._queries.one("find_cancelled")
            if found is None or (done is not None and run.one(done, about) is not None):
                return None
            given = {**found, **self._session(run, about)}
            run.steps(self._queries.all("cancel"), about, given)
            connection.commit()
            return None

        self._in_transaction(work, lambda: None)

    def _write(self, run: "_Run", values: OrderValues) -> None:
        of_order = values.of_order
        given = self._session(run, of_order)
        checked = self._check_lines(run, values, given)
        given = run.steps(self._queries.all("order"), of_order, given)
        for line, (its, its_options) in zip(values.lines, checked, strict=True):
            about = {**of_order, **line.values}
            of_line = run.steps(self._queries.all("line"), about, {**given, **its})
            for option, extra in zip(line.options, its_options, strict=True):
                run.steps(
                    self._queries.all("option"), {**about, **option.values}, {**of_line, **extra}
                )
        if values.paid:
            given = run.steps(self._queries.all("payment"), of_order, given)
        run.steps(self._queries.all("order_end"), of_order, given)

    def _session(self, run: "_Run", about: Values) -> Values:
        """Return what the open session gives. Raises StoreClosed."""
        check = self._queries.one("check_session")
        if check is None:
            return {}
        found = run.one(check, about)
        if found is None:
            raise StoreClosed(_("The till has no open session: it takes no orders now."))
        return found

    def _check_lines(
        self, run: "_Run", values: OrderValues, given: Values
    ) -> list[tuple[Values, list[Values]]]:
        """Return what is known of each line and its options. Raises ItemUnavailable for all."""
        missing: dict[str, str] = {}

        def looked(name: str, about: Values, external_id: str, failure: str) -> Values:
            check = self._queries.one(name)
            if check is None:
                return {}
            found = run.one(check, {**given, **about}) if external_id else None
            if found is None:
                missing[external_id] = failure or external_id
            return found or {}

        checked = []
        for line in values.lines:
            about = {**values.of_order, **line.values}
            its = looked("check_item", about, line.external_id, line.name)
            options = [
                looked("check_option", {**about, **each.values}, each.external_id, each.name)
                for each in line.options
            ]
            checked.append((its, options))
        if missing:
            raise ItemUnavailable(
                _("The till does not sell: {names}.").format(names=", ".join(missing.values())),
                external_ids=[external_id for external_id in missing if external_id],
            )
        return checked

    def _found(self, run: "_Run", key: str) -> Ticket | None:
        find = self._queries.one("find_order")
        row = None if find is None else run.one(find, of_key(key))
        if row is None:
            return None
        return Ticket(cells.text_of(row, "reference").strip() or key)

    def _in_transaction(
        self,
        work: Callable[[Connection, Callable[[str], str]], Ticket | None],
        look: Callable[[], Ticket | None],
    ) -> Ticket | None:
        """Do the work, again where the database gave way to another transaction.

        The tries, the time and the spellings are bounded; then nothing was written.
        """
        until = time.monotonic() + self._budget_s
        spelling, tries, pause_s, stale = 0, 0, _FIRST_PAUSE_S, True
        while True:
            tries += 1
            committing = _Committing()
            try:
                return self._database.write(
                    lambda connection, spell=_SPELLINGS[spelling], committing=committing: work(  # type: ignore[misc] # a lambda's defaults
                        committing.watched(connection), spell
                    )
                )
            except SQLAlchemyError as failure:
                error = failure.error if isinstance(failure, StatementFailed) else failure
                trouble = trouble_of(error)
                if committing.begun and not is_certain(error):
                    raise TicketOutcomeUnknown(
                        _("The database did not say whether it has the order: {detail}").format(
                            detail=message_of(error)
                        )
                    ) from None
                if trouble is Trouble.DUPLICATE and (found := look()) is not None:
                    return found
                if trouble is Trouble.TEXT and spelling + 1 < len(_SPELLINGS):
                    spelling += 1
                    continue
                again = trouble in {Trouble.BUSY, Trouble.DUPLICATE}
                if (
                    trouble is Trouble.OFFLINE
                    and stale
                    and getattr(error, "connection_invalidated", False)
                ):
                    again, stale = True, False  # a connection that had died while it waited
                if not again or tries >= _TRIES or time.monotonic() + pause_s > until:
                    raise _refusal(failure, error, trouble) from None
                time.sleep(pause_s)
                pause_s *= 2


class _Committing:
    """Knows whether a COMMIT was sent."""

    def __init__(self) -> None:
        self.begun = False

    def watched(self, connection: Connection) -> Connection:
        """Return the connection, whose next COMMIT is noted before it is sent."""
        event.listen(connection, "commit", self._note)
        return connection

    def _note(self, _connection: Connection) -> None:
        self.begun = True


class _Run:
    """A transaction's statements. What a SELECT gives are parameters of what follows."""

    def __init__(
        self, connection: Connection, spell: Callable[[str], str], everywhere: Values
    ) -> None:
        self._connection = connection
        self._spell = spell
        self._everywhere = everywhere

    def one(self, statement: Statement, values: Mapping[str, object]) -> Values | None:
        """Return the first row; None where there is none."""
        rows = self._rows(statement, values)
        return dict(rows[0]) if rows else None

    def steps(self, statements: tuple[Statement, ...], values: Values, given: Values) -> Values:
        """Run the statements, and return what was given with what they give."""
        given = dict(given)
        for statement in statements:
            rows = self._rows(statement, {**given, **values})
            if rows:
                given |= rows[0]
            elif statement.reads:
                raise PosFailure(
                    _(
                        "{place}: it gives no row, and the steps after it need what it gives. "
                        "Nothing was written. Correct the statement, or what it looks for."
                    ).format(place=statement.place)
                )
        return given

    def _rows(self, statement: Statement, values: Mapping[str, object]) -> list[Values]:
        try:
            known = {**values, **self._everywhere}
            if missing := sorted(statement.parameters - known.keys()):
                raise PosFailure(
                    _("{place}: nothing has given :{missing} a value.").format(
                        place=statement.place, missing=missing[0]
                    )
                )
            bound = {name: self._spelled(known[name]) for name in statement.parameters}
            return [dict(row) for row in rows_of(self._connection, statement, bound)]
        except SQLAlchemyError as error:
            raise StatementFailed(statement, error) from None

    def _spelled(self, value: object) -> object:
        if isinstance(value, str):
            return self._spell(value.replace("\0", " "))
        if isinstance(value, Decimal) and self._connection.dialect.name == "sqlite":
            return float(value)
        return value


def _refusal(failure: SQLAlchemyError, error: SQLAlchemyError, trouble: Trouble) -> PosFailure:
    """Return what the core is told where surely nothing was written."""
    if trouble is Trouble.OFFLINE:
        return offline_as(error)
    if trouble is Trouble.BUSY:
        return PosOffline(
            _("The database is busy, and gave way each time: {detail}").format(
                detail=message_of(error)
            )
        )
    if isinstance(failure, StatementFailed):
        refused = _("{place}: the database refuses it: {detail}")
        return PosFailure(refused.format(place=failure.statement.place, detail=message_of(error)))
    return PosFailure(_("The database refuses it: {detail}").format(detail=message_of(error)))
