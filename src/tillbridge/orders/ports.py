"""What the orders' flow needs of others: the POS, the service, and the rooms next door.

The daemon hands in `adapters.runner.PosRunner` and `service.client.ServiceClient`; tests hand in
something small. Rooms on the same floor are reached through `OrderEffects` only.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from tillbridge.adapter import (
    BadRow,
    Health,
    ListedTicket,
    Ticket,
    TicketMark,
    TicketUpdate,
)
from tillbridge.model.order import Order, ReasonCode


class OrderPos(Protocol):
    """A store's POS, as far as orders go. Every method may raise a PosFailure."""

    @property
    def cancels_tickets(self) -> bool:
        """Whether a written ticket can be taken back."""
        ...

    @property
    def marks_tickets(self) -> bool:
        """Whether a ticket can be written again with a mark, where nobody knows of the first."""
        ...

    @property
    def hold_older_than_s(self) -> float:
        """How old an order may be without a person asking for it; 0 for any age."""
        ...

    @property
    def late_write_s(self) -> float:
        """How long a write may take effect after its answer was given up (s); 0: never."""
        ...

    @property
    def lists_tickets(self) -> bool:
        """Whether the POS lists its tickets."""
        ...

    @property
    def tells_updates(self) -> bool:
        """Whether the POS tells how tickets go on."""
        ...

    async def write_ticket(self, order: Order, key: str) -> Ticket:
        """Write the order; TicketOutcomeUnknown where nobody knows whether the POS has it."""
        ...

    async def find_ticket(self, key: str) -> Ticket | None:
        """Return the ticket written with `key`, None where there is surely none.

        TicketOutcomeUnknown where nobody will ever know.
        """
        ...

    async def write_marked_ticket(
        self, order: Order, key: str, marks: AbstractSet[TicketMark]
    ) -> Ticket:
        """Write the order with marks for a person to read."""
        ...

    async def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        """Take a written ticket back."""
        ...

    async def list_tickets(self) -> Sequence[ListedTicket]:
        """Return the tickets of the last two days in the POS, oldest first."""
        ...

    async def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        """Take back this ticket, and no other of the same order."""
        ...

    async def read_updates(self) -> Sequence[TicketUpdate]:
        """Return the news not yet handled, oldest first."""
        ...

    async def update_handled(self, update: TicketUpdate) -> None:
        """Take note that the news has been kept for good."""
        ...

    async def unreadable_updates(self) -> Sequence[BadRow]:
        """Return the news that nobody could understand; none where there is no such thing."""
        ...

    async def health(self) -> Health:
        """Return whether the POS can be reached; never raises."""
        ...


class OrderService(Protocol):
    """The order calls of the service. Each raises ServiceError only. Specification: Orders."""

    async def accept(self, order_id: str) -> object:
        """POST /pos/orders/{order_id}/accept."""
        ...

    async def set_preparing(self, order_id: str) -> object:
        """POST /pos/orders/{order_id}/status."""
        ...

    async def ready(self, order_id: str) -> object:
        """POST /pos/orders/{order_id}/ready."""
        ...

    async def cancel(
        self, order_id: str, reason: str, reason_code: ReasonCode, message: str
    ) -> object:
        """POST /pos/orders/{order_id}/cancel."""
        ...


class OrderEffects(Protocol):
    """What orders bring about in other rooms.

    The first two return once the wish is kept, without waiting for the network; they may be told
    the same thing twice. The others tell transitions.
    """

    async def items_out(self, external_ids: Sequence[str]) -> None:
        """Take these items off sale: the POS says that they are out."""
        ...

    async def price_mismatch(self) -> None:
        """Synchronise the menu again: the POS has other prices than the storefront."""
        ...

    def pos_offline(self, detail: str) -> None:
        """The POS cannot be reached, from now on."""
        ...

    def pos_closed(self, why: str) -> None:
        """The POS takes no orders from now on, and why; "" where it takes them again."""
        ...

    def order_lost(self) -> None:
        """An order was cancelled because the POS cannot be reached."""
        ...

    def pos_online(self) -> None:
        """The POS can be reached again."""
        ...
