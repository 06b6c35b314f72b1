"""One order, one piece of news or one step that fails unexpectedly does not stop the others."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.order_harness import STORE, Harness, Life
from tillbridge.adapter import Health
from tillbridge.core import worker
from tillbridge.core.errors import Unreachable
from tillbridge.core.problems import OpenProblem
from tillbridge.model.order import Order, ReasonCode
from tillbridge.orders import intake, reconciler


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 0.02)
    return Harness(tmp_path)


def set_aside(life: Life) -> list[OpenProblem]:
    return [each for each in life.tracker.current() if each.code == "order.set_aside"]


def poisoned(function: Callable[..., Any], is_poison: Callable[..., bool]) -> Callable[..., Any]:
    """Return the function, but for arguments that make it fail as nobody foresaw."""

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- whatever the function takes
        if is_poison(*args):
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        return function(*args, **kwargs)

    return call


async def test_an_order_that_cannot_be_written_is_set_aside_and_written_once_it_can(
    harness: Harness,
) -> None:
    async def poison(order: Order) -> None:
        if order.id == "ord_1":
            raise OverflowError("no such number")

    harness.till.on_write = poison
    async with harness.life() as life:
        await life.order("ord_1")
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        await life.until(lambda: set_aside(life))
        [problem] = set_aside(life)
        assert (problem.store, problem.subject, problem.detail["order"]) == (
            STORE,
            "ord_1",
            "ord_1",
        )
        assert problem.detail["step"] == "writer"
        harness.till.on_write = None
        await life.until_told("ord_1", "accepted")
        await life.until(lambda: not set_aside(life))
    assert harness.till.written == ["ord_2", "ord_1"]


async def test_a_delivery_that_cannot_be_taken_in_waits_and_the_others_are_taken_in(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        created = poisoned(
            intake._created, lambda _connection, _settings, order, *_rest: order.id == "ord_1"
        )
        patch.setattr(intake, "_created", created)
        async with harness.life() as life:
            await life.order("ord_1")
            await life.order("ord_2")
            await life.order("ord_3")
            await life.until_told("ord_3", "accepted")
            assert await life.row("ord_1") is None
            [problem] = set_aside(life)
            assert problem.detail["step"] == "intake"
            # Between two tries there is no reason for the watchdog to end the process.
            await life.until(lambda: life.flow.intake.behind_since is None)
            assert await life.row("ord_1") is None
            patch.undo()
            await life.until_told("ord_1", "accepted")
            await life.until(lambda: not set_aside(life))
    assert sorted(harness.till.written) == ["ord_1", "ord_2", "ord_3"]


async def test_an_order_the_service_cannot_be_told_of_does_not_silence_the_others(
    harness: Harness,
) -> None:
    async with harness.life() as life:
        harness.service.fails = KeyError("a defect of ours")
        await life.order("ord_1")
        await life.until(lambda: set_aside(life))
        assert set_aside(life)[0].detail["step"] == "notifier"
        harness.service.fails = None
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        await life.until_told("ord_1", "accepted")
        await life.until(lambda: not set_aside(life))


async def test_what_is_new_of_an_order_is_reported_at_once_after_a_failure_nobody_foresaw(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 300)
    async with harness.life() as life:
        harness.service.fails = KeyError("a defect of ours")
        await life.order("ord_1")
        await life.until(lambda: set_aside(life))
        harness.service.fails = None
        await life.flow.cancel("ord_1", ReasonCode.OTHER)
        await life.until_told("ord_1", "cancelled")


async def test_an_order_that_is_reopened_during_a_call_gets_no_second_one_beside_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, answered = [], asyncio.Event()

    async def slow(order_id: str) -> None:
        called.append(order_id)
        await answered.wait()
        harness.service.states[order_id] = "accepted"

    async with harness.life() as life:
        monkeypatch.setattr(harness.service, "accept", slow)
        await life.order("ord_1")
        await life.until(lambda: called)
        await life.flow.done("ord_1", "settled")
        await life.flow.retry("ord_1")
        for _ in range(20):  # what would begin a second call has had its turn
            await asyncio.sleep(0)
        answered.set()
        await life.until_told("ord_1", "accepted")
    assert called == ["ord_1"]


async def test_news_that_cannot_be_kept_does_not_stop_other_news(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        keep = poisoned(
            reconciler.commit_update,
            lambda _connection, _store, update, *_: update.order_id == "ord_1",
        )
        patch.setattr(reconciler, "commit_update", keep)
        async with harness.life() as life:
            for order in ("ord_1", "ord_2"):
                await life.order(order)
                await life.until_told(order, "accepted")
            harness.till.tells("ord_1", "preparing")
            harness.till.tells("ord_2", "preparing")
            await life.until_told("ord_2", "preparing")
            assert [each.detail["step"] for each in set_aside(life)] == ["updates"]
            patch.undo()
            await life.until_told("ord_1", "preparing")
            await life.until(lambda: not set_aside(life))


async def test_a_step_that_fails_as_a_whole_leaves_the_others_at_work(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise RuntimeError("the probe is broken")

    async with harness.life() as life:
        monkeypatch.setattr(harness.till, "health", broken)
        await life.until(lambda: "store.step_failed" in life.problems())
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")


async def test_an_effect_that_fails_does_not_cost_the_order(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_taken: object) -> None:
        raise RuntimeError("not my day")

    async with harness.life() as life:
        monkeypatch.setattr(harness.effects, "delivery_processed", broken)
        await life.order("ord_1")
        await life.until_told("ord_1", "accepted")
        assert "store.step_failed" in life.problems()


async def test_an_order_committed_and_not_handed_on_is_handed_on_again(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with harness.life() as life:
        with monkeypatch.context() as patch:
            update = poisoned(
                life.flow._writer.update, lambda change: change.after.order_id == "ord_1"
            )
            patch.setattr(life.flow._writer, "update", update)
            await life.order("ord_1")
            await life.until(lambda: set_aside(life))
        await life.until_told("ord_1", "accepted")
        await life.until(lambda: not set_aside(life))


async def test_what_follows_from_a_policys_cancel_is_tried_until_it_is_done(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.order_settings["price_differs"] = "cancel"
    failures = [RuntimeError("not now"), RuntimeError("not yet")]

    def resync() -> None:
        if failures:
            raise failures.pop()
        harness.effects.resyncs += 1

    monkeypatch.setattr(harness.effects, "resync", resync)
    async with harness.life() as life:
        await life.order("ord_1", currency="EUR")
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        await life.until_told("ord_1", "cancelled")
        await life.until(lambda: harness.effects.resyncs == 1)
        await life.until(lambda: "store.step_failed" not in life.problems())


async def test_a_restart_makes_up_for_what_follows_from_a_policys_cancel(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.order_settings["price_differs"] = "cancel"
    harness.service.fails = Unreachable("no line")
    with monkeypatch.context() as patch:
        # The process ends before the menu is synchronised.
        patch.setattr(harness.effects, "resync", lambda: None)
        async with harness.life() as life:
            await life.order("ord_1", currency="EUR")
            await life.until(lambda: life.row("ord_1"))
    harness.service.fails = None
    async with harness.life() as life:
        await life.until_told("ord_1", "cancelled")
        assert harness.effects.resyncs == 1
    async with harness.life() as life:
        await life.until(lambda: harness.effects.presence[-1:] == ["online"])
        assert harness.effects.resyncs == 1, "what the service knows is over"


async def test_after_a_restart_what_follows_from_a_policys_cancel_is_tried_until_it_is_done(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.order_settings["price_differs"] = "cancel"
    harness.service.fails = Unreachable("no line")
    failures = [RuntimeError("not now"), RuntimeError("not yet")]

    def resync() -> None:
        if failures:
            raise failures.pop()
        harness.effects.resyncs += 1

    with monkeypatch.context() as patch:
        patch.setattr(harness.effects, "resync", lambda: None)
        async with harness.life() as life:
            await life.order("ord_1", currency="EUR")
            await life.until(lambda: life.row("ord_1"))
    harness.service.fails = None
    monkeypatch.setattr(harness.effects, "resync", resync)
    async with harness.life() as life:
        await life.order("ord_2")
        await life.until_told("ord_2", "accepted")
        await life.until(lambda: harness.effects.resyncs == 1)
        await life.until(lambda: "store.step_failed" not in life.problems())


async def test_the_inbox_waits_for_no_till_that_is_slow_at_a_start(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = asyncio.Event()
    health = harness.till.health

    async def slow() -> Health:
        await answers.wait()
        return await health()

    monkeypatch.setattr(harness.till, "health", slow)
    async with harness.life() as life:
        await life.order("ord_1")
        await life.until(lambda: life.row("ord_1"))
        assert harness.till.written == []
        answers.set()
        await life.until_told("ord_1", "accepted")
