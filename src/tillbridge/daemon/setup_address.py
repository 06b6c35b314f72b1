"""The public address: a nonce goes out through it, and has to come back to this machine."""

from contextlib import AsyncExitStack
from dataclasses import replace

from tillbridge.config import Settings
from tillbridge.configfile import LoadedSettings
from tillbridge.daemon.receiving import receiver_settings
from tillbridge.daemon.setup_place import SetupPlace
from tillbridge.diagnostics.checks.public import gather
from tillbridge.diagnostics.outside import Judgement, judge
from tillbridge.diagnostics.subject import Echo, Subject
from tillbridge.ledger.desk import ProblemDesk
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.receiver.receiver import Receiver


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
