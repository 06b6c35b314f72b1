"""Commands about orders take the number that people know, and say when it is not enough."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import Connection

from tests.support import fork_server
from tests.support.bridge_process import free_port
from tests.support.ledger_harness import opened
from tests.support.postgresql import ledger_table
from tillbridge.ledger.models import OrderRow
from tillbridge.ledger.orders import find_called
from tillbridge.ledger.problems import open_problems
from tillbridge.model.order import OrderState, ReasonCode
from tillbridge.orders.events import CancelRequested, ServiceKnows
from tillbridge.orders.repository import commit, save
from tillbridge.orders.state import Change

NOW = 1_800_000_000_000


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("s3cret")
    path = tmp_path / "bridge.toml"
    path.write_text(
        f"""
{ledger_table(tmp_path / "data")}
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:{free_port()}/v2"
client_id = "app_123"
client_secret = {{ file = "secret" }}
[receiver]
public_url = "https://store.example.net"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "menu.csv"
orders_dir = "orders"
"""
    )
    return path


@pytest.fixture
async def shop(config: Path) -> Path:
    async with opened(config.parent / "data") as ledger:
        await ledger.write(fill)
    return config


def fill(connection: Connection) -> None:
    numbers = {
        "ord_a": "1007",
        "ord_b": "1008",
        "ord_c": "1008",
        "ord_1007": "9",
        "ord_today": "1009",
        "ord_over": "1009",
    }
    payload = json.dumps({"id": "x", "total_amount": 1840, "currency": "USD", "items": []})
    for at, (order_id, number) in enumerate(numbers.items(), start=NOW):
        row = OrderRow(
            store="main",
            order_id=order_id,
            received_at=at,
            payload=payload,
            desired_state=OrderState.CREATED,
            service_state=OrderState.CREATED,
        )
        save(connection, Change(None, row.replace(order_number=number)), at)
    order = OrderState.COMPLETED
    commit(connection, "main", "ord_over", ServiceKnows(order, "order.completed"), NOW)
    lost = CancelRequested(ReasonCode.POS_OFFLINE, "gone", "offline")
    for order_id in ("ord_b", "ord_c"):
        commit(connection, "main", order_id, lost, NOW)
        told = ServiceKnows(OrderState.CANCELLED, "order.cancelled")
        commit(connection, "main", order_id, told, NOW)


def run(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ("--config", str(config), *arguments)
    return fork_server.run(*command, env={**os.environ, "TZ": "UTC"}, within_s=60)


@pytest.mark.usefixtures("each_database")
def test_an_order_is_shown_by_its_number(shop: Path) -> None:
    shown = run(shop, "orders", "show", "1007", "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["id"] == "ord_a"
    by_id = run(shop, "orders", "show", "ord_1007", "--json")
    assert json.loads(by_id.stdout)["order_number"] == "9"


@pytest.mark.parametrize(
    "arguments",
    [
        ("retry", "1008"),
        ("cancel", "1008", "--reason", "OTHER"),
        ("done", "1008"),
    ],
)
def test_a_number_that_two_have_is_not_guessed(shop: Path, arguments: tuple[str, ...]) -> None:
    said = run(shop, "orders", *arguments)
    assert said.returncode == 1
    assert "There are several orders 1008: 1008 of 2027-01-15 08:00:00 in main (ord_c)" in (
        said.stderr
    )
    assert "1008 of 2027-01-15 08:00:00 in main (ord_b)" in said.stderr
    assert "Use the id in brackets to say which one." in said.stderr


@pytest.mark.usefixtures("each_database")
def test_looking_at_a_number_shows_the_newest_and_names_the_others(shop: Path) -> None:
    shown = run(shop, "orders", "show", "1008", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["id"] == "ord_c"
    assert [(each["id"], each["open"]) for each in found["same_number"]] == [("ord_b", False)]
    assert "Another order 1008: 2027-01-15 08:00:00, main, ord_b" in (
        run(shop, "orders", "show", "1008").stdout
    )


def test_of_several_the_one_that_is_open_is_meant(shop: Path) -> None:
    shown = run(shop, "orders", "show", "#1009", "--json")
    assert json.loads(shown.stdout)["id"] == "ord_today", "the later one is over"
    done = run(shop, "orders", "done", "1009")
    assert done.returncode == 0, done.stderr
    assert "Order 1009 is left to you" in done.stdout


async def test_what_is_done_by_number_is_done_to_that_order(shop: Path) -> None:
    done = run(shop, "orders", "done", "1007")
    assert done.returncode == 0, done.stderr
    assert "Order 1007 is left to you" in done.stdout
    async with opened(shop.parent / "data") as ledger:
        (row,) = await ledger.read(lambda each: find_called(each, "ord_a"))
    assert row.closed_at is not None


async def test_cancelled_orders_are_a_problem_until_it_is_acknowledged(shop: Path) -> None:
    status = json.loads(run(shop, "status", "--json").stdout)
    (text,) = [each["text"] for each in status["problems"] if each["code"] == "order.cancelled"]
    assert text.startswith("2 orders were cancelled since ")
    assert text.endswith("because the till could not be reached (1008, 1008; $36.80).")
    acknowledged = run(shop, "problems", "ack", "order.cancelled")
    assert acknowledged.returncode == 0, acknowledged.stderr
    assert "The problem is closed." in acknowledged.stdout
    async with opened(shop.parent / "data") as ledger:
        present = await ledger.read(open_problems)
    assert "order.cancelled" not in {each.code for each in present}
