"""Asking Odoo again and again: cheap while nothing changes, and nothing that changes is missed."""

import time
from collections.abc import Callable

import pytest

from tillbridge.adapter import ExportUnreadable, PosOffline
from tillbridge_odoo.adapter import OdooAdapter
from tillbridge_odoo.emulated.house import House

Change = Callable[[House], None]

_LONG_AGO = "2026-01-01 00:00:00"


def settled(house: House, monkeypatch: pytest.MonkeyPatch) -> OdooAdapter:
    """Return an adapter that has read the menu, some time after the last change."""
    pos = house.open()
    began = time.monotonic()
    for later_s in (0, 3, 6):
        monkeypatch.setattr("tillbridge_odoo.reader.monotonic", lambda at=began + later_s: at)
        pos.read_catalogue()
    house.odoo.asked.clear()
    return pos


def furnished(house: House) -> None:
    """Sell a pizza of two sizes with extras, a menu of two choices, and a soup with a tax."""
    tax = house.store.add("account.tax", name="9%", amount=9.0, amount_type="percent", company_id=1)
    house.combo()
    house.product("Soup", 4.5, taxes_id=[tax], pos_categ_ids=[1])
    house.store.add("pos.category", name="Starters")
    pizza = house.product("Pizza", 8.0, attribute_line_ids=[1])
    house.store.add("product.product", id=50, product_tmpl_id=pizza)
    house.store.add(
        "product.attribute", name="Extras", display_type="multi", create_variant="no_variant"
    )
    house.store.add("product.template.attribute.line", product_tmpl_id=pizza, attribute_id=1)
    house.store.add(
        "product.template.attribute.value",
        price_extra=0.5,
        product_attribute_value_id=house.store.add("product.attribute.value", name="Olives"),
        product_tmpl_id=pizza,
        attribute_line_id=1,
        attribute_id=1,
        ptav_active=True,
    )
    for model in house.store.schema:
        for record in house.store.all(model):
            record["write_date"] = _LONG_AGO


def _combo_item(house: House) -> None:
    model, field = ("pos.combo.line", "combo_price")
    if house.odoo.version >= 18:
        model, field = ("product.combo.item", "extra_price")
    house.store.set(model, 2, **{field: 3.0})


def _combo_of_a_product(house: House) -> None:
    house.store.set("product.template", 4, combo_ids=[2])


CHANGES: dict[str, Change] = {
    "price": lambda house: house.store.set("product.template", 5, list_price=5.0),
    "extra price": lambda house: house.store.set(
        "product.template.attribute.value", 1, price_extra=1.0
    ),
    "name of an extra": lambda house: house.store.set("product.attribute.value", 1, name="Oliven"),
    "extra taken away": lambda house: house.store.set(
        "product.template.attribute.value", 1, ptav_active=False
    ),
    "combo's extra price": _combo_item,
    "a product's combos": _combo_of_a_product,
    "archived": lambda house: house.store.record("product.template", 5).update(active=False),
    "variant archived": lambda house: house.store.record("product.product", 50).update(
        active=False
    ),
    "taken off": lambda house: house.store.record("product.template", 5).update(
        available_in_pos=False
    ),
    "tax": lambda house: house.store.set("account.tax", 1, amount=21.0),
    "category": lambda house: house.store.set("pos.category", 1, name="Soups"),
    "stamp older than the newest": lambda house: house.store.record("product.template", 5).update(
        list_price=5.0, write_date="2025-12-31 00:00:00"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_at_the_next_look(
    house: House, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(house)
    pos = settled(house, monkeypatch)
    before = pos.read_catalogue()
    change(house)
    assert pos.read_catalogue() != before


def test_gift_cards_are_not_on_the_menu(house: House) -> None:
    card, wallet, soup = (house.product(name, 50) for name in ("Gift Card", "eWallet", "Soup"))
    for product, kind in ((card, "gift_card"), (wallet, "ewallet"), (soup, "loyalty")):
        house.store.add("loyalty.rule", program_type=kind, product_ids=[product])
    assert list(house.open().read_catalogue().items) == [f"tmpl-{soup}"]


def test_looking_while_nothing_changes_reads_no_menu(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(house)
    pos = settled(house, monkeypatch)
    first = pos.read_catalogue()
    assert pos.read_catalogue() is first
    asked = house.odoo.asked
    assert len(asked) <= 2 * 13
    assert ("product.template.attribute.line", "search_read") not in asked


def test_two_changes_in_one_second_are_both_seen(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(house)
    pos = settled(house, monkeypatch)
    for price in (5.0, 6.0):
        house.store.record("product.template", 5).update(
            list_price=price, write_date="2026-02-02 10:00:00"
        )
        assert pos.read_catalogue().items["tmpl-5"].price == round(price * 100)


def test_a_link_that_moves_no_stamp_is_seen_when_everything_is_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(house)
    pos = settled(house, monkeypatch)
    house.store.set("product.template", 5, pos_categ_ids=[])
    assert pos.read_catalogue().items["tmpl-5"].categories == ("category-1",)
    later = time.monotonic() + 400
    monkeypatch.setattr("tillbridge_odoo.reader.monotonic", lambda: later)
    assert pos.read_catalogue().items["tmpl-5"].categories == ()


def test_a_menu_that_changes_while_it_is_read_is_read_again(house: House) -> None:
    furnished(house)
    pos = house.open()
    changed: list[int] = []

    def change() -> None:
        if not changed:
            changed.append(1)
            house.store.set("product.template", 5, list_price=9.0)

    house.odoo.after["product.attribute"] = change
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert caught.value.passing
    assert pos.read_catalogue().items["tmpl-5"].price == 900


def test_a_large_menu_is_read_in_pages(house: House) -> None:
    for number in range(1, 1202):
        house.product(f"Dish {number}", 1.0)
    assert len(house.open().read_catalogue().items) == 1201
    pages = [each for each in house.odoo.asked if each == ("product.product", "search_read")]
    assert len(pages) == 3 + 2, "three pages of products, and twice the signs"


def test_what_goes_off_sale_is_told_at_once(house: House) -> None:
    soup, bread = house.product("Soup", 4.5), house.product("Bread", 2.0)
    pos = house.open()
    assert pos.read_availability().items == {}
    house.store.set("product.template", soup, self_order_available=False)
    house.store.set("product.template", bread, sale_ok=False)
    assert not any(each.available for each in pos.read_availability().items.values())
    assert set(pos.read_availability().items) == {f"tmpl-{soup}", f"tmpl-{bread}"}
    assert set(house.open(self_order="ignore").read_availability().items) == {f"tmpl-{bread}"}


def test_stock_counts_where_it_is_asked_to(house: House) -> None:
    storable = {"is_storable": True} if house.odoo.version >= 18 else {"detailed_type": "product"}
    beer, soup = house.product("Beer", 3.0, **storable), house.product("Soup", 4.5)
    house.store.set("product.product", beer, qty_available=0.0, virtual_available=12.0)
    assert house.open().read_availability().items == {}
    off = house.open(stock="on_hand").read_availability().items
    assert set(off) == {f"tmpl-{beer}", f"product-{beer}"}
    assert house.open(stock="forecast").read_availability().items == {}
    assert soup


def test_modules_that_are_not_installed_are_not_missed(house: House) -> None:
    soup = house.product("Soup", 4.5)
    combos = ("pos.combo", "pos.combo.line")
    if house.odoo.version >= 18:
        combos = ("product.combo", "product.combo.item")
    house.store.uninstall("restaurant.table", "restaurant.floor", *combos)
    pos = house.open()
    assert list(pos.read_catalogue().items) == [f"tmpl-{soup}"]
    assert pos.read_tables().tables == ()


def test_names_come_in_the_language_that_is_asked_for(house: House) -> None:
    house.product("Soup", 4.5)
    house.open(language="nl_NL").read_catalogue()
    assert house.odoo.contexts[-1]["lang"] == "nl_NL"
    assert house.odoo.contexts[-1]["allowed_company_ids"] == [1]


def test_a_key_that_is_refused_is_told_with_its_remedy(house: House) -> None:
    house.odoo.key = "renewed"
    with pytest.raises(ExportUnreadable, match="refuses the login") as caught:
        house.open().read_catalogue()
    assert "api_key" in caught.value.fix


def test_a_database_that_is_not_there_is_told_with_its_remedy(house: House) -> None:
    pos = house.open(database="elsewhere")
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert not caught.value.passing
    assert caught.value.fix == "Correct the option database."
    assert pos.health().detail == "Odoo has no database of that name."
    with pytest.raises(PosOffline, match="no database of that name"):
        pos.find_ticket("ord_1")


def test_a_busy_database_is_read_again_soon(house: House) -> None:
    pos = house.open()
    pos.read_catalogue()
    house.odoo.busy = 1
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert caught.value.passing
    pos.read_catalogue()


@pytest.mark.parametrize(
    ("status", "body"),
    [(502, b"Bad Gateway"), (200, b"<html>"), (200, b"[]"), (200, b'{"jsonrpc": "2.0"')],
)
def test_what_is_no_answer_of_odoo_is_an_odoo_that_is_away(
    house: House, status: int, body: bytes
) -> None:
    pos = house.open()
    house.server.next_status, house.server.next_body = status, body
    with pytest.raises(PosOffline):
        pos.read_catalogue()
    assert pos.read_catalogue().items == {}


@pytest.mark.parametrize("status", [301, 404])
def test_an_address_that_is_not_odoos_is_told_with_its_remedy(house: House, status: int) -> None:
    house.server.next_status, house.server.next_body = status, b"<html>"
    health = house.open().health()
    assert not health.online
    assert "correct the option url" in health.detail


def test_a_kept_connection_that_has_died_is_opened_anew(house: House) -> None:
    pos = house.open()
    pos.read_catalogue()
    house.server.stop()
    house.server.start()
    assert pos.read_catalogue().items == {}
