import json
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AdapterOptions,
    AddOn,
    AddOnGroup,
    Availability,
    AvailabilityReading,
    Catalogue,
    CatalogueChanges,
    ExportUnreadable,
    Health,
    Item,
    ItemUnavailable,
    ListedTicket,
    Order,
    PosFailure,
    PosOffline,
    StoreClosed,
    Table,
    TablesReading,
    Ticket,
    TicketOutcomeUnknown,
    TicketStatus,
    TicketUpdate,
    Variant,
)
from tillbridge.adapter.known_records import KnownRecords
from tillbridge.model.money import to_minor

T = TypeVar("T")


class PaperOptions(AdapterOptions):
    menu: Path


class PaperAdapter:
    """Knows the till as `PaperTill`, whose calls stand for a driver's."""

    patience_s = 0.2

    def __init__(self, options: PaperOptions, context: AdapterContext) -> None:
        from tests.support import paper_till  # the till's side imports this one

        self._lib = paper_till
        self.till = paper_till.PaperTill(context.base_dir)
        self.menu = context.base_dir / options.menu
        self.currency = context.currency

    def read_catalogue(self) -> Catalogue:
        try:
            text = self.menu.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as failure:
            raise ExportUnreadable(f"The menu cannot be read: {failure}.") from failure
        if not text.endswith("\n"):
            raise ExportUnreadable("The menu ends in the middle of a line.")
        rows = [json.loads(line) for line in text.splitlines()]
        groups = {key: group for row in rows for key, group in row["extras"].items()}
        return Catalogue.of(
            [self.item(row) for row in rows],
            add_ons=[
                AddOn(key, name, self.minor(price))
                for _name, _most, extras in groups.values()
                for key, name, price in extras
            ],
            addon_groups=[
                AddOnGroup(key, name, max_select=most, add_ons=tuple(each[0] for each in extras))
                for key, (name, most, extras) in groups.items()
            ],
        )

    def read_changes(self, known: AbstractSet[int]) -> CatalogueChanges:
        records = KnownRecords(known)
        fingerprints = {
            key: records.new(self.record(item)) for key, item in self.read_catalogue().items.items()
        }
        new = {key: number for key, number in fingerprints.items() if number is not None}
        items = [item for key, item in self.read_catalogue().items.items() if key in new]
        return records.changes(Catalogue.of(items, fingerprints=new))

    def record(self, item: Item) -> Sequence[str]:
        return (item.external_id, item.name, str(item.price))

    def item(self, row: dict[str, Any]) -> Item:
        return Item(
            row["id"],
            row["name"],
            self.minor(row["price"]),
            addon_groups=tuple(row["extras"]),
            variants=tuple(self.variant(*each) for each in row["sizes"]),
        )

    def variant(self, key: str, name: str, price: str) -> Variant:
        return Variant(key, name, self.minor(price))

    def minor(self, price: str) -> int:
        return to_minor(price, self.currency)

    def read_availability(self) -> AvailabilityReading:
        gone = self._ask(self.till.sold_out)
        return AvailabilityReading(
            {key: Availability(available=False, until=self.until(at)) for key, at in gone.items()}
        )

    def until(self, at: str | None) -> int | None:
        if at is None:
            return None
        return int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000)

    def read_tables(self) -> TablesReading:
        return TablesReading(tuple(Table(*row) for row in self._ask(self.till.tables)))

    def write_ticket(self, order: Order, key: str) -> Ticket:
        return Ticket(self._ask(lambda: self.till.add(key, order.payload, self.patience_s)))

    def find_ticket(self, key: str) -> Ticket | None:
        number = self._ask(lambda: self.till.number_of(key, self.patience_s))
        return None if number is None else Ticket(number)

    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        self._ask(lambda: self.till.cancel(key, self.patience_s))

    def list_tickets(self) -> Sequence[ListedTicket]:
        return [
            ListedTicket(key, number, key, live=live)
            for key, number, live in self._ask(lambda: self.till.listed(self.patience_s))
        ]

    def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        self._ask(lambda: self.till.cancel(ticket.record, self.patience_s))

    def read_updates(self) -> Sequence[TicketUpdate]:
        return [
            TicketUpdate(each["key"], each["order_id"], TicketStatus(each["status"]))
            for each in self._ask(lambda: self.till.news(self.patience_s))
        ]

    def update_handled(self, update: TicketUpdate) -> None:
        self._ask(lambda: self.till.forget_news(update.key))

    def health(self) -> Health:
        try:
            self.till.ping(self.patience_s)
        except self._lib.TillAway:
            return Health(online=False, detail="The till does not answer.")
        return Health(online=True)

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except self._lib.TillAway as away:
            raise PosOffline("The till does not answer.") from away
        except self._lib.AnswerLost as lost:
            raise TicketOutcomeUnknown("The till's answer got lost.") from lost
        except self._lib.TillSays as said:
            if said.code == "closed":
                raise StoreClosed("Closed for the day.") from said
            if said.code == "unknown":
                raise ItemUnavailable("Unknown items.", external_ids=said.detail) from said
            raise PosFailure(said.code) from said


def open_paper(options: PaperOptions, context: AdapterContext) -> PaperAdapter:
    return PaperAdapter(options, context)


ADAPTER = Adapter("paper", "A till on paper, for tests", PaperOptions, open_paper)
