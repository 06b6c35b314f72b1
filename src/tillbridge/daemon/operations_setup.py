"""What the page asks about setting the bridge up."""

from collections.abc import Awaitable, Callable
from typing import Any

from tillbridge.configfile import LoadedSettings
from tillbridge.onboarding.running import findings_of
from tillbridge.onboarding.steps import next_step, steps_of

Answer = dict[str, Any]


class SetupOperations:
    """The operations, beside a bridge that runs with a whole configuration."""

    def __init__(self, loaded: LoadedSettings, overview: Callable[[], Awaitable[Answer]]) -> None:
        self._loaded = loaded
        self._overview = overview

    async def show(self) -> Answer:
        """Return how far the first store is set up."""
        settings = self._loaded.settings
        store = next(iter(settings.stores))
        base_url = settings.service.base_url
        steps = steps_of(findings_of(await self._overview(), store, base_url=base_url))
        return {
            "file": str(self._loaded.path),
            "store": store,
            "others": [name for name in settings.stores if name != store],
            "steps": [step.to_json() for step in steps],
            "next": next_step(steps),
        }
