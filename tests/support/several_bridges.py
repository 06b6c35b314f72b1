"""Several real bridges on one PostgreSQL, each a process with a folder and ports of its own.

They share the tills' files and the service of a `World`; in front of their receivers stands a load
balancer that passes each connection to the first of them that listens.
"""

import asyncio
import contextlib
import json
import secrets
import signal
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.support.bridge_process import BridgeProcess, free_port, until
from tests.support.postgresql import new_database
from tests.support.world import SECRET, World, make_world

_STORE = """
[stores.{name}]
location_id = "loc-{name}"
currency = "USD"
notification_email = "owner@example.net"
[stores.{name}.pos]
adapter = "folder"
menu = "{folder}/export/menu.csv"
orders_dir = "{folder}/orders"
updates_dir = "{folder}/updates"
[stores.{name}.orders]
retry_s = 0.2
"""


class OneBridge:
    """A bridge; `name` is also its folder's."""

    def __init__(self, together: "SeveralBridges", name: str) -> None:
        self.name = name
        self.together = together
        self.folder = together.world.folder / name
        self.folder.mkdir()
        self.receiver_port, self.page_port = free_port(), free_port()
        self.process = BridgeProcess(self.folder / "bridge.toml")
        self.process.env |= {"BRIDGE_SECRET": SECRET, "LEDGER_URL": together.url}
        self.process.env["LEDGER_KEY"] = together.key

    def write_config(self, *, bridge: str = "", stores: Iterable[str], more: str = "") -> None:
        """Write bridge.toml; `bridge` are further lines of [bridge], `more` are other tables."""
        world = self.together.world
        tables = "".join(
            _STORE.format(
                name=name,
                folder=world.folder if name == "main" else world.folder / f"till-{name}",
            )
            for name in stores
        )
        self.process.config.write_text(
            f"""
[bridge]
data_dir = "data"
log_format = "json"
name = "{self.name}"
{bridge}
[ledger]
url = {{ env = "LEDGER_URL" }}
key = {{ env = "LEDGER_KEY" }}
[service]
base_url = "{world.url}/v2"
client_id = "app_123"
client_secret = {{ env = "BRIDGE_SECRET" }}
redirect_uri = "http://127.0.0.1:{self.page_port}/oauth/callback"
backoff_first_s = 0.1
backoff_cap_s = 1
job_poll_s = 0.2
[receiver]
listen = "127.0.0.1:{self.receiver_port}"
public_url = "http://127.0.0.1:{world.public_port}"
[status_page]
listen = "127.0.0.1:{self.page_port}"
{tables}
{more}""",
            "utf-8",
        )

    def send(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        assert self.process.process is not None
        self.process.process.send_signal(number)

    async def serves(self) -> set[str]:
        """Return what it serves, by the leases in the database."""
        query = (
            "SELECT store FROM leases JOIN bridges USING (holder) WHERE holder <> '' AND name = %s"
        )
        return {row[0] for row in await self.together.rows(query, self.name)}

    async def command(self, *arguments: str) -> dict[str, Any]:
        """Run a command of this bridge that succeeds; return its JSON."""
        code, out, err = await self.process.run(*arguments, "--json")
        assert code == 0, out + err
        answer: dict[str, Any] = json.loads(out)
        return answer


class SeveralBridges:
    """The bridges, by name, and the database."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.url = new_database()
        self.key = urlsafe_b64encode(secrets.token_bytes(32)).decode()
        self.bridges: dict[str, OneBridge] = {}
        self.stores: tuple[str, ...] = ("main", "bar", "kiosk", "grill")
        for name in self.stores[1:]:
            for each in ("export", "orders", "updates"):
                (world.folder / f"till-{name}" / each).mkdir(parents=True)
            menu = world.folder / f"till-{name}" / "export" / "menu.csv"
            menu.write_text("external_id,name,price\np1,Bread,2.50\n", "utf-8")

    async def start(self, *names: str, **config: Any) -> None:  # noqa: ANN401 -- of write_config
        """Start bridges, one after the other; `config` as for `write_config`."""
        for name in names:
            bridge = self.bridges[name] = OneBridge(self, name)
            bridge.write_config(**{"stores": self.stores, **config})
            await bridge.process.start()

    async def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return what the database answers."""

        def ask() -> list[tuple[Any, ...]]:
            with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
                found = connection.execute(query, parameters)
                return found.fetchall() if found.description else []

        return await asyncio.to_thread(ask)

    async def owner(self, store: str) -> OneBridge:
        """Return the bridge that serves the store, once there is one."""

        async def look() -> OneBridge | None:
            for bridge in self.bridges.values():
                if store in await bridge.serves():
                    return bridge
            return None

        found = await until(f"somebody serves {store}", look)
        assert found is not None
        return found

    async def server_of(self, store: str) -> str:
        """Return the name of the bridge that serves the store, "" for none."""
        query = (
            "SELECT name FROM leases JOIN bridges USING (holder) WHERE holder <> '' AND store = %s"
        )
        found = await self.rows(query, store)
        return found[0][0] if found else ""

    async def taken_over_after_s(self, store: str, of: str) -> float:
        """Return how long after a bridge was last there another one took its store.

        By the database's clock, whatever else this machine has to do meanwhile.
        """
        query = (
            "SELECT since - seen_at FROM leases, bridges"
            " WHERE store = %s AND bridges.name = %s AND bridges.holder <> leases.holder"
        )
        ((passed_ms,),) = await self.rows(query, store, of)
        return float(passed_ms) / 1000

    async def lose_words(self) -> None:
        """End each connection that listens, again and again."""
        end = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
            " AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        while True:
            await self.rows(end)
            await asyncio.sleep(0.05)

    def others(self, bridge: OneBridge) -> list[OneBridge]:
        """Return all bridges but this one."""
        return [each for each in self.bridges.values() if each is not bridge]

    async def spread(self, look: Callable[[dict[str, set[str]]], bool]) -> None:
        """Wait until who serves what is as `look` says."""
        seen: dict[str, set[str]] = {}

        async def is_so() -> bool:
            for name, bridge in self.bridges.items():
                seen[name] = await bridge.serves()
            return look(seen)

        try:
            await until("the stores are spread", is_so)
        except AssertionError as failure:
            raise AssertionError(f"{failure}: {seen}") from None

    async def tickets(self, order: str) -> int:
        """Return how many tickets the till of main has of an order."""
        return len(list(self.world.till.orders.rglob(f"*{order}*.json")))


@asynccontextmanager
async def several_bridges(folder: Path, **settings: object) -> AsyncIterator[SeveralBridges]:
    """Start the service, the load balancer and a database; bridges are started by the test."""
    async with make_world(folder, webhook_retry_delays_s=(2.0,) * 30, **settings) as world:
        together = SeveralBridges(world)

        async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for bridge in together.bridges.values():
                with contextlib.suppress(OSError):
                    theirs = await asyncio.open_connection("127.0.0.1", bridge.receiver_port)
                    await asyncio.wait(
                        [
                            asyncio.create_task(_copy(reader, theirs[1])),
                            asyncio.create_task(_copy(theirs[0], writer)),
                        ]
                    )
                    return
            writer.close()

        balancer = await asyncio.start_server(connect, "127.0.0.1", world.public_port)
        try:
            yield together
        finally:
            balancer.close()
            for bridge in together.bridges.values():
                if bridge.process.process is not None:
                    with contextlib.suppress(ProcessLookupError):
                        bridge.send(signal.SIGCONT)
                    await bridge.process.kill()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
