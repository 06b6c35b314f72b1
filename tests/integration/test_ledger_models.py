"""The rows of the ledger are SQLModel classes: own tables, values once read, no greenlet."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, select
from sqlmodel import Field, SQLModel

from tillbridge.ledger.database import Row
from tillbridge.ledger.models import OrderRow, TicketState, metadata
from tillbridge.ledger.orders import get_order, insert_order, update_order
from tillbridge.model.order import OrderState

ROW = OrderRow(
    store="main",
    order_id="ord_1",
    received_at=1,
    payload="{}",
    desired_state=OrderState.ACCEPTED,
    service_state=OrderState.CREATED,
    unseen={"order.cancelled": {"at": 5, "detail": "Ä \ud800"}},
)

OPEN = """
import sys
sys.modules["greenlet"] = None  # as where it is not installed
import asyncio
from pathlib import Path
from tillbridge.core.clock import Clock
from tillbridge.ledger.facts import get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.orders import get_order

async def main():
    ledger = await Ledger.open(Path(sys.argv[1]), clock=Clock())
    await ledger.write(lambda connection: put_fact(connection, "", "x", 1, at=1))
    assert await ledger.read(lambda connection: get_fact(connection, "", "x")) == 1
    assert await ledger.read(lambda connection: get_order(connection, "main", "ord_1")) is None
    await ledger.close()

asyncio.run(main())
"""


def test_a_vendors_model_is_no_table_of_the_ledger() -> None:
    class TillOfAVendor(SQLModel, table=True):
        id: int = Field(default=None, primary_key=True)

    assert TillOfAVendor.__tablename__ in SQLModel.metadata.tables
    assert TillOfAVendor.__tablename__ not in metadata.tables


def test_a_row_that_was_read_is_a_value() -> None:
    with create_engine("sqlite://").connect() as connection:
        metadata.create_all(connection)
        assert insert_order(connection, ROW)
        assert not insert_order(connection, ROW.replace(payload="another"))
        row = get_order(connection, "main", "ord_1")
        assert row is not None
        assert row.unseen == {"order.cancelled": {"at": 5, "detail": "Ä ?"}}
        after = row.replace(ticket=TicketState.WRITING, attempts=1)
        assert (row.ticket, row.attempts) == (TicketState.WAITING, 0)
        row.last_failure = "changed by mistake"
        again = get_order(connection, "main", "ord_1")
        assert again is not None
        assert again.last_failure == "", "what is done to a row changes nothing in the ledger"
        update_order(connection, "main", "ord_1", 9, ticket=after.ticket, attempts=after.attempts)
        assert get_order(connection, "main", "ord_1") == after.replace(updated_at=9)


@pytest.mark.parametrize("table", Row.__subclasses__(), ids=lambda table: str(table.__tablename__))
def test_a_query_has_its_columns_in_the_order_of_the_attributes(table: type[Row]) -> None:
    with create_engine("sqlite://").connect() as connection:
        metadata.create_all(connection)
        columns = list(connection.execute(select(table)).keys())
    assert columns == [each.columns[0].name for each in inspect(table).column_attrs]


def test_the_ledger_needs_no_greenlet(tmp_path: Path) -> None:
    opened = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert opened.returncode == 0, opened.stderr
