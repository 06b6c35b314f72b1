"""How orders go on in the till: rows of a query, told until a statement has marked them."""

from collections.abc import Sequence

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tillbridge.adapter import (
    PosFailure,
    RejectReason,
    TicketStatus,
    TicketUpdate,
)
from tillbridge.adapter.texts import _
from tillbridge_sql import cells
from tillbridge_sql.asking import Asking, StatementFailed, offline_as, rows_of
from tillbridge_sql.cells import CellError, Row
from tillbridge_sql.order_values import of_key
from tillbridge_sql.trouble import Trouble, message_of, trouble_of

_TRIES = 3


class News:
    """Reads the query `news`, and runs `news_handled` for each piece that the core has kept."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def read_updates(self) -> Sequence[TicketUpdate]:
        """Return the news in the query's order. Raises PosOffline, PosFailure."""
        rows = self._asking.reading(lambda connection: self._asking.rows(connection, "news"))
        try:
            return [_update(row) for row in rows]
        except CellError as wrong:
            raise PosFailure(
                _("query news: {text} Correct the query.").format(text=wrong.text)
            ) from None

    def update_handled(self, update: TicketUpdate) -> None:
        """Mark the piece of news. Raises PosFailure."""
        values = {
            **self._asking.everywhere(),
            **of_key(update.order_id),
            "news_key": update.key,
            "news_status": update.status.value,
        }

        def work(connection: Connection) -> None:
            for statement in self._asking.queries.all("news_handled"):
                try:
                    rows_of(connection, statement, values)
                except SQLAlchemyError as error:
                    raise StatementFailed(statement, error) from None
            connection.commit()

        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                return self._asking.database.write(work)
            except SQLAlchemyError as failure:
                error = failure.error if isinstance(failure, StatementFailed) else failure
                trouble = trouble_of(error)
                # To mark it twice does no harm, so what is unknown is simply done again.
                if last or trouble is Trouble.REFUSED:
                    if trouble is Trouble.REFUSED:
                        refused = _("{place}: the database refuses it: {detail}")
                        raise PosFailure(
                            refused.format(place="news_handled", detail=message_of(error))
                        ) from None
                    raise offline_as(error) from None
        return None


def _update(row: Row) -> TicketUpdate:
    status = cells.text_of(row, "status").strip().lower()
    if status not in {each.value for each in TicketStatus}:
        raise CellError(
            "status", _("{status!r} is no status of a ticket.").format(status=status), status
        )
    reason = cells.text_of(row, "reason").strip().lower()
    known = {each.value for each in RejectReason}
    ids = (each.strip() for each in cells.text_of(row, "external_ids").split(","))
    return TicketUpdate(
        key=cells.id_of(row, "news_key"),
        order_id=cells.id_of(row, "order_id"),
        status=TicketStatus(status),
        reason=(RejectReason(reason) if reason in known else RejectReason.OTHER)
        if reason
        else None,
        external_ids=tuple(each for each in ids if each),
        message=cells.paragraph_of(row, "message"),
    )
