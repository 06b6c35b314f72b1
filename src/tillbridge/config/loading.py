"""Finds, reads and validates `bridge.toml`; a file without stores is one that is not set up yet.

Settings may contradict each other, though each is right by itself: `contradictions`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from tillbridge.config.bridge import (
    BridgeSettings,
    EmailSettings,
    LedgerSettings,
    ReceiverSettings,
    ServiceSettings,
    Settings,
    StatusPageSettings,
)
from tillbridge.config.secrets import (
    FromVault,
    SecretSource,
    database_url_fault,
    resolve_ledger_key,
    resolve_ledger_url,
    resolve_secret,
)
from tillbridge.config.store import StoreSettings
from tillbridge.config.toml import (
    Fault,
    KeyPath,
    Written,
    data_dir_of,
    find_file,
    key_lines,
    line_at,
    read_file,
    value_at,
)
from tillbridge.config.translate import faults_of, unknown_key, validated
from tillbridge.config.values import host_and_port, is_loopback
from tillbridge.core.errors import ConfigError
from tillbridge.core.files import claim_folder
from tillbridge.core.i18n import _


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings of a file; `data_dir` is absolute, other paths count from `base_dir`.

    `text` is what stood in the file.
    """

    settings: Settings
    path: Path
    base_dir: Path
    data_dir: Path
    text: str = field(default="", repr=False)

    @property
    def is_set_up(self) -> bool:
        """Whether there is a store; else only [bridge] and [status_page] are from the file."""
        return bool(self.settings.stores)

    def client_secret(self, from_vault: FromVault | None = None) -> SecretStr:
        """Return the app's secret, read now; `from_vault` looks into the vault.

        Raises ConfigError if it cannot be had.
        """
        return resolve_secret(
            self.settings.service.client_secret,
            key="service.client_secret",
            base_dir=self.base_dir,
            from_vault=from_vault,
        )

    def ledger_url(self) -> str | None:
        """Return the URL of the database; None: a file in `data_dir`. Raises ConfigError."""
        return resolve_ledger_url(self.settings.ledger.url, self.base_dir)

    def ledger_key(self) -> str | None:
        """Return the key of the stored secrets; None: a file in `data_dir`. Raises ConfigError."""
        return resolve_ledger_key(self.settings.ledger.key, self.base_dir)

    def line_of(self, *path: str | int) -> int:
        """Return the line of a key, or of the nearest table around it; 0 if none is written."""
        return line_at(key_lines(self.text), path)


def load(path: Path | None = None) -> LoadedSettings:
    """Load `path`, or the first file of the search order.

    Raises ConfigError: all that is wrong with the file at once, each with its line and remedy.
    """
    found = find_file(path)
    text, document = read_file(found)
    if is_fresh(document) and not document.keys() & {"service", "receiver"}:
        raise ConfigError(
            _("Nothing is set up yet: {path} has no stores.").format(path=found),
            fix=_("Set it up on the page whose address “tillbridge run” prints (docs/setup.md)."),
        )
    return loaded_from(found, text, document)


def loaded_from(path: Path, text: str, document: Mapping[str, Any]) -> LoadedSettings:
    """Return what a text says, as if it stood in the file `path`. Raises ConfigError, as `load`."""
    written = Written(path, text, document)
    settings = validated(Settings, written)
    written.check(contradictions(settings))
    loaded = _loaded(settings, written)
    claim_folder(loaded.data_dir)
    return loaded


def _loaded(settings: Settings, written: Written) -> LoadedSettings:
    data_dir = data_dir_of(written.path, written.document)
    bridge = settings.bridge.model_copy(update={"data_dir": data_dir})
    return LoadedSettings(
        settings=settings.model_copy(update={"bridge": bridge}),
        path=written.path.absolute(),
        base_dir=written.path.absolute().parent,
        data_dir=data_dir,
        text=written.text,
    )


def load_to_run(path: Path | None = None) -> LoadedSettings:
    """Load what `tillbridge run` is given: a whole file, or one without stores yet.

    Raises ConfigError, as `load`; what is only missing because nothing is set up is no fault.
    """
    found = find_file(path)
    text, document = read_file(found)
    if not is_fresh(document):
        return loaded_from(found, text, document)
    written = Written(found, text, document)
    faults: list[Fault] = []
    try:
        Settings.model_validate(document)
    except ValidationError as error:
        faults = [each for each in faults_of(error, document) if not _is_to_come(each, document)]
    written.check(faults)
    page = StatusPageSettings.model_validate(document.get("status_page", {}))
    ledger = LedgerSettings.model_validate(document.get("ledger", {}))
    written.check([*page_faults(page), *_ledger(ledger)])
    return _loaded(_unconfigured(page, ledger, document), written)


def _unconfigured(
    page: StatusPageSettings, ledger: LedgerSettings, document: Mapping[str, Any]
) -> Settings:
    """Return settings without stores; of the service only the redirect is known.

    It leads to the port of the page where the file does not name it.
    """
    bridge = BridgeSettings.model_validate(document.get("bridge", {}))
    service = document.get("service")
    uri = service.get("redirect_uri") if isinstance(service, Mapping) else None
    _host, port = host_and_port(page.listen)
    return Settings.model_construct(
        bridge=bridge,
        ledger=ledger,
        service=ServiceSettings.model_construct(
            base_url="",
            client_id="",
            client_secret=SecretStr(""),
            redirect_uri=uri or f"http://127.0.0.1:{port}/oauth/callback",
        ),
        receiver=ReceiverSettings.model_construct(public_url=""),
        status_page=page,
        stores={},
    )


def is_fresh(document: Mapping[str, Any]) -> bool:
    """Whether a file has neither stores nor communities."""
    return not document.get("stores") and not document.get("communities")


def _is_to_come(fault: Fault, document: Mapping[str, Any]) -> bool:
    """Whether a fault is only that something is not set up yet."""
    if fault.path == ("stores",):
        return document.get("stores") in (None, {})
    if not fault.path or fault.path[0] not in {"service", "receiver"}:
        return False
    return value_at(document, fault.path) is None


# -- settings that contradict each other


_ANYWHERE = {"0.0.0.0", "::"}  # noqa: S104 -- recognised, not listened on
# The first part of the paths that the page has for itself.
_STATUS_PATHS = frozenset(
    "86 api control diagnostics events healthz items login logout menu metrics orders reach setup "
    "static store stores tables".split()
) | {""}
# What reads or guards a push of menus.
_PUSH_SETTINGS = (
    "max_removed_percent",
    "max_price_change_percent",
    "max_changed_percent",
    "max_added_percent",
    "full_push_percent",
)


def contradictions(settings: Settings) -> Iterator[Fault]:
    """Return a fault for each setting that another one contradicts, or that cannot be meant."""
    yield from _listeners(settings)
    yield from _certificate(settings)
    yield from _redirect(settings)
    yield from _ledger(settings.ledger)
    if settings.ledger.url is not None and settings.bridge.backup_at is not None:
        yield Fault(
            ("bridge", "backup_at"),
            _("has no effect on a database server."),
            _("Remove it, and back the server up with its own tools; see docs/operate.md."),
        )
    serve = [None if name in settings.communities else name for name in settings.bridge.serve]
    yield from _not_stores(("bridge", "serve"), serve, settings)
    yield from _service(settings)
    yield from _names(settings)
    yield from _alerts(settings)
    for name, store in settings.stores.items():
        yield from _store(("stores", name), store)
    if settings.communities:
        yield from _communities(settings)


def _not_stores(path: KeyPath, names: Iterable[str | None], settings: Settings) -> Iterator[Fault]:
    """Yield a fault for each name in a list that is no store's; None is left alone."""
    for place, name in enumerate(names):
        if name is not None and name not in settings.stores:
            yield Fault(
                (*path, place),
                _("is not a store in this file."),
                _("Choose from: {names}.").format(names=", ".join(settings.stores)),
            )


def _listeners(settings: Settings) -> Iterator[Fault]:
    receiver_host, receiver_port = host_and_port(settings.receiver.listen)
    status_host, status_port = host_and_port(settings.status_page.listen)
    overlap = receiver_host == status_host or {receiver_host, status_host} & _ANYWHERE
    if overlap and receiver_port == status_port != 0:
        yield Fault(
            ("status_page", "listen"),
            _("is also the address of receiver.listen: the page would be open to the internet."),
            _('Give it another port, for example "127.0.0.1:8089".'),
        )
    yield from page_faults(settings.status_page)


def page_faults(page: StatusPageSettings) -> Iterator[Fault]:
    """Return what is wrong with the page's table by itself."""
    if not is_loopback(host_and_port(page.listen)[0]) and not page.users:
        yield Fault(
            ("status_page", "listen"),
            _("lets other machines open the page, and it has no password."),
            _(
                "Run “tillbridge password NAME” and put the line it prints into "
                "[status_page.users], or use 127.0.0.1 and an SSH tunnel."
            ),
        )


def _certificate(settings: Settings) -> Iterator[Fault]:
    receiver = settings.receiver
    if (receiver.tls_cert is None) != (receiver.tls_key is None):
        missing = "tls_key" if receiver.tls_key is None else "tls_cert"
        yield Fault(
            ("receiver", missing),
            _("is missing: a certificate needs its key."),
            _("Name both files, or neither if a tunnel or proxy handles TLS."),
        )


def _redirect(settings: Settings) -> Iterator[Fault]:
    path: KeyPath = ("service", "redirect_uri")
    parts = urlsplit(settings.service.redirect_uri)
    if parts.scheme != "http" or not is_loopback(parts.hostname or ""):
        yield Fault(
            path,
            _(
                "must be an http address of this machine, because the browser returns to the "
                "bridge."
            ),
            _('Use for example "http://127.0.0.1:8089/oauth/callback".'),
        )
        return
    port = parts.port or 80
    if port == host_and_port(settings.receiver.listen)[1]:
        yield Fault(
            path,
            _("uses the port of receiver.listen, which accepts only webhooks."),
            _("Use the port of status_page.listen, or a free one."),
        )
    if port == host_and_port(settings.status_page.listen)[1] and (
        parts.path.strip("/").partition("/")[0] in _STATUS_PATHS
    ):
        yield Fault(
            path,
            _("uses the port of status_page.listen and the path of one of its pages."),
            _("Use a different path, for example /oauth/callback."),
        )


def _ledger(ledger: LedgerSettings) -> Iterator[Fault]:
    for key, source in (("url", ledger.url), ("key", ledger.key)):
        if isinstance(source, SecretSource) and source.vault:
            yield Fault(
                ("ledger", key),
                _("cannot be in the vault: it is needed to open the vault."),
                _("Use { file = ... }, { env = ... } or { credential = ... }."),
            )
    if isinstance(ledger.url, SecretStr):
        fault = database_url_fault(ledger.url.get_secret_value())
        if fault is not None:
            yield Fault(("ledger", "url"), *fault)


def _service(settings: Settings) -> Iterator[Fault]:
    service = settings.service
    base = urlsplit(service.base_url)
    if base.scheme == "http" and not is_loopback(base.hostname or ""):
        yield Fault(
            ("service", "base_url"),
            _("is unencrypted http to another machine: others could read tokens and orders."),
            _("Use https://."),
        )
    if service.backoff_first_s > service.backoff_cap_s:
        yield Fault(
            ("service", "backoff_first_s"),
            _("is more than backoff_cap_s, the longest wait."),
            _("Make it shorter."),
        )


def _names(settings: Settings) -> Iterator[Fault]:
    for key in ("location_id", "store_id"):
        seen: dict[str, str] = {}
        for name, store in settings.stores.items():
            value = getattr(store, key)
            if value is not None and value in seen:
                yield Fault(
                    ("stores", name, key),
                    _("is the same as in the store {other}.").format(other=seen[value]),
                    _("Each store needs its own."),
                )
            elif value is not None:
                seen[value] = name


def _communities(settings: Settings) -> Iterator[Fault]:
    ids: dict[str, str] = {}
    for name, community in settings.communities.items():
        if community.community_id in ids:
            text = _("is the same as in the community {other}.")
            yield Fault(
                ("communities", name, "community_id"),
                text.format(other=ids[community.community_id]),
                _("Keep one table, and name all your member stores in it."),
            )
        ids[community.community_id] = name
        yield from _not_stores(("communities", name, "stores"), community.stores, settings)


def _schedule(path: KeyPath, store: StoreSettings) -> Iterator[Fault]:
    schedule = store.schedule
    if schedule.pauses:
        # Hours and weeks are read only where a store plans by them.
        from tillbridge.config.hours import pause_faults  # noqa: PLC0415 -- (as above)

        for place, fault in pause_faults(schedule.pauses):
            yield Fault((*path, "schedule", "pauses", place), fault.text, fault.fix)
    if schedule.follow_hours and store.hours_file is None and store.settings_file is None:
        yield Fault(
            (*path, "schedule", "follow_hours"),
            _("is true, but there is no hours file."),
            _('Write hours_file = "hours.toml" in the table of the store; see docs/store.md.'),
        )
    if schedule.last_orders_min and not schedule.follow_hours:
        yield Fault(
            (*path, "schedule", "last_orders_min"),
            _("has no effect without follow_hours = true."),
            _("Set follow_hours = true, or remove it."),
        )


def _store(path: KeyPath, store: StoreSettings) -> Iterator[Fault]:
    yield from _schedule(path, store)
    orders = store.orders
    if orders.accept == "when_confirmed" and store.auto_accept_orders:
        yield Fault(
            (*path, "orders", "accept"),
            _("waits for the till, but auto_accept_orders lets the service accept immediately."),
            _('Set auto_accept_orders = false, or accept = "when_written".'),
        )
    if orders.adapter is None:
        for key in orders.options:
            yield unknown_key((*path, "orders", key))
    if store.fallback is not None and store.fallback.after_s >= orders.accept_within_s:
        yield Fault(
            (*path, "fallback", "after_s"),
            _("must be less than accept_within_s, when the order is cancelled."),
            _("Lower it, or raise accept_within_s."),
        )
    if orders.retry_s > orders.retry_cap_s:
        yield Fault(
            (*path, "orders", "retry_s"),
            _("is more than retry_cap_s, the longest wait."),
            _("Make it shorter."),
        )
    if store.menu_sync_direction in {"none", "quiqqy_to_pos"}:
        for key in _PUSH_SETTINGS:
            if key in store.menu.model_fields_set:
                yield Fault(
                    (*path, "menu", key),
                    _(
                        'applies to sending menus, but menu_sync_direction = "{way}" turns '
                        "that off."
                    ).format(way=store.menu_sync_direction),
                    _("Remove it, or set the direction to pos_to_quiqqy or bidirectional."),
                )


def _alerts(settings: Settings) -> Iterator[Fault]:
    alerts = settings.alerts
    yield from _not_stores(("alerts", "stores"), alerts.stores, settings)
    if any(later <= earlier for earlier, later in pairwise(alerts.repeat_min)):
        yield Fault(
            ("alerts", "repeat_min"),
            _("must be in ascending order."),
            _("Write for example [0, 5, 10]."),
        )
    if alerts.email is not None:
        yield from _email(alerts.email)


def _email(email: EmailSettings) -> Iterator[Fault]:
    if email.tls == "none" and not is_loopback(email.host):
        yield Fault(
            ("alerts", "email", "tls"),
            _('is "none": others could read passwords and alerts.'),
            _('Use "starttls" (port 587) or "tls" (port 465), or a mail server on this machine.'),
        )
    if (email.username is None) != (email.password is None):
        missing = "password" if email.password is None else "username"
        yield Fault(
            ("alerts", "email", missing),
            _("is missing: a user name needs its password."),
            _("Set both, or neither if the mail server does not ask for them."),
        )
