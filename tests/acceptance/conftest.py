"""What acceptance tests share: a world, and one that is already connected."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.preloaded import preloaded
from tests.support.world import World, make_world


@pytest.fixture
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """An ordering service and a till; the bridge is configured and not started."""
    async with make_world(tmp_path / "shop") as made:
        made.bridge.own_interpreter = bool(request.node.get_closest_marker("own_interpreter"))
        yield made


@pytest.fixture
async def shop(world: World) -> World:
    """A shop that is open: connected, the bridge running, the menu on sale."""
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    return world


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a library that makes disk and clock fail on demand (faults.c)."""
    return str(preloaded("faults", tmp_path_factory.mktemp("faults")))
