"""One community's flow with a real ledger and receiver, and a sandbox that delivers to it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.support.catalogue_harness import WallClock
from tests.support.sandbox_hall import HALL, SEEDS, Hall, hall_of
from tillbridge.communities import CommunityContext
from tillbridge.communities.flow import CommunityFlow
from tillbridge.config.bridge import AssumptionSettings, ReceiverSettings, ServiceSettings, Settings
from tillbridge.config.store import CommunitySettings, StoreSettings
from tillbridge.core.context import BridgeContext
from tillbridge.core.metrics import Metrics
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Supervisor
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker
from tillbridge.receiver import Receiver
from tillbridge.sandbox import SandboxSettings
from tillbridge.service.answers import Limits
from tillbridge.service.client import ServiceLink
from tillbridge.service.community_calls import CommunityCalls
from tillbridge.service.oauth import App

KEY = "communities/hall"


@dataclass
class CommunityHarness:
    hall: Hall
    flow: CommunityFlow
    ledger: Ledger
    tracker: ProblemTracker
    receiver: Receiver
    woken: list[str]
    clock: WallClock

    async def service(self) -> dict[str, Any]:
        """What the service knows of the community."""
        found: dict[str, Any] = (await self.hall.bridge.state())["communities"]["com_food_hall"]
        return found

    async def subscription(self) -> dict[str, Any]:
        """The one subscription, with its secret."""
        (found,) = (await self.service())["webhooks"]
        return dict(found)

    def problems(self) -> list[tuple[str, str]]:
        return [(each.code, each.subject) for each in self.tracker.current()]

    async def send(self, event_type: str, data: object, **more: object) -> str:
        """Let the service deliver an event; return what the receiver answered."""
        body = {"event_type": event_type, "data": data, "wait": True, "retry": False, **more}
        answer = await self.hall.bridge.control("POST", f"{HALL}/events", body)
        attempts = answer.body["deliveries"][0]["attempts"]
        return str(attempts[0].get("status"))

    async def calls(self, path: str, method: str = "GET") -> int:
        """How many calls the service has seen whose path ends so."""
        log = (await self.hall.bridge.control("GET", "/requests")).body["requests"]
        return sum(each["path"].endswith(path) and each["method"] == method for each in log)


@asynccontextmanager
async def community_harness(
    folder: Path, settings: SandboxSettings = SEEDS, **community: object
) -> AsyncIterator[CommunityHarness]:
    """A harness whose flow is not running; tests do its steps."""
    clock = WallClock()
    async with hall_of(replace(settings, webhook_retry_delays_s=(3600,))) as hall:
        ledger = await Ledger.open(folder, clock=clock)
        tracker = await ProblemTracker.start(ledger, clock=clock)
        woken: list[str] = []
        receiver = Receiver(
            ReceiverSettings(listen="127.0.0.1:0", public_url="http://127.0.0.1:1"),
            {"main": "loc-1", KEY: "com_food_hall"},
            ledger,
            tracker,
            clock=clock,
            wake=woken.append,
        )
        await receiver.start()
        link = ServiceLink(
            hall.bridge.running.base_url,
            App("app_123", lambda: "sandbox-secret", "http://127.0.0.1:1/"),
            clock=clock,
            limits=Limits(max_attempts=1),
        )
        caller = link.app(audience="communities").caller
        context = CommunityContext(
            BridgeContext(
                settings=Settings.model_construct(
                    service=ServiceSettings.model_construct(
                        base_url=hall.bridge.running.base_url,
                        client_id="app_123",
                        client_secret=SecretStr("sandbox-secret"),
                    ),
                    receiver=ReceiverSettings.model_construct(public_url=receiver.url),
                    assumptions=AssumptionSettings(),
                    communities={
                        "hall": CommunitySettings.model_validate(
                            {"community_id": "com_food_hall", **community}
                        )
                    },
                    stores={
                        "main": StoreSettings.model_validate(
                            {
                                "location_id": "loc-1",
                                "currency": "USD",
                                "hours_file": "hours.toml",
                                "pos": {"adapter": "folder"},
                            }
                        )
                    },
                ),
                base_dir=folder,
                ledger=ledger,
                problems=tracker,
                scheduler=Scheduler(clock, Supervisor("", tracker)),
                metrics=Metrics(),
                clock=clock,
            ),
            "hall",
            CommunityCalls(caller, "com_food_hall", secret_field="secret"),
            lambda: {"main": "st_main"},
        )
        flow = CommunityFlow(context)
        flow.subscriber.on_secret = receiver.refresh
        try:
            yield CommunityHarness(hall, flow, ledger, tracker, receiver, woken, clock)
        finally:
            await receiver.stop(1)
            await link.close()
            await tracker.settle()
            await ledger.close()


def dumped(value: object) -> str:
    return json.dumps(value, sort_keys=True)
