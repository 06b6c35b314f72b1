"""The configuration changed while the bridge runs."""

import signal
from pathlib import Path

import aiohttp

from tests.support.bridge_process import until
from tests.support.service_manager import ListeningManager
from tests.support.world import World
from tillbridge.web.passwords import password_hash


def change(config: Path, old: str, new: str) -> None:
    text = config.read_text("utf-8")
    assert old in text
    config.write_text(text.replace(old, new), "utf-8")


async def test_sighup_reads_the_configuration_and_drops_no_order(world: World) -> None:
    manager = ListeningManager(world.folder)
    world.bridge.env |= manager.environment
    await world.bridge.start()
    assert (await world.connect())[0] == 0
    await world.menu_is_on_sale()
    change(world.config, 'log_format = "json"', 'log_format = "json"\nlog_level = "warning"')
    assert world.bridge.process is not None
    world.bridge.process.send_signal(signal.SIGHUP)
    order = await world.order("p1")
    await until("reloading is told", lambda: manager.heard("RELOADING=1"))
    assert manager.told.count("READY=1") == 2
    await world.reaches(order, "accepted")
    assert not world.bridge.events("order.written", order=order)  # below the level now
    manager.close()


async def test_a_changed_file_is_noticed_and_the_page_says_what_waits(shop: World) -> None:
    change(shop.config, "retry_s = 0.2", "retry_s = 0.3")
    await shop.problem("config.restart_needed")
    (told,) = (await shop.status())["problems"]
    assert "stores.main.orders.retry_s" in told["text"]
    assert "Restart the bridge" in told["fix"]
    change(shop.config, "retry_s = 0.3", "retry_s =")
    await shop.problem("config.unusable")

    async def restart_now() -> str:
        page = f"http://127.0.0.1:{shop.page_port}"
        async with shop.http.get(page) as answer:
            assert 'href="/setup/restart"' in await answer.text()
        headers = {"Origin": page}
        async with shop.http.post(f"{page}/setup/restart", headers=headers) as answer:
            return await answer.text()

    assert "flash bad" in await restart_now()  # with this file it would not start
    change(shop.config, "retry_s =", "retry_s = 0.3")
    assert "flash bad" not in await restart_now()
    await shop.problem("config.restart_needed", open_=False)
    await shop.problem("config.unusable", open_=False)


async def test_a_user_of_the_page_is_let_in_and_others_out_at_once(shop: World) -> None:
    url = f"http://127.0.0.1:{shop.page_port}/api/status"
    anna = f"{{ role = 'look', password = '{password_hash('tomato soup')}' }}"
    change(shop.config, "[status_page]", f"[status_page]\nusers.anna = {anna}")

    async def shut() -> bool:
        async with shop.http.get(url) as answer:
            return answer.status == 401

    await until("the page asks for a password", shut)
    known = {"Authorization": aiohttp.encode_basic_auth("anna", "tomato soup")}
    async with shop.http.get(url, headers=known) as answer:
        assert answer.status == 200
