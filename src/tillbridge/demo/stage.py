"""Everything the demo runs, as processes of their own: service, till, bridge."""

import asyncio
import contextlib
import json
import math
import os
import random
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.demo.till import DemoTill, FileMenu, FolderKitchen, rig_till, sample_till
from tillbridge.sandbox import RunningSandbox, SandboxSettings, start
from tillbridge.sandbox.pages import Button, Demo, Group

_SERVICE_PORT, _RECEIVER_PORT, _PAGE_PORT = 9000, 8088, 8089
_PATIENCE_S = 60.0
# Lets the bridge's page show that this is a demo, and where the service's pages are.
DEMO = "TILLBRIDGE_DEMO"
_STOPS_WITHIN_S = 15.0
_LAST_LINES = 8

_CONFIG = """\
[bridge]
data_dir = "data"
log_format = "json"

[service]
base_url = "{base_url}"
client_id = "app_123"
client_secret = "sandbox-secret"
redirect_uri = "{page_url}/oauth/callback"
backoff_cap_s = 2
job_poll_s = 0.5

[receiver]
listen = "127.0.0.1:{receiver_port}"
public_url = "http://127.0.0.1:{receiver_port}"

[status_page]
listen = "127.0.0.1:{page_port}"

[stores.main]
location_id = "loc-1"
currency = "USD"
notification_email = "owner@example.net"

{till}"""


class DemoFailed(BridgeError):
    """Something the demo waited for did not happen."""


class Stage:
    """What is on stage, made by `set_up`."""

    def __init__(
        self, folder: Path, sandbox: RunningSandbox, till: DemoTill, http: aiohttp.ClientSession
    ) -> None:
        self.folder = folder
        self.till = till
        self.sandbox = sandbox.sandbox
        self.service_url = sandbox.url
        self.base_url = sandbox.base_url
        self.page_url = ""
        self.log_path = folder / "bridge.log"
        self._http = http
        self.config_path = folder / "bridge.toml"
        self._bridge: asyncio.subprocess.Process | None = None
        self._listens = False
        self._starts_at = 0.0
        self._environment = {**os.environ, DEMO: sandbox.url}

    def configure(self, *, receiver_port: int, page_port: int) -> None:
        """Write bridge.toml."""
        self.page_url = f"http://127.0.0.1:{page_port}"
        self.config_path.touch(mode=0o600)  # it has a secret in it, as doctor would say
        self.config_path.write_text(
            _CONFIG.format(
                base_url=self.base_url,
                page_url=self.page_url,
                receiver_port=receiver_port,
                page_port=page_port,
                till=self.till.config,
            ),
            encoding="utf-8",
        )

    # -- the bridge

    async def start_bridge(self) -> None:
        """Start the bridge, and wait until it listens."""
        self._listens = False
        grown = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            starting = asyncio.create_task(self._run("run", stdout=log, stderr=log))
            try:
                self._bridge = await asyncio.shield(starting)
            except asyncio.CancelledError:
                # Ctrl-C in this very moment: what has been started is known, and ended.
                self._bridge = await starting
                raise

        def ready() -> bool:
            if not self.bridge_runs():
                raise DemoFailed(
                    _("The bridge stopped while it was starting."), fix=self._log_tail()
                )
            with self.log_path.open("rb") as log_file:
                log_file.seek(grown)
                return b'"bridge.ready"' in log_file.read()

        await self.until(_("the bridge is ready"), ready)
        self._listens = True

    def bridge_listens(self) -> bool:
        """Whether it can take orders."""
        return self._listens and self.bridge_runs()

    def bridge_runs(self) -> bool:
        """Whether the bridge's process is there."""
        return self._bridge is not None and self._bridge.returncode is None

    async def kill_bridge(self) -> None:
        """End the bridge as a power cut would."""
        if self._bridge is not None and self._bridge.returncode is None:
            self._bridge.kill()
            await self._bridge.wait()

    async def kill_bridge_for(self, seconds: float) -> None:
        """End it, and let whoever watches it start it again only after that many seconds."""
        self._starts_at = time.monotonic() + seconds
        await self.kill_bridge()

    def start_at_once(self) -> None:
        """Let it be started again now."""
        self._starts_at = 0.0

    def starts_in_s(self) -> int:
        """Return after how many seconds a bridge that has ended is to be started again."""
        return max(0, math.ceil(self._starts_at - time.monotonic()))

    async def stop_bridge(self) -> int:
        """Ask the bridge to stop, and return its exit code; one that does not obey is killed."""
        if self._bridge is None:
            return 0
        if self._bridge.returncode is None:
            self._bridge.terminate()
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self._bridge.wait(), _STOPS_WITHIN_S)
        self._bridge.kill()
        return await self._bridge.wait()

    async def connect(self) -> None:
        """Run `tillbridge connect main`, and be the merchant who allows it."""
        pipe = asyncio.subprocess.PIPE
        command = await self._run("connect", "main", "--no-browser", stdout=pipe, stderr=pipe)
        if command.stdout is None:  # pragma: no cover -- a pipe was asked for
            raise DemoFailed(_("The command's output cannot be read."))
        invitation = str(_("Open: {url}").format(url=""))
        async with asyncio.timeout(_PATIENCE_S):
            while output := (await command.stdout.readline()).decode():
                if output.startswith(invitation):
                    async with self._http.get(output.removeprefix(invitation).strip()) as page:
                        await page.read()
                    break
            _out, trouble = await command.communicate()
        if command.returncode != 0:
            raise DemoFailed(
                _("Connecting failed: {detail}").format(detail=trouble.decode().strip())
            )

    async def _run(self, *arguments: str, **streams: Any) -> asyncio.subprocess.Process:  # noqa: ANN401 -- handed on to asyncio
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tillbridge",
            "--config",
            str(self.config_path),
            *arguments,
            env=self._environment,
            **streams,
        )

    # -- the service

    async def control(self, path: str, body: object = None, *, method: str = "POST") -> Any:  # noqa: ANN401 -- any JSON value
        """Ask the sandbox's control API (docs/sandbox.md)."""
        url = f"{self.service_url}/_control/{path}"
        async with self._http.request(method, url, json=body) as answer:
            document = await answer.json()
            if answer.status >= 400:
                raise DemoFailed(f"{path}: {json.dumps(document)}")
            return document

    async def storefront(self) -> dict[str, Any]:
        """Return the items as customers find them, by external id."""
        state = await self.control("state", method="GET")
        links = state["stores"]["st_main"]["integrations"]
        items: dict[str, Any] = links[0]["items"] if links else {}
        return items

    async def menu_is_on_sale(self) -> bool:
        """Whether the storefront has an item for each of the till's."""
        return self.till.menu.item_ids() == set(await self.storefront())

    async def place(self, *external_ids: str) -> str:
        """Order one of each item of the demo's menu; return the order's id."""
        lines = [
            {"external_id": self.till.menu.id_of(each), "quantity": 1} for each in external_ids
        ]
        order = await self.control("orders", {"store_id": "st_main", "items": lines})
        order_id: str = order["order_id"]
        return order_id

    async def order_is(self, order_id: str, state: str) -> bool:
        """Whether the service says so."""
        order = await self.control(f"orders/{order_id}", method="GET")
        return bool(order["state"] == state)

    def _log_tail(self) -> str:
        """Return the end of the bridge's log: the file itself goes with the demo's folder."""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        text = "\n".join(lines[-_LAST_LINES:]) or _("nothing")
        return _(
            "Start it again. If this machine is busy, wait until it is less so. The bridge's "
            "last output:\n"
            "{text}"
        ).format(text=text)

    # -- waiting

    async def until(self, what: str, look: Callable[[], bool | Awaitable[bool]]) -> float:
        """Wait until `look` is true; return how many milliseconds that took."""
        started = time.monotonic()
        while True:
            seen = look()
            if seen if isinstance(seen, bool) else await seen:
                return (time.monotonic() - started) * 1000
            if time.monotonic() - started > _PATIENCE_S:
                raise DemoFailed(
                    _("Gave up after {seconds:.0f} s: {what}.").format(
                        seconds=_PATIENCE_S, what=what
                    ),
                    fix=self._log_tail(),
                )
            await asyncio.sleep(0.01)


@asynccontextmanager
async def set_up(
    folder: Path,
    settings: SandboxSettings,
    *,
    cooking_s: float,
    usual_ports: bool,
    adapter: str = "",
) -> AsyncIterator[Stage]:
    """Set the stage, with the till of an adapter or a sample of files; all is ended again."""
    if adapter in {"", "folder"}:
        till = sample_till(folder, cooking_s=cooking_s)
    else:
        till = rig_till(adapter, folder, cooking_s=cooking_s)
    sandbox = await start(settings, port=_port(_SERVICE_PORT, usual=usual_ports))
    kitchen = asyncio.create_task(till.kitchen.work())
    async with aiohttp.ClientSession() as http:
        stage = Stage(folder, sandbox, till, http)
        stage.configure(
            receiver_port=_port(_RECEIVER_PORT, usual=usual_ports),
            page_port=_port(_PAGE_PORT, usual=usual_ports),
        )
        try:
            await stage.start_bridge()
            yield stage
        finally:
            await stage.stop_bridge()
            kitchen.cancel()
            await asyncio.gather(kitchen, return_exceptions=True)
            await sandbox.stop()
            till.close()


# Below the ports that systems give to connections: between a look and a listen nobody takes one.
_OTHER_PORTS = range(20_000, 32_000)


def _port(wanted: int, *, usual: bool) -> int:
    """Return the wanted port where it is free, else any that is."""
    others = random.sample(_OTHER_PORTS, len(_OTHER_PORTS))
    for port in [wanted, *others] if usual else others:
        with socket.socket() as probe, contextlib.suppress(OSError):
            if (
                os.name != "nt"
            ):  # or the ports of a demo that has just ended were taken for a minute
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise BridgeError(_("This machine has no free port."), fix=_("Close other programs first."))


# -- the demo's own buttons on the control panel: what goes wrong with bridge and till

_DEAD_S = 20


def demo_of(stage: Stage) -> Demo:
    """Return what the control panel shows of the demo."""
    return Demo(stage.page_url + "/", (_bridge(stage), _till(stage)), lambda: _mend(stage))


def _bridge(stage: Stage) -> Group:
    def state(_sandbox: object) -> str:
        if stage.bridge_listens():
            return _("The bridge is running.")
        if seconds := stage.starts_in_s():
            return _("The bridge was killed. It restarts in {n} s.").format(n=seconds)
        return _("The bridge is starting.")

    kill = Button(
        _("Kill the bridge (kill -9)"),
        _(
            "It stays down for {n} s: order something meanwhile. The order's page shows when the "
            "service tries again, 60 s later. The till then has one ticket, not two."
        ).format(n=_DEAD_S),
        lambda _sandbox: stage.kill_bridge_for(_DEAD_S),
    )
    return Group(_("The bridge"), {"kill": kill}, state)


def _till(stage: Stage) -> Group:
    menu, kitchen = stage.till.menu, stage.till.kitchen
    buttons: dict[str, Button] = {}

    def offer(name: str, label: str, watch: str, press: Callable[[], object]) -> None:
        buttons[name] = Button(label, watch, lambda _sandbox: press())

    if isinstance(kitchen, FolderKitchen):
        offer(
            "till_stops",
            _("Stop the till's program"),
            _(
                "After about 10 s the bridge's page shows the till as offline; half a minute "
                "later the storefront closes. An order placed before that is in the till's "
                "folder, waiting for an answer."
            ),
            kitchen.stop,
        )
        offer(
            "till_away",
            _("Take the till's orders folder away"),
            _(
                "Like a network share that has disappeared. Order something: the bridge's page "
                "shows the order waiting for the till. After 2 minutes it is cancelled and "
                "refunded; undo the fault before that, and it becomes a ticket."
            ),
            kitchen.take_away,
        )
    if isinstance(menu, FileMenu):
        offer(
            "export_cut",
            _("Cut the menu file in half"),
            _(
                "Nothing disappears from the storefront. The bridge's page shows the row in "
                "which the export breaks off."
            ),
            menu.export_cut,
        )
        offer(
            "export_inflated",
            _("Export all prices 100 times too high"),
            _(
                "The storefront keeps its prices. The bridge's page holds the change until "
                "somebody decides."
            ),
            menu.export_inflated,
        )
    offer(
        "export_nothing",
        _("Export an empty menu"),
        _(
            "Nothing disappears from the storefront. The bridge's page says what is wrong with "
            "the export."
        ),
        menu.export_nothing,
    )

    def state(_sandbox: object) -> str:
        if not isinstance(kitchen, FolderKitchen):
            return ""
        if not kitchen.runs:
            return _("The till's program has stopped.")
        if kitchen.is_away:
            return _("The till's orders folder is gone.")
        return _("The till works. It takes {n:g} s for each step of an order.").format(
            n=kitchen.cooking_s
        )

    return Group(_("The till"), buttons, state)


def _mend(stage: Stage) -> None:
    stage.start_at_once()
    if isinstance(stage.till.kitchen, FolderKitchen):
        stage.till.kitchen.start()
        stage.till.kitchen.give_back()
    stage.till.menu.export()
