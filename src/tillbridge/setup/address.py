"""Whether the public address leads to this machine, and how it may be made to."""

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tillbridge.config import LoadedSettings, Settings
from tillbridge.diagnostics.checks.public import Judgement, gather, judge
from tillbridge.diagnostics.reach import guidance, place_of
from tillbridge.diagnostics.subject import Subject
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.setup.file import SetupContext

if TYPE_CHECKING:
    from tillbridge.receiver.receiver import Echo

LISTEN = "127.0.0.1:8088"
_SOME_ADDRESS = "https://store.example.com"


async def judged(loaded: LoadedSettings, place: SetupContext) -> Judgement:
    """Listen as the receiver will, send a nonce through the address, and judge what comes of it.

    Raises ConfigError where nothing can listen there.
    """
    running = None if place.echo is None else nullcontext(place.echo)
    async with running or place.open_receiver(loaded) as echo:
        subject = _subject(loaded.settings, loaded, place, echo)
        return judge(await gather(subject, delivered_at_ms=None))


async def ways(place: SetupContext) -> dict[str, Any]:
    """Return how the internet may reach the receiver that the answers so far describe."""
    draft = await place.draft()
    url = draft.public_url or _SOME_ADDRESS
    store = {"location_id": "?", "currency": "USD", "pos": {"adapter": "folder"}}
    # The guidance is about the receiver; what else a configuration needs may not be known yet.
    settings = Settings.model_validate(
        {
            "service": {"base_url": url, "client_id": "?", "client_secret": "?"},
            "receiver": {"listen": draft.listen or LISTEN, "public_url": url},
            "stores": {draft.store: store},
        }
    )
    return await asyncio.to_thread(guidance, place_of(settings, place.path))


def _subject(
    settings: Settings, loaded: LoadedSettings, place: SetupContext, echo: "Echo"
) -> Subject:
    subject = Subject(
        settings=settings,
        config_path=loaded.path,
        base_dir=loaded.base_dir,
        data_dir=loaded.data_dir,
        clock=place.clock,
        snapshot=lambda: place.ledger.read(take_snapshot),
        stores={},
    )
    return replace(subject, running=True, echo=echo)
