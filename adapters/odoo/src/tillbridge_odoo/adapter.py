"""The adapter: one point of sale of an Odoo, by JSON-RPC."""

from collections.abc import Sequence

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AvailabilityReading,
    Catalogue,
    ExportUnreadable,
    Health,
    ListedTicket,
    Order,
    PosFailure,
    TablesReading,
    Ticket,
    TicketUpdate,
)
from tillbridge.adapter.secrets import read_secret
from tillbridge.adapter.texts import _
from tillbridge_odoo.failures import asking
from tillbridge_odoo.odoo import Account, Odoo
from tillbridge_odoo.options import RECORDED, OdooOptions
from tillbridge_odoo.reader import Reader
from tillbridge_odoo.register import open_session
from tillbridge_odoo.rpc import Asks, HttpRpc
from tillbridge_odoo.setup import advice_on, refusal_of
from tillbridge_odoo.tickets import CLOSED, Tickets
from tillbridge_odoo.updates import Updates


class OdooAdapter:
    """Everything the bridge asks of Odoo."""

    def __init__(self, options: OdooOptions, context: AdapterContext) -> None:
        account = Account(
            options.url,
            options.database,
            options.login,
            lambda: read_secret(options.api_key, "api_key", context),
        )
        self._odoo = Odoo(_rpc(options, context), account, options.language)
        self._options = options
        self._reader = Reader(self._odoo, options, context.currency)
        self._tickets = Tickets(self._odoo, options, context.currency)
        self._updates = Updates(self._odoo, options)

    def close(self) -> None:
        """Let go of connections."""
        self._odoo.close()

    def read_catalogue(self) -> Catalogue:
        """Return the menu. Raises ExportUnreadable, PosOffline."""
        return self._reader.catalogue()

    def read_availability(self) -> AvailabilityReading:
        """Return what is off sale. Raises ExportUnreadable, PosOffline."""
        return self._reader.availability()

    def read_tables(self) -> TablesReading:
        """Return the tables. Raises ExportUnreadable, PosOffline."""
        return self._reader.tables()

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order into the open session. Raises a PosFailure."""
        return self._tickets.write(order, key)

    def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket of that key, in whatever state it is. Raises PosOffline."""
        return self._tickets.find(key)

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Cancel the ticket. Raises a PosFailure."""
        self._tickets.cancel(key)

    def late_write_s(self) -> float:
        """Return how long Odoo may still carry out a write that it has not answered."""
        return self._options.late_s

    def list_tickets(self) -> Sequence[ListedTicket]:
        """Return the orders of ours in this point of sale. Raises PosOffline."""
        return self._updates.tickets()

    def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        """Cancel this order, and no other with its key. Raises a PosFailure."""
        self._tickets.cancel_listed(ticket)

    def read_updates(self) -> Sequence[TicketUpdate]:
        """Return how orders of ours went on. Raises a PosFailure."""
        return self._updates.read()

    def update_handled(self, update: TicketUpdate) -> None:
        """Take note that a piece of news is kept."""
        self._updates.handled(update)

    def health(self) -> Health:
        """Return whether Odoo answers and lets us in, and whether staff sees the orders there."""
        try:
            with asking():
                version, uid = self._odoo.version(), self._odoo.uid
                register = self._reader.register()
                refusal = refusal_of(self._odoo, register, self._options)
                if refusal is not None:
                    return Health(online=False, detail=refusal.text, fix=refusal.fix)
                closed = open_session(self._odoo, register) is None
                return Health(
                    online=True,
                    detail=_("Odoo {version}, user {user}").format(
                        version=".".join(map(str, version)), user=uid
                    ),
                    closed=CLOSED.format(name=register.name) if closed else "",
                    advice=advice_on(self._odoo, register, self._options),
                )
        except PosFailure as failure:
            return Health(online=False, detail=failure.message, fix=failure.fix)
        except ExportUnreadable as failure:
            return Health(online=False, detail=failure.text, fix=failure.fix)


def _rpc(options: OdooOptions, context: AdapterContext) -> Asks:
    if options.url.startswith(RECORDED):
        # Only tests have such an address; a bridge at work never loads the emulated Odoo.
        from tillbridge_odoo.emulated.recorded import RecordedRpc  # noqa: PLC0415 -- as said above

        return RecordedRpc(context.base_dir / options.url.removeprefix(RECORDED), context.currency)
    return HttpRpc(options.url, timeout_s=options.timeout_s)


ADAPTER = Adapter(
    name="odoo",
    summary="Odoo Point of Sale 17, 18 and 19, by JSON-RPC",
    options=OdooOptions,
    open=OdooAdapter,
)
