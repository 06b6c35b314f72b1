"""A machine on which nothing is set up yet: a till, the page, and a real service beside it."""

import asyncio
import html
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.support.bridge_process import BridgeProcess, free_port, until
from tests.support.world import SECRET, Till

STATES = re.compile(r'id="state-([a-z_]+)" class="step-state ([a-z]+)"')

FRESH = """\
# Written by hand before anything was set up.
[bridge]
data_dir = "data"      # beside this file
log_format = "json"

[status_page]
listen = "127.0.0.1:{port}"
"""


@dataclass
class Fresh:
    """A machine with a till, a page and nothing set up; a service beside it."""

    folder: Path
    till: Till
    bridge: BridgeProcess
    page: str
    service: str
    receiver_port: int


@asynccontextmanager
async def practice_service() -> AsyncIterator[str]:
    """`tillbridge sandbox` as a process."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tillbridge", "sandbox", "--port", str(port)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with aiohttp.ClientSession() as http:

            async def answers() -> bool:
                try:
                    async with http.get(f"{url}/version") as answer:
                        return answer.status == 200
                except aiohttp.ClientError:
                    return False

            await until("the sandbox answers", answers)
        yield url
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def fresh_machine(folder: Path, service: str) -> AsyncIterator[Fresh]:
    """Start a bridge in which nothing is set up, and end it whatever happens."""
    port = free_port()
    config = folder / "bridge.toml"
    config.write_text(FRESH.format(port=port), "utf-8")
    bridge = BridgeProcess(config)
    await bridge.start(wait=False)
    await bridge.logged("bridge.setting_up")
    try:
        yield Fresh(folder, Till(folder), bridge, f"http://127.0.0.1:{port}", service, free_port())
    finally:
        await bridge.kill()


class Wizard:
    """Somebody at the page without a browser: sends forms, and reads what comes back."""

    def __init__(self, fresh: Fresh, http: aiohttp.ClientSession) -> None:
        self.fresh = fresh
        self.http = http

    async def page(self, query: str = "") -> str:
        """Return the page as text."""
        async with self.http.get(f"{self.fresh.page}/setup{query}") as answer:
            assert answer.status == 200
            return html.unescape(await answer.text())

    async def send(self, path: str, **form: str) -> str:
        """Send a form and return the page it leads to; two underlines stand for a dash."""
        sent = {name.replace("__", "-"): text for name, text in form.items()}
        headers = {"Origin": self.fresh.page}
        url = f"{self.fresh.page}/setup/{path}"
        async with self.http.post(url, data=sent, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return html.unescape(await answer.text())

    async def state(self) -> dict[str, str]:
        """Return the state of each step, once the bridge is not restarting."""
        found: dict[str, str] = {}

        async def shown() -> bool:
            found.update(STATES.findall(await self.page()))
            return bool(found)

        await until("the steps are shown", shown)
        return found

    async def sign_in(self) -> None:
        """Take the first two steps; the service asks nobody."""
        await self.send("service", base_url=f"{self.fresh.service}/v2")
        told = await self.send("sign-in", client_id="app_123", client_secret=SECRET)
        assert "The ordering service knows this app." in told
        told = await self.send("allow", email="owner@example.net")
        await self.merchant_allows(told)

    async def merchant_allows(self, told: str) -> None:
        """Be the merchant, who opens the address that the page shows."""
        found = re.search(r'href="(http[^"]+/oauth2/authorize[^"]+)"', told)
        assert found, told
        async with self.http.get(found[1]) as answer:
            assert "Continue set-up" in await answer.text()

    async def choose(self, store_id: str = "st_main", store: str = "main") -> str:
        """Say which store it is."""
        return await self.send(
            "store", store_id=store_id, store=store, location_id="loc-1", currency="USD"
        )

    async def reach(self) -> str:
        """Test the public address."""
        listen = f"127.0.0.1:{self.fresh.receiver_port}"
        return await self.send("address", listen=listen, public_url=f"http://{listen}")

    async def everything(self) -> None:
        """Take every step up to the writing."""
        await self.sign_in()
        await self.choose()
        await self.send("till", adapter="folder", option__menu="export/menu.csv")
        await self.reach()

    async def write(self) -> str:
        """Write what is shown."""
        digest = re.search(r'name="digest" value="([0-9a-f]+)"', await self.page())
        assert digest
        return await self.send("write", digest=digest[1])

    async def release(self) -> None:
        """Release the first menu, which waits for a person, and wait until it is on sale."""

        url = f"{self.fresh.page}/stores/main/menu/approve"

        async def waits() -> bool:  # that something differs is known before it is on hold
            async with self.http.get(f"{self.fresh.page}/stores/main/menu/difference") as answer:
                return "/stores/main/menu/approve" in await answer.text()

        await until("the first menu waits", waits)
        async with self.http.post(url, headers={"Origin": self.fresh.page}) as answer:
            assert answer.status == 200
            assert "Publishing" in await answer.text()

        async def is_on_sale() -> bool:
            return (await self.state())["adapter"] == "done"

        await until("the menu is on sale", is_on_sale)
