"""A till that says itself that it is offline."""

import json

from tests.support.bridge_process import until
from tests.support.world import World


async def test_an_order_lost_to_an_absent_till_pauses_the_store_until_it_is_back(
    shop: World,
) -> None:
    order = await shop.order("p1")
    await until("the ticket is there", lambda: order in shop.till.tickets())
    shop.till.tell(order, "rejected", reason="pos_offline", message="No line to the kitchen.")
    await shop.reaches(order, "cancelled")

    async def is_(status: str) -> bool:
        store: str = (await shop.state())["stores"]["st_main"]["status"]
        return store == status

    await until("the store is paused", lambda: is_("inactive"), within_s=10)
    await until("the store is open again", lambda: is_("active"), within_s=30)

    # Who closed it, who opened it, and why, is in the audit trail.
    async def own() -> list[tuple[str, str]]:
        code, out, err = await shop.bridge.run("audit", "list", "--json")
        assert code == 0, err
        entries = reversed(json.loads(out)["entries"])
        return [
            (each["action"], each["detail"]["why"]) for each in entries if each["who"] == "bridge"
        ]

    told = [("store.pause", "the till is offline"), ("store.resume", "the till is back")]

    async def noted() -> bool:
        return await own() == told

    await until("both are in the audit trail", noted, within_s=10)

    # The guest's money is back; until somebody has seen that, all is not well.
    async def problems() -> list[str]:
        _code, out, _err = await shop.bridge.run("status", "--json")
        return [each["text"] for each in json.loads(out)["problems"]]

    (text,) = await problems()
    assert text.startswith("Order "), text
    assert "was cancelled at" in text
    assert order not in text, "people know it by its number"
    code, out, err = await shop.bridge.run("problems", "ack", "order.cancelled")
    assert code == 0, err
    assert "The problem is closed" in out
    assert await problems() == []
