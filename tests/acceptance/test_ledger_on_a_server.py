"""A shop moves from its file to a database server and back, as its technician does it."""

import json
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from tests.support.bridge_process import free_port
from tests.support.postgresql import new_database, on_postgresql
from tests.support.world import World
from tillbridge.ledger.postgresql import engine_of

pytestmark = on_postgresql()

PASSWORD = "Keep-it-secret"


def in_file(shop: World, url: str) -> Path:
    path = shop.folder / "database_url"
    path.write_text(url.replace("+psycopg", "") + "\n", "utf-8")
    path.chmod(0o600)
    return path


def configure(shop: World, table: str) -> None:
    text_of_file = shop.config.read_text("utf-8").partition("[ledger]")[0]
    shop.config.write_text(f"{text_of_file}{table}", "utf-8")


async def said(shop: World, *command: str, code: int = 0) -> str:
    """Return what a command prints; it is shown beside what was typed if the test fails."""
    found, out, err = await shop.bridge.run(*command)
    sys.stdout.write(f"$ tillbridge {' '.join(command)}\n{out}{err}[exit code {found}]\n\n")
    assert found == code, out + err
    assert PASSWORD not in out + err
    return out + err


async def test_a_shop_moves_to_a_server_and_back_and_no_order_is_lost_or_doubled(
    shop: World,
) -> None:
    first = await shop.order("p1")
    await shop.reaches(first, "accepted")
    shop.till.orders.rename(shop.folder / "unplugged")
    waiting = await shop.order("p2")
    await shop.bridge.stop()
    url = in_file(shop, new_database())

    told = await said(shop, "ledger", "copy", "--to", str(url))
    assert "Copied and compared" in told
    await shop.bridge.start(wait=False)
    assert shop.bridge.process is not None
    assert await shop.bridge.process.wait() == 2  # the file does not count any more
    assert "was copied to" in shop.bridge.log_path.read_text("utf-8")

    configure(shop, '[ledger]\nurl = { file = "database_url" }\n')
    await said(shop, "config", "check")
    (shop.folder / "unplugged").rename(shop.till.orders)
    await shop.bridge.start()
    await shop.reaches(waiting, "accepted")
    second = await shop.order("p3")
    await shop.reaches(second, "accepted")
    assert f"{waiting}" in await said(shop, "orders", "list", "--json")
    doctor = json.loads((await shop.bridge.run("doctor", "--json"))[1])
    (ledger,) = [each for each in doctor["results"] if each["name"] == "ledger"]
    assert (ledger["level"], "writes each commit to disk" in ledger["text"]) == ("ok", True)
    assert "its own backups" in await said(shop, "backup", code=2)
    assert "uses the database" in await said(shop, "ledger", "copy", "--to", "sqlite", code=1)
    await shop.bridge.stop()

    status = json.loads((await shop.bridge.run("status", "--json"))[1])
    assert status["bridge"]["running"] is False
    assert status["stores"]["main"]["menu"]["acknowledged_items"] == 12
    assert "its own backups" in await said(shop, "restore", "--yes", code=2)
    assert "matches this version" in await said(shop, "version")
    await said(shop, "migrate", "--dry-run")
    await said(shop, "ledger", "copy", "--to", "sqlite")
    configure(shop, "")
    await shop.bridge.start()
    third = await shop.order("p4")
    await shop.reaches(third, "accepted")
    for order in (first, waiting, second):
        await shop.control(
            "webhooks/redeliver", {"order_id": order, "mode": "new_event_id", "wait": True}
        )
    fourth = await shop.order("p5")
    await shop.reaches(fourth, "accepted")
    assert shop.till.tickets() == sorted([first, waiting, second, third, fourth])
    journal = shop.till.orders / ".tillbridge"
    assert len(list(journal.glob("*.sent"))) == 5
    await shop.menu_is_on_sale()


@pytest.mark.parametrize("wrong", ["port", "password", "database", "synchronous", "foreign"])
async def test_a_server_that_cannot_be_used_ends_the_start_with_a_sentence(
    shop: World, wrong: str
) -> None:
    await shop.bridge.stop()
    url = make_url(new_database())
    engine = engine_of(url.render_as_string(hide_password=False))
    with engine.connect() as connection:
        if wrong == "synchronous":
            connection.execute(text(f"ALTER DATABASE {url.database} SET synchronous_commit = off"))
        if wrong == "foreign":
            connection.execute(text("CREATE TABLE guests (name text)"))
    engine.dispose()
    if wrong == "port":
        url = url.set(port=free_port())
    if wrong == "password":
        url = url.set(password=f"{PASSWORD}-not")
    if wrong == "database":
        url = url.set(database="nowhere")
    in_file(shop, url.render_as_string(hide_password=False))
    configure(shop, '[ledger]\nurl = { file = "database_url" }\n')
    await shop.bridge.start(wait=False)
    assert shop.bridge.process is not None
    assert await shop.bridge.process.wait() == (3 if wrong == "port" else 2)
    log = shop.bridge.log_path.read_text("utf-8")
    (event,) = shop.bridge.events("bridge.not_started")
    sys.stdout.write(f"{wrong}: {event['error']} {event['fix']}\n")
    assert event["fix"]
    assert PASSWORD not in log
    status = await shop.bridge.run("status", "--json")
    assert PASSWORD not in status[1] + status[2]
    await said(shop, "doctor", code=1)
    await said(shop, "ledger", "copy", "--to", str(shop.folder / "database_url"), code=2)
    configure(shop, "")
    await shop.bridge.start()  # nothing was changed
    order = await shop.order("p1")
    await shop.reaches(order, "accepted")


async def test_a_password_is_not_taken_from_the_command_line(shop: World) -> None:
    await shop.bridge.stop()
    url = new_database()
    told = await said(shop, "ledger", "copy", "--to", url, code=2)
    assert "can be read by everybody" in told
    assert "does not exist" in await said(shop, "ledger", "copy", "--to", "nowhere", code=2)
    assert "there already" in await said(shop, "ledger", "copy", "--to", "sqlite", code=2)


async def test_the_page_says_that_the_server_has_its_own_backups(shop: World) -> None:
    await shop.bridge.stop()
    in_file(shop, new_database())
    await said(shop, "ledger", "copy", "--to", str(shop.folder / "database_url"))
    configure(shop, '[ledger]\nurl = { file = "database_url" }\n')
    await shop.bridge.start()
    address = f"http://127.0.0.1:{shop.page_port}/settings/backup"
    async with shop.http.get(address) as response:
        page = await response.text()
    assert response.status == 200
    assert "which has its own backups" in page
    assert "/settings/backup/now" not in page
    assert 'name="bridge.backup_at"' not in page
    headers = {"Origin": f"http://127.0.0.1:{shop.page_port}"}
    async with shop.http.post(f"{address}/now", headers=headers) as response:
        assert "which has its own backups" in await response.text()
    assert not (shop.folder / "data" / "backups").exists()
