"""What the profiles write, down to the cent: as the tills' own screens will add it up."""

from decimal import Decimal

import pytest

from tillbridge.adapter import Order, TicketStatus
from tillbridge.adapter.conformance import Rig
from tillbridge.adapter.conformance.subject import Subject, plain_items
from tillbridge.model.order import parse_order
from tillbridge_sql.adapter import SqlAdapter
from tillbridge_sql.rig import SqlRig
from tillbridge_sql.rig_marks import on_servers
from tillbridge_sql.rig_profiles import (
    ChromisOnMariadb,
    FloreantOnMariadb,
    FloreantOnPostgresql,
    FloreantRig,
    UnicentaOnMariadb,
    UnicentaOnPostgresql,
    UnicentaRig,
)


def tills(*kinds: type[SqlRig]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("till", on_servers(*kinds))


def order(item: str, option: str) -> Order:
    """Two of an item with one extra each, delivery, a tip, and a discount."""
    return parse_order(
        {
            "id": "ord_receipt",
            "order_number": "A-17",
            "payment_status": "paid",
            "currency": "EUR",
            "subtotal": 1300,
            "tax": 118,
            "delivery_fee": 250,
            "discount": 100,
            "tip": 75,
            "total_amount": 1525,
            "prices_include_tax": True,
            "special_instructions": 'Klingeln bei "Müller & Söhne" 🍍',
            "created_at": "2026-01-02T18:00:00.000Z",
            "items": [
                {
                    "product_name": "Dish <1>",
                    "quantity": 2,
                    "unit_price": 525,
                    "subtotal": 1300,
                    "tax_amount": 118,
                    "external_id": item,
                    "options": [
                        {
                            "product_name": "Sauce",
                            "quantity": 1,
                            "unit_price": 125,
                            "external_id": option,
                        }
                    ],
                }
            ],
        }
    )


def opened(rig: Rig) -> SqlAdapter:
    pos = rig.open()
    assert isinstance(pos, SqlAdapter)
    return pos


def sell_with_sauce(rig: UnicentaRig) -> None:
    rig.sell(plain_items(1), "EUR")
    no, yes, vno = rig.flag(yes=False), rig.flag(yes=True), rig.filled("{vno}")
    rig.run(
        f"INSERT INTO {rig.named('products')} (id, reference, code, name, pricebuy, pricesell,"
        " category, taxcat, iscom, isscale, isservice, isvprice) VALUES"
        f" ('sauce', 's', 's', 'Sauce', 0, 1.136363636, '001', '001', {yes}, {no}, {no}, {vno})",
        f"INSERT INTO {rig.named('products_com')} (id, product, product2)"
        " VALUES ('1', 'sku-1', 'sauce')",
        f"INSERT INTO {rig.named('stockcurrent')} (location, product, units)"
        " VALUES ('0', 'sku-1', 10)",
    )


@tills(UnicentaOnPostgresql, UnicentaOnMariadb, ChromisOnMariadb)
def test_a_receipt_of_unicenta_adds_up_and_its_refund_takes_it_back(
    till: type[UnicentaRig],
) -> None:
    with Subject(till).till() as rig:
        assert isinstance(rig, UnicentaRig)
        sell_with_sauce(rig)
        pos = opened(rig)
        menu = pos.read_catalogue()
        (group,) = menu.addon_groups.values()
        assert (group.external_id, group.name, group.add_ons) == ("sku-1/001", "Sauces", ("sauce",))
        assert (menu.items["sku-1"].price, menu.add_ons["sauce"].price) == (525, 125)
        assert menu.items["sku-1"].tax is not None
        assert menu.items["sku-1"].tax.components[0].rate == "10"

        ordered = order("sku-1", "sauce")
        ticket = pos.write_ticket(ordered, ordered.id)
        numbers = f"SELECT ticketid FROM {rig.named('tickets')} WHERE tickettype = 0"
        assert rig.rows(numbers) == [(int(ticket.reference),)]
        lines = rig.rows(
            f"SELECT line, product, units, price, taxid, attributes FROM {rig.named('ticketlines')}"
            " WHERE ticket = 'ord_receipt' ORDER BY line"
        )
        assert [(line, product, units) for line, product, units, *_rest in lines] == [
            (0, "sku-1", 2),
            (1, "sauce", 2),
            (2, None, 1),
        ]
        rates = {"001": Decimal("1.1"), "000": Decimal(1)}
        paid = sum(
            Decimal(repr(units)) * Decimal(repr(price)) * rates[tax]
            for _line, _product, units, price, tax, _attributes in lines
        )
        assert round(paid, 6) == Decimal("15.25")
        assert rig.rows(f"SELECT payment, total FROM {rig.named('payments')}") == [
            ("online", 15.25)
        ]
        # Java's properties, which the till shows a line by.
        assert b'<entry key="product.name">Dish &lt;1&gt;</entry>' in bytes(lines[0][5])
        stock = f"SELECT product, units FROM {rig.named('stockcurrent')} ORDER BY product"
        assert rig.rows(stock) == [("sku-1", 8)]

        cancelling = pos
        for _time in range(2):
            cancelling.cancel_ticket(ordered, ordered.id, "No more soup")
        assert rig.rows(stock) == [("sku-1", 10)]
        for table, column in (
            ("payments", "total"),
            ("taxlines", "amount"),
            ("stockdiary", "units"),
        ):
            ((total,),) = rig.rows(f"SELECT SUM({column}) FROM {rig.named(table)}")
            assert round(total, 9) == 0
        types = f"SELECT tickettype FROM {rig.named('tickets')} ORDER BY 1"
        assert rig.rows(types) == [(0,), (1,)]
        assert rig.rows(f"SELECT DISTINCT money FROM {rig.named('receipts')}") == [("today",)]


@tills(UnicentaOnPostgresql)
def test_a_price_that_is_entered_at_the_till_is_refused_by_name(till: type[UnicentaRig]) -> None:
    with Subject(till).till() as rig:
        rig.sell(plain_items(2), "EUR")
        rig.run("UPDATE products SET isvprice = true WHERE id = 'sku-2'")  # type: ignore[attr-defined] # of this rig
        menu = opened(rig).read_catalogue()
        assert list(menu.items) == ["sku-1"]
        assert [(row.external_id, row.text) for row in menu.bad_rows] == [
            ("sku-2", "Its price is entered at the till.")
        ]


@tills(FloreantOnPostgresql, FloreantOnMariadb)
def test_a_ticket_of_floreant_is_open_paid_and_told_of_when_it_is_settled(
    till: type[FloreantRig],
) -> None:
    with Subject(till).till() as rig:
        assert isinstance(rig, FloreantRig)
        rig.sell(plain_items(1), "EUR")
        rig.run(
            "INSERT INTO MENU_MODIFIER_GROUP (ID, NAME) VALUES (5, 'Sauces')",
            "INSERT INTO MENU_MODIFIER (ID, NAME, PRICE, GROUP_ID) VALUES (9, 'Sauce', 1.25, 5)",
            "INSERT INTO MENUITEM_MODIFIERGROUP (ID, MIN_QUANTITY, MAX_QUANTITY, MODIFIER_GROUP,"
            " MENUITEM_MODIFIERGROUP_ID) VALUES (4, 1, 2, 5, 1)",
        )
        pos = opened(rig)
        menu = pos.read_catalogue()
        (group,) = menu.addon_groups.values()
        assert (group.min_select, group.max_select, group.required) == (1, 2, True)
        assert menu.items["1"].addon_groups == ("c4",)
        assert menu.items["1"].tax is not None
        assert [each.rate for each in menu.items["1"].tax.components] == ["7.25", "1.5"]

        ordered = order("1", "m9")
        pos.write_ticket(ordered, ordered.id)
        ((total, due, owner, terminal),) = rig.rows(
            "SELECT TOTAL_PRICE, DUE_AMOUNT, OWNER_ID, TERMINAL_ID FROM TICKET"
            " WHERE PAID AND NOT SETTLED"
        )
        assert (total, due, owner, terminal) == (15.25, 0, 3, 7)
        assert rig.rows("SELECT ITEM_NAME, ITEM_COUNT, ITEM_PRICE FROM TICKET_ITEM") == [
            ("Dish <1>", 2, 5.25)
        ]
        assert rig.rows(
            "SELECT m.MODIFIER_NAME, m.ITEM_COUNT, m.MODIFIER_PRICE FROM TICKET_ITEM_MODIFIER m"
            " JOIN TICKET_ITEM_MODIFIER_RELATION r ON r.MODIFIER_ID = m.ID"
            " JOIN TICKET_ITEM i ON i.ID = r.TICKET_ITEM_ID"
        ) == [("Sauce", 2, 1.25)]
        assert rig.rows("SELECT AMOUNT, CUSTOM_PAYMENT_NAME FROM TRANSACTIONS") == [
            (15.25, "Online")
        ]

        telling = pos
        assert telling.read_updates() == []
        rig.report_progress(ordered.id, TicketStatus.COMPLETED)
        (news,) = telling.read_updates()
        assert (news.order_id, news.status) == (ordered.id, TicketStatus.COMPLETED)
        telling.update_handled(news)
        telling.update_handled(news)
        assert opened(rig).read_updates() == []
