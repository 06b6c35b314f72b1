"""What staff sees of online orders on the screen of Odoo, and what reaches the kitchen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.adapter import PosOffline
from tillbridge_odoo.basket import TicketLine
from tillbridge_odoo.emulated.faults import OdooFault
from tillbridge_odoo.emulated.shop import Shop, line_of, order_for
from tillbridge_odoo.payload import kitchen_notes
from tillbridge_odoo.rig import OdooRig
from tillbridge_odoo.tables import unique_names
from tillbridge_odoo.taxes import LineAmounts


@pytest.fixture
def restaurant(tmp_path: Path) -> Iterator[Shop]:
    """A restaurant of 17 with two floors, both of which have a table 4."""
    shop = Shop(OdooRig(tmp_path))
    for floor in ("Main Floor", "Patio"):
        shop.table_on(floor, "4")
    shop.table_on("Patio", "40")
    yield shop
    shop.close()


def on_table(shop: Shop, number: int = 0) -> str:
    """Return floor and name of the table that an order is on."""
    table = shop.orders()[number]["table_id"]
    if not table:
        return ""
    record = shop.store.record("restaurant.table", table)
    return f"{shop.store.record('restaurant.floor', record['floor_id'])['name']} {record['name']}"


def place(shop: Shop, *lines: dict[str, Any], order_id: str = "ord_1", **more: Any) -> None:  # noqa: ANN401 -- any field
    mine = lines or (line_of(f"tmpl-{shop.product('Soup', 4.5)}", price=450),)
    shop.open().write_ticket(order_for(*mine, order_id=order_id, **more), order_id)


# -- D1: nobody overlooks an order


def test_a_takeaway_is_on_the_screen_and_the_day_can_be_closed(restaurant: Shop) -> None:
    place(restaurant, order_type="takeaway")
    assert on_table(restaurant) == "Online Online"
    assert restaurant.screen.orders() == [1]
    with pytest.raises(OdooFault, match="still in draft"):
        restaurant.screen.close_session()
    restaurant.screen.settle(1)
    restaurant.screen.close_session()


@pytest.mark.parametrize(
    ("named", "says"),
    [(None, "only on a table"), ("Nowhere", "no table 'Nowhere'"), ("4", "several tables '4'")],
)
def test_no_order_is_written_that_staff_would_not_see(
    restaurant: Shop, named: str | None, says: str
) -> None:
    soup = restaurant.product("Soup", 4.5)
    pos = restaurant.open(online_table=named)
    health = pos.health()
    assert (health.online, says in health.detail) == (False, True)
    assert "online_table" in health.fix
    with pytest.raises(PosOffline, match=says) as caught:
        pos.write_ticket(order_for(line_of(f"tmpl-{soup}")), "ord_1")
    assert caught.value.fix == health.fix
    assert restaurant.orders() == []


@pytest.mark.parametrize("named", ["Online", "online", "table-1", 1])
def test_the_table_of_online_orders_is_not_pushed(restaurant: Shop, named: str | int) -> None:
    pos = restaurant.open(online_table=named)
    assert pos.health().online
    assert "Online" not in [table.name for table in pos.read_tables().tables]


def test_paid_orders_and_shops_need_no_table(restaurant: Shop) -> None:
    assert restaurant.open(orders="paid", online_table=None).health().online
    restaurant.store.set("pos.config", 1, module_pos_restaurant=False, floor_ids=[])
    assert restaurant.open(online_table=None).health().online


def test_a_shop_whose_screen_lists_no_new_orders_is_told(restaurant: Shop) -> None:
    restaurant.store.set("pos.config", 1, module_pos_restaurant=False, floor_ids=[])
    place(restaurant)
    assert restaurant.screen.orders() == []
    (advice,) = restaurant.open().health().advice
    assert "loaded anew" in advice.text
    restaurant.store.set("pos.config", 1, self_ordering_mode="mobile")
    assert restaurant.screen.orders() == [1]
    assert restaurant.open().health().advice == ()


# -- D2: the table that a guest sits at


@pytest.mark.parametrize(
    ("instructions", "table"),
    [
        ("Table Patio 4. No nuts", "Patio 4"),
        ("Table Main Floor 4.", "Main Floor 4"),
        ("Table 40. No nuts", "Patio 40"),
        ("table  40", "Patio 40"),
        ("Table 4.", "Online Online"),  # which of the two?
        ("Table 400.", "Online Online"),
        ("No nuts. Table 40.", "Online Online"),
        ("", "Online Online"),
    ],
)
def test_an_order_from_a_tables_code_is_put_on_that_table(
    restaurant: Shop, instructions: str, table: str
) -> None:
    place(restaurant, order_type="dine_in", special_instructions=instructions)
    assert on_table(restaurant) == table


def test_words_about_a_table_move_no_delivery(restaurant: Shop) -> None:
    place(restaurant, order_type="delivery", special_instructions="Table 40. Ring twice")
    assert on_table(restaurant) == "Online Online"


def test_other_words_for_a_table_can_be_named(restaurant: Shop) -> None:
    soup = restaurant.product("Soup", 4.5)
    asked = order_for(
        line_of(f"tmpl-{soup}"), order_type="dine_in", special_instructions="Tisch 40: scharf"
    )
    restaurant.open(table_words=["Table", "Tisch"]).write_ticket(asked, "ord_1")
    assert on_table(restaurant) == "Patio 40"


def test_each_table_has_a_name_of_its_own(restaurant: Shop) -> None:
    names = [table.name for table in restaurant.open().read_tables().tables]
    assert names == ["Main Floor 4", "Patio 4", "40"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["1", "2", "A 1", "a 1"]), st.sampled_from(["A", "B", ""])),
        max_size=8,
    )
)
def test_no_two_tables_have_one_name(tables: list[tuple[str, str]]) -> None:
    given_ = [(number, name, floor) for number, (name, floor) in enumerate(tables, 1)]
    names = [each.casefold() for each in unique_names(given_).values()]
    assert len(set(names)) == len(tables)


# -- D3: what the guest has paid for


def amounts(shop: Shop, **values: Any) -> dict[str, str]:  # noqa: ANN401 -- any field
    for code, name in (("DELIV", "Delivery fee"), ("DISC", "Discount"), ("TIP", "Tip")):
        shop.product(name, 0.0, default_code=code, **values)
    return {"delivery_product": "DELIV", "discount_product": "DISC", "tip_product": "TIP"}


def test_amounts_survive_settling_and_are_not_on_the_menu(restaurant: Shop) -> None:
    options = amounts(restaurant)
    burger = restaurant.product("Burger", 9.0)
    pos = restaurant.open(**options)
    asked = order_for(line_of(f"tmpl-{burger}", price=900), delivery_fee=346, tip=250, discount=175)
    pos.write_ticket(asked, "ord_1")
    assert pos.health().advice == ()
    assert restaurant.screen.settle(1) == restaurant.orders()[0]["amount_total"] == 13.21
    assert list(pos.read_catalogue().items) == [f"tmpl-{burger}"]


@pytest.mark.parametrize(
    ("values", "config", "why"),
    [
        ({"available_in_pos": False}, {}, "not available in the point of sale"),
        ({"sale_ok": False}, {}, "cannot be sold"),
        ({}, {"limit_categories": True, "iface_available_categ_ids": [7]}, "none of the categor"),
    ],
)
def test_amounts_that_the_screen_drops_are_told_with_a_remedy(
    restaurant: Shop, values: dict[str, Any], config: dict[str, Any], why: str
) -> None:
    fee = restaurant.product("Delivery fee", 0.0, default_code="DELIV")
    restaurant.store.set("product.template", fee, **values)
    restaurant.store.set("pos.config", 1, **config)
    (advice,) = restaurant.open(delivery_product="DELIV").health().advice
    assert "Delivery fee" in advice.text
    assert why in advice.text
    assert "Available in POS" in advice.fix
    assert fee not in restaurant.screen.products()
    assert restaurant.open(orders="paid", delivery_product="DELIV").health().advice == ()


def test_a_tip_that_the_screen_takes_is_loaded(restaurant: Shop) -> None:
    tip = restaurant.product("Tip", 0.0, default_code="TIP")
    restaurant.store.set("product.template", tip, available_in_pos=False)
    assert restaurant.open(tip_product="TIP").health().advice != ()
    restaurant.store.set("pos.config", 1, iface_tipproduct=True, tip_product_id=tip)
    assert tip in restaurant.screen.products()
    assert restaurant.open(tip_product="TIP").health().advice == ()


def test_a_product_that_is_not_there_is_told(restaurant: Shop) -> None:
    (advice,) = restaurant.open(tip_product="TIPP").health().advice
    assert "no product 'TIPP'" in advice.text


# -- D4: the kitchen


def test_the_guests_words_are_on_the_kitchens_ticket(restaurant: Shop) -> None:
    place(restaurant, order_type="takeaway", special_instructions="allergic to nuts")
    (line,) = restaurant.screen.order_to_kitchen(1)
    assert line == "1 Soup #4711 Takeaway - allergic to nuts"


def test_every_printer_gets_the_words_with_its_first_line(restaurant: Shop) -> None:
    lines = [
        line_of(f"tmpl-{restaurant.product(name, 1.0, pos_categ_ids=[category])}", price=100)
        for name, category in (("Soup", 1), ("Stew", 1), ("Beer", 2), ("Wine", 2))
    ]
    place(restaurant, *lines, special_instructions="no nuts")
    notes = [each["note"] for each in restaurant.lines()]
    assert notes == ["#4711 - no nuts", "", "#4711 - no nuts", ""]


@given(
    st.lists(st.sets(st.integers(1, 4), max_size=3), min_size=1, max_size=8),
    st.sets(st.integers(1, 4), min_size=1),
)
def test_whatever_a_printer_prints_its_first_line_has_the_words(
    categories: list[set[int]], printer: set[int]
) -> None:
    nothing = LineAmounts(0, 0)  # type: ignore[arg-type] # no amounts are looked at
    lines = [
        TicketLine(1, "x", 1, 0, 0, nothing, (), categories=tuple(each))  # type: ignore[arg-type] # as above
        for each in categories
    ]
    notes = kitchen_notes(lines, "words")
    printed = [note for note, each in zip(notes, categories, strict=True) if each & printer]
    assert not printed or printed[0] == "words"


def test_an_addon_that_is_taken_twice_is_said_so_to_the_kitchen(restaurant: Shop) -> None:
    toast = restaurant.product("Toast", 3.0)
    cheese = restaurant.store.add(
        "product.template.attribute.value",
        name="Cheese",
        price_extra=0.5,
        product_tmpl_id=toast,
        ptav_active=True,
    )
    option = {"external_id": f"value-{cheese}", "unit_price": 50, "quantity": 2}
    place(restaurant, line_of(f"tmpl-{toast}", price=300, options=[option]))
    assert restaurant.lines()[0]["note"] == "#4711 - 2x Cheese"


# -- D9, D12


def test_a_closed_session_is_told_and_takes_nothing_offline(shop: Shop) -> None:
    assert shop.open().health().closed == ""
    shop.odoo.close_sessions()
    health = shop.open().health()
    assert health.online
    assert health.closed == "The point of sale Restaurant has no open session."


def test_orders_are_numbered_on_from_the_session(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    pos = shop.open()
    shop.store.set("pos.session", 1, sequence_number=7)
    for number in (1, 2, 3):
        order_id = f"ord_{number}"
        pos.write_ticket(order_for(line_of(f"tmpl-{soup}"), order_id=order_id), order_id)
    assert [each["sequence_number"] for each in shop.orders()] == [7, 8, 9]


def test_a_language_that_odoo_does_not_have_is_told(shop: Shop) -> None:
    shop.store.add("res.lang", name="English", code="en_US")
    (advice,) = shop.open(language="nl_NL").health().advice
    assert "nl_NL" in advice.text
    shop.store.add("res.lang", name="Nederlands", code="nl_NL")
    assert shop.open(language="nl_NL").health().advice == ()
