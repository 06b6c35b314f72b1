"""The bridge's own client against a sandbox: tokens in memory, waits counted instead of waited."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.sandbox_driver import Driver, driven
from tillbridge.core.clock import Clock
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.answers import Limits
from tillbridge.service.caller import Contact
from tillbridge.service.client import ServiceClient, ServiceLink, StoreLink
from tillbridge.service.oauth import App
from tillbridge.service.tokens import TokenStore
from tillbridge.service.types import IntegrationRequest, Tokens

WEBHOOK_URL = "http://127.0.0.1:1/webhooks/main"
REDIRECT_URI = "http://127.0.0.1:18089/oauth/callback"
INTEGRATION = IntegrationRequest(
    WEBHOOK_URL, "pos_to_quiqqy", auto_accept_orders=False, external_store_id="loc-1"
)


class HandClock(Clock):
    """A clock that a test moves; wall and monotonic time apart."""

    def __init__(self) -> None:
        self.wall_ms = 1_763_700_000_000
        self.seconds = 1000.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.seconds

    def pass_s(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall_ms += int(seconds * 1000)


@dataclass
class MemoryTokens(TokenStore):
    kept: Tokens | None = None
    saved: list[Tokens] = field(default_factory=list)

    def load(self) -> Tokens | None:
        return self.kept

    def save(self, tokens: Tokens) -> None:
        self.kept = tokens
        self.saved.append(tokens)


@dataclass(slots=True)
class Linked:
    """A sandbox, its driver, and one store's link to it."""

    driver: Driver
    link: ServiceLink
    store: StoreLink
    tokens: MemoryTokens
    clock: HandClock
    contacts: list[Contact]
    waits: list[float]

    @property
    def client(self) -> ServiceClient:
        return self.store.client

    async def fault(self, action: str, path: str, **more: object) -> None:
        rule = {"action": action, "path": path, "count": 1, **more}
        await self.driver.control("POST", "/faults", rule)

    async def sign_in(self) -> None:
        minted = (await self.driver.control("POST", "/tokens/mint", {})).body
        await self.store.tokens.adopt(
            Tokens(
                access_token=minted["access_token"],
                refresh_token=minted["refresh_token"],
                access_expires_at_ms=self.clock.now_ms() + minted["expires_in"] * 1000,
                consented_at_ms=self.clock.now_ms(),
            )
        )

    async def integrate(self) -> None:
        await self.sign_in()
        await self.client.integrate("st_main", INTEGRATION)

    async def asked(self, path: str = "") -> list[tuple[str, str, int | None]]:
        """The calls the sandbox saw whose path ends so: method, path, status."""
        log = (await self.driver.control("GET", "/requests")).body["requests"]
        return [
            (entry["method"], entry["path"], entry["status"])
            for entry in log
            if entry["path"].endswith(path)
        ]


@asynccontextmanager
async def linked(
    settings: SandboxSettings | None = None, *, limits: Limits | None = None, timeout_s: float = 10
) -> AsyncIterator[Linked]:
    """A store's link to a sandbox of its own."""
    clock, tokens = HandClock(), MemoryTokens()
    contacts: list[Contact] = []
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with driven(settings) as driver:
        link = ServiceLink(
            driver.running.base_url,
            App("app_123", lambda: "sandbox-secret", REDIRECT_URI),
            clock=clock,
            timeout_s=timeout_s,
            limits=limits,
            sleep=sleep,
            jitter=lambda: 1.0,
        )
        store = link.store(tokens, on_contact=contacts.append)
        try:
            yield Linked(driver, link, store, tokens, clock, contacts, waits)
        finally:
            await link.close()
