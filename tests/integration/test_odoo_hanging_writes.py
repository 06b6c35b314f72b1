"""An emulated Odoo 17 whose writes hang while its reads answer: one order stays, whatever hangs.

Each row is one that a real Odoo 17 was seen in, with every duration twenty times as short: an
answer may take 0.3 s instead of 6, a write may come late by 2.25 s instead of 45.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.order_harness import Harness, Life
from tillbridge.pos.runner import PosRunner
from tillbridge_odoo.emulated.shop import Shop as Restaurant
from tillbridge_odoo.rig import OdooRig

_TIMEOUT_S = 0.3
_LATE_S = 2.25
_TIMES_AS_SHORT = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A write that hangs for so long (seconds of the real one), and what happens meanwhile."""

    hangs_s: float
    killed: bool = False
    paid: bool = False


ROWS = (
    Row(4, killed=True),
    Row(5, killed=True),
    Row(6, killed=True),
    Row(7, killed=True),
    Row(10, killed=True),
    Row(10, killed=True, paid=True),
    Row(20),
    Row(40),
    Row(60),
    Row(60, paid=True),
    Row(150),
    Row(150, paid=True),
)


@pytest.fixture
def restaurant(tmp_path: Path) -> Iterator[Restaurant]:
    (tmp_path / "odoo").mkdir()
    restaurant = Restaurant(OdooRig(tmp_path / "odoo"))
    yield restaurant
    restaurant.close()


@asynccontextmanager
async def life_with(harness: Harness, restaurant: Restaurant, mode: str) -> AsyncIterator[Life]:
    """One life of the bridge on the emulated Odoo."""
    pos = restaurant.open(orders=mode, timeout_s=_TIMEOUT_S, late_s=_LATE_S)
    runner = PosRunner(
        pos,
        store="main",
        adapter="odoo",
        ticket_timeout_s=5,
    )
    harness.till = runner  # type: ignore[assignment] # whatever writes tickets
    try:
        async with harness.life() as life:
            yield life
    finally:
        await runner.close()


def live(restaurant: Restaurant) -> list[str]:
    """Return the states of what is not cancelled and not given back."""
    pos = restaurant.open()
    ids = {int(each.record.split()[1]) for each in pos.list_tickets() if each.live}
    return [str(each["state"]) for each in restaurant.orders() if each["id"] in ids]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row}")
async def test_one_order_is_left_of_all_that_were_written(
    row: Row, restaurant: Restaurant, tmp_path: Path
) -> None:
    soup = restaurant.product("Soup", 4.5)
    mode = "paid" if row.paid else "draft"
    item = {"product_name": "Soup", "external_id": f"tmpl-{soup}", "quantity": 1, "unit_price": 450}
    harness = Harness(tmp_path, accept_within_s=120 / _TIMES_AS_SHORT)
    restaurant.server.hang_writes()
    release = asyncio.get_running_loop().call_later(
        row.hangs_s / _TIMES_AS_SHORT, restaurant.server.carry_out_writes
    )
    async with life_with(harness, restaurant, mode) as life:
        await life.order("ord_1", items=[item])
        if row.killed:
            await asyncio.sleep(0.05)
        else:
            await ended(life, restaurant)
    if row.killed:
        async with life_with(harness, restaurant, mode) as life:
            await ended(life, restaurant)
    release.cancel()
    cancelled = harness.service.states["ord_1"] == "cancelled"
    assert live(restaurant) == ([] if cancelled else [mode])
    paid = sum(each["amount"] for each in restaurant.store.all("pos.payment"))
    assert paid == (0 if cancelled or mode == "draft" else 4.5)


async def ended(life: Life, restaurant: Restaurant) -> None:
    """Wait until the service knows how the order ended, and nothing is left over in Odoo."""

    async def settled() -> bool:
        row = await life.row("ord_1")
        if row is None or row.service_state not in {"accepted", "cancelled"}:
            return False
        await asyncio.to_thread(restaurant.server.wait_until_idle)
        left = 0 if row.service_state == "cancelled" else 1
        return len(await asyncio.to_thread(live, restaurant)) == left

    await life.until(settled)
    before = len(restaurant.orders())
    await asyncio.sleep(0.5)  # a few more rounds: nothing else comes
    assert len(restaurant.orders()) == before
    assert life.problems() <= {"order.ticket_taken_back", "order.cancelled"}
    if before > 1:
        assert "order.ticket_taken_back" in life.problems()
