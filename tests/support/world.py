"""A small world for acceptance tests: an ordering service, a till, the program between them."""

import asyncio
import csv
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.bridge_process import BridgeProcess, free_port, until
from tests.support.fork_server import started
from tillbridge.sandbox import RunningSandbox, SandboxSettings, start

SECRET = "sandbox-secret"
OPEN = re.compile(r"^Open: (.+)\n", re.MULTILINE)


class Till:
    """The files of a till: what it exports, the tickets it gets, the news it writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.export = folder / "export"
        self.orders = folder / "orders"
        self.updates = folder / "updates"
        for each in (self.export, self.orders, self.updates):
            each.mkdir(parents=True)
        self.rows: dict[str, dict[str, str]] = {}
        for number in range(1, 13):
            self.rows[f"p{number}"] = {
                "external_id": f"p{number}",
                "name": f"Dish {number}",
                "price": f"{number}.50",
                "category": "Mains" if number <= 6 else "Sides",
                "available": "true",
            }
        self.write_menu()

    def write_menu(self) -> None:
        """Export as tills do: a new file, renamed over the old one."""
        fresh = self.export / "menu.csv.new"
        with fresh.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ("external_id", "name", "price", "category", "available"))
            writer.writeheader()
            writer.writerows(self.rows.values())
        fresh.replace(self.export / "menu.csv")

    def change(self, external_id: str, **values: str) -> None:
        """Change an item and export."""
        self.rows[external_id].update(values)
        self.write_menu()

    def tickets(self) -> list[str]:
        """Return the ids of all tickets the till has."""
        return sorted(path.stem for path in self.orders.glob("*.json"))

    def tell(self, order_id: str, status: str, **more: object) -> None:
        """Write news of a ticket."""
        name = f"{order_id}-{status}.json"
        fresh = self.updates / f".{name}"
        fresh.write_text(
            json.dumps({"order_id": order_id, "status": status, **more}), encoding="utf-8"
        )
        fresh.replace(self.updates / name)


class World:
    """Everything together; made by `world()`."""

    def __init__(self, folder: Path, running: RunningSandbox, http: aiohttp.ClientSession) -> None:
        self.folder = folder
        self.service = running.sandbox
        self.url = running.url
        self.http = http
        self.till = Till(folder)
        self.receiver_port = self.public_port = free_port()
        self.page_port = free_port()
        self.config = folder / "bridge.toml"
        self.bridge = BridgeProcess(self.config)

    def write_config(
        self, *, store: str = "", orders: str = "", menu: str = "", top: str = "", stores: str = ""
    ) -> None:
        """Write bridge.toml; the arguments are further lines of these tables.

        `stores` are the tables of other stores, in place of main.
        """
        main = f"""
[stores.main]
location_id = "loc-1"
currency = "USD"
notification_email = "owner@example.net"
{store}

[stores.main.pos]
adapter = "folder"
menu = "export/menu.csv"
orders_dir = "orders"
updates_dir = "updates"

[stores.main.orders]
retry_s = 0.2
{orders}

[stores.main.menu]
{menu}
"""
        self.config.write_text(
            f"""
[bridge]
data_dir = "data"
log_format = "json"

[service]
base_url = "{self.url}/v2"
client_id = "app_123"
client_secret = {{ env = "BRIDGE_SECRET" }}
redirect_uri = "http://127.0.0.1:{self.page_port}/oauth/callback"
backoff_first_s = 0.1
backoff_cap_s = 1
job_poll_s = 0.2
{top}

[receiver]
listen = "127.0.0.1:{self.receiver_port}"
public_url = "http://127.0.0.1:{self.public_port}"

[status_page]
listen = "127.0.0.1:{self.page_port}"

{stores or main}""",
            encoding="utf-8",
        )
        self.bridge.env["BRIDGE_SECRET"] = SECRET

    async def connect(self, store: str = "main") -> tuple[int, str, str]:
        """Run `tillbridge connect` and be the merchant who allows it."""
        code, out, err, seen = await self.allowed("connect", store, "--no-browser")
        return code, out + seen, err

    async def allowed(self, *arguments: str) -> tuple[int, str, str, str]:
        """Run a command that prints an address, and be the merchant who allows it there.

        Returns the exit code, the output, the error output, and the page that the merchant saw.
        """
        seen = ""
        config = ("--config", str(self.bridge.config))
        with started(*config, *arguments, env=self.bridge.env) as command:
            ended = asyncio.create_task(asyncio.to_thread(command.wait, 60))
            while not (ended.done() or (told := OPEN.search(command.output()))):
                await asyncio.sleep(0.02)
            if told := OPEN.search(command.output()):
                async with self.http.get(told[1]) as page:
                    seen = await page.text()
            done = await ended
        return done.returncode, done.stdout, done.stderr, seen

    async def control(self, path: str, body: object = None, *, method: str = "POST") -> Any:  # noqa: ANN401 -- any JSON value
        """Ask the sandbox's control API."""
        async with self.http.request(method, f"{self.url}/_control/{path}", json=body) as answer:
            told = await answer.json()
            assert answer.status in {200, 201}, (path, body, told)
            return told

    async def state(self) -> dict[str, Any]:
        """Return everything the service knows."""
        state: dict[str, Any] = await self.control("state", method="GET")
        return state

    async def storefront(self) -> dict[str, Any]:
        """Return the storefront's items by external id."""
        (link,) = (await self.state())["stores"]["st_main"]["integrations"]
        items: dict[str, Any] = link["items"]
        return items

    async def calls(self, path: str = "") -> list[dict[str, Any]]:
        """Return the calls the service has received whose path holds `path`."""
        told = await self.control("requests", method="GET")
        return [call for call in told["requests"] if path in call["path"]]

    async def order(self, *external_ids: str, wait: bool = True, **more: object) -> str:
        """Place an order; return its id."""
        lines = [{"external_id": external_id, "quantity": 1} for external_id in external_ids]
        told = await self.control(
            "orders", {"store_id": "st_main", "items": lines, "wait": wait, **more}
        )
        order_id: str = told["order_id"]
        return order_id

    async def order_state(self, order_id: str) -> str:
        """Return what the service says of an order."""
        told = await self.control(f"orders/{order_id}", method="GET")
        state: str = told["state"]
        return state

    async def reaches(self, order_id: str, state: str, *, within_s: float = 60) -> None:
        """Wait until the service says that the order is in this state."""

        async def look() -> bool:
            return await self.order_state(order_id) == state

        try:
            await until(f"{order_id} is {state}", look, within_s=within_s)
        except AssertionError as failure:
            told = await self.control(f"orders/{order_id}", method="GET")
            log = self.bridge.log_path.read_text("utf-8", "replace")
            failure.add_note(f"The service: {told}\nThe bridge: {log[-4000:]}")
            raise

    async def menu_is_on_sale(self, *, within_s: float = 60) -> None:
        """Wait until the storefront says what the till says."""

        async def look() -> bool:
            return _as_sold(await self.storefront()) == _as_exported(self.till.rows)

        await until("the storefront has the till's menu", look, within_s=within_s)

    async def status(self) -> dict[str, Any]:
        """Return the document of the status page."""
        async with self.http.get(f"http://127.0.0.1:{self.page_port}/api/status") as answer:
            document: dict[str, Any] = await answer.json()
            return document

    async def problem(self, code: str, *, open_: bool = True, within_s: float = 60) -> None:
        """Wait until a problem is open, or over."""

        async def look() -> bool:
            codes: Sequence[str] = [each["code"] for each in (await self.status())["problems"]]
            return (code in codes) is open_

        await until(f"problem {code} {'open' if open_ else 'over'}", look, within_s=within_s)


def _as_exported(rows: Mapping[str, Mapping[str, str]]) -> dict[str, tuple[str, int, bool]]:
    return {
        key: (row["name"], int(row["price"].replace(".", "")), row["available"] == "true")
        for key, row in rows.items()
    }


def _as_sold(items: Mapping[str, Any]) -> dict[str, tuple[str, int, bool]]:
    return {key: (item["name"], item["price"], item["available"]) for key, item in items.items()}


@asynccontextmanager
async def make_world(folder: Path, **settings: object) -> AsyncIterator[World]:
    """Start the service; the bridge is started by the test, and ended here whatever happens."""
    sandbox = await start(SandboxSettings(auto_consent=True, job_duration_s=0.3, **settings))  # type: ignore[arg-type]  # settings by name
    async with aiohttp.ClientSession() as http:
        world = World(folder, sandbox, http)
        world.write_config()
        try:
            yield world
        finally:
            if world.bridge.process is not None:
                await world.bridge.kill()
            await sandbox.stop()
