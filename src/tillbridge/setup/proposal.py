"""What setting up works on and would write: the answers, the file, what is wrong with it."""

import asyncio
import errno
import socket
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tillbridge.adapter import AdapterContext, MarksTickets, WritesTickets
from tillbridge.adapter.registration import closing
from tillbridge.config.bridge import Settings
from tillbridge.config.loading import LoadedSettings, loaded_from
from tillbridge.config.restaurant import StoreFiles, read_store_files
from tillbridge.config.secrets import VaultOfSettings, database_url, resolve_secret
from tillbridge.config.toml import read_file, value_at
from tillbridge.config.values import host_and_port
from tillbridge.config.writing import difference, edited, put_back
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.diagnostics.check import Subject
from tillbridge.diagnostics.checks.public import Judgement, gather, judge
from tillbridge.diagnostics.reach import guidance, place_of
from tillbridge.ledger.backend import stored_secrets
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.snapshot import take_snapshot
from tillbridge.ledger.vault import secret_of_setting
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.store_pos import check_duties
from tillbridge.setup.draft import (
    Draft,
    changes_of,
    digest_of,
    draft_of,
    unwritten_of,
)

if TYPE_CHECKING:
    from tillbridge.daemon.reload import RestartController, Undo
    from tillbridge.receiver import Echo

log = get_logger()

_FACT = "setup"
ADDRESS_FACT = "public_address"  # when the address was last seen to lead here
LISTEN = "127.0.0.1:8088"
_SOME_ADDRESS = "https://store.example.com"
_NOT_OURS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


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
    `redirect_uri` is where the merchant comes back to; open pages are notified by `changes`.
    """

    path: Path
    ledger: Ledger
    clock: Clock
    restarts: "RestartController"
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
        """Return the answers: those given here, and else those of the file. Raises ConfigError."""
        stored = await self.ledger.get_fact("", _FACT)
        _text, document = await asyncio.to_thread(self.document)
        return draft_of(document, stored)

    async def store(self, draft: Draft) -> None:
        """Remember the answers that the file does not have. Raises LedgerError."""
        _text, document = await asyncio.to_thread(self.document)
        at, unwritten = self.clock.now_ms(), unwritten_of(draft, document)
        await self.ledger.put_fact("", _FACT, unwritten, at=at)

    async def forget(self) -> None:
        """Forget the answers. Raises LedgerError."""
        await self.ledger.drop_fact("", _FACT)

    async def forget_written(self) -> None:
        """Forget answers that the file has, so that they never come back over a later edit."""
        if await self.ledger.get_fact("", _FACT) is not None:
            _text, document = await asyncio.to_thread(self.document)
            if not changes_of(await self.draft(), document):
                await self.forget()


async def note_address(ledger: Ledger, url: str, at_ms: int, cause: str) -> None:
    """Note that the public address `url` leads here. Raises LedgerError."""
    fact = {"url": url, "ok_at": at_ms, "cause": cause}
    await ledger.put_fact("", ADDRESS_FACT, fact, at=at_ms)


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
    """Return what the answers change. Raises ConfigError if the file cannot be read."""
    return await asyncio.to_thread(_proposed, place, draft)


def _proposed(place: SetupContext, draft: Draft) -> Proposal:
    old, document = place.document()
    changes = changes_of(draft, document)
    if not changes:
        return Proposal(old, old)
    if value_at(document, ("bridge", "data_dir")) is None:
        changes = {("bridge", "data_dir"): _data_dir(place), **changes}
    try:
        new = edited(old, changes)
    except ConfigError as fault:
        return Proposal(old, old, faults=(str(fault),))
    proposal = Proposal(old, new, tuple(difference(old, new)))
    try:
        loaded = _loaded(place, proposal)
        base_url = loaded.settings.service.base_url
        found = faults_in(loaded, partial(secret_of_setting, place.ledger.vault, base_url), [])
    except ConfigError as fault:
        found = [fault]
    return replace(proposal, faults=tuple(map(str, found)))


def _data_dir(place: SetupContext) -> str:
    """Return the folder that the bridge works in, as the file names it for every other command."""
    folder, base = place.ledger.data_dir.absolute(), place.base_dir.absolute()
    return (folder.relative_to(base) if folder.is_relative_to(base) else folder).as_posix()


def _loaded(place: SetupContext, proposal: Proposal) -> LoadedSettings:
    """Return the settings of what would be written. Raises ConfigError."""
    return loaded_from(place.path, proposal.new, tomllib.loads(proposal.new))


def restart_with_file(place: SetupContext, undo: "Undo", *, connect: str) -> None:
    """Restart with the file that was written; `connect` is the store to connect then."""
    log.info("setup.written", file=str(place.path))
    place.restarts.restart(undo, connect=connect)


def restore_file(path: Path, copy: Path | None, _failure: BridgeError) -> None:
    """Put the file back as it was."""
    if copy is not None:
        put_back(path, copy)


def cannot_undo(failure: BridgeError) -> None:
    """Raise it: what another user has written this one cannot put back."""
    raise failure


async def judged(place: SetupContext, proposal: Proposal, listen: str) -> Judgement:
    """Listen as the receiver will, send a nonce through the address, and judge what comes of it.

    Raises ConfigError if nothing can listen there.
    """
    loaded = _loaded(place, proposal)
    _text, document = place.document()
    # The receiver that runs answers, unless it is to listen elsewhere.
    stays = listen == (draft_of(document).listen or LISTEN)
    running = nullcontext(place.echo) if stays and place.echo is not None else None
    async with running or place.open_receiver(loaded) as echo:
        subject = Subject(
            loaded=loaded,
            clock=place.clock,
            snapshot=lambda: place.ledger.read(take_snapshot),
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


# -- what is wrong with a configuration, beyond what loading finds


def faults_in(
    loaded: LoadedSettings, from_vault: VaultOfSettings, notes: list[str]
) -> list[ConfigError]:
    """Return all that is wrong before anything is started.

    Secrets that cannot be read, adapters that refuse their options, the stores' own files, and
    addresses that are not of this machine. `notes` is given what is right and yet worth a look.
    `tillbridge config check` and the page Set-up ask the same.
    """
    return [
        *_address_faults(loaded),
        *_secret_faults(loaded, from_vault),
        *_adapter_faults(loaded),
        *_file_faults(loaded, notes),
    ]


def vault_of(loaded: LoadedSettings) -> VaultOfSettings:
    """Return what looks into the vault of a bridge that need not run; nothing is made."""

    def stored(key: str) -> str | None:
        try:
            vault = stored_secrets(loaded.data_dir, loaded.ledger_url(), loaded.ledger_key())
        except LedgerError as failure:
            raise ConfigError(failure.text, fix=failure.fix) from failure
        if vault is None:
            return None
        return secret_of_setting(vault, loaded.settings.service.base_url, key)

    return stored


def _address_faults(loaded: LoadedSettings) -> Iterator[ConfigError]:
    settings = loaded.settings
    for section, listen in (
        ("receiver", settings.receiver.listen),
        ("status_page", settings.status_page.listen),
    ):
        try:
            check_address(f"{section}.listen", listen)
        except ConfigError as fault:
            yield _placed(loaded, fault, loaded.line_of(section, "listen"))


def _secret_faults(loaded: LoadedSettings, from_vault: VaultOfSettings) -> Iterator[ConfigError]:
    for path, source in loaded.settings.secrets():
        key = ".".join(map(str, path))
        in_vault = partial(from_vault, key)
        try:
            found = resolve_secret(source, key=key, base_dir=loaded.base_dir, from_vault=in_vault)
            if key == "ledger.url":
                database_url(found.get_secret_value(), key)
        except ConfigError as fault:
            yield _placed(loaded, fault, loaded.line_of(*path))


def _file_faults(loaded: LoadedSettings, notes: list[str]) -> Iterator[ConfigError]:
    for store in loaded.settings.stores.values():
        files = StoreFiles.of(store, loaded.base_dir)
        try:
            notes += read_store_files(files, today=datetime.now(UTC).date()).notes
        except ConfigError as fault:
            yield fault


def _adapter_faults(loaded: LoadedSettings) -> Iterator[ConfigError]:
    """Let each adapter check its own options, by opening it; opening writes nothing."""
    for name, store in loaded.settings.stores.items():
        context = AdapterContext(name, store.currency, store.location_id, loaded.base_dir)
        opened: dict[str, tuple[bool, bool]] = {}  # by table: takes orders, marks tickets
        for table, adapter, options in store.adapters:
            try:
                pos = open_adapter(adapter, options, context, table=table)
            except ConfigError as fault:
                where = f"stores.{name}.{table}"
                key = fault.text.partition(f"{where}.")[2].partition(" ")[0].strip(":.")
                line = loaded.line_of("stores", name, table, *key.split("."))
                named = "" if where in fault.text else f"[{where}] "
                yield _placed(loaded, fault, line, named)
                continue
            with closing(pos):
                opened[table] = isinstance(pos, WritesTickets), isinstance(pos, MarksTickets)
        adapters = {table: adapter for table, adapter, _options in store.adapters}
        if opened.keys() != adapters.keys():
            continue
        table = "orders" if "orders" in opened else "pos"
        takes_orders = opened[table][0]
        try:
            check_duties(
                name,
                orders=adapters[table],
                takes_orders=takes_orders,
                fallback_prints="fallback" not in opened or opened["fallback"][1],
            )
        except ConfigError as fault:
            at = "fallback" if takes_orders else table
            yield _placed(loaded, fault, loaded.line_of("stores", name, at, "adapter"))


def _placed(loaded: LoadedSettings, fault: ConfigError, line: int, table: str = "") -> ConfigError:
    place = _("{file}, line {line}: ").format(file=loaded.path, line=line) if line else ""
    return ConfigError(f"{place}{table}{fault.text}", fix=fault.fix)


def check_address(key: str, listen: str) -> None:
    """Raise ConfigError if `listen` (address:port) is not of this machine; blocks for a name.

    Whether the port is free is not looked at: the bridge itself may have it.
    """
    host, _port = host_and_port(listen)
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _name, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except (socket.gaierror, UnicodeError):
        why = _("this machine does not know the name {host}")
    except OSError as failure:
        if failure.errno not in _NOT_OURS:
            return
        why = _("{host} is not an address of this machine")
    else:
        return
    raise ConfigError(
        f"{key}: {why.format(host=host)}.",
        fix=_(
            'Use an address of this machine: "127.0.0.1:PORT" for this machine only, '
            '"0.0.0.0:PORT" for every network it is in.'
        ),
    )
