"""The context of one store between a till and a service that a test makes up."""

import functools
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from tillbridge.config.bridge import AssumptionSettings, ReceiverSettings, ServiceSettings, Settings
from tillbridge.config.store import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.context import BridgeContext, StoreContext
from tillbridge.core.metrics import Metrics
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Supervisor
from tillbridge.ledger.ledger import Ledger
from tillbridge.pos.store_pos import StorePos


def store_context(
    settings: StoreSettings,
    *,
    pos: Any,  # noqa: ANN401 -- a PosRunner, or what a test has for one
    service: Any,  # noqa: ANN401 -- a ServiceClient, or what a test has for one
    ledger: Ledger,
    problems: Any,  # noqa: ANN401 -- a ProblemTracker, or what a test has for one
    clock: Clock,
    assumptions: AssumptionSettings | None = None,
    job_poll_s: float = 0.01,
    reintegrate_quiet_s: float = 0.0,
    base_url: str = "https://service.example",
    public_url: str = "https://bridge.example",
) -> StoreContext:
    """Return the context of the store `main`."""
    service_settings = {
        "base_url": base_url,
        "job_poll_s": job_poll_s,
        "reintegrate_quiet_s": reintegrate_quiet_s,
    }
    bridge = BridgeContext(
        settings=_defaults().model_copy(
            update={
                "service": _defaults().service.model_copy(update=service_settings),
                "receiver": _defaults().receiver.model_copy(update={"public_url": public_url}),
                "assumptions": assumptions or AssumptionSettings(),
                "stores": {"main": settings},
            }
        ),
        base_dir=Path(),
        ledger=ledger,
        problems=problems,
        scheduler=Scheduler(clock, Supervisor("", problems)),
        metrics=Metrics(),
        clock=clock,
    )
    return StoreContext(bridge, "main", StorePos(pos, pos), cast("Any", service))


@functools.cache  # a property makes hundreds of contexts, and pydantic inspects each default anew
def _defaults() -> Settings:
    return Settings.model_construct(
        service=ServiceSettings.model_construct(
            base_url="", client_id="app", client_secret=SecretStr("secret")
        ),
        receiver=ReceiverSettings.model_construct(public_url=""),
        stores={},
    )
