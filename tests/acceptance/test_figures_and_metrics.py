"""What an order leaves in the figures and in what Prometheus reads."""

import json

from prometheus_client.parser import text_string_to_metric_families

from tests.support.bridge_process import until
from tests.support.world import World


async def measured(world: World) -> dict[tuple[str, ...], float]:
    """Samples by name and sorted label values."""
    async with world.http.get(f"http://127.0.0.1:{world.page_port}/metrics") as answer:
        text = await answer.text()
    return {
        (sample.name, *(value for _label, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_an_order_is_counted_and_measured(shop: World) -> None:
    order_id = await shop.order("p1", "p2")
    await shop.reaches(order_id, "accepted")

    async def figures() -> dict:
        code, out, err = await shop.bridge.run("orders", "figures", "--json")
        assert code == 0, err
        told: dict = json.loads(out).get("main", {}).get("24h", {})
        return told if told.get("time_to_accept_s") else {}

    told = await until("the figures", figures)
    assert told["orders"] == told["time_to_ticket_s"]["count"] == 1
    assert told["needed_a_hand_share"] == 0

    samples = await measured(shop)
    assert samples["tillbridge_deliveries_total", "new", "main"] == 1
    assert samples["tillbridge_order_time_to_ticket_seconds_count", "main"] == 1
    assert samples["tillbridge_order_time_to_accept_seconds_bucket", "+Inf", "main"] == 1
    assert samples["tillbridge_service_calls_total", "orders.accept", "done", "main"] == 1
    assert samples["tillbridge_service_call_duration_seconds_count", "orders.accept"] == 1
    assert samples["tillbridge_menu_pushes", "success", "main"] >= 1
    assert samples["tillbridge_ledger_size_bytes",] > 0
    assert samples["tillbridge_problems_open", "down"] == 0

    async with shop.http.post(
        f"http://127.0.0.1:{shop.receiver_port}/webhooks/main",
        data=b"{}",
        headers={"X-Service-Signature": "00", "Content-Type": "application/json"},
    ) as refused:
        assert refused.status == 401
    assert (await measured(shop))["tillbridge_deliveries_total", "signature", "main"] == 1
