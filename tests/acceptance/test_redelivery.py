"""The service delivers at least once; the kitchen cooks once."""

import pytest

from tests.support.bridge_process import until
from tests.support.world import World


@pytest.mark.parametrize("mode", ["same", "new_delivery_id", "new_event_id"])
@pytest.mark.parametrize("consumed", [False, True])
async def test_a_redelivered_order_is_written_once(
    shop: World, mode: str, *, consumed: bool
) -> None:
    order = await shop.order("p1")
    await shop.reaches(order, "accepted")
    if consumed:
        (shop.till.orders / f"{order}.json").unlink()  # the till has read it
    again = await shop.control(
        "webhooks/redeliver", {"order_id": order, "mode": mode, "wait": True}
    )
    assert again["attempts"][-1]["status"] == 200, again
    other = await shop.order("p2")
    await shop.reaches(other, "accepted")
    expected = [other] if consumed else sorted([order, other])
    await until("only the expected tickets", lambda: shop.till.tickets() == expected)
    assert len(shop.bridge.events("order.written", order=order)) == 1


async def test_a_forged_delivery_changes_nothing(shop: World) -> None:
    for signature in ("wrong", "none"):
        told = await shop.control(
            "webhooks/send",
            {
                "store_id": "st_main",
                "event_type": "order.created",
                "data": {"id": "ord_forged"},
                "signature": signature,
                "wait": True,
            },
        )
        assert told["attempts"][-1]["status"] == 401, told
    told = await shop.control(
        "webhooks/send",
        {
            "store_id": "st_main",
            "event_type": "order.created",
            "data": {"id": "ord_forged"},
            "body_store_id": "st_other",
            "wait": True,
        },
    )
    assert told["attempts"][-1]["status"] == 401, told
    assert shop.till.tickets() == []


async def test_an_unknown_event_is_kept_and_acknowledged(shop: World) -> None:
    told = await shop.control(
        "webhooks/send",
        {
            "store_id": "st_main",
            "event_type": "order.sang_a_song",
            "data": {"id": "ord_x"},
            "wait": True,
        },
    )
    assert told["attempts"][-1]["status"] == 200, told
    assert (await shop.status())["verdict"]["level"] == "ok"
