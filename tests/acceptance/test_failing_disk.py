"""A disk that is full, or lies: never a 2xx for what is not kept."""

import errno

import pytest

from tests.support.bridge_process import until
from tests.support.world import World


@pytest.mark.parametrize("fault", [f"write 1 {errno.ENOSPC}", f"fsync 1 {errno.EIO}"])
async def test_a_delivery_that_cannot_be_kept_is_refused(
    world: World, faults: str, fault: str
) -> None:
    switch = world.folder / "broken"
    world.bridge.env |= {"LD_PRELOAD": faults, "FAULT_DISK": str(switch)}
    await world.bridge.start()
    assert (await world.connect())[0] == 0
    await world.menu_is_on_sale()
    switch.write_text(fault)
    lost = [await world.order("p1") for _ in range(3)]
    told = await world.control("deliveries", method="GET")
    codes = {
        attempt["status"]
        for each in told["deliveries"]
        if each["order_id"] in lost
        for attempt in each["attempts"]
    }
    assert codes == {503}
    assert world.till.tickets() == []
    await world.problem("ledger.unwritable")
    switch.unlink()
    await world.problem("ledger.unwritable", open_=False)
    for order in lost:
        await world.control("webhooks/redeliver", {"order_id": order, "mode": "same"})
    await until("every order has its ticket", lambda: world.till.tickets() == sorted(lost))


async def test_a_damaged_ledger_is_set_aside_and_no_order_is_written_twice(shop: World) -> None:
    orders = [await shop.order("p1") for _ in range(3)]
    for order in orders:
        await shop.reaches(order, "accepted")
    await shop.bridge.kill()
    ledger = shop.folder / "data" / "ledger.db"
    ledger.write_bytes(b"this is no database" * 1000)
    for kind in ("-wal", "-shm"):
        ledger.with_name(ledger.name + kind).unlink(missing_ok=True)
    await shop.bridge.start()
    assert list((shop.folder / "data").glob("ledger.db.damaged-*"))
    await shop.problem("ledger.rebuilt")
    for order in orders:  # the service may deliver them again
        await shop.control(
            "webhooks/redeliver", {"order_id": order, "mode": "new_event_id", "wait": True}
        )
    another = await shop.order("p2")
    await shop.reaches(another, "accepted")
    assert shop.till.tickets() == sorted([*orders, another])
    assert len(shop.bridge.events("order.written", order=orders[0])) <= 1
    shop.till.change("p4", price="4.95")
    await shop.menu_is_on_sale()


async def test_a_ledger_that_is_damaged_while_it_is_used_ends_the_bridge(shop: World) -> None:
    ledger = shop.folder / "data" / "ledger.db"
    order = await shop.order("p1")
    await shop.reaches(order, "accepted")
    for kind in ("", "-wal"):
        path = ledger.with_name(ledger.name + kind)
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.write(b"\xa5" * size)
    assert shop.bridge.process is not None

    async def ended() -> bool:
        await shop.order("p2")
        assert shop.bridge.process is not None
        return shop.bridge.process.returncode is not None

    await until("the bridge has ended", ended)
    assert shop.bridge.process.returncode == 1
    await shop.bridge.start()
    await shop.problem("ledger.rebuilt")
    another = await shop.order("p3")
    await shop.reaches(another, "accepted")
