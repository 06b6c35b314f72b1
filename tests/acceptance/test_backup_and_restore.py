"""A backup put back: the till is asked what it has by now, and nothing is written twice."""

import json
import shutil
from pathlib import Path

from tests.support.bridge_process import until
from tests.support.world import World


async def backed_up(shop: World) -> Path:
    code, out, err = await shop.bridge.run("backup", "--json")
    assert code == 0, out + err
    return Path(json.loads(out)["path"])


async def test_orders_that_were_written_since_the_back_up_are_not_written_again(
    shop: World,
) -> None:
    before = await shop.order("p1")
    await shop.reaches(before, "accepted")
    shop.till.orders.rename(shop.folder / "unplugged")
    waiting = await shop.order("p2")
    await shop.bridge.logged("order.wait", order=waiting)  # it has been tried
    saved = await backed_up(shop)
    (shop.folder / "unplugged").rename(shop.till.orders)
    await shop.reaches(waiting, "accepted")
    since = await shop.order("p3")
    await shop.reaches(since, "accepted")
    shop.till.change("p4", price="4.95")
    await shop.menu_is_on_sale()
    await shop.bridge.stop()
    # The disk was replaced: all there is is the backup, and the key that was kept elsewhere.
    kept = shop.folder / "kept"
    kept.mkdir()
    for path in (saved, saved.with_suffix(".vault"), shop.folder / "data" / "ledger.key"):
        shutil.copy(path, kept)
    shutil.rmtree(shop.folder / "data")
    (shop.folder / "data").mkdir()
    shutil.copy(kept / "ledger.key", shop.folder / "data")
    code, out, err = await shop.bridge.run("restore", str(kept / saved.name), "--yes", "--json")
    assert code == 0, out + err
    assert json.loads(out)["to_ask"] == 1
    shop.till.change("p4", price="4.00")  # as it was when the backup was made
    await shop.bridge.start()
    for order in (before, waiting, since):  # the service may deliver them again
        await shop.control(
            "webhooks/redeliver", {"order_id": order, "mode": "new_event_id", "wait": True}
        )
    another = await shop.order("p5")
    await shop.reaches(another, "accepted")
    assert shop.till.tickets() == sorted([before, waiting, since, another])
    assert {event["order"] for event in shop.bridge.events("order.written")} <= {
        another,
        waiting,
        since,
    }
    journal = shop.till.orders / ".tillbridge"
    assert len(list(journal.glob("*.sent"))) == 4
    await shop.menu_is_on_sale()


async def test_a_ticket_that_the_till_has_taken_away_is_not_written_again(shop: World) -> None:
    """Tills take their files; what was there and is gone must count as had."""
    shop.till.orders.rename(shop.folder / "unplugged")
    order = await shop.order("p1")
    await backed_up(shop)
    (shop.folder / "unplugged").rename(shop.till.orders)
    await shop.reaches(order, "accepted")
    await shop.bridge.stop()
    (shop.till.orders / f"{order}.json").unlink()
    (shop.folder / "data" / "ledger.db").unlink()  # so that nothing can be carried over
    for kind in ("-wal", "-shm"):
        (shop.folder / "data" / f"ledger.db{kind}").unlink(missing_ok=True)
    code, out, err = await shop.bridge.run("restore", "--yes")
    assert code == 0, out + err
    assert "1 open order" in out
    await shop.bridge.start()
    another = await shop.order("p2")
    await shop.reaches(another, "accepted")
    assert shop.till.tickets() == [another]


async def test_a_running_bridge_is_not_restored_under(shop: World) -> None:
    await backed_up(shop)
    code, _out, err = await shop.bridge.run("restore", "--yes")
    assert code == 1
    assert "Stop it first" in err


async def test_a_back_up_to_another_folder_and_none_of_nothing(shop: World, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    code, _out, err = await shop.bridge.run("backup", "--to", str(stick))
    assert code == 1
    assert f"mkdir {stick}" in err  # and not that the disk is full
    stick.mkdir()
    code, out, err = await shop.bridge.run("backup", "--to", str(stick))
    assert code == 0, out + err
    assert sorted(path.suffix for path in stick.iterdir()) == [".db", ".vault"]
    await shop.bridge.stop()
    code, out, err = await shop.bridge.run("restore", str(stick / "none.db"))
    assert code == 2, out + err
    assert "none.db does not exist" in err
    assert "replaces the present database" not in out + err  # nobody is asked first
    shutil.rmtree(shop.folder / "data")
    code, out, err = await shop.bridge.run("backup")
    assert code == 1
    assert "no database" in err


async def test_a_backup_is_restored_on_the_page_and_nothing_is_written_twice(shop: World) -> None:
    before = await shop.order("p1")
    await shop.reaches(before, "accepted")
    saved = await backed_up(shop)
    since = await shop.order("p2")
    await shop.reaches(since, "accepted")
    page = f"http://127.0.0.1:{shop.page_port}"
    path = f"{page}/settings/backup/{saved.name}/restore"
    async with shop.http.get(path) as answer:
        assert "Kept: 1 order that arrived since" in await answer.text()
    async with shop.http.post(path, headers={"Origin": page}) as answer:
        assert "restarts with the backup" in await answer.text()
    await until("it runs again", lambda: len(shop.bridge.events("bridge.ready")) > 1)
    another = await shop.order("p3")
    await shop.reaches(another, "accepted")
    assert shop.till.tickets() == sorted([before, since, another])
    async with shop.http.get(f"{page}/diagnostics/audit") as answer:
        assert f"restored the backup {saved.name}" in await answer.text()
    async with shop.http.get(f"{page}/settings/backup") as answer:
        text = await answer.text()
        assert "ledger.db.replaced-" in text
        assert f": {saved.name}</p>" in text  # restored, and when
