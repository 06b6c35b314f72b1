"""A store is started and ended while the bridge runs, and leaves nothing behind."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.support.bridge_process import until
from tillbridge.config.loading import load
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.daemon.compose import compose
from tillbridge.daemon.served import Served, ServedStores, keys_of
from tillbridge.daemon.store_services import Known, StoreServices
from tillbridge.ledger.ledger import Ledger
from tillbridge.operations.bridge import Bridge, Mode

_STORE = """
[stores.{name}]
location_id = "{name}"
currency = "USD"
notification_email = "owner@example.net"
[stores.{name}.pos]
adapter = "folder"
menu = "{name}.csv"
orders_dir = "{name}/orders"
updates_dir = "{name}/updates"
poll_s = 0.5
"""
_CONFIG = """
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:9/v2"
client_id = "app_123"
client_secret = "secret"
[receiver]
listen = "127.0.0.1:0"
public_url = "http://127.0.0.1:9"
[communities.hall]
community_id = "c1"
"""


@pytest.fixture
async def bridge(tmp_path: Path) -> AsyncIterator[Bridge]:
    for name in ("main", "bar"):
        for folder in ("orders", "updates"):
            (tmp_path / name / folder).mkdir(parents=True)
        (tmp_path / f"{name}.csv").write_text("external_id,name,price\np1,Bread,2.50\n")
    config = tmp_path / "bridge.toml"
    config.write_text(_CONFIG + "".join(_STORE.format(name=name) for name in ("main", "bar")))
    async with compose(load(config), Mode.RUN) as bridge:
        yield bridge


def traces(bridge: Bridge) -> Callable[[], tuple[int, int, int]]:
    """Return what counts listeners of the ledger, listeners of folders and jobs."""
    return lambda: (
        len(bridge.ledger._listeners),
        len(bridge.events._listeners),
        len(bridge.context.scheduler._jobs.get_jobs()),
    )


async def test_a_store_that_is_ended_leaves_nothing_behind_and_can_begin_again(
    bridge: Bridge,
) -> None:
    counted = traces(bridge)
    before = counted()
    served = ServedStores(bridge)
    await served.start(["main"])
    with_main = counted()
    assert with_main > before
    for wanted in (["main", "bar", "communities/hall"], ["bar"], ["main"]):
        served.serve(wanted)
        await served._settle()
        await until("it is so", lambda: not served._ending)
        await served._settle()
        assert {*bridge.stores, *map("communities/{}".format, bridge.communities)} == {*wanted}
    assert counted() == with_main
    await served.close()
    assert counted() == before
    assert not bridge.stores


async def test_secrets_that_are_read_while_a_store_opens_reach_the_receiver_too(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each change is read once: the receiver would refuse what comes for a store of another bridge.
    monkeypatch.setattr(Ledger, "is_shared", True)
    monkeypatch.setattr(bridge.ledger.vault, "refresh", lambda: ("bar/webhook_secrets",))
    served, changed = ServedStores(bridge), list[str]()
    served.on_secrets = changed.extend
    await served.start(["main"])
    assert changed == ["bar/webhook_secrets"]
    await served.close()


async def test_a_store_that_is_not_wanted_any_more_while_others_open_is_ended(
    bridge: Bridge,
) -> None:
    served = ServedStores(bridge)

    def lapse(opened: Served) -> None:
        if opened is bridge.stores.get("main"):
            served.serve(["bar"])  # as a lease that was lost meanwhile

    served.on_open = lapse
    await served.start(["main", "bar"])
    await served.ended()
    assert {*bridge.stores, *served._tasks} == {"bar"}
    await served.close()


async def test_what_was_opened_runs_though_another_one_could_not_be(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, connected = ServedStores(bridge), StoreServices.connected

    async def fail_at_bar(store: StoreServices, known: Known) -> None:
        if store.name == "bar":
            raise LedgerError("gone")
        await connected(store, known)

    monkeypatch.setattr(StoreServices, "connected", fail_at_bar)
    served.serve(["main", "bar"])
    with pytest.raises(LedgerError):
        await served._settle()
    assert [*served._tasks] == ["main"]

    monkeypatch.setattr(StoreServices, "connected", connected)
    await served.ended()
    await served._settle()
    assert {*served._tasks} == {"main", "bar"}
    await served.close()


async def test_a_store_that_does_not_run_is_not_unknown(bridge: Bridge) -> None:
    assert keys_of(bridge) == ("main", "bar", "communities/hall")
    with pytest.raises(BridgeError, match="The store bar is being started"):
        bridge.store("bar")
    with pytest.raises(ConfigError, match="There is no store baz"):
        bridge.store("baz")


async def test_a_task_that_ends_by_itself_is_raised_where_the_bridge_is_supervised(
    bridge: Bridge,
) -> None:
    served = ServedStores(bridge)
    await served.open(["communities/hall"])

    async def dies() -> None:
        raise RuntimeError("lost")

    bridge.communities["hall"].tasks = lambda: {"dies": dies()}  # type: ignore[method-assign]  # a defect
    served._run("communities/hall")
    with pytest.raises(RuntimeError, match="lost"):
        await served._until_failure()
    for work in served.tasks().values():
        work.close()
    await served.close()
