"""Everything that can be found wrong with a configuration before anything is started.

Beyond what loading finds: secrets that cannot be read, adapters that refuse their options, and the
stores' own files. `tillbridge config check` and the page Set-up ask the same.
"""

import errno
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tillbridge.adapter import AdapterContext, MarksTickets, WritesTickets
from tillbridge.adapter.registration import closing
from tillbridge.config import LoadedSettings, host_and_port
from tillbridge.config.restaurant import StoreFiles, read_store_files
from tillbridge.config.secrets import FromVault, resolve_secret
from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.ledger.vault import Vault, client_secret_for
from tillbridge.pos.loader import open_adapter
from tillbridge.pos.store_pos import check_duties

_NOT_OURS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def faults_in(loaded: LoadedSettings, kept: FromVault, notes: list[str]) -> list[ConfigError]:
    """Return all that is wrong; `notes` is given what is right and yet worth a look."""
    return [
        *_address_faults(loaded),
        *_secret_faults(loaded, kept),
        *_adapter_faults(loaded),
        *_file_faults(loaded, notes),
    ]


def kept_by(loaded: LoadedSettings) -> FromVault:
    """Return what looks into the vault of a bridge that need not run; nothing is made."""

    def kept() -> str | None:
        if not (loaded.data_dir / "ledger.vault").exists():
            return None
        try:
            return client_secret_for(Vault(loaded.data_dir), loaded.settings.service.base_url)
        except LedgerError as failure:
            raise ConfigError(failure.text, fix=failure.fix) from failure

    return kept


def _address_faults(loaded: LoadedSettings) -> list[ConfigError]:
    faults = []
    for section, listen in (
        ("receiver", loaded.settings.receiver.listen),
        ("status_page", loaded.settings.status_page.listen),
    ):
        try:
            check_address(f"{section}.listen", listen)
        except ConfigError as fault:
            faults.append(_placed(loaded, fault, loaded.line_of(section, "listen")))
    return faults


def _secret_faults(loaded: LoadedSettings, kept: FromVault) -> list[ConfigError]:
    faults = []
    for path, source in loaded.settings.secrets():
        in_vault: Callable[[], str | None] | None = (
            kept if path == ("service", "client_secret") else None
        )
        key = ".".join(map(str, path))
        try:
            resolve_secret(source, key=key, base_dir=loaded.base_dir, from_vault=in_vault)
        except ConfigError as fault:
            faults.append(_placed(loaded, fault, loaded.line_of(*path)))
    return faults


def _file_faults(loaded: LoadedSettings, notes: list[str]) -> list[ConfigError]:
    faults = []
    for store in loaded.settings.stores.values():
        files = StoreFiles.of(store, loaded.base_dir)
        try:
            notes += read_store_files(files, today=datetime.now(UTC).date()).notes
        except ConfigError as fault:
            faults.append(fault)
    return faults


def _adapter_faults(loaded: LoadedSettings) -> list[ConfigError]:
    """Let each adapter check its own options, by opening it; opening writes nothing."""
    faults = []
    for name, store in loaded.settings.stores.items():
        context = AdapterContext(name, store.currency, store.location_id, loaded.base_dir)
        opened: dict[str, tuple[str, bool, bool]] = {}
        for table, adapter, options in store.adapters:
            try:
                pos = open_adapter(adapter, options, context, table=table)
                with closing(pos):
                    opened[table] = (
                        adapter,
                        isinstance(pos, WritesTickets),
                        isinstance(pos, MarksTickets),
                    )
            except ConfigError as fault:
                where = f"stores.{name}.{table}"
                key = fault.text.partition(f"{where}.")[2].partition(" ")[0].strip(":.")
                line = loaded.line_of("stores", name, table, *key.split("."))
                named = "" if where in fault.text else f"[{where}] "
                faults.append(_placed(loaded, fault, line, named))
        if len(opened) == len(list(store.adapters)):
            faults += _duty_faults(loaded, name, opened)
    return faults


def _duty_faults(
    loaded: LoadedSettings, store: str, opened: Mapping[str, tuple[str, bool, bool]]
) -> list[ConfigError]:
    """Return what an adapter of a store cannot do; `opened` says what each takes and marks."""
    table = "orders" if "orders" in opened else "pos"
    adapter, takes_orders, _marks = opened[table]
    try:
        check_duties(
            store,
            orders=adapter,
            takes_orders=takes_orders,
            stands_in="fallback" not in opened or opened["fallback"][2],
        )
    except ConfigError as fault:
        at = "fallback" if takes_orders else table
        return [_placed(loaded, fault, loaded.line_of("stores", store, at, "adapter"))]
    return []


def _placed(loaded: LoadedSettings, fault: ConfigError, line: int, table: str = "") -> ConfigError:
    place = _("{file}, line {line}: ").format(file=loaded.path, line=line) if line else ""
    return ConfigError(f"{place}{table}{fault.text}", fix=fault.fix)


def check_address(key: str, listen: str) -> None:
    """Raise ConfigError where `listen` (address:port) is not of this machine; blocks for a name.

    Whether the port is free is not looked at: the bridge itself may have it.
    """
    host, _port = host_and_port(listen)
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise _not_here(key, listen, _("{host} is no name that this machine knows")) from None
    family, kind, protocol, _name, address = found[0]
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError as failure:
        if failure.errno in _NOT_OURS:
            raise _not_here(key, listen, _("{host} is no address of this machine")) from None


def _not_here(key: str, listen: str, why: str) -> ConfigError:
    host, _port = host_and_port(listen)
    return ConfigError(
        f"{key}: {why.format(host=host)}.",
        fix=_(
            'Name an address of this machine: "127.0.0.1:PORT" for itself alone, '
            '"0.0.0.0:PORT" for every network it is in.'
        ),
    )
