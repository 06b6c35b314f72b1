"""What the menu commands say and end with when there is nobody to push to."""

from pathlib import Path

from tests.support.world import make_world


async def test_a_push_without_consent_or_service_says_so(tmp_path: Path) -> None:
    async with make_world(tmp_path) as world:
        code, out, err = await world.bridge.run("menu", "push", "main")
        assert code == 1, out + err
        assert "tillbridge connect main" in err

        assert (await world.connect())[0] == 0
        code, out, err = await world.bridge.run("menu", "push", "main", "--full")
        assert code == 0, out + err
        await world.menu_is_on_sale()

        world.write_config(top="max_attempts = 1\n")
        await world.control("faults", {"action": "error", "path": "/pos/", "status": 503})
        world.till.change("p1", price="2.75")
        code, out, err = await world.bridge.run("menu", "push", "main")
        assert code == 3, out + err
