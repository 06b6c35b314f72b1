"""Diagnostics on the page of a real bridge: examined, its log read, its bundle saved."""

import io
import json
import zipfile

import aiohttp

from tests.support.bridge_process import until
from tests.support.world import SECRET, World


async def test_a_technician_examines_reads_the_log_and_saves_the_bundle(shop: World) -> None:
    url = f"http://127.0.0.1:{shop.page_port}"
    own = {"Origin": url}
    async with aiohttp.ClientSession() as session:

        async def seen(path: str) -> str:
            async with session.get(url + path) as answer:
                assert answer.status == 200
                return await answer.text()

        assert "No checks yet since the bridge started" in await seen("/diagnostics")
        async with session.post(f"{url}/diagnostics/examine", headers=own) as answer:
            assert "Diagnostics are running." in await answer.text()

        async def examined() -> str:
            text = await seen("/diagnostics")
            return "" if ">Checking: " in text else text

        page = await until("the examination", examined, within_s=40)
        assert "This machine" in page
        assert "SQLite" in page

        log = await seen("/diagnostics/logs?event=bridge.")
        assert "bridge.ready" in log
        assert "menu." not in log.split('id="log"')[1]

        async with session.post(f"{url}/diagnostics/bundle/make", headers=own) as answer:
            assert answer.status == 200

        async def ready() -> str:
            text = await seen("/diagnostics/bundle")
            return text if "What is in it" in text else ""

        page = await until("the bundle", ready, within_s=40)
        assert "configuration.json" in page
        async with session.get(f"{url}/diagnostics/bundle/file") as answer:
            assert "attachment" in answer.headers["Content-Disposition"]
            data = await answer.read()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {each.split("/")[1]: archive.read(each).decode() for each in archive.namelist()}
    assert json.loads(files["status.json"])["bridge"]["running"] is True
    assert not [name for name, text in files.items() if SECRET in text]

    code, out, err = await shop.bridge.run("audit", "list", "--json")
    assert code == 0, err
    actions = {each["action"] for each in json.loads(out)["entries"]}
    assert actions >= {"diagnostics.examine", "diagnostics.bundle"}
