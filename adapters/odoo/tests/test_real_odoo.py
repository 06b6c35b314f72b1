"""Against a real Odoo of one's own, where environment variables name one; it writes orders there.

`TILLBRIDGE_ODOO_URL`, `_DATABASE`, `_LOGIN` and `_KEY` say where and as whom, `_POS` which point of
sale, `_ONLINE_TABLE` the table of online orders (a restaurant of 17), `_CURRENCY`
what it sells in (EUR). It needs an open session, and something to sell.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tillbridge.adapter import AdapterContext, Item, Order
from tillbridge_odoo.adapter import OdooAdapter
from tillbridge_odoo.emulated.shop import line_of, order_for
from tillbridge_odoo.options import OdooOptions

NAMES = ("url", "database", "login", "key")
GIVEN = {name: os.environ.get(f"TILLBRIDGE_ODOO_{name.upper()}", "") for name in NAMES}
CURRENCY = os.environ.get("TILLBRIDGE_ODOO_CURRENCY", "EUR")

pytestmark = pytest.mark.skipif(
    not all(GIVEN.values()), reason="no real Odoo is named by TILLBRIDGE_ODOO_URL and the others"
)

Opens = Callable[..., OdooAdapter]


@pytest.fixture
def opens(tmp_path: Path) -> Iterator[Opens]:
    opened: list[OdooAdapter] = []
    context = AdapterContext("real", CURRENCY, "real", tmp_path)

    def open_(**more: object) -> OdooAdapter:
        (tmp_path / "key").write_text(GIVEN["key"], "utf-8")
        said = {
            **{name: GIVEN[name] for name in NAMES[:3]},
            "api_key": {"file": "key"},
            "pos": os.environ.get("TILLBRIDGE_ODOO_POS"),
            "online_table": os.environ.get("TILLBRIDGE_ODOO_ONLINE_TABLE"),
            "reference": "Trial",
            "timeout_s": 30,
            **more,
        }
        opened.append(OdooAdapter(OdooOptions.model_validate(said), context))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def plain_items(pos: OdooAdapter) -> list[Item]:
    """Return what can be ordered as it is, the first that cost something."""
    items = pos.read_catalogue().items.values()
    return [each for each in items if each.price and not (each.variants or each.addon_groups)]


def order(key: str, item: Item, quantity: int = 1) -> Order:
    line = line_of(item.external_id, price=item.price, quantity=quantity)
    return order_for(line, order_id=key, currency=CURRENCY)


@pytest.mark.parametrize("kind", ["draft", "paid"])
def test_an_order_is_written_once_and_taken_back(opens: Opens, kind: str) -> None:
    pos = opens(orders=kind)
    item = plain_items(pos)[0]
    key = f"trial_{uuid.uuid4().hex[:12]}"
    assert pos.find_ticket(key) is None
    ticket = pos.write_ticket(order(key, item), key)
    assert opens(orders=kind).write_ticket(order(key, item, quantity=3), key) == ticket
    assert opens().find_ticket(key) == ticket
    for _time in range(2):
        pos.cancel_ticket(order(key, item), key, "A trial")
    said = [update.status for update in pos.read_updates() if update.order_id == key]
    assert said == (["rejected"] if kind == "draft" else ["accepted"])


def test_menu_tables_and_what_is_sold_out_can_be_read(opens: Opens) -> None:
    pos = opens()
    assert pos.health().online
    assert plain_items(pos)
    pos.read_availability()
    pos.read_tables()
