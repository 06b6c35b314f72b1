"""The public address: a nonce goes out through it, and has to come back to this machine."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from tillbridge.config import LoadedSettings, Settings
from tillbridge.daemon.receiving import receiver_settings
from tillbridge.daemon.setup_place import SetupPlace
from tillbridge.diagnostics.checks.public import gather
from tillbridge.diagnostics.outside import Judgement, judge
from tillbridge.diagnostics.reach.place import place_of
from tillbridge.diagnostics.reach.ways import guidance
from tillbridge.diagnostics.subject import Echo, Subject
from tillbridge.ledger.problems import ProblemDesk
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.receiver.receiver import Receiver
from tillbridge.web.ports import Answer

LISTEN = "127.0.0.1:8088"
_SOME_ADDRESS = "https://store.example.com"


async def judged(loaded: LoadedSettings, place: SetupPlace, desk: ProblemDesk) -> Judgement:
    """Listen as the receiver will, send a nonce through the address, and judge what comes of it.

    Raises ConfigError where nothing can listen there.
    """
    async with AsyncExitStack() as opened:
        echo: Echo | None = place.echo
        if echo is None:
            receiver = Receiver(
                receiver_settings(loaded),
                {},
                place.ledger,
                desk,
                clock=place.clock,
                wake=lambda _store: None,
            )
            await receiver.start()
            opened.push_async_callback(receiver.stop, 1.0)
            echo = receiver.echo
        subject = _subject(loaded.settings, loaded, place, echo)
        return judge(await gather(subject, delivered_at_ms=None))


async def ways(place: SetupPlace) -> Answer:
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


def _subject(settings: Settings, loaded: LoadedSettings, place: SetupPlace, echo: Echo) -> Subject:
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
