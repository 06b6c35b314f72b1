"""Many bridges: the reports of a real one, taken by a real server, read by the command."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Self

from aiohttp import web

from tests.support.bridge_process import free_port, until
from tests.support.world import World


class Collector:
    """A server that takes PUT into a folder, from who has the right header."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refused = 0
        self.port = free_port()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_put("/bridges/{name}", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer planted-fleet-secret":
            self.refused += 1
            return web.Response(status=401)
        (self.folder / request.match_info["name"]).write_bytes(await request.read())
        return web.Response(status=201)


async def show(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tillbridge",
        "fleet",
        "show",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_a_bridge_reports_and_is_seen(world: World, tmp_path: Path) -> None:
    put, keys = tmp_path / "put", tmp_path / "keys.txt"
    put.mkdir()
    async with Collector(put) as collector:
        world.write_config(
            top='\n[fleet]\nname = "corner"\nevery_s = 0.2\nfolder = "reports"\n'
            f'url = "http://127.0.0.1:{collector.port}/bridges"\n'
            'token = { env = "FLEET_SECRET" }'
        )
        world.bridge.env["FLEET_SECRET"] = "planted-fleet-secret"
        await world.bridge.start()
        code, line, err = await world.bridge.run("fleet", "key")
        assert code == 0, err
        assert line.startswith("corner ")
        keys.write_text(line, encoding="utf-8")
        written = world.folder / "reports"
        for folder in (put, written):
            signature = folder / "corner.json.minisig"
            await until(f"{folder} has a report", signature.exists)
            code, out, err = await show(str(folder), "--keys", str(keys), "--json")
            assert json.loads(out)["bridges"][0]["bridge"] == "corner", err
        assert (await world.connect())[0] == 0
        await world.menu_is_on_sale()

        async def well() -> bool:
            code, out, _ = await show(str(put), "--keys", str(keys))
            return code == 0 and "Taking orders." in out

        await until("the bridge is seen to be well", well)
        text = (put / "corner.json").read_text(encoding="utf-8")
        assert "planted-fleet-secret" not in text + world.bridge.log_path.read_text("utf-8")

        async def last_word() -> str:
            await world.bridge.kill()
            await asyncio.sleep(1.5)  # longer than it may be silent
            code, out, _ = await show(str(put), "--keys", str(keys), "--silent-after", "1")
            assert code == 1
            return out.split()[0]

        word = await last_word()
        for _again in range(3):
            if word != "untrusted":  # killed between a report and its signature
                break
            await world.bridge.start()
            await until("it is well again", well)
            word = await last_word()
        assert word == "silent"
        assert collector.refused == 0


async def test_a_server_that_refuses_is_told_once_in_the_log(world: World, tmp_path: Path) -> None:
    async with Collector(tmp_path) as collector:
        world.write_config(
            top='\n[fleet]\nname = "corner"\nevery_s = 0.5\n'
            f'url = "http://127.0.0.1:{collector.port}/bridges"\ntoken = "wrong"'
        )
        await world.bridge.start()
        await until("it was tried some times", lambda: collector.refused > 4)
        (told,) = world.bridge.events("fleet.not_sent")
        assert told["detail"] == "HTTP 401"


async def test_show_says_what_is_wrong_with_its_arguments(tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("corner\n", encoding="utf-8")
    code, _, err = await show(str(tmp_path), "--keys", str(keys))
    assert code == 2
    assert "line 1 is not: NAME KEY" in err
    assert "tillbridge fleet key" in err
    code, _, err = await show(str(tmp_path / "gone"), "--keys", str(tmp_path / "none"))
    assert code == 2
    assert "cannot be read" in err
