"""Whatever an adapter hands over, only bad rows and failures come of it, and the rest goes on."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.catalogue_harness import store_settings
from tests.support.forgetful_service import ForgetfulService
from tests.support.hostile_values import TEXTS, VALUES, or_anything
from tests.support.store_context import store_context
from tillbridge.adapter import (
    AddOn,
    AddOnGroup,
    Availability,
    AvailabilityReading,
    BadRow,
    Catalogue,
    CatalogueChanges,
    Category,
    Change,
    ExportUnreadable,
    Health,
    Item,
    ItemTax,
    ItemUnavailable,
    ListedTicket,
    Menu,
    Order,
    PosFailure,
    RejectReason,
    Source,
    Table,
    TablesReading,
    TaxComponent,
    Ticket,
    TicketStatus,
    TicketUpdate,
    Variant,
)
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ServiceError
from tillbridge.core.problems import Found, Scope
from tillbridge.ledger.facts import put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker, open_problems
from tillbridge.menu.flow import MenuFlow
from tillbridge.model.export_facts import ExportFacts, ExportWarning, FileEncoding, LeftOut
from tillbridge.model.order import parse_order
from tillbridge.pos.runner import PosRunner
from tillbridge.pos.validation import valid_availability
from tillbridge.service.types import AvailabilityResult, BatchResult, PatchResult, PushAnswer

T = TypeVar("T")

IDS = st.sampled_from(["a", "b", "c", "\u00e9", "x\ud800"])
PRICES = st.integers(0, 10_000)
UNTIL = st.integers(1_800_000_000_000, 1_900_000_000_000)


def tuples(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=2).map(tuple)


VARIANTS = st.builds(
    Variant, or_anything(IDS), or_anything(TEXTS), or_anything(PRICES), or_anything(st.booleans())
)
TAXES = st.builds(
    ItemTax,
    or_anything(TEXTS),
    or_anything(
        tuples(
            st.builds(
                TaxComponent, or_anything(TEXTS), or_anything(st.sampled_from(["8.25", "x", "-1"]))
            )
        )
    ),
)
ITEMS = st.builds(
    Item,
    external_id=IDS,
    name=st.just("Soup") | VALUES,
    price=or_anything(PRICES),
    description=or_anything(st.just("Good")),
    image_url=or_anything(st.just("")),
    available=or_anything(st.booleans()),
    snooze_until=or_anything(st.none() | UNTIL),
    categories=or_anything(tuples(IDS)),
    addon_groups=or_anything(tuples(IDS)),
    variants=or_anything(tuples(VARIANTS)),
    variant_type=or_anything(st.just("")),
    tax=or_anything(st.none() | TAXES),
    product_type=or_anything(st.just("")),
    menus=or_anything(st.just(())),
)
BAD_ROWS = st.builds(
    BadRow, TEXTS | VALUES, TEXTS | VALUES, TEXTS | VALUES, or_anything(IDS), VALUES, VALUES
)
SOURCES = st.builds(
    Source,
    or_anything(st.dictionaries(IDS, or_anything(st.just("menu.csv, row 3")), max_size=3)),
    or_anything(st.dictionaries(st.just("price"), TEXTS)),
)


def keyed(things: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[dict[Any, Any]]:
    """Return things by their own ids; now and then by another, or something else altogether."""

    def by_id(found: Sequence[Any]) -> dict[Any, Any]:
        return {getattr(each, "external_id", number): each for number, each in enumerate(found)}

    well = st.lists(things, max_size=size).map(by_id)
    return st.one_of(well, well, well, st.dictionaries(IDS, things | VALUES, max_size=2))


CATALOGUES = st.builds(
    Catalogue,
    items=or_anything(keyed(ITEMS)),
    categories=or_anything(keyed(st.builds(Category, IDS, or_anything(st.just("Food"))))),
    add_ons=or_anything(keyed(st.builds(AddOn, IDS, st.just("Salt"), or_anything(PRICES)))),
    addon_groups=or_anything(
        keyed(
            st.builds(
                AddOnGroup,
                IDS,
                st.just("Extras"),
                or_anything(st.integers(0, 3)),
                or_anything(st.integers(0, 3)),
                or_anything(st.booleans()),
                or_anything(tuples(IDS)),
            )
        )
    ),
    menus=or_anything(keyed(st.builds(Menu, IDS, or_anything(st.just("Lunch"))), 1)),
    bad_rows=tuples(BAD_ROWS | VALUES),
    fingerprints=or_anything(st.dictionaries(IDS, st.integers() | VALUES, max_size=3)),
    source=or_anything(SOURCES),
)
WORDS = st.builds(
    AvailabilityReading,
    or_anything(
        st.dictionaries(
            IDS,
            st.builds(Availability, or_anything(st.booleans()), or_anything(st.none() | UNTIL)),
            max_size=3,
        )
    ),
    tuples(BAD_ROWS),
)
TABLES = st.builds(
    TablesReading,
    or_anything(
        tuples(
            st.builds(
                Table,
                or_anything(IDS),
                or_anything(TEXTS),
                or_anything(st.none() | st.integers(0, 9)),
                or_anything(TEXTS),
            )
        )
    ),
    tuples(BAD_ROWS),
)


class Till:
    """An adapter that hands over what a test says, or raises it."""

    def __init__(self) -> None:
        self.said: Any = None

    def _say(self, *_arguments: object) -> Any:  # noqa: ANN401 -- anything at all
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    read_catalogue = read_changes = read_availability = read_tables = health = _say
    write_ticket = find_ticket = write_marked_ticket = cancel_ticket = _say
    read_updates = update_handled = unreadable_updates = list_tickets = _say
    catalogue_files = availability_files = table_files = update_folders = _say
    hold_older_than_s = trouble = cancel_listed_ticket = _say

    def on_change(self, hear: Callable[[Change], None]) -> None:
        self.hear = hear

    def close(self) -> None:
        return


class OfMenus:
    """An adapter that reads, each kind by itself."""

    def __init__(self) -> None:
        self.menu: Any = Catalogue()
        self.words: Any = AvailabilityReading()
        self.plan: Any = TablesReading()

    def read_catalogue(self) -> Any:  # noqa: ANN401 -- anything at all
        return self.menu

    def read_availability(self) -> Any:  # noqa: ANN401 -- (as above)
        return self.words

    def read_tables(self) -> Any:  # noqa: ANN401 -- (as above)
        return self.plan


class Encoding(ForgetfulService):
    """A service that puts every body on the wire."""

    async def push_menus(self, store_id: str, body: Mapping[str, Any]) -> PushAnswer:
        _encoded(body)
        return await super().push_menus(store_id, body)

    async def batch(self, store_id: str, body: Mapping[str, Any]) -> BatchResult:
        _encoded(body)
        return await super().batch(store_id, body)

    async def set_availability(
        self, store_id: str, items: Sequence[Mapping[str, Any]]
    ) -> AvailabilityResult:
        _encoded(items)
        return await super().set_availability(store_id, items)

    async def patch_item(
        self, store_id: str, external_id: str, fields: Mapping[str, Any]
    ) -> PatchResult:
        _encoded(fields)
        return await super().patch_item(store_id, external_id, fields)


def _encoded(body: object) -> None:
    json.dumps(body, ensure_ascii=False, allow_nan=False).encode()


class Bench:
    """A loop in a thread of its own, with a ledger, in which examples run one after the other."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._open(folder))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def _open(self, folder: Path) -> None:
        clock = Clock()
        self.ledger = await Ledger.open(folder, clock=clock)
        self.tracker = await ProblemTracker.start(self.ledger, clock=clock)
        await self.ledger.write(
            lambda connection: put_fact(connection, "main", "service_store_id", "st_1", at=1)
        )
        self.till = OfMenus()
        self.flow = MenuFlow(
            store_context(
                store_settings(),
                pos=runner(self.till),
                service=Encoding(),
                ledger=self.ledger,
                problems=self.tracker,
                clock=clock,
            )
        )

    async def _close(self) -> None:
        await self.tracker.settle()
        await self.ledger.close()

    def close(self) -> None:
        self.run(self._close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def round(self) -> None:
        """Make a round of every kind; what the service refuses is no failure of ours."""
        for push in (
            partial(self.flow.push_again, full=True),
            self.flow.push_again,
            self.flow.tables.push_again,
        ):
            try:
                await push()
            except ServiceError:
                continue
        self.flow.availability_changed()
        await self.flow._availability.step()
        if await self.flow.approve() is not None:
            await self.flow._menu.step()
        await self.tracker.settle()
        await self.ledger.read(open_problems)


def runner(till: object) -> PosRunner:
    return PosRunner(
        till,
        store="main",
        adapter="hostile",
        ticket_timeout_s=20,
        report=_storable,
    )


def _storable(_scope: Scope, found: Iterable[Found]) -> None:
    for each in found:
        "".join([each.subject, *map(str, each.detail.values())]).encode()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    # Thousands of tracebacks, each drawn for a person, take longer than what is tested.
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    found = Bench(tmp_path_factory.mktemp("hostile"))
    yield found
    found.close()
    structlog.configure(**before)


# Each is compared, judged, sent and stored.
@settings(suppress_health_check=list(HealthCheck), max_examples=settings().max_examples // 2)
@given(menu=CATALOGUES, words=WORDS, plan=TABLES)
def test_whatever_is_read_is_compared_judged_sent_and_stored_without_an_error(
    bench: Bench, menu: object, words: object, plan: object
) -> None:
    bench.till.menu, bench.till.words, bench.till.plan = menu, words, plan
    bench.run(bench.round())


ORDER: Order = parse_order({"id": "ord_1"})
ANSWERS = st.one_of(
    VALUES,
    CATALOGUES,
    WORDS,
    TABLES,
    st.builds(
        CatalogueChanges,
        CATALOGUES,
        or_anything(st.frozensets(st.integers(0, 9))),
        or_anything(st.integers(0, 9)),
    ),
    st.builds(Ticket, VALUES),
    st.builds(Health, VALUES, VALUES),
    st.lists(
        st.builds(
            TicketUpdate,
            or_anything(st.just("k")),
            or_anything(IDS),
            or_anything(st.sampled_from(TicketStatus)),
            or_anything(st.none() | st.sampled_from(RejectReason)),
            or_anything(tuples(IDS)),
            VALUES,
        )
        | BAD_ROWS
        | st.builds(ListedTicket, IDS, TEXTS, TEXTS, or_anything(st.booleans()))
        | VALUES,
        max_size=4,
    ),
    st.builds(ExportUnreadable, VALUES, place=VALUES, fix=VALUES, passing=VALUES),
    st.builds(PosFailure, VALUES),
    st.builds(ItemUnavailable, VALUES, external_ids=tuples(VALUES)),
    st.sampled_from([KeyError("\ud800"), RecursionError("deep"), MemoryError()]),
)


async def _ask_everything(till: Till) -> None:
    pos = runner(till)
    try:
        for ask in (
            pos.read_catalogue(),
            pos.read_changes(frozenset({1})),
            pos.read_availability(),
            pos.read_tables(),
            pos.write_ticket(ORDER, "k"),
            pos.find_ticket("k"),
            pos.write_marked_ticket(ORDER, "k", frozenset()),
            pos.cancel_ticket(ORDER, "k", "off"),
            pos.list_tickets(),
            pos.read_updates(),
            pos.unreadable_updates(),
            pos.health(),
        ):
            try:
                _all_storable(await ask)
            except ExportUnreadable as failure:
                _all_storable((failure.text, failure.place, failure.fix, failure.passing))
            except PosFailure as failure:
                _all_storable(failure.message)
                _all_storable(getattr(failure, "external_ids", ()))
        for paths in (pos.catalogue_files, pos.availability_files, pos.update_folders):
            assert all(isinstance(each, Path) for each in paths())
        assert pos.hold_older_than_s >= 0
    finally:
        await pos.close()


def _all_storable(value: object) -> None:
    """Assert that everything in a value that was let through can be encoded and stored."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, int):
        assert -(1 << 63) <= value < 1 << 63
    elif isinstance(value, Mapping):
        for each in (*value.keys(), *value.values()):
            _all_storable(each)
    elif isinstance(value, Sequence | AbstractSet):
        for each in value:
            _all_storable(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            # A source is only for words, and `key` only for the adapter itself.
            if field.name not in {"source", "key"}:
                _all_storable(getattr(value, field.name))
    else:
        assert value is None


@settings(suppress_health_check=list(HealthCheck))
@given(said=ANSWERS)
def test_an_adapter_can_only_fail_as_an_adapter_may(bench: Bench, said: object) -> None:
    till = Till()
    till.said = said
    bench.run(_ask_everything(till))


def read(menu: Catalogue) -> Catalogue:
    till = OfMenus()
    till.menu = menu
    return asyncio.run(runner(till).read_catalogue())


GOOD = Item("good", "Bread", 250)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("price", 2**63, "too large"),
        ("price", 10**40, "too large"),
        ("price", -1, "negative"),
        ("price", 4.5, "wrong kind"),
        ("name", "ice\ud83d", "half a character"),
        ("name", "x" * 501, "longer than 500"),
        ("name", "", "empty"),
        ("description", "ice \ud83d", "half a character"),
        ("description", "x" * 20_001, "longer than 20000"),
        ("available", "yes", "wrong kind"),
        ("snooze_until", 1_795_334_400, "not a time between"),
        ("snooze_until", 1_795_334_400_000_000, "not a time between"),
        ("categories", ("a", 5), "wrong kind"),
        ("tax", ItemTax("VAT", (TaxComponent("VAT", "x"),)), "not a number"),
        ("tax", ItemTax("VAT", (TaxComponent("VAT", "1e999999999"),)), "too large"),
        ("tax", ItemTax("VAT", (TaxComponent("VAT", "5000"),)), "between 0 and 1000"),
        ("variants", (Variant("v", "Large", 10**30),), "too large"),
    ],
)
def test_a_bad_value_is_one_bad_row_with_its_place_column_value_and_remedy(
    field: str, value: object, words: str
) -> None:
    bad = Item(**{"external_id": "bad", "name": "Soup", "price": 500, field: value})  # type: ignore[arg-type] # that is the point
    source = Source({"bad": "menu.csv, row 17"}, {field: f"Column {field}"})
    found = read(Catalogue.of([bad, GOOD], source=source))
    assert list(found.items) == ["good"]
    [row] = found.bad_rows
    assert (row.place, row.external_id) == ("menu.csv, row 17", "bad")
    assert row.text.startswith(f"Column {field} ")
    assert words in row.text
    assert row.field == f"Column {field}"
    assert row.fix
    assert row.value or not value


def test_what_is_wrong_with_a_size_stands_in_the_row_and_column_of_the_size() -> None:
    pizza = Item("pizza", "Pizza", 900, variants=(Variant("large", "Large", -1),))
    source = Source(
        {"pizza": "menu.csv, row 4", "large": "menu.csv, row 5"}, {"price": "Price [Bar]"}
    )
    [row] = read(Catalogue.of([pizza, GOOD], source=source)).bad_rows
    assert (row.place, row.field, row.external_id) == ("menu.csv, row 5", "Price [Bar]", "pizza")


def test_what_is_wrong_with_a_part_stands_in_the_row_and_column_of_the_part() -> None:
    source = Source(
        {"salt": "menu.csv, row 2"},
        {"price": "Price [Bar]", "add_ons.price": "Extra", "addon_groups": "Choices"},
        {"salt": "extras.csv, row 3"},
    )
    dish = Item("dish", "Soup", 500, addon_groups=("extras",))
    found = read(
        Catalogue.of(
            [dish, GOOD],
            add_ons=[AddOn("salt", "Salt", 10**30)],
            addon_groups=[AddOnGroup("extras", "Extras", add_ons=("salt",))],
            source=source,
        )
    )
    assert [(row.place, row.field) for row in found.bad_rows] == [
        ("extras.csv, row 3", "Extra"),
        ("external_id extras", "add_ons"),
        ("external_id dish", "Choices"),
    ]


def test_what_names_a_part_that_is_refused_keeps_its_last_state() -> None:
    dish = Item("dish", "Soup", 500, addon_groups=("extras",))
    found = read(
        Catalogue.of(
            [dish, GOOD],
            add_ons=[AddOn("salt", "Salt", 10**30), AddOn("oil", "Oil", 10)],
            addon_groups=[
                AddOnGroup("extras", "Extras", add_ons=("salt",)),
                AddOnGroup("more", "More", add_ons=("oil",)),
            ],
        )
    )
    assert (list(found.items), list(found.add_ons), list(found.addon_groups)) == (
        ["good"],
        ["oil"],
        ["more"],
    )
    assert [row.external_id for row in found.bad_rows] == ["", "", "dish"]


def test_a_menu_that_is_fine_is_handed_on_as_it_is() -> None:
    menu = Catalogue.of([GOOD], categories=[Category("c", "Food")], fingerprints={"good": 5})
    found = read(menu)
    assert found == menu
    assert found.items is menu.items


def test_facts_of_an_export_are_handed_on_all_of_them() -> None:
    facts = ExportFacts(
        encodings={"menu.csv": FileEncoding("utf-8")},
        left_out=(LeftOut("Water", "zero_price"),),
        not_offered=("Sauce",),
        warnings=(ExportWarning("menu.csv", "It is old.", "Export again."),),
        read_as="Shopify",
    )
    assert read(Catalogue.of([GOOD], facts=facts)).facts == facts


def test_news_that_cannot_be_kept_is_told_and_the_rest_is_kept() -> None:
    good = TicketUpdate("1.json", "ord_1", TicketStatus.READY)
    bad = TicketUpdate("2.json", "\ud800x", TicketStatus.READY)
    long = TicketUpdate("3.json", "x" * 900_000, TicketStatus.READY)
    many = TicketUpdate("4.json", "ord_4", TicketStatus.REJECTED, external_ids=("a",) * 50_000)
    till = Till()
    till.said = [bad, good, long, many]

    async def ask() -> tuple[Sequence[TicketUpdate], Sequence[BadRow]]:
        pos = runner(till)
        updates = await pos.read_updates()
        till.said = []
        return updates, await pos.unreadable_updates()

    updates, odd = asyncio.run(ask())
    assert updates == (good,)
    assert [row.place for row in odd] == ["2.json", "3.json", "4.json"]
    assert all(len(row.text) < 200 for row in odd)


@pytest.mark.parametrize("until", [4_102_444_800_001, 253_402_300_799_000])
def test_an_end_that_means_for_ever_takes_off_sale_with_no_end(until: int) -> None:
    found = valid_availability(
        AvailabilityReading({"p1": Availability(available=False, until=until)})
    )
    assert dict(found.items) == {"p1": Availability(available=False)}
    assert found.bad_rows == ()


@pytest.mark.parametrize("until", [4_102_444_800_001, 253_402_300_799_000])
def test_an_item_that_is_off_for_ever_is_off_with_no_end(until: int) -> None:
    bread = dataclasses.replace(GOOD, available=False)
    endless = dataclasses.replace(bread, snooze_until=until)
    found = read(Catalogue.of([endless, Item("tea", "Tea", 200)], fingerprints={"good": 5}))
    assert found.items["good"] == bread
    assert (len(found.items), found.fingerprints, found.bad_rows) == (2, {"good": 5}, ())


@pytest.mark.parametrize("until", [0, 1_795_201_200, 1_795_201_200_000_000])
def test_an_end_in_another_unit_is_a_bad_row(until: int) -> None:
    found = valid_availability(
        AvailabilityReading({"p1": Availability(available=False, until=until)})
    )
    assert not found.items
    assert len(found.bad_rows) == 1
