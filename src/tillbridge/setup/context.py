"""What setting up works on: the file, the answers so far, the address, and the run."""

import asyncio
import hashlib
import tomllib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.config import LoadedSettings, Settings
from tillbridge.config.loading import loaded_from
from tillbridge.config.toml import read_file
from tillbridge.config.writing import difference, edited, put_back
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.log import get_logger
from tillbridge.core.restart import RestartController, Undo
from tillbridge.diagnostics.checks.public import Judgement, gather, judge
from tillbridge.diagnostics.reach import guidance, place_of
from tillbridge.diagnostics.subject import Subject
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.ledger.vault import client_secret_for
from tillbridge.setup.checking import faults_in
from tillbridge.setup.draft import Draft, changes_of, draft_of

if TYPE_CHECKING:
    from tillbridge.receiver.receiver import Echo

log = get_logger()

_FACT = "setup"
ADDRESS_FACT = "public_address"  # when the address was last seen to lead here
LISTEN = "127.0.0.1:8088"
_SOME_ADDRESS = "https://store.example.com"


class ChangeSignal:
    """Says that something looks different now, where the ledger has not changed: for open pages.

    Used from the event loop.
    """

    def __init__(self) -> None:
        self._subscribers: list[Callable[[], None]] = []

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` from now on."""
        self._subscribers.append(callback)

    def notify(self) -> None:
        """Call every subscriber."""
        for callback in self._subscribers:
            callback()


@dataclass(frozen=True, slots=True)
class SetupContext:
    """What the wizard works on. `echo` proves that an address leads to the receiver that runs.

    Where none does, `open_receiver` opens one for as long as that takes.
    `redirect_uri` is where the merchant comes back to; open pages hear of `changes`.
    """

    path: Path
    ledger: Ledger
    clock: Clock
    restarts: RestartController
    redirect_uri: str
    changes: ChangeSignal
    open_receiver: Callable[[LoadedSettings], "AbstractAsyncContextManager[Echo]"]
    echo: "Echo | None" = None

    @property
    def base_dir(self) -> Path:
        """Where relative paths of the configuration count from."""
        return self.path.parent

    def document(self) -> tuple[str, dict[str, Any]]:
        """Return the file's text and what it says. Raises ConfigError."""
        return read_file(self.path)

    async def draft(self) -> Draft:
        """Return the answers so far; those of the file where nothing was said since."""
        kept = await self.ledger.get_fact("", _FACT)
        text, document = await asyncio.to_thread(self.document)
        draft = Draft.from_json(kept)
        if draft is None or draft.written == digest_of(text):
            return draft_of(document)
        return draft

    async def keep(self, draft: Draft) -> None:
        """Remember the answers. Raises LedgerError."""
        at, kept = self.clock.now_ms(), draft.to_json()
        await self.ledger.put_fact("", _FACT, kept, at=at)

    async def forget(self) -> None:
        """Forget the answers. Raises LedgerError."""
        await self.ledger.drop_fact("", _FACT)


async def note_address(ledger: Ledger, at_ms: int, cause: str) -> None:
    """Note that the public address leads here. Raises LedgerError."""
    fact = {"ok_at": at_ms, "cause": cause}
    await ledger.put_fact("", ADDRESS_FACT, fact, at=at_ms)


def digest_of(*texts: str) -> str:
    """Return what differs wherever one of the texts does."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would be written: the new text, what changes, and why it cannot be."""

    old: str
    new: str
    lines: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What a person agrees to."""
        return digest_of(self.old, self.new)


async def proposed(place: SetupContext, draft: Draft) -> Proposal:
    """Return what the answers change. Raises ConfigError where the file cannot be read."""
    return await asyncio.to_thread(_proposed, place, draft)


def _proposed(place: SetupContext, draft: Draft) -> Proposal:
    old, document = place.document()
    changes = changes_of(draft, document)
    if not changes:
        return Proposal(old, old)
    try:
        new = edited(old, changes)
    except ConfigError as fault:
        return Proposal(old, old, faults=(str(fault),))
    proposal = Proposal(old, new, tuple(difference(old, new)))
    try:
        loaded = _loaded(place, proposal)
        base_url = loaded.settings.service.base_url
        vault = place.ledger.vault
        found = faults_in(loaded, lambda: client_secret_for(vault, base_url), [])
    except ConfigError as fault:
        found = [fault]
    return replace(proposal, faults=tuple(map(str, found)))


def _loaded(place: SetupContext, proposal: Proposal) -> LoadedSettings:
    """Return the settings of what would be written. Raises ConfigError."""
    return loaded_from(place.path, proposal.new, tomllib.loads(proposal.new))


async def begin_anew(
    place: SetupContext, draft: Draft, text: str, undo: Undo, *, connect: str
) -> None:
    """Begin anew with the file of this text; `connect` is the store to connect then."""
    log.info("setup.written", file=str(place.path))
    await place.keep(replace(draft, written=digest_of(text)))
    place.restarts.restart(undo, connect=connect)


def take_back(path: Path, copy: Path | None, _failure: BridgeError) -> None:
    """Put the file back as it was."""
    if copy is not None:
        put_back(path, copy)


def cannot_take_back(failure: BridgeError) -> None:
    """Raise it: what another user has written this one cannot put back."""
    raise failure


async def judged(place: SetupContext, proposal: Proposal, listen: str) -> Judgement:
    """Listen as the receiver will, send a nonce through the address, and judge what comes of it.

    Raises ConfigError where nothing can listen there.
    """
    loaded = _loaded(place, proposal)
    _text, document = place.document()
    # The receiver that runs answers, unless it is to listen elsewhere.
    stays = listen == (draft_of(document).listen or LISTEN)
    running = nullcontext(place.echo) if stays and place.echo is not None else None
    async with running or place.open_receiver(loaded) as echo:
        subject = Subject(
            settings=loaded.settings,
            config_path=loaded.path,
            base_dir=loaded.base_dir,
            data_dir=loaded.data_dir,
            clock=place.clock,
            snapshot=lambda: place.ledger.read(take_snapshot),
            stores={},
            running=True,
            echo=echo,
        )
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
