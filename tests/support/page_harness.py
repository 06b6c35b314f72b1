"""The page over a real socket, with users or without, and forms as a browser sends them."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.support.fake_control import FakeControl, FakeDispatcher
from tests.support.ledger_harness import StoppedClock
from tillbridge.core.actor import Role, current_actor
from tillbridge.core.clock import Clock
from tillbridge.core.metrics import Metrics
from tillbridge.web.authenticator import AccessRules, Authenticator, User
from tillbridge.web.listener import MerchantReturn, StatusListener
from tillbridge.web.passwords import password_hash

PASSWORD = "four plain words here"  # invented, for tests
TOKEN = "control-token-0123456789"


@dataclass
class FakeTrail:
    """Remembers what was noted, and by whom."""

    noted: list[dict[str, object]] = field(default_factory=list)

    async def note(
        self, action: str, *, store: str = "", target: str = "", ok: bool = True, **detail: object
    ) -> None:
        doer = current_actor()
        doer.noted = True
        self.noted.append(
            {"action": action, "who": doer.who, "store": store, "target": target, "ok": ok}
        )


@dataclass
class Answered:
    status: int
    text: str
    headers: Mapping[str, str]


@dataclass
class PageHarness:
    """A listener, and a browser of a kind: it keeps cookies and follows no redirects."""

    control: FakeControl
    trail: FakeTrail
    clock: StoppedClock
    listener: StatusListener
    session: aiohttp.ClientSession
    url: str
    changed: list = field(default_factory=list)

    def ask(self, control: Any) -> None:  # noqa: ANN401 -- a FakeControl, or what plants text in its answers
        """Let the pages ask this from now on."""
        self.listener._site.dispatcher = FakeDispatcher(control, self.trail)

    async def get(self, path: str, **headers: str) -> Answered:
        return await self._ask("GET", path, headers=headers)

    async def post(
        self,
        path: str,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Answered:
        """Send a form from the page itself; a header that is None is left out."""
        own = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        sent: dict[str, str | None] = {**own, **(headers or {})}
        kept = {name: value for name, value in sent.items() if value is not None}
        return await self._ask("POST", path, data=dict(data or {}), headers=kept)

    async def sign_in(self, name: str, password: str = PASSWORD, to: str = "/") -> Answered:
        return await self.post("/login", {"name": name, "password": password, "next": to})

    async def _ask(self, method: str, path: str, **options: Any) -> Answered:  # noqa: ANN401 -- aiohttp's own
        async with self.session.request(
            method, self.url + path, allow_redirects=False, **options
        ) as answer:
            return Answered(answer.status, await answer.text(), answer.headers)


def users() -> dict[str, User]:
    """One user of each role, all with the same password."""
    phc = password_hash(PASSWORD)
    return {
        "lou": User(Role.LOOK, phc),
        "sam": User(Role.STAFF, phc),
        "tea": User(Role.TECHNICIAN, phc),
    }


@contextlib.asynccontextmanager
async def page_harness(
    access: AccessRules | None = None,
    *,
    clock: Clock | None = None,
    merchant: MerchantReturn | None = None,
) -> AsyncIterator[PageHarness]:
    """Serve the page; its clock stands still unless another is given."""
    control, trail, stopped = FakeControl(), FakeTrail(), StoppedClock()
    changed: list = []
    listener = StatusListener(
        control.dispatcher(trail),
        Authenticator(access or AccessRules(), clock or stopped),
        token=TOKEN,
        metrics=Metrics(),
        merchant=merchant,
        on_change=changed.append,
    )
    host, port = await listener.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            url = f"http://{host}:{port}"
            yield PageHarness(control, trail, stopped, listener, session, url, changed)
    finally:
        await listener.close()
