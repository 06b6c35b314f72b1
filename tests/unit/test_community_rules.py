"""The decisions about communities: merging reads, both sides of availability, order of events."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.communities.catalogue import (
    Change,
    advanced,
    both,
    holds,
    item_availability,
    lifted,
    over,
    replaced,
    to_push,
)
from tillbridge.communities.orders import (
    CREATED,
    STATUS_CHANGED,
    OrderEvent,
    Resolution,
    Unreadable,
    is_missing,
    read_event,
    settle,
)
from tillbridge.communities.subscription import describe, differences, newest, remedy
from tillbridge.ledger.community import TiedChild
from tillbridge.ledger.models import CommunityChild, CommunityOrder, CommunityOverride
from tillbridge.model.community import (
    STATUSES,
    DeliveryAttempt,
    ParentOrder,
    Record,
    Subscription,
    SubscriptionRequest,
)

KINDS = ("store", "category", "item")


@st.composite
def records(draw: st.DrawFn) -> Record:
    return Record(
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from("abcdef")),
        "st_main",
        draw(st.sampled_from(["Tea", "Soup", "Toast"])),
        removed=draw(st.booleans()),
    )


def applied(mirror: dict, change: Change) -> dict:
    after = {key: value for key, value in mirror.items() if key not in change.gone}
    return after | {(each.kind, each.record_id): each for each in change.put}


# Merging


@given(st.lists(records()), st.lists(records()))
def test_after_a_whole_read_the_mirror_is_the_answer(before: list, told_: list) -> None:
    mirror = applied({}, replaced((), before))
    after = applied(mirror, replaced(mirror, told_))
    assert after == applied({}, replaced((), told_))
    assert set(after) <= {(each.kind, each.record_id) for each in told_}


@given(st.lists(records()), st.lists(records()))
def test_an_incremental_read_touches_what_it_tells_and_nothing_else(
    before: list, told_: list
) -> None:
    mirror = applied({}, replaced((), before))
    after = applied(mirror, advanced(told_))
    last = {(each.kind, each.record_id): each for each in told_}
    for key in {*mirror, *last}:
        if key not in last:
            assert after[key] == mirror[key]
        elif last[key].removed:
            assert key not in after
        else:
            assert after[key] == last[key]


@given(st.lists(records()), st.lists(records()))
def test_an_incremental_read_told_twice_changes_nothing_more(before: list, told_: list) -> None:
    once = applied(applied({}, replaced((), before)), advanced(told_))
    assert applied(once, advanced(told_)) == once


# Availability

SIDES = st.sampled_from([True, False, None])


@given(SIDES, SIDES)
def test_both_sides_is_an_and_that_knows_what_it_does_not_know(
    merchant: bool | None, community: bool | None
) -> None:
    answer = both(merchant, community)
    guesses = [
        a and b
        for a, b in itertools.product(
            [merchant] if merchant is not None else [True, False],
            [community] if community is not None else [True, False],
        )
    ]
    assert answer == (guesses[0] if len(set(guesses)) == 1 else None)


@st.composite
def words(draw: st.DrawFn) -> CommunityOverride:
    available = draw(st.booleans())
    return CommunityOverride(
        external_id=draw(st.sampled_from("abcdef")),
        available=available,
        until=None if available else draw(st.none() | st.integers(0, 200)),
        by="staff",
        at=draw(st.integers(0, 100)),
        sent_at=None if available else draw(st.none() | st.integers(0, 100)),
        store="communities/hall",
    )


@given(words(), st.booleans() | st.none(), st.integers(0, 200))
def test_our_word_is_told_apart_from_what_the_catalogue_says(
    word: CommunityOverride, told_: bool | None, now: int
) -> None:
    body = {} if told_ is None else {"available": told_}
    found = item_availability(Record("item", word.external_id, "st", "Tea", body), word, now)
    assert found["own"]["available"] is not holds(word, now)
    assert found["catalogue_available"] is told_
    assert found["available"] == both(told_, found["own"]["available"])


@given(st.lists(words(), unique_by=lambda word: word.external_id), st.integers(0, 200))
def test_every_word_is_told_or_over_or_known(found: list[CommunityOverride], now: int) -> None:
    telling = {each.external_id for each in to_push(found, now)}
    ended = set(over(found, now))
    assert not telling & ended
    known = {each.external_id for each in found if each.sent_at is not None}
    assert telling | ended | known == {each.external_id for each in found}


def test_only_an_answer_asked_for_after_our_word_lifts_it() -> None:
    word = CommunityOverride(
        external_id="a",
        available=False,
        until=None,
        by="staff",
        at=1,
        sent_at=50,
        store="communities/hall",
    )
    on = {"a": Record("item", "a", "st", "Tea", {"available": True})}
    off = {"a": Record("item", "a", "st", "Tea", {"available": False})}
    assert lifted([word], on, asked_at=51, now_ms=60) == ("a",)
    assert lifted([word], on, asked_at=50, now_ms=60) == ()
    assert lifted([word], off, asked_at=51, now_ms=60) == ()
    assert lifted([word], {}, asked_at=51, now_ms=60) == ()
    assert lifted([word.replace(sent_at=None)], on, asked_at=51, now_ms=60) == ()


# Events


def event(status: str, at: int, previous: str = "", kind: str = STATUS_CHANGED) -> OrderEvent:
    return OrderEvent(kind, ParentOrder("ord_1", status, updated_at=at), previous, at)


def known_as(order: ParentOrder) -> CommunityOrder:
    return CommunityOrder(
        order_id=order.order_id,
        order_number="",
        status=order.status,
        updated_at=order.updated_at,
        received_at=0,
        community="communities/hall",
        changed_at=0,
        payload="",
    )


LIFE = [
    event(status, number, "" if number == 0 else STATUSES[number - 1], STATUS_CHANGED)
    if number
    else event(status, 0, kind=CREATED)
    for number, status in enumerate(STATUSES)
]


@given(st.data())
def test_however_events_arrive_the_service_has_the_last_word(data: st.DataObject) -> None:
    happened = data.draw(st.integers(1, len(LIFE)), label="happened")
    turns = data.draw(st.permutations(range(happened)), label="turns")
    again = data.draw(st.lists(st.integers(0, happened - 1), max_size=6), label="again")
    arriving = [LIFE[number] for number in (*turns, *again)]
    now = LIFE[happened - 1].order
    known: CommunityOrder | None = None
    for each in arriving:
        match settle(known, each, received_at=happened):
            case Resolution.TAKE:
                known = known_as(each.order)
            case Resolution.READ:
                known = known_as(now)
            case Resolution.KNOWN:
                pass
    assert known is not None
    assert known.status == now.status


def test_events_in_turn_need_no_read() -> None:
    known: CommunityOrder | None = None
    for each in LIFE:
        assert settle(known, each, received_at=1000) is Resolution.TAKE
        assert settle(known_as(each.order), each, received_at=1000) is Resolution.KNOWN
        known = known_as(each.order)


@pytest.mark.parametrize(
    ("known", "told_", "received_at"),
    [
        (None, event("confirmed", 1, "pending"), 10),  # the creation is missing
        (None, event("pending", 1, kind=CREATED), 120_000),  # retried for minutes
        (known_as(LIFE[2].order), LIFE[1], 10),  # late
        (known_as(LIFE[0].order), LIFE[2], 10),  # one is missing
        (known_as(LIFE[1].order), LIFE[0], 10),  # created again
    ],
)
def test_what_does_not_simply_go_on_is_read(
    known: CommunityOrder | None, told_: OrderEvent, received_at: int
) -> None:
    assert settle(known, told_, received_at=received_at) is Resolution.READ


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b'{"data": null}', b'{"data": {"order": 7}}', b'{"data": {"order": {}}}'],
)
def test_an_order_that_cannot_be_read_is_said_and_not_raised(body: bytes) -> None:
    assert isinstance(read_event(CREATED, body), Unreadable)


@given(st.text(max_size=20), st.binary(max_size=60))
def test_no_event_ever_raises(event_type: str, body: bytes) -> None:
    for each in (event_type, CREATED, STATUS_CHANGED):
        found = read_event(each, body)
        assert isinstance(found, Unreadable | OrderEvent | None)


@pytest.mark.parametrize(
    ("status", "local", "store", "at", "missing"),
    [
        ("pending", None, "st_main", 50, True),
        ("pending", "main", "st_main", 50, False),
        ("pending", None, "st_tea", 50, False),
        ("cancelled", None, "st_main", 50, False),
        ("pending", None, "st_main", 51, False),
    ],
)
def test_a_part_is_missing_where_it_is_ours_and_its_time_is_over(
    status: str, local: str | None, store: str, at: int, missing: bool
) -> None:
    child = CommunityChild(
        community="hall", order_id="ord_2", parent_id="ord_1", store_id=store, status=status
    )
    tied = TiedChild(child, at, local, None)
    assert is_missing(tied, {"st_main"}, before=50) is missing


# The subscription

WANTED = SubscriptionRequest("Till", "https://a.example/webhooks/communities/hall")


@pytest.mark.parametrize(
    ("now", "wanted", "changed"),
    [
        ({}, WANTED, set()),
        ({"events": None}, WANTED, set()),
        ({"events": ()}, WANTED, set()),
        ({"events": ("order.created", "*")}, WANTED, set()),
        ({"events": ("order.created",)}, WANTED, {"events"}),
        ({"name": "Old", "url": "https://b.example"}, WANTED, {"name", "url"}),
        ({"is_active": False}, WANTED, {"is_active"}),
        ({"events": ("b", "a")}, replace(WANTED, events=("a", "b")), set()),
    ],
)
def test_only_what_differs_is_changed(
    now: dict, wanted: SubscriptionRequest, changed: set[str]
) -> None:
    there = Subscription("whk_1", wanted.name, wanted.url, ("*",), is_active=True)
    assert set(differences(replace(there, **now), wanted)) == changed


@pytest.mark.parametrize(
    ("status", "fix"),
    [(None, "tunnel"), (502, "tunnel"), (401, "remake hall"), (404, "public_url")],
)
def test_a_failing_delivery_says_what_to_do(status: int | None, fix: str) -> None:
    attempt = DeliveryAttempt("order.created", status, "nope", error="refused")
    assert "order.created" in describe(attempt)
    assert fix in remedy(attempt, "hall", "https://a.example/x")


def test_the_newest_attempt_counts_in_whatever_order_they_come() -> None:
    one, two = (DeliveryAttempt("x", status, attempted_at=status) for status in (200, 404))
    assert newest([one, two]) == newest([two, one]) == two
    assert newest([]) is None
