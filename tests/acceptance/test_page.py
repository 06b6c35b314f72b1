"""The page of the real program: for other machines, audited, and gone in time."""

import asyncio
import json
import re
import time

import aiohttp
import pytest

from tests.support.page_harness import PASSWORD
from tests.support.world import World
from tillbridge.web.passwords import password_hash


def open_to_others(world: World) -> None:
    """Let the page listen everywhere, with a user of each role."""
    phc = password_hash(PASSWORD)
    text = world.config.read_text("utf-8").replace(
        f'[status_page]\nlisten = "127.0.0.1:{world.page_port}"',
        f'[status_page]\nlisten = "0.0.0.0:{world.page_port}"\nallowed_hosts = ["till.lan"]\n'
        f'users.lou = {{ role = "look", password = "{phc}" }}\n'
        f'users.tea = {{ role = "technician", password = {{ file = "tea.hash" }} }}',
    )
    world.config.write_text(text, "utf-8")
    (world.folder / "tea.hash").write_text(phc + "\n", "utf-8")


async def test_a_page_for_others_needs_users_to_start(world: World) -> None:
    text = world.config.read_text("utf-8")
    listen = f'listen = "127.0.0.1:{world.page_port}"'
    world.config.write_text(text.replace(listen, listen.replace("127.0.0.1", "0.0.0.0")), "utf-8")
    code, _out, err = await world.bridge.run("run", within_s=20)
    assert code == 2
    assert "tillbridge password" in err


async def test_a_hash_that_is_none_is_told_at_the_start(world: World) -> None:
    open_to_others(world)
    (world.folder / "tea.hash").write_text("correct horse", "utf-8")
    code, _out, err = await world.bridge.run("run", within_s=20)
    assert code == 2
    assert "status_page.users.tea.password" in err
    assert "horse" not in err


async def test_other_machines_sign_in_and_commands_need_not(world: World) -> None:
    open_to_others(world)
    await world.bridge.start()
    code, out, err = await world.connect()
    assert code == 0, out + err
    await world.menu_is_on_sale()
    url = f"http://127.0.0.1:{world.page_port}"
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(url, headers={"Host": "till.lan"}) as answer:
            assert 'type="password"' in await answer.text()
        own = {"Origin": url}
        form = {"name": "tea", "password": PASSWORD, "next": "/"}
        async with session.post(url + "/login", data=form, headers=own) as answer:
            assert "All is well" in await answer.text()
        push = url + "/stores/main/menu/push"
        async with session.post(push, headers=own) as answer:
            assert "already matches the till" in await answer.text()
        async with session.post(push, headers={"Origin": "http://evil.example"}) as answer:
            assert answer.status == 403
    code, out, err = await world.bridge.run("menu", "push", "main")
    assert code == 0, out + err
    code, out, err = await world.bridge.run("audit", "list", "--json")
    assert code == 0, out + err
    entries = json.loads(out)["entries"]
    assert [(each["action"], each["who"].partition(":")[0]) for each in reversed(entries)] == [
        ("connect", "command"),
        ("page.signed_in", "page"),
        ("menu.push", "page"),
        ("menu.push", "command"),
    ]
    assert entries[1]["who"] == "page:tea"
    assert entries[1]["role"] == "technician"
    code, out, _err = await world.bridge.run("audit", "verify")
    assert code == 0
    assert "complete" in out
    log = world.bridge.log_path.read_text("utf-8")
    assert PASSWORD not in log
    assert "argon2id" not in log


async def test_what_is_done_without_a_daemon_is_in_the_trail_too(world: World) -> None:
    await world.bridge.start()
    await world.bridge.stop()
    code, out, _err = await world.bridge.run("menu", "approve", "main")
    assert code == 1, out
    code, out, _err = await world.bridge.run("audit", "list")
    assert code == 0
    assert re.search(r"command:\S+ +menu\.approve +main +no", out)


async def test_open_pages_do_not_delay_the_end(shop: World) -> None:
    url = f"http://127.0.0.1:{shop.page_port}"
    async with aiohttp.ClientSession() as session:
        streams = [await session.get(url + "/events") for _ in range(3)]
        for each in streams:
            assert (await each.content.readline()).startswith(b"retry")
        began = time.monotonic()
        assert await shop.bridge.stop() == 0
        assert time.monotonic() - began < 10
        for each in streams:
            each.close()


async def test_the_page_is_live_with_what_the_service_sends(shop: World) -> None:
    url = f"http://127.0.0.1:{shop.page_port}"
    async with aiohttp.ClientSession() as session, session.get(url + "/events") as stream:
        order = await shop.order("p1")
        await shop.reaches(order, "accepted")
        async with asyncio.timeout(10):
            while b"event: change" not in await stream.content.readline():
                pass
        async with session.get(url) as answer:
            page = await answer.text()
    assert "1 order" in page
    assert "last used" in page, "the address: when the service last used it"


@pytest.mark.parametrize("role", ["look", "staff", "technician"])
async def test_a_password_is_made_for_the_configuration(world: World, role: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *world.bridge.command("password", "anna", "--role", role),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=world.bridge.env,
    )
    out, _err = await process.communicate(PASSWORD.encode() + b"\n")
    assert process.returncode == 0
    text = world.config.read_text("utf-8") + out.decode()
    world.config.write_text(text, "utf-8")
    code, said, err = await world.bridge.run("config", "check")
    assert code == 0, said + err
    assert PASSWORD not in out.decode()
    assert f'role = "{role}"' in out.decode()
