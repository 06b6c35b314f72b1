"""Asking Odoo again and again: cheap while nothing changes, and nothing that changes is missed."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from tillbridge.adapter import ExportUnreadable, PosOffline
from tillbridge_odoo.adapter import OdooAdapter
from tillbridge_odoo.emulated.shop import Shop, line_of, order_for

Change = Callable[[Shop], None]

_LONG_AGO = "2026-01-01 00:00:00"


def settled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> OdooAdapter:
    """Return an adapter that has read the menu, some time after the last change."""
    pos = shop.open()
    began = time.monotonic()
    for later_s in (0, 3, 6):
        monkeypatch.setattr("tillbridge_odoo.reader.monotonic", lambda at=began + later_s: at)
        pos.read_catalogue()
    shop.odoo.asked.clear()
    return pos


def furnished(shop: Shop) -> None:
    """Sell a pizza of two sizes with extras, a menu of two choices, and a soup with a tax."""
    tax = shop.store.add("account.tax", name="9%", amount=9.0, amount_type="percent", company_id=1)
    shop.combo()
    shop.product("Soup", 4.5, taxes_id=[tax], pos_categ_ids=[1])
    shop.store.add("pos.category", name="Starters")
    pizza = shop.product("Pizza", 8.0, attribute_line_ids=[1])
    shop.store.add("product.product", id=50, product_tmpl_id=pizza)
    shop.store.add(
        "product.attribute", name="Extras", display_type="multi", create_variant="no_variant"
    )
    shop.store.add("product.template.attribute.line", product_tmpl_id=pizza, attribute_id=1)
    shop.store.add(
        "product.template.attribute.value",
        price_extra=0.5,
        product_attribute_value_id=shop.store.add("product.attribute.value", name="Olives"),
        product_tmpl_id=pizza,
        attribute_line_id=1,
        attribute_id=1,
        ptav_active=True,
    )
    for model in shop.store.schema:
        for record in shop.store.all(model):
            record["write_date"] = _LONG_AGO


def _combo_item(shop: Shop) -> None:
    model, field = ("pos.combo.line", "combo_price")
    if shop.odoo.version >= 18:
        model, field = ("product.combo.item", "extra_price")
    shop.store.set(model, 2, **{field: 3.0})


def _combo_of_a_product(shop: Shop) -> None:
    shop.store.set("product.template", 4, combo_ids=[2])


CHANGES: dict[str, Change] = {
    "price": lambda shop: shop.store.set("product.template", 5, list_price=5.0),
    "extra price": lambda shop: shop.store.set(
        "product.template.attribute.value", 1, price_extra=1.0
    ),
    "name of an extra": lambda shop: shop.store.set("product.attribute.value", 1, name="Oliven"),
    "extra taken away": lambda shop: shop.store.set(
        "product.template.attribute.value", 1, ptav_active=False
    ),
    "combo's extra price": _combo_item,
    "a product's combos": _combo_of_a_product,
    "archived": lambda shop: shop.store.record("product.template", 5).update(active=False),
    "variant archived": lambda shop: shop.store.record("product.product", 50).update(active=False),
    "taken off": lambda shop: shop.store.record("product.template", 5).update(
        available_in_pos=False
    ),
    "tax": lambda shop: shop.store.set("account.tax", 1, amount=21.0),
    "category": lambda shop: shop.store.set("pos.category", 1, name="Soups"),
    "stamp older than the newest": lambda shop: shop.store.record("product.template", 5).update(
        list_price=5.0, write_date="2025-12-31 00:00:00"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen_at_the_next_look(
    shop: Shop, change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(shop)
    pos = settled(shop, monkeypatch)
    before = pos.read_catalogue()
    change(shop)
    assert pos.read_catalogue() != before


def test_gift_cards_are_not_on_the_menu(shop: Shop) -> None:
    card, wallet, soup = (shop.product(name, 50) for name in ("Gift Card", "eWallet", "Soup"))
    for product, kind in ((card, "gift_card"), (wallet, "ewallet"), (soup, "loyalty")):
        shop.store.add("loyalty.rule", program_type=kind, product_ids=[product])
    assert list(shop.open().read_catalogue().items) == [f"tmpl-{soup}"]


def test_looking_while_nothing_changes_reads_no_menu(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(shop)
    pos = settled(shop, monkeypatch)
    first = pos.read_catalogue()
    assert pos.read_catalogue() is first
    asked = shop.odoo.asked
    assert len(asked) <= 2 * 13
    assert ("product.template.attribute.line", "search_read") not in asked


def test_two_changes_in_one_second_are_both_seen(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(shop)
    pos = settled(shop, monkeypatch)
    for price in (5.0, 6.0):
        shop.store.record("product.template", 5).update(
            list_price=price, write_date="2026-02-02 10:00:00"
        )
        assert pos.read_catalogue().items["tmpl-5"].price == round(price * 100)


def test_a_link_that_moves_no_stamp_is_seen_when_everything_is_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnished(shop)
    pos = settled(shop, monkeypatch)
    shop.store.set("product.template", 5, pos_categ_ids=[])
    assert pos.read_catalogue().items["tmpl-5"].categories == ("category-1",)
    later = time.monotonic() + 400
    monkeypatch.setattr("tillbridge_odoo.reader.monotonic", lambda: later)
    assert pos.read_catalogue().items["tmpl-5"].categories == ()


def test_a_menu_that_changes_while_it_is_read_is_read_again(shop: Shop) -> None:
    furnished(shop)
    pos = shop.open()
    changed: list[int] = []

    def change() -> None:
        if not changed:
            changed.append(1)
            shop.store.set("product.template", 5, list_price=9.0)

    shop.odoo.after["product.attribute"] = change
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert caught.value.passing
    assert pos.read_catalogue().items["tmpl-5"].price == 900


def test_a_large_menu_is_read_in_pages(shop: Shop) -> None:
    for number in range(1, 1202):
        shop.product(f"Dish {number}", 1.0)
    assert len(shop.open().read_catalogue().items) == 1201
    pages = [each for each in shop.odoo.asked if each == ("product.product", "search_read")]
    assert len(pages) == 3 + 2, "three pages of products, and twice the signs"


def test_what_goes_off_sale_is_told_at_once(shop: Shop) -> None:
    soup, bread = shop.product("Soup", 4.5), shop.product("Bread", 2.0)
    pos = shop.open()
    assert pos.read_availability().items == {}
    shop.store.set("product.template", soup, self_order_available=False)
    shop.store.set("product.template", bread, sale_ok=False)
    assert not any(each.available for each in pos.read_availability().items.values())
    assert set(pos.read_availability().items) == {f"tmpl-{soup}", f"tmpl-{bread}"}
    assert set(shop.open(self_order="ignore").read_availability().items) == {f"tmpl-{bread}"}


def test_stock_counts_where_it_is_asked_to(shop: Shop) -> None:
    storable = {"is_storable": True} if shop.odoo.version >= 18 else {"detailed_type": "product"}
    beer, soup = shop.product("Beer", 3.0, **storable), shop.product("Soup", 4.5)
    shop.store.set("product.product", beer, qty_available=0.0, virtual_available=12.0)
    assert shop.open().read_availability().items == {}
    off = shop.open(stock="on_hand").read_availability().items
    assert set(off) == {f"tmpl-{beer}", f"product-{beer}"}
    assert shop.open(stock="forecast").read_availability().items == {}
    assert soup


def test_modules_that_are_not_installed_are_not_missed(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    combos = ("pos.combo", "pos.combo.line")
    if shop.odoo.version >= 18:
        combos = ("product.combo", "product.combo.item")
    shop.store.uninstall("restaurant.table", "restaurant.floor", *combos)
    pos = shop.open()
    assert list(pos.read_catalogue().items) == [f"tmpl-{soup}"]
    assert pos.read_tables().tables == ()


def test_names_come_in_the_language_that_is_asked_for(shop: Shop) -> None:
    shop.product("Soup", 4.5)
    shop.open(language="nl_NL").read_catalogue()
    assert shop.odoo.contexts[-1]["lang"] == "nl_NL"
    assert shop.odoo.contexts[-1]["allowed_company_ids"] == [1]


def test_names_come_in_the_language_of_the_user_where_none_is_asked_for(shop: Shop) -> None:
    soup = shop.product("Soup", 4.5)
    shop.store.translations["nl_NL", "Soup"] = "Soep"
    pos = shop.open()
    assert pos.read_catalogue().items[f"tmpl-{soup}"].name == "Soup"
    shop.odoo.language = "nl_NL"
    pos = shop.open()
    assert pos.read_catalogue().items[f"tmpl-{soup}"].name == "Soep"
    pos.write_ticket(order_for(line_of(f"tmpl-{soup}", price=450)), "ord_1")
    assert [line["full_product_name"] for line in shop.lines()] == ["Soep"]


@pytest.mark.parametrize("code", ["nl_NL", "es_419", "sr@Cyrl", "eo"])
def test_every_code_of_a_language_of_odoo_is_one(shop: Shop, code: str) -> None:
    assert shop.open(language=code).read_catalogue().items == {}


def test_a_key_that_is_refused_is_told_with_its_remedy(shop: Shop) -> None:
    shop.odoo.key = "renewed"
    with pytest.raises(ExportUnreadable, match="refuses the login") as caught:
        shop.open().read_catalogue()
    assert "api_key" in caught.value.fix


def test_a_database_that_is_not_there_is_told_with_its_remedy(shop: Shop) -> None:
    pos = shop.open(database="elsewhere")
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert not caught.value.passing
    assert caught.value.fix == "Correct the option database."
    assert pos.health().detail == "Odoo has no database of that name."
    with pytest.raises(PosOffline, match="no database of that name"):
        pos.find_ticket("ord_1")


def test_a_busy_database_is_read_again_soon(shop: Shop) -> None:
    pos = shop.open()
    pos.read_catalogue()
    shop.odoo.busy = 1
    with pytest.raises(ExportUnreadable) as caught:
        pos.read_catalogue()
    assert caught.value.passing
    pos.read_catalogue()


@pytest.mark.parametrize(
    ("status", "body"),
    [(502, b"Bad Gateway"), (200, b"<html>"), (200, b"[]"), (200, b'{"jsonrpc": "2.0"')],
)
def test_what_is_no_answer_of_odoo_is_an_odoo_that_is_away(
    shop: Shop, status: int, body: bytes
) -> None:
    pos = shop.open()
    shop.server.next_status, shop.server.next_body = status, body
    with pytest.raises(PosOffline):
        pos.read_catalogue()
    assert pos.read_catalogue().items == {}


@pytest.mark.parametrize("status", [301, 404])
def test_an_address_that_is_not_odoos_is_told_with_its_remedy(shop: Shop, status: int) -> None:
    shop.server.next_status, shop.server.next_body = status, b"<html>"
    health = shop.open().health()
    assert not health.online
    assert "correct the option url" in health.detail


def test_a_kept_connection_that_has_died_is_opened_anew(shop: Shop) -> None:
    pos = shop.open()
    pos.read_catalogue()
    shop.server.stop()
    shop.server.start()
    assert pos.read_catalogue().items == {}


@pytest.mark.parametrize("strange", [None, ["a", None]])
def test_a_strange_answer_to_any_question_is_not_remembered(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, strange: object
) -> None:
    furnished(shop)
    there = shop.open()
    menu = there.read_catalogue().items
    shop.odoo.asked.clear()
    shop.open().read_catalogue()
    answer = shop.odoo.answer
    methods = [method for _model, method in shop.odoo.asked]
    for at in {methods.index(each) for each in methods}:
        pos, asked = shop.open(), 0

        def instead(service: str, method: str, args: list[object], at: int = at) -> object:
            nonlocal asked
            asked += service == "object"
            wanted = service == "object" and asked == at + 1
            return strange if wanted else answer(service, method, args)

        monkeypatch.setattr(shop.odoo, "answer", instead)
        with suppress(PosOffline, ExportUnreadable):
            pos.read_catalogue()
        assert pos.read_catalogue().items == menu, methods[at]
