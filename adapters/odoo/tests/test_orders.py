"""Orders in Odoo: written once, whatever happens, in the open session, and never into another."""

import contextlib
import re
import threading

import pytest

from tillbridge.adapter import (
    ItemUnavailable,
    PosFailure,
    PosOffline,
    PriceMismatch,
    StoreClosed,
    TicketOutcomeUnknown,
)
from tillbridge_odoo.emulated.shop import Shop, line_of, order_for

_UID_OF_17 = re.compile(r"([0-9-]){14,}")


def test_a_draft_waits_in_the_open_session_under_our_key(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open()
    pos.write_ticket(
        order_for(
            line_of(f"tmpl-{soup}", price=450, quantity=2), special_instructions="No  salt\nplease"
        ),
        "ord_1",
    )
    (found,) = shop.orders()
    assert found["state"] == "draft"
    assert found["pos_reference"].startswith("Online ord_1 ")
    assert (found["session_id"], found["amount_total"], found["amount_paid"]) == (1, 9.0, 0)
    (written,) = shop.lines()
    assert (written["product_id"], written["qty"], written["price_unit"]) == (soup, 2, 4.5)
    assert written["full_product_name"] == "Soup"
    notes = [
        written["customer_note"],
        found.get("general_note"),
        found.get("general_customer_note"),
    ]
    assert "#4711 - No salt please" in notes


def test_the_own_point_of_sale_of_17_can_load_the_order(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    shop.open().write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1")
    assert _UID_OF_17.search(shop.orders()[0]["pos_reference"])


def test_an_order_can_be_paid_at_once(shop: Shop) -> None:
    tax = shop.store.add(
        "account.tax", name="15%", amount=15.0, amount_type="percent", company_id=1
    )
    burger = shop.product("Burger", 7.5, taxes_id=[tax])
    shop.open(orders="paid").write_ticket(order_for(line_of(f"tmpl-{burger}", price=750)), "ord_1")
    (found,) = shop.orders()
    assert (found["state"], found["amount_total"], found["amount_tax"]) == ("paid", 8.63, 1.13)
    (payment,) = shop.odoo.sales.payments(found["id"])
    assert (payment["amount"], payment["payment_method_id"]) == (8.63, 2)


def test_the_payment_method_is_the_one_that_is_named(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}"))
    with pytest.raises(PosFailure, match=r"no payment method 'Visa'; it has: Cash, Bank"):
        shop.open(orders="paid", payment_method="Visa").write_ticket(asked, "ord_1")
    assert shop.orders() == []
    shop.open(orders="paid", payment_method="Cash").write_ticket(asked, "ord_1")
    assert shop.store.all("pos.payment")[0]["payment_method_id"] == 1


def test_a_resend_with_other_lines_makes_no_second_order(shop: Shop) -> None:
    soup, bread = shop.product("Soup", 4.5), shop.product("Bread", 2.0)
    for mode in ("draft", "paid"):
        pos = shop.open(orders=mode)
        pos.write_ticket(order_for(line_of(f"tmpl-{soup}", price=450)), f"ord_{mode}")
        again = order_for(line_of(f"tmpl-{bread}", price=99), line_of(f"tmpl-{soup}", price=450))
        pos.write_ticket(again, f"ord_{mode}")
        shop.open(orders=mode).write_ticket(again, f"ord_{mode}")
    assert [each["state"] for each in shop.orders()] == ["draft", "paid"]
    assert [each["product_id"] for number in (0, 1) for each in shop.lines(number)] == [soup, soup]


@pytest.mark.parametrize("state", ["draft", "paid", "done", "invoiced", "cancel"])
def test_an_order_is_found_again_in_every_state(shop: Shop, state: str) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open()
    asked = order_for(line_of(f"tmpl-{soup}"))
    ticket = pos.write_ticket(asked, "ord_1")
    shop.store.set("pos.order", 1, state=state)
    assert shop.open().find_ticket("ord_1") == ticket
    assert shop.open().write_ticket(asked, "ord_1") == ticket
    assert len(shop.orders()) == 1


def test_a_paid_order_that_is_cancelled_is_given_back_once(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open(orders="paid")
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos.write_ticket(asked, "ord_1")
    for _time in range(3):
        shop.server.lose_next = True
        with contextlib.suppress(PosFailure):
            pos.cancel_ticket(asked, "ord_1", "The customer")
    pos.cancel_ticket(asked, "ord_1", "The customer")
    assert [(each["amount_total"], each["state"]) for each in shop.orders()] == [
        (4.5, "paid"),
        (-4.5, "paid"),
    ]
    assert [each["amount"] for each in shop.store.all("pos.payment")] == [4.5, -4.5]
    assert pos.find_ticket("ord_1") == shop.open().find_ticket("ord_1")


def test_a_paid_order_cannot_be_given_back_without_a_session(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open(orders="paid")
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos.write_ticket(asked, "ord_1")
    shop.odoo.close_sessions()
    with pytest.raises(PosFailure, match="you need to open a session"):
        pos.cancel_ticket(asked, "ord_1", "The customer")


def test_an_order_that_staff_has_settled_is_not_given_back_by_the_bridge(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open()
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos.write_ticket(asked, "ord_1")
    shop.odoo.sales.pay(1, 1)
    with pytest.raises(PosFailure, match="Staff has settled the order") as caught:
        pos.cancel_ticket(asked, "ord_1", "The customer")
    assert "give the money" in caught.value.fix.lower()
    assert shop.state() == ["paid"]


def test_a_refund_that_was_left_open_is_cleared_away(shop: Shop) -> None:
    """An open order keeps staff from closing the day."""
    soup = shop.product("Soup", 4.5)
    pos = shop.open(orders="paid")
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos.write_ticket(asked, "ord_1")
    shop.odoo.sales.refund([1])
    assert shop.state() == ["paid", "draft"]
    pos.cancel_ticket(asked, "ord_1", "The customer")
    assert "draft" not in shop.state()
    assert sum(each["amount"] for each in shop.store.all("pos.payment")) == 0
    shop.screen.close_session()


def test_a_refund_that_hangs_is_not_made_again(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open(orders="paid", timeout_s=0.3)
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos.write_ticket(asked, "ord_1")
    shop.server.hang_writes()
    for _time in range(3):
        with pytest.raises(PosOffline):
            pos.cancel_ticket(asked, "ord_1", "The customer")
    shop.rig.carry_out_writes()
    assert len([each for each in shop.orders() if each["amount_total"] < 0]) == 1


def test_what_staff_has_given_back_in_part_is_given_back_wholly(shop: Shop) -> None:
    soup, bread = shop.product("Soup", 4.5), shop.product("Bread", 2.0)
    pos = shop.open(orders="paid")
    asked = order_for(line_of(f"tmpl-{soup}", price=450), line_of(f"tmpl-{bread}", price=200))
    pos.write_ticket(asked, "ord_1")
    shop.odoo.sales.refund([1])
    left = shop.odoo.sales.lines(2)[0]
    shop.store.remove("pos.order.line", left["id"])
    shop.store.set("pos.order", 2, state="paid", amount_total=-2.0)
    pos.cancel_ticket(asked, "ord_1", "The customer")
    assert [each["amount_total"] for each in shop.orders()] == [6.5, -2.0, -4.5]
    assert shop.state() == ["paid", "paid", "paid"]


def test_a_refund_is_not_taken_for_its_order(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open(paid_cancelled="refuse")
    pos.write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1")
    shop.store.set("pos.order", 1, state="paid")
    reference = shop.orders()[0]["pos_reference"]
    shop.store.add("pos.order", pos_reference=reference, state="draft", config_id=1)
    with pytest.raises(PosFailure, match="is paid in Odoo"):
        pos.cancel_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1", "Too late")
    assert [each["state"] for each in shop.orders()] == ["paid", "draft"]


def test_a_draft_that_names_a_table_never_joins_the_one_that_is_open_there(
    shop: Shop, version: int
) -> None:
    soup = shop.product("Soup", 4.5)
    table = shop.table()
    waiters = shop.odoo.sales.draft_on_table(1, table, soup)
    pos = shop.open()
    pos.write_ticket(
        order_for(line_of(f"tmpl-{soup}"), table_external_id=f"table-{table}"), "ord_1"
    )
    shop.odoo.sales.draft_on_table(1, table, soup)
    assert len(shop.orders()) == 3
    assert len(shop.odoo.sales.lines(waiters)) == 1
    ours = shop.orders()[1]
    if version == 17:
        assert ours["table_id"] == table
    else:
        assert not ours["table_id"]
        assert ours["floating_order_name"] == "Online 4711 5"
        assert "Table 5" in str(ours.get("general_note") or ours.get("general_customer_note"))


def test_the_emulated_odoo_does_merge_drafts_on_a_table(shop: Shop, version: int) -> None:
    if version == 17:
        pytest.skip("17 does not")
    soup, table = shop.product("Soup", 4.5), shop.table()
    shop.odoo.sales.draft_on_table(1, table, soup)
    line = {"product_id": soup, "qty": 1, "uuid": "u-1"}
    ours = {"uuid": "u", "name": "n", "access_token": "t", "state": "draft", "session_id": 1}
    shop.odoo.sales.sync_from_ui([{**ours, "table_id": table, "lines": [[0, 0, line]]}])
    assert len(shop.orders()) == 1


def test_a_paid_order_is_put_on_its_table(shop: Shop) -> None:
    soup, table = shop.product("Soup", 4.5), shop.table()
    shop.odoo.sales.draft_on_table(1, table, soup)
    asked = order_for(line_of(f"tmpl-{soup}"), table_external_id=f"table-{table}")
    shop.open(orders="paid").write_ticket(asked, "ord_1")
    assert [each["table_id"] for each in shop.orders()] == [table, table]
    assert shop.orders()[1]["state"] == "paid"


def test_a_table_that_is_not_there_does_not_keep_an_order_away(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    shop.table()
    asked = order_for(line_of(f"tmpl-{soup}"), table_external_id="table-99")
    shop.open().write_ticket(asked, "ord_1")
    online = (
        shop.store.search("restaurant.table", [["name", "=", "Online"]])[0]
        if shop.odoo.version == 17
        else False
    )
    assert shop.orders()[0]["table_id"] == online


def test_an_order_that_is_written_late_is_found(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}"))
    pos = shop.open()
    shop.odoo.late()
    with pytest.raises(TicketOutcomeUnknown):
        pos.write_ticket(asked, "ord_1")
    assert shop.orders() == []
    assert pos.late_write_s() == 45, "until then the core writes nothing again"
    shop.odoo.settle()
    assert pos.find_ticket("ord_1") is not None
    assert pos.write_ticket(asked, "ord_1") == pos.find_ticket("ord_1")
    assert len(shop.orders()) == 1


@pytest.mark.parametrize("mode", ["draft", "paid"])
def test_of_several_orders_of_a_key_one_is_cancelled_and_no_other(shop: Shop, mode: str) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos = shop.open(orders=mode, timeout_s=0.3)
    shop.server.hang_writes()
    for _time in range(2):
        with pytest.raises(TicketOutcomeUnknown):
            pos.write_ticket(asked, "ord_1")
    shop.rig.carry_out_writes()
    if shop.odoo.version == 19:
        assert len(shop.orders()) == 1, "its UUID is unique"
        return
    first, second = pos.list_tickets()
    for _time in range(2):
        pos.cancel_listed_ticket(second, asked, "twice")
    assert [each.live for each in pos.list_tickets()] == [True, False]
    assert [each.record for each in pos.list_tickets()] == [first.record, second.record]
    assert shop.state()[:2] == ([mode, "cancel"] if mode == "draft" else ["paid", "paid"])


def test_a_second_order_that_staff_has_sent_to_the_kitchen_is_left_alone(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}", price=450))
    pos = shop.open()
    pos.write_ticket(asked, "ord_1")
    reference = shop.orders()[0]["pos_reference"]
    sent = '{"a - ": {"quantity": 1}}'
    shop.store.add(
        "pos.order",
        pos_reference=reference,
        state="draft",
        config_id=1,
        last_order_preparation_change=sent,
    )
    _first, second = pos.list_tickets()
    with pytest.raises(PosFailure, match="sent it to the kitchen"):
        pos.cancel_listed_ticket(second, asked, "twice")
    assert shop.state() == ["draft", "draft"]


def test_an_order_that_was_never_written_is_written_after_a_while(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}"))
    pos = shop.open(late_s=0)
    shop.server.next_create_status = 502
    with pytest.raises(TicketOutcomeUnknown, match="502"):
        pos.write_ticket(asked, "ord_1")
    assert pos.find_ticket("ord_1") is None
    pos.write_ticket(asked, "ord_1")
    assert len(shop.orders()) == 1


def test_a_busy_database_is_asked_again_by_whoever_knows_what_is_there(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}"))
    pos = shop.open()
    shop.odoo.busy_creating = 1
    with pytest.raises(TicketOutcomeUnknown, match="busy"):
        pos.write_ticket(asked, "ord_1")
    assert pos.find_ticket("ord_1") is None
    pos.write_ticket(asked, "ord_1")
    assert len(shop.orders()) == 1


def test_two_bridges_at_once_make_one_order(shop: Shop) -> None:
    """Both have looked before either has written."""
    soup = shop.product("Soup", 4.5)
    gate = threading.Barrier(2)
    shop.server.before_creating = gate.wait
    outcomes: list[str] = []

    def write() -> None:
        try:
            outcomes.append(
                shop.open().write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1").reference
            )
        except TicketOutcomeUnknown:
            outcomes.append("unknown")

    threads = [threading.Thread(target=write) for _each in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert len(outcomes) == 2
    assert len(shop.orders()) == 1


def test_no_open_session_is_a_closed_store(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    shop.odoo.close_sessions()
    asked = order_for(line_of(f"tmpl-{soup}"))
    with pytest.raises(StoreClosed, match="Restaurant has no open session"):
        shop.open().write_ticket(asked, "ord_1")
    shop.store.add("pos.session", name="RESCUE", state="opened", config_id=1, rescue=True)
    shop.store.add("pos.session", name="counting", state="opening_control", config_id=1)
    with pytest.raises(StoreClosed):
        shop.open().write_ticket(asked, "ord_1")
    assert shop.orders() == []
    assert len(shop.store.all("pos.session")) == 3, "and Odoo was not made to open one"


def test_a_session_that_closes_in_between_is_a_closed_store(shop: Shop, version: int) -> None:
    if version == 17:
        pytest.skip("17 makes a rescue session, and takes the order")
    soup = shop.product("Soup", 4.5)
    shop.server.before_creating = shop.odoo.close_sessions
    with pytest.raises(StoreClosed):
        shop.open().write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1")
    assert shop.orders() == []


@pytest.mark.parametrize(
    "change",
    [{"active": False}, {"available_in_pos": False}, {"sale_ok": False}],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_sold_any_more_is_unavailable(shop: Shop, change: dict[str, bool]) -> None:
    soup, bread = shop.product("Soup", 4.5), shop.product("Bread", 2.0)
    shop.store.set("product.template", bread, **change)
    if "active" in change:
        shop.store.set("product.product", bread, **change)
    with pytest.raises(ItemUnavailable, match="tmpl-2") as caught:
        shop.open().write_ticket(
            order_for(line_of(f"tmpl-{soup}"), line_of(f"tmpl-{bread}")), "ord_1"
        )
    assert caught.value.external_ids == (f"tmpl-{bread}",)
    assert shop.orders() == []


def test_a_product_that_vanishes_in_between_is_unavailable(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    shop.server.before_creating = lambda: shop.store.remove("product.product", soup)
    with pytest.raises(ItemUnavailable) as caught:
        shop.open().write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1")
    assert caught.value.external_ids == (f"tmpl-{soup}",)


@pytest.mark.parametrize("strange", ["", "58", "tmpl-0", "tmpl-x", "value-3", "pos-1", "tmpl-999"])
def test_ids_that_are_none_of_odoos_are_unavailable(shop: Shop, strange: str) -> None:
    shop.product("Soup", 4.5)
    with pytest.raises(ItemUnavailable):
        shop.open().write_ticket(order_for(line_of(strange)), "ord_1")
    assert shop.orders() == []


def test_a_value_of_another_product_is_unavailable(shop: Shop) -> None:
    soup, bread = shop.product("Soup", 4.5), shop.product("Bread", 2.0)
    value = shop.store.add(
        "product.template.attribute.value", name="Big", product_tmpl_id=bread, ptav_active=True
    )
    option = {"product_name": "Big", "external_id": f"value-{value}", "quantity": 1}
    with pytest.raises(ItemUnavailable):
        shop.open().write_ticket(order_for(line_of(f"tmpl-{soup}", options=[option])), "ord_1")


def test_extra_prices_are_in_the_price_of_the_line(shop: Shop) -> None:
    pizza = shop.product("Pizza", 8.0)
    values = [
        shop.store.add(
            "product.template.attribute.value",
            name=name,
            price_extra=extra,
            product_tmpl_id=pizza,
            ptav_active=True,
        )
        for name, extra in (("Thin", 0.0), ("Olives", 0.5))
    ]
    options = [
        {"product_name": "Thin", "external_id": f"value-{values[0]}", "unit_price": 0},
        {"product_name": "Olives", "external_id": f"value-{values[1]}", "unit_price": 50},
    ]
    options[1]["quantity"] = 2
    shop.open().write_ticket(
        order_for(line_of(f"tmpl-{pizza}", price=800, quantity=3, options=options)), "ord_1"
    )
    (written,) = shop.lines()
    assert (written["price_unit"], written["price_extra"]) == (9.0, 1.0)
    assert written["price_subtotal_incl"] == 27.0
    assert written["attribute_value_ids"] == values
    assert written["full_product_name"] == "Pizza (Thin, Olives x2)"


def test_a_variant_is_written_as_its_product(shop: Shop) -> None:
    shirt = shop.product("Shirt", 10.0)
    large = shop.store.add("product.product", product_tmpl_id=shirt)
    pos = shop.open()
    pos.write_ticket(
        order_for(line_of(f"tmpl-{shirt}", price=1000, variant_external_id=f"product-{large}")),
        "ord_1",
    )
    assert [each["product_id"] for each in shop.lines()] == [large]
    with pytest.raises(ItemUnavailable):  # which of the two?
        pos.write_ticket(order_for(line_of(f"tmpl-{shirt}")), "ord_2")


def test_the_parts_of_a_combo_bear_its_price(shop: Shop, version: int) -> None:
    menu = shop.combo()
    options = [
        {"product_name": "Bacon", "external_id": "combo-item-2", "unit_price": 150, "quantity": 1},
        {"product_name": "Cola", "external_id": "combo-item-3", "unit_price": 0, "quantity": 1},
    ]
    shop.open(orders="paid").write_ticket(
        order_for(line_of(f"tmpl-{menu}", price=1000, quantity=2, options=options)), "ord_1"
    )
    parent, bacon, cola = shop.lines()
    assert [each["qty"] for each in (parent, bacon, cola)] == [2, 2, 2]
    assert [each["price_unit"] for each in (parent, bacon, cola)] == [0, 9.28, 2.22]
    assert shop.orders()[0]["amount_total"] == 23.0
    assert shop.orders()[0]["state"] == "paid"
    assert {bacon["combo_parent_id"], cola["combo_parent_id"]} == {parent["id"]}
    if version >= 18:
        assert (bacon["combo_item_id"], cola["combo_item_id"]) == (2, 3)


def test_a_combo_comes_to_its_price_in_a_currency_without_decimals(shop: Shop) -> None:
    shop.store.set("res.currency", 1, name="JPY")
    menu = shop.combo()
    options = [
        {"product_name": "Burger", "external_id": "combo-item-1", "unit_price": 0, "quantity": 1},
        {"product_name": "Cola", "external_id": "combo-item-3", "unit_price": 0, "quantity": 1},
    ]
    model = "pos.combo" if shop.odoo.version == 17 else "product.combo"
    shop.store.set(model, 2, base_price=7.0)
    asked = order_for(line_of(f"tmpl-{menu}", price=1001, options=options), currency="JPY")
    shop.open("JPY", orders="paid").write_ticket(asked, "ord_1")
    assert shop.orders()[0]["amount_total"] == 1001
    assert sum(line["price_unit"] for line in shop.lines()) == 1001


@pytest.mark.parametrize(
    ("included", "method", "total", "tax"),
    [
        (False, "round_globally", 1726, 225),
        (False, "round_per_line", 1727, 226),
        (True, "round_globally", 1501, 196),
    ],
)
def test_taxes_are_rounded_as_the_company_does(
    shop: Shop, *, included: bool, method: str, total: int, tax: int
) -> None:
    shop.store.set("res.currency", 1, name="JPY")
    shop.store.set("res.company", 1, tax_calculation_rounding_method=method)
    rate = shop.store.add(
        "account.tax", amount=15.0, amount_type="percent", price_include=included, company_id=1
    )
    ramen, sake = (shop.product(name, 1, taxes_id=[rate]) for name in ("Ramen", "Sake"))
    lines = line_of(f"tmpl-{ramen}", price=751), line_of(f"tmpl-{sake}", price=750)
    shop.open("JPY", orders="paid").write_ticket(order_for(*lines, currency="JPY"), "ord_1")
    assert shop.state() == ["paid"]
    assert (shop.orders()[0]["amount_total"], shop.orders()[0]["amount_tax"]) == (total, tax)


def test_prices_are_the_orders_own_unless_they_are_to_be_checked(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    asked = order_for(line_of(f"tmpl-{soup}", price=400))
    with pytest.raises(PriceMismatch, match=r"Soup costs 4\.5 in Odoo now, and 4 in the order"):
        shop.open(order_prices="check").write_ticket(asked, "ord_1")
    shop.open().write_ticket(asked, "ord_1")
    assert shop.lines()[0]["price_unit"] == 4.0


def test_an_order_shown_with_tax_comes_to_what_was_shown(shop: Shop) -> None:
    tax = shop.store.add(
        "account.tax", name="21%", amount=21.0, amount_type="percent", company_id=1
    )
    beer = shop.product("Beer", 4.0, taxes_id=[tax])
    pos = shop.open(prices="included")
    shown = pos.read_catalogue().items[f"tmpl-{beer}"].price
    assert shown == 484
    pos.write_ticket(order_for(line_of(f"tmpl-{beer}", price=shown, quantity=3)), "ord_1")
    assert (shop.orders()[0]["amount_total"], shop.orders()[0]["amount_tax"]) == (14.52, 2.52)


def test_a_draft_is_cancelled_and_stays_known(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open()
    asked = order_for(line_of(f"tmpl-{soup}"))
    pos.write_ticket(asked, "ord_1")
    pos.cancel_ticket(asked, "ord_1", "The customer")
    assert [each["state"] for each in shop.orders()] == ["cancel"]
    assert pos.find_ticket("ord_1") is not None


def test_a_key_that_is_refused_leaves_orders_waiting(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open()
    asked = order_for(line_of(f"tmpl-{soup}"))
    pos.write_ticket(asked, "ord_1")
    shop.odoo.key = "renewed"
    with pytest.raises(PosOffline, match="refuses the login") as caught:
        pos.write_ticket(asked, "ord_2")
    assert "Make a new API key" in caught.value.fix
    assert "refuses the login" in pos.health().detail
    assert "Make a new API key" in pos.health().fix
    assert not pos.health().online
    (shop.rig.folder / "odoo.key").write_text("renewed\n", "utf-8")
    pos.write_ticket(asked, "ord_2")
    assert pos.health().online, "the file of the key is read again"


def test_a_process_logs_in_once_however_many_threads_ask(shop: Shop) -> None:
    stores = [shop.open(), shop.open(reference="OnlineShop")]
    threads = [
        threading.Thread(target=call)
        for pos in stores
        for call in (pos.health, pos.read_catalogue, pos.read_updates, pos.read_availability)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(10)
    assert shop.odoo.logins == 1
