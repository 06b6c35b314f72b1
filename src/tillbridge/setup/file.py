"""What setting up works on: the file, the ledger, and the run that may have to begin anew."""

import asyncio
import hashlib
import tomllib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.config import LoadedSettings
from tillbridge.config.loading import loaded_from
from tillbridge.config.toml import read_file
from tillbridge.config.writing import difference, edited, put_back, replace_file
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.restart import RestartController, Undo
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.vault import client_secret_for
from tillbridge.setup.checking import faults_in
from tillbridge.setup.draft import Draft, changes_of, draft_of

if TYPE_CHECKING:
    from tillbridge.receiver.receiver import Echo

_FACT = "setup"


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
        kept = await self.ledger.read(lambda db: get_fact(db, "", _FACT))
        text, document = await asyncio.to_thread(self.document)
        draft = Draft.from_json(kept)
        if draft is None or draft.written == digest_of(text):
            return draft_of(document)
        return draft

    async def keep(self, draft: Draft) -> None:
        """Remember the answers. Raises LedgerError."""
        at, kept = self.clock.now_ms(), draft.to_json()
        await self.ledger.write(lambda db: put_fact(db, "", _FACT, kept, at=at))

    async def forget(self) -> None:
        """Forget the answers. Raises LedgerError."""
        await self.ledger.write(lambda db: drop_fact(db, "", _FACT))


def digest_of(*texts: str) -> str:
    """Return what differs wherever one of the texts does."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def parsed(text: str) -> Mapping[str, Any]:
    """Return what a text of ours says."""
    return tomllib.loads(text)


log = get_logger()


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


class SetupFile:
    """The configuration file of a place."""

    def __init__(self, place: SetupContext) -> None:
        self._place = place

    async def proposal(self, draft: Draft) -> Proposal:
        """Return what the answers change. Raises ConfigError where the file cannot be read."""
        return await asyncio.to_thread(self._proposed, draft)

    def loaded(self, proposal: Proposal) -> LoadedSettings:
        """Return the settings of what would be written. Raises ConfigError."""
        return loaded_from(self._place.path, proposal.new, dict(parsed(proposal.new)))

    async def write(self, draft: Draft, digest: str, *, connect: str) -> dict[str, Any]:
        """Write what was agreed to, and begin anew; `connect` is the store to connect then."""
        proposal = await self.proposal(draft)
        if proposal.digest != digest:
            raise ConfigError(
                _("The configuration has changed since this was shown."),
                fix=_("Look at the difference again."),
            )
        if proposal.faults:
            raise ConfigError("\n".join(proposal.faults), fix=_("Mend it in the steps above."))
        path = self._place.path
        copy = await asyncio.to_thread(replace_file, path, proposal.new)
        log.info("setup.written", file=str(path), copy=str(copy))
        await self._begin_anew(draft, proposal.new, partial(_take_back, path, copy), connect)
        told = _("{file} is written, and the bridge starts anew with it.").format(file=path.name)
        kept = _("The file as it was is kept as {copy}.")
        return {"ok": True, "text": told, "fix": kept.format(copy=copy.name) if copy else ""}

    async def text(self, draft: Draft) -> dict[str, Any]:
        """Return the whole file as it would be, for a command whose user may write it."""
        proposal = await self.proposal(draft)
        return {
            "file": str(self._place.path.resolve()),
            "text": proposal.new,
            "lines": list(proposal.lines),
            "faults": list(proposal.faults),
            "digest": digest_of(proposal.new),
        }

    async def written(self, draft: Draft, digest: str, *, connect: str) -> dict[str, Any]:
        """Take note that such a command has written what `text` told, and begin anew with it."""
        text, _said = await asyncio.to_thread(self._place.document)
        if digest_of(text) != digest:
            raise ConfigError(
                _("The file is not what was to be written."), fix=_("Look at it, and try again.")
            )
        await self._begin_anew(draft, text, _cannot_take_back, connect)
        return {"ok": True, "text": _("It is written, and the bridge starts anew with it.")}

    async def _begin_anew(self, draft: Draft, text: str, undo: Undo, connect: str) -> None:
        await self._place.keep(replace(draft, written=digest_of(text)))
        self._place.restarts.restart(undo, connect=connect)

    def _proposed(self, draft: Draft) -> Proposal:
        old, document = self._place.document()
        changes = changes_of(draft, document)
        if not changes:
            return Proposal(old, old)
        try:
            new = edited(old, changes)
        except ConfigError as fault:
            return Proposal(old, old, faults=(str(fault),))
        proposal = Proposal(old, new, tuple(difference(old, new)))
        vault = self._place.ledger.vault
        try:
            loaded = self.loaded(proposal)
            base_url = loaded.settings.service.base_url
            found = faults_in(loaded, lambda: client_secret_for(vault, base_url), [])
        except ConfigError as fault:
            found = [fault]
        return replace(proposal, faults=tuple(map(str, found)))


def _take_back(path: Path, copy: Path | None, _failure: BridgeError) -> None:
    if copy is not None:
        put_back(path, copy)


def _cannot_take_back(failure: BridgeError) -> None:
    """Raise it: what another user has written this one cannot put back."""
    raise failure
