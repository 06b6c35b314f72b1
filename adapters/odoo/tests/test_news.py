"""How orders go on: Odoo keeps a state, and each is told once it has changed, until handled."""

import json
from collections.abc import Sequence

import pytest

from tillbridge.adapter import TicketStatus, TicketUpdate
from tillbridge_odoo.emulated.shop import Shop, line_of, order_for
from tillbridge_odoo.reference import Reference

_SENT = {
    17: json.dumps({"a1b2 - ": {"name": "Soup", "quantity": 1}}),
    18: json.dumps({"lines": {"a1b2 - ": {"quantity": 1}}, "generalNote": ""}),
    19: json.dumps({"lines": {"a1b2 - ": {"quantity": 1}}, "metadata": {"serverDate": "x"}}),
}
_NOT_SENT = ["{}", "", "no json", "[]", '{"lines": {}, "generalNote": ""}']


def statuses(updates: Sequence[TicketUpdate]) -> list[tuple[str, TicketStatus]]:
    return [(each.order_id, each.status) for each in updates]


def written(shop: Shop, order_id: str = "ord_1", **options: str) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}"), order_id=order_id)
    shop.open(**options).write_ticket(asked, order_id)


def test_a_draft_is_no_news_until_something_happens(shop: Shop) -> None:
    written(shop)
    pos = shop.open()
    assert pos.read_updates() == []
    shop.store.set("pos.order", 1, last_order_preparation_change=_SENT[shop.odoo.version])
    assert statuses(pos.read_updates()) == [("ord_1", TicketStatus.PREPARING)]
    shop.odoo.sales.pay(1, 2)
    assert statuses(pos.read_updates()) == [("ord_1", TicketStatus.COMPLETED)]


@pytest.mark.parametrize("changes", _NOT_SENT)
def test_what_has_not_been_sent_to_the_kitchen_is_no_news(shop: Shop, changes: str) -> None:
    written(shop)
    shop.store.set("pos.order", 1, last_order_preparation_change=changes)
    assert shop.open().read_updates() == []


def test_a_paid_order_is_accepted_and_done_when_it_is_posted(shop: Shop) -> None:
    written(shop, orders="paid")
    pos = shop.open(orders="paid")
    assert statuses(pos.read_updates()) == [("ord_1", TicketStatus.ACCEPTED)]
    shop.store.set("pos.order", 1, state="done")
    assert statuses(pos.read_updates()) == [("ord_1", TicketStatus.COMPLETED)]


def test_news_is_told_until_it_is_handled(shop: Shop) -> None:
    written(shop)
    pos = shop.open()
    shop.odoo.sales.pay(1, 2)
    (news,) = pos.read_updates()
    assert pos.read_updates() == [news]
    pos.update_handled(news)
    assert pos.read_updates() == []
    assert shop.open().read_updates() == [news], "after a restart the bridge knows it already"


def test_an_order_that_staff_cancels_is_rejected(shop: Shop) -> None:
    written(shop)
    shop.store.set("pos.order", 1, state="cancel")
    (news,) = shop.open().read_updates()
    assert (news.status, news.message) == (TicketStatus.REJECTED, "It was cancelled in Odoo.")


def test_a_draft_that_staff_deletes_is_missing_from_the_list(shop: Shop) -> None:
    written(shop)
    (ticket,) = shop.open().list_tickets()
    assert (ticket.key, ticket.live) == ("ord_1", True)
    shop.store.remove("pos.order", 1)
    pos = shop.open()
    assert pos.list_tickets() == []
    assert pos.find_ticket("ord_1") is None


def test_two_points_of_sale_of_one_odoo_do_not_read_each_others_orders(shop: Shop) -> None:
    written(shop)
    bar = shop.store.add(
        "pos.config", name="Bar", company_id=1, currency_id=1, payment_method_ids=[1, 2]
    )
    shop.store.add(
        "pos.order",
        name="Bar/1",
        state="paid",
        pos_reference=Reference("Online", "ord_2").text,
        config_id=bar,
    )
    shop.odoo.sales.pay(1, 2)
    for name, key in (("Restaurant", "ord_1"), ("Bar", "ord_2")):
        pos = shop.open(pos=name)
        assert [each.order_id for each in pos.read_updates()] == [key]
        assert [each.key for each in pos.list_tickets()] == [key]


def test_news_of_an_order_that_is_there_twice_is_of_the_one_that_stands(shop: Shop) -> None:
    written(shop)
    reference = shop.orders()[0]["pos_reference"]
    shop.store.add("pos.order", pos_reference=reference, state="draft", config_id=1)
    shop.store.set("pos.order", 1, state="cancel")
    pos = shop.open()
    assert pos.read_updates() == []
    assert [each.live for each in pos.list_tickets()] == [False, True]


def test_other_orders_are_nobodys_business(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    shop.odoo.sales.draft_on_table(1, shop.table(), soup)
    for number, reference in enumerate(
        ("Online 00005-900-8124", "Online ord_9 00000-000-0000", "Elsewhere ord_1 1"), 10
    ):
        shop.store.add("pos.order", id=number, pos_reference=reference, state="paid", config_id=1)
    assert shop.open().read_updates() == []


def test_a_refund_changes_nothing(shop: Shop) -> None:
    written(shop)
    shop.odoo.sales.pay(1, 2)
    reference = shop.orders()[0]["pos_reference"]
    refund = shop.store.add("pos.order", pos_reference=reference, state="draft", config_id=1)
    line = shop.lines()[0]["id"]
    shop.store.add("pos.order.line", order_id=refund, qty=-1, refunded_orderline_id=line)
    assert statuses(shop.open().read_updates()) == [("ord_1", TicketStatus.COMPLETED)]


def test_old_orders_are_left_alone(shop: Shop) -> None:
    written(shop)
    shop.odoo.sales.pay(1, 2)
    shop.store.record("pos.order", 1)["create_date"] = "2026-01-01 00:00:00"
    assert shop.open().read_updates() == []
