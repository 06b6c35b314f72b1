"""One adapter for every check of the conformance suite, honest in all but the one thing."""

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydantic import ConfigDict

from tests.support.paper_adapter import ADAPTER, PaperAdapter, PaperOptions
from tests.support.paper_till import AnswerLost, PaperRig
from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AvailabilityReading,
    Catalogue,
    Health,
    Item,
    ItemUnavailable,
    ListedTicket,
    Order,
    PosOffline,
    StoreClosed,
    TablesReading,
    Ticket,
    TicketUpdate,
    Variant,
)
from tillbridge.model.order import parse_order

_runs = itertools.count()


class SwallowsMisspellings(PaperOptions):
    model_config = ConfigDict(extra="ignore")


class NotesWhenItWasRead(PaperAdapter):
    def item(self, row: dict[str, Any]) -> Item:
        return replace(super().item(row), description=f"reading {next(_runs)}")


class KeepsAsciiOnly(PaperAdapter):
    def item(self, row: dict[str, Any]) -> Item:
        item = super().item(row)
        return replace(item, name=item.name.encode("ascii", "replace").decode())


class CalculatesWithFloats(PaperAdapter):
    def minor(self, price: str) -> int:
        digits = len(price.partition(".")[2])
        return int(float(price) * 10**digits)


class ThinksInCents(PaperAdapter):
    def minor(self, price: str) -> int:
        return super().minor(price) * (100 if self.currency == "JPY" else 1)


class KnowsTwoDecimals(PaperAdapter):
    def minor(self, price: str) -> int:
        minor = super().minor(price)
        return minor // 10 if self.currency == "KWD" else minor


class CountsRows(PaperAdapter):
    def read_catalogue(self) -> Catalogue:
        items = sorted(super().read_catalogue().items.values(), key=lambda item: item.name)
        whole = super().read_catalogue()
        renamed = any(item.name == "Another name" for item in items)
        found = Catalogue.of(
            replace(item, external_id=f"{item.external_id}-renamed")
            if renamed and item.name == "Another name"
            else item
            for item in whole.items.values()
        )
        return replace(whole, items=found.items)


class TellsNoNewNames(PaperAdapter):
    def record(self, item: Item) -> Sequence[str]:
        return (item.external_id, str(item.price))


class ReadsOnePage(PaperAdapter):
    def read_catalogue(self) -> Catalogue:
        whole = super().read_catalogue()
        return replace(whole, items=dict(list(whole.items.items())[:1000]))


class BelievesHalf(PaperAdapter):
    def read_catalogue(self) -> Catalogue:
        items = []
        for line in self.menu.read_bytes().decode(errors="ignore").splitlines():
            try:
                items.append(self.item(json.loads(line)))
            except ValueError:
                continue
        return Catalogue.of(items)


class PricesVariantsInMajorUnits(PaperAdapter):
    def variant(self, key: str, name: str, price: str) -> Variant:
        return Variant(key, name, self.minor(price) // 100)


class ForgetsGroups(PaperAdapter):
    def item(self, row: dict[str, Any]) -> Item:
        return replace(super().item(row), addon_groups=())


class SellsOnePieceOfEach(PaperAdapter):
    def write_ticket(self, order: Order, key: str) -> Ticket:
        lines = [{**line, "quantity": 1} for line in order.payload["items"]]
        return super().write_ticket(parse_order({**order.payload, "items": lines}), key)


class TakesSecondsForMilliseconds(PaperAdapter):
    def until(self, at: str | None) -> int | None:
        until = super().until(at)
        return None if until is None else until // 1000


class NeverSoldOut(PaperAdapter):
    def read_availability(self) -> AvailabilityReading:
        return AvailabilityReading()


class LosesTables(PaperAdapter):
    def read_tables(self) -> TablesReading:
        return TablesReading(super().read_tables().tables[:1])


class WritesIntoATillThatLooksAtNoKey(PaperAdapter):
    """It looks first, as it must; a till whose writes hang has nothing to be found then."""

    def write_ticket(self, order: Order, key: str) -> Ticket:
        if (found := self.find_ticket(key)) is not None:
            return found
        return Ticket(self._ask(lambda: self.till.add_another(key, order.payload)))


class WritesWithoutLooking(PaperAdapter):
    def write_ticket(self, order: Order, key: str) -> Ticket:
        self._refuse(order)
        return Ticket(self._ask(lambda: self.till.add_another(key, order.payload)))

    def _refuse(self, order: Order) -> None:
        now = self.till.remembered()
        self._ask(lambda: self.till.ping(self.patience_s))
        if now.get("closed"):
            raise StoreClosed("Closed for the day.")
        strange = [
            line.external_id or ""
            for line in order.lines
            if now.get("items") is not None and line.external_id not in now["items"]
        ]
        if strange:
            raise ItemUnavailable("Unknown items.", external_ids=strange)


class NotesTheKeyAfterwards(WritesWithoutLooking):
    """Looks at a list of its own, which it fills in when the ticket is written."""

    def write_ticket(self, order: Order, key: str) -> Ticket:
        if (found := self.find_ticket(key)) is not None:
            return found
        ticket = super().write_ticket(order, key)
        with (self.menu.parent / "written.txt").open("a") as notes:
            notes.write(f"{key} {ticket.reference}\n")
        return ticket

    def find_ticket(self, key: str) -> Ticket | None:
        self._ask(lambda: self.till.ping(self.patience_s))
        notes = self.menu.parent / "written.txt"
        lines = notes.read_text().splitlines() if notes.exists() else []
        known = dict(line.split() for line in lines)
        return Ticket(known[key]) if key in known else None


class CallsALostAnswerOffline(PaperAdapter):
    def write_ticket(self, order: Order, key: str) -> Ticket:

        def add() -> str:
            try:
                return self.till.add(key, order.payload, self.patience_s)
            except AnswerLost as lost:
                raise PosOffline("The till does not answer.") from lost

        return Ticket(self._ask(add))


class SaysNothingOfWhichItem(PaperAdapter):
    def write_ticket(self, order: Order, key: str) -> Ticket:
        try:
            return super().write_ticket(order, key)
        except ItemUnavailable as failure:
            raise ItemUnavailable(failure.message) from failure


class CallsAClosedStoreOffline(PaperAdapter):
    def write_ticket(self, order: Order, key: str) -> Ticket:
        try:
            return super().write_ticket(order, key)
        except StoreClosed as failure:
            raise PosOffline(failure.message) from failure


class ForgetsWhatWasCancelled(PaperAdapter):
    def cancel_ticket(self, order: Order, key: str, reason: str) -> None:
        self._ask(lambda: self.till.ping(self.patience_s))
        with self.till.memory() as memory:
            memory["tickets"].pop(key, None)


class CancelsWhateverIsListed(PaperAdapter):
    def cancel_listed_ticket(self, ticket: ListedTicket, order: Order, reason: str) -> None:
        for each in self.list_tickets():
            super().cancel_listed_ticket(each, order, reason)


class TellsNewsOnce(PaperAdapter):
    def read_updates(self) -> Sequence[TicketUpdate]:
        updates = super().read_updates()
        for update in updates:
            self.update_handled(update)
        return updates


class AlwaysSaysItIsThere(PaperAdapter):
    def health(self) -> Health:
        return Health(online=True)


class WaitsForever(PaperAdapter):
    def health(self) -> Health:
        if self.till.remembered().get("slow_s"):
            time.sleep(5)
        return super().health()


class ProbesWithATestOrder(PaperAdapter):
    def health(self) -> Health:
        answer = super().health()
        if answer.online:
            with self.till.memory() as memory:
                memory["probes"] = memory.get("probes", 0) + 1
        return answer


@dataclass(frozen=True, slots=True)
class Hostile:
    """`check` must fail with `says` in its words; `also` may fail with it."""

    check: str
    says: str
    kind: type[PaperAdapter] = PaperAdapter
    also: tuple[str, ...] = ()
    declared: frozenset[str] | None = None
    options: type[PaperOptions] = PaperOptions

    @property
    def name(self) -> str:
        return self.kind.__name__ if self.kind is not PaperAdapter else self.check

    def rig(self) -> type[PaperRig]:
        made = replace(ADAPTER, options=self.options, open=OPENERS[self.kind])

        class HostileRig(PaperRig):
            adapter: ClassVar[Adapter] = made

        return HostileRig


def _open_killed(options: PaperOptions, context: AdapterContext) -> PaperAdapter:
    return NotesTheKeyAfterwards(options, context)


def _opener(kind: type[PaperAdapter]) -> Callable[[Any, AdapterContext], object]:
    # What is handed to another process must be found there by its name.
    if kind is NotesTheKeyAfterwards:
        return _open_killed
    if kind is PaperAdapter:
        return ADAPTER.open
    return kind


HOSTILE = (
    Hostile("declares", "accepts an option that it does not have", options=SwallowsMisspellings),
    Hostile(
        "reads",
        "Two readings of the same export differ",
        NotesWhenItWasRead,
        also=("half_export", "changes"),
    ),
    Hostile("unicode", "Crème", KeepsAsciiOnly, also=("variants",)),
    Hostile(
        "rounding",
        "the adapter reads",
        CalculatesWithFloats,
        also=("three_decimals", "variants", "add_ons"),
    ),
    Hostile("no_decimals", "the adapter reads", ThinksInCents),
    Hostile("three_decimals", "the adapter reads", KnowsTwoDecimals),
    Hostile("identity", "Exported again with a new name, the ids differ", CountsRows),
    Hostile("large_menu", "The till sells 5000 items, the adapter reads 1000", ReadsOnePage),
    Hostile("changes", "By its changes the item sku-1 is", TellsNoNewNames),
    Hostile("half_export", "loses", BelievesHalf, also=("add_ons",)),
    Hostile("sold_out", "the adapter says nothing", NeverSoldOut, also=("sold_out_until",)),
    Hostile("variants", "sku-pizza-l 'Large' at 12)", PricesVariantsInMajorUnits),
    Hostile(
        "add_ons", "What goes with sku-pizza: the till has grp-extras; the adapter", ForgetsGroups
    ),
    Hostile(
        "content",
        "line 2 ('Борщ 寿司', sku-soup): quantity: ordered 3, on the ticket 1",
        SellsOnePieceOfEach,
    ),
    Hostile("sold_out_until", "It is in seconds.", TakesSecondsForMilliseconds),
    Hostile("tables", "the adapter reads t1", LosesTables),
    Hostile(
        "same_order_twice",
        "the till has 2 tickets",
        WritesWithoutLooking,
        also=("lost_answer", "late_write"),
    ),
    Hostile(
        "killed",
        "After being killed at line",
        NotesTheKeyAfterwards,
        also=("lost_answer", "late_write", "probe"),
    ),
    Hostile("lost_answer", "says that it was offline", CallsALostAnswerOffline),
    Hostile(
        "late_write",
        "the till has 2 tickets",
        WritesIntoATillThatLooksAtNoKey,
        also=("same_order_twice", "lost_answer", "unknown_item", "closed", "offline", "slow"),
    ),
    Hostile("lists", "of the orders [0, 0] are left", CancelsWhateverIsListed),
    Hostile("unknown_item", "It is refused with ItemUnavailable", SaysNothingOfWhichItem),
    Hostile("closed", "PosOffline", CallsAClosedStoreOffline),
    Hostile("cancel", "it would be written again", ForgetsWhatWasCancelled),
    Hostile("news", "not told again", TellsNewsOnce),
    Hostile("offline", "health says that it is there", AlwaysSaysItIsThere, also=("slow",)),
    Hostile("slow", "had not come back", WaitsForever),
    Hostile("probe", "changed something in the till", ProbesWithATestOrder),
)

OPENERS = {hostile.kind: _opener(hostile.kind) for hostile in HOSTILE}
