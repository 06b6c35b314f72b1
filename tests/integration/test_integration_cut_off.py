"""An integration that is cut off at any step, by a crash or by the service, ends whole."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_stores_standing import Bench, standing
from tillbridge.config.bridge import AssumptionSettings
from tillbridge.core.errors import BridgeError, ServiceDown
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.client import ServiceClient
from tillbridge.stores.integration import Integrator
from tillbridge.stores.integration_reconciler import IntegrationReconciler

FIELD = "rotate_webhook_secret"
STEPS = 40  # more than any of it takes


class PowerCut(BaseException):
    """The machine is off: nothing catches it, and nothing after it happens."""


class Steps:
    """Lets so many steps happen; then the next one begins or ends with `failure`."""

    def __init__(self, left: int, failure: BaseException) -> None:
        self.left = left
        self.failure = failure

    def take(self) -> None:
        if self.left == 0:
            raise self.failure
        self.left -= 1

    def around(self, inner: Any) -> Any:  # noqa: ANN401 -- stands for whatever it is put before
        return _Stepwise(inner, self)


class _Stepwise:
    def __init__(self, inner: object, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- (as above)
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        async def stepped(*args: object, **named: object) -> object:
            self._steps.take()
            answer = await value(*args, **named)
            self._steps.take()
            return answer

        return stepped


def integrator(bench: Bench, steps: Steps | None = None, *, field: str = "") -> Integrator:
    client: ServiceClient = bench.service.client
    assumptions = AssumptionSettings(rotate_secret_field=field)
    context = replace(
        bench.context(assumptions=assumptions, reintegrate_quiet_s=1.0),
        service=client if steps is None else steps.around(client),
    )
    made = Integrator(context, bench.link(context.bridge), sleep=_at_once)
    if steps is not None:
        made.repository = steps.around(made.repository)
    return made


async def _at_once(_seconds: float) -> None:
    pass


async def looked_after(bench: Bench, *, field: str = "") -> IntegrationReconciler:
    """Start again, and make a round."""
    keeper = IntegrationReconciler(
        bench.context(),
        integrator(bench, field=field),
        bench.link(bench.context().bridge),
        bench.service.store.tokens,
    )
    await keeper.round()
    await keeper.round()
    return keeper


async def is_whole(bench: Bench) -> None:
    (link,) = (await bench.remote())["integrations"]
    assert link["webhook_secret"] == bench.secrets()[0]
    assert (await bench.remote())["status"] == "active"
    assert await bench.fact("integration_intent") is None
    assert (await bench.fact("integration"))["integration_id"] == link["integration_id"]
    assert [each.code for each in bench.tracker.current()] == []


async def cut_off(
    bench: Bench,
    steps: Steps,
    work: Callable[[Integrator], Awaitable[object]],
    *,
    field: str = "",
) -> bool:
    """Whether the work was cut off; False once there are enough steps for all of it."""
    try:
        await work(integrator(bench, steps, field=field))
    except (PowerCut, ServiceDown):
        return True
    return False


FAILURES = (PowerCut, lambda: ServiceDown("ill", status=503))


@pytest.mark.parametrize("failure", FAILURES, ids=["power cut", "service down"])
@pytest.mark.parametrize(  # whether an update call shows the new secret
    ("field", "shows"),
    [("", False), (FIELD, True), (FIELD, False)],
    ids=["anew", "update call shows it", "update call"],
)
async def test_a_rotation_that_is_cut_off_is_finished(
    tmp_path: Path, failure: Callable[[], BaseException], field: str, shows: bool
) -> None:
    settings = SandboxSettings(rotation_returns_secret=shows)
    for count in range(STEPS):
        async with standing(tmp_path / str(count), settings) as bench:
            await integrator(bench).integrate()
            steps = Steps(count, failure())
            again = await cut_off(bench, steps, lambda each: each.rotate(), field=field)
            await looked_after(bench, field=field)
            await is_whole(bench)
            if not again:
                return
    raise AssertionError("it took more steps than that")


@pytest.mark.parametrize("failure", FAILURES, ids=["power cut", "service down"])
async def test_a_first_integration_that_is_cut_off_is_finished_by_the_next_try(
    tmp_path: Path, failure: Callable[[], BaseException]
) -> None:
    for count in range(STEPS):
        async with standing(tmp_path / str(count)) as bench:
            again = await cut_off(bench, Steps(count, failure()), lambda each: each.integrate())
            await integrator(bench).integrate()
            await looked_after(bench)
            await is_whole(bench)
            if not again:
                return
    raise AssertionError("it took more steps than that")


@pytest.mark.parametrize("failure", FAILURES, ids=["power cut", "service down"])
async def test_a_removal_that_is_cut_off_is_finished(
    tmp_path: Path, failure: Callable[[], BaseException]
) -> None:
    for count in range(STEPS):
        async with standing(tmp_path / str(count)) as bench:
            await integrator(bench).integrate()
            again = await cut_off(bench, Steps(count, failure()), lambda each: each.remove())
            begun = await bench.fact("integration_intent") is not None
            await looked_after(bench)
            removed = await bench.fact("integration_removed") is not None
            status = (await bench.remote())["integrations"][0]["integration_status"]
            assert (status == "not_integrated") == removed
            assert removed or not begun
            if not again:
                assert removed
                return
    raise AssertionError("it took more steps than that")


async def test_secrets_of_a_removed_store_are_forgotten_in_time(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await integrator(bench).integrate()
        await integrator(bench).remove()
        await looked_after(bench)
        assert len(bench.secrets()) == 1
        bench.service.clock.pass_s(86_401)
        await looked_after(bench)
        assert bench.secrets() == []
        assert bench.ledger.vault.get("main/webhook_secrets") is None
        assert [each.code for each in bench.tracker.current()] == ["integration.removed"]


async def test_closing_the_storefront_for_a_new_integration_is_told_with_why(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        made = integrator(bench)
        await made.integrate()
        assert await bench.own() == []
        await made.reintegrate()
        assert await bench.own() == [
            ("store.pause", "to be reintegrated", ""),
            ("store.resume", "reintegrated", ""),
        ]


# -- a 409 that the list of stores did not announce


async def _refused_as_existing(bench: Bench) -> None:
    error = {"action": "error", "method": "POST", "path": "/integrate-store/", "count": 1}
    await bench.service.driver.control(
        "POST", "/faults", {**error, "status": 409, "code": "integration.already_exists"}
    )


async def _writes(bench: Bench) -> list[str]:
    answer = await bench.service.driver.control("GET", "/requests")
    seen = [f"{each['method']} {each['path']}" for each in answer.body["requests"]]
    return [each for each in seen if not each.startswith("GET")]


async def test_what_is_integrated_is_taken_over_without_asking_for_another(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path) as bench:
        await integrator(bench).integrate()
        await bench.service.driver.control("DELETE", "/requests")
        await integrator(bench).integrate()
        assert not [each for each in await _writes(bench) if "POST" in each or "DELETE" in each]


async def test_an_integration_of_somebody_else_is_not_removed(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        theirs = integrator(bench)
        theirs.wanted = replace(theirs.wanted, webhook_url="https://other.example/webhooks/main")
        real = bench.service.client.integrate

        async def raced(store_id: str, request: object) -> object:
            bench.service.client.integrate = real  # type: ignore[method-assign]  # once
            await theirs._client.integrate(store_id, theirs.wanted)
            return await real(store_id, request)  # type: ignore[arg-type]  # what it is given

        bench.service.client.integrate = raced  # type: ignore[method-assign, assignment]  # (as above)
        before = (await bench.service.driver.control("GET", "/requests")).body["next"]
        done = await integrator(bench).integrate()
        assert before is not None
        assert not done.secret_known
        assert await bench.fact("integration_intent") is None
        await looked_after(bench)  # nor by the next round
        assert not [each for each in await _writes(bench) if each.startswith("DELETE")]


async def test_a_suspended_integration_is_not_got_around(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        await _refused_as_existing(bench)
        with pytest.raises(BridgeError, match="not_integrated"):
            await integrator(bench).integrate()
        assert not [each for each in await _writes(bench) if each.startswith("DELETE")]
        await integrator(bench).integrate()
        assert len((await bench.remote())["integrations"]) == 1


async def test_nothing_is_removed_where_nothing_is(tmp_path: Path) -> None:
    async with standing(tmp_path) as bench:
        made = integrator(bench)
        await made.integrate()
        await made.remove()
        await bench.service.driver.control("DELETE", "/requests")
        await made.reintegrate()
        assert not [each for each in await _writes(bench) if each.startswith("DELETE")]
