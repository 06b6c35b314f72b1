"""`tillbridge token reporting`, as a script uses it: with and without a running bridge."""

import json
from pathlib import Path

from tests.support.world import SECRET, make_world


async def test_a_script_gets_the_same_token_until_its_end(tmp_path: Path) -> None:
    async with make_world(tmp_path) as world:
        code, alone, err = await world.bridge.run("token", "reporting")
        assert code == 0, err
        assert alone.count("\n") == 1
        await world.bridge.start()
        code, beside, err = await world.bridge.run("token", "reporting")
        assert (code, beside) == (0, alone), err
        told = (await world.state())["tokens"]
        assert [(each["audience"], each["scopes"]) for each in told] == [
            ("reporting", ["reports.read"])
        ]
        code, out, err = await world.bridge.run(
            "token", "reporting", "--scope", "catalogue.write", "--scope", "reports.read", "--json"
        )
        assert code == 0, err
        assert json.loads(out)["scope"] == "catalogue.write reports.read"
        assert len(await world.calls("/oauth2/token")) == 2
        assert alone.strip() not in world.bridge.log_path.read_text("utf-8")


async def test_a_wrong_secret_leaves_stdout_empty_and_says_what_to_do(tmp_path: Path) -> None:
    async with make_world(tmp_path) as world:
        world.bridge.env["BRIDGE_SECRET"] = "not-" + SECRET
        code, out, err = await world.bridge.run("token", "reporting")
        assert (code, out) == (1, "")
        assert "client_secret" in err
        assert SECRET not in err
