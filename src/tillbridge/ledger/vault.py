"""Secrets at rest: tokens and webhook secrets, encrypted.

The key is stored separately (`key.py`). Beside a ledger that is a file, the secrets have a file of
their own, so that a damaged ledger costs no token and no webhook secret (invariant 8). On a
database server they are a table, shared by all bridges.
"""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from secrets import token_bytes
from typing import Protocol, Self

from cryptography.fernet import InvalidToken
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from tillbridge.config.values import origin_of
from tillbridge.core.errors import ConfigError, LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.ledger.database import VAULT_FILE
from tillbridge.ledger.key import KEY_FILE, fernet_of, read_file, write_file

# The app's client secret, if the configuration says { vault = true }. As with facts, the
# bridge's own secrets are stored under the store "".
CLIENT_SECRET = "/client_secret"  # noqa: S105 -- the name it is stored under


class _Storage(Protocol):
    """Where the encrypted secrets are. Its methods block, and are called one at a time."""

    is_shared: bool  # whether other bridges change them too

    @property
    def mark(self) -> bytes:
        """What only the bridges that use this storage know; not before `load`."""

    def load(self) -> dict[str, str]:
        """Return all secrets."""

    def save(self, secrets: Mapping[str, str], name: str) -> None:
        """Store what `secrets` has under a name, or delete that. Raises LedgerUnwritable."""

    def changed(self) -> Mapping[str, str | None]:
        """Return what others have changed since the last look, None for deleted ones."""


class Vault:
    """Named secrets. Every change is on disk when the call returns; safe to use from any thread.

    Names: `{store}/refresh_token`, `{store}/webhook_secrets`, ... Without a `database` they are a
    file in the data folder; `key` is the configured one. Raises LedgerError if the vault cannot be
    read, and that or, of a database, ConfigError if the key does not open it.
    """

    def __init__(
        self, data_dir: Path, *, key: str | None = None, database: Engine | None = None
    ) -> None:
        self._storage: _Storage = (
            _FileStorage(data_dir, key) if database is None else _Table(data_dir, key, database)
        )
        self._lock = threading.Lock()
        self._secrets = self._storage.load()

    @classmethod
    def existing(
        cls, data_dir: Path, *, key: str | None = None, database: Engine | None = None
    ) -> Self | None:
        """Return the vault, None where nothing was ever stored: nothing is made. Raises as it."""
        there = (data_dir / VAULT_FILE).exists() if database is None else _Table.exists(database)
        return cls(data_dir, key=key, database=database) if there else None

    @property
    def mark(self) -> bytes:
        """What only this bridge knows, or only those on the same database."""
        return self._storage.mark

    def get(self, name: str) -> str | None:
        """Return the secret, or None."""
        return self._secrets.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of all secrets."""
        return tuple(self._secrets)

    def put(self, name: str, value: str) -> None:
        """Store the secret, replacing an older one. LedgerUnwritable if the disk refuses."""
        with self._lock:
            # Others may have changed it since the last look.
            if self._storage.is_shared or self._secrets.get(name) != value:
                self._save({**self._secrets, name: value}, name)

    def drop(self, name: str) -> None:
        """Delete the secret. LedgerUnwritable if the disk refuses."""
        with self._lock:
            if self._storage.is_shared or name in self._secrets:
                self._save({key: each for key, each in self._secrets.items() if key != name}, name)

    def refresh(self) -> tuple[str, ...]:
        """Read what other bridges have changed; return its names. Blocks; raises LedgerError."""
        with self._lock:
            changes = self._storage.changed()
            merged = {**self._secrets, **changes}
            self._secrets = {name: value for name, value in merged.items() if value is not None}
        return tuple(changes)

    def _save(self, secrets: dict[str, str], name: str) -> None:
        self._storage.save(secrets, name)
        self._secrets = secrets


class _FileStorage:
    """All secrets in one encrypted file, which one bridge uses."""

    is_shared = False

    def __init__(self, data_dir: Path, key: str | None) -> None:
        self.mark = token_bytes(32)
        self._path = data_dir / VAULT_FILE
        self._stored = read_file(self._path)
        self._fernet = fernet_of(
            data_dir, configured=key, missing=None if self._stored is None else _no_key
        )

    def load(self) -> dict[str, str]:
        if self._stored is None:
            return {}
        try:
            secrets = json.loads(self._fernet.decrypt(self._stored))
        except (InvalidToken, ValueError):
            # No cause: decrypted data must not appear in a traceback.
            raise LedgerError(
                _(
                    "The key does not open {path}: it is a different key, or the file is damaged."
                ).format(path=self._path),
                fix=_(
                    "Restore the right {key}. If it is lost, move {path} away and run "
                    "“tillbridge connect” for each store."
                ).format(key=KEY_FILE, path=self._path.name),
            ) from None
        return {str(name): str(value) for name, value in secrets.items()}

    def save(self, secrets: Mapping[str, str], name: str) -> None:
        del name  # all of them are one file
        write_file(self._path, self._fernet.encrypt(json.dumps(secrets).encode()))

    def changed(self) -> Mapping[str, str | None]:
        return {}


def _no_key(path: Path) -> LedgerError:
    return LedgerError(
        _("The key {path} is missing, so the saved secrets cannot be read.").format(path=path),
        fix=_(
            "Restore it from a backup, or move {vault} away and run “tillbridge connect” "
            "for each store."
        ).format(vault=VAULT_FILE),
    )


# What the key of all bridges has encrypted first: another key is noticed before it is used.
_KEY_PROOF = "//key"
_PROVE = text(
    "INSERT INTO secrets (name, value, changed_at)"
    " VALUES (:name, :value, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
    " ON CONFLICT (name) DO NOTHING"
)
_PUT = text(
    "INSERT INTO secrets (name, value, changed_at)"
    " VALUES (:name, :value, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at"
)
_LATE_MS = 10_000  # a change may become visible this long after its time


class _Table:
    """Each secret a row of a PostgreSQL database, which several bridges use."""

    is_shared = True

    def __init__(self, data_dir: Path, key: str | None, database: Engine) -> None:
        self._database = database
        self._tokens: dict[str, str] = {}  # as they are stored, encrypted
        self._seen_until = 0
        self._path = data_dir / KEY_FILE
        proved = self.exists(database)
        self._fernet = fernet_of(data_dir, configured=key, missing=self._no_key if proved else None)

    @staticmethod
    def exists(database: Engine) -> bool:
        """Return whether some bridge has stored secrets, or is about to. Raises LedgerError."""
        query = text("SELECT 1 FROM secrets WHERE name = :name")
        with _failing(LedgerError), database.connect() as connection:
            is_new = connection.scalar(text("SELECT to_regclass('secrets')")) is None
            return not is_new and connection.scalar(query, {"name": _KEY_PROOF}) is not None

    @property
    def mark(self) -> bytes:
        return self._tokens[_KEY_PROOF].encode()

    def load(self) -> dict[str, str]:
        # Of bridges that start at once, the key of one counts.
        proof = self._fernet.encrypt(_KEY_PROOF.encode()).decode()
        with _failing(LedgerUnwritable), self._database.begin() as connection:
            connection.execute(_PROVE, {"name": _KEY_PROOF, "value": proof})
        return {name: value for name, value in self.changed().items() if value is not None}

    def save(self, secrets: Mapping[str, str], name: str) -> None:
        value = secrets.get(name)
        token = None if value is None else self._fernet.encrypt(value.encode()).decode()
        with _failing(LedgerUnwritable), self._database.begin() as connection:
            if token is None:
                connection.execute(text("DELETE FROM secrets WHERE name = :name"), {"name": name})
            else:
                connection.execute(_PUT, {"name": name, "value": token})
            said = text("SELECT pg_notify('tillbridge', :said)")
            connection.execute(said, {"said": f"secret {name}"})
        if token is None:
            self._tokens.pop(name, None)
        else:
            self._tokens[name] = token

    def changed(self) -> Mapping[str, str | None]:
        late = text("SELECT name, value, changed_at FROM secrets WHERE changed_at >= :since")
        with _failing(LedgerError), self._database.connect() as connection:
            rows = connection.execute(late, {"since": self._seen_until - _LATE_MS}).all()
            gone = self._gone(connection, {row.name for row in rows})
        found: dict[str, str | None] = {}
        for row in rows:
            if self._tokens.get(row.name) != row.value:
                found[row.name] = self._decrypted(row.name, row.value)
                self._tokens[row.name] = row.value
        self._seen_until = max([self._seen_until, *(row.changed_at for row in rows)])
        for name in gone:
            found[name] = None
            del self._tokens[name]
        found.pop(_KEY_PROOF, None)
        return found

    def _gone(self, connection: Connection, just_read: set[str]) -> set[str]:
        count = connection.scalar(text("SELECT count(*) FROM secrets"))
        if count == len(self._tokens.keys() | just_read):
            return set()
        names = set(connection.scalars(text("SELECT name FROM secrets")))
        return self._tokens.keys() - names

    def _decrypted(self, name: str, token: str) -> str:
        try:
            return self._fernet.decrypt(token).decode()
        except (InvalidToken, ValueError):
            pass
        # Out here, so that what was decrypted is in no traceback.
        if name == _KEY_PROOF:
            raise ConfigError(
                _("The secrets in the database are encrypted with a different key than this one."),
                fix=_(
                    "Give all bridges on one database the same key: [ledger] key in bridge.toml. "
                    "Without it, that is {path}."
                ).format(path=self._path),
            )
        raise LedgerError(
            _("The secret {name} in the database is damaged.").format(name=name),
            fix=_(
                "Delete it (DELETE FROM secrets WHERE name = '{name}'), and connect again."
            ).format(name=name),
        )

    def _no_key(self, path: Path) -> ConfigError:
        return ConfigError(
            _("The secrets in the database need their key, which is not in {path}.").format(
                path=path
            ),
            fix=_(
                "Copy the key of the bridge that used the database first, and say where it is: "
                "[ledger] key in bridge.toml."
            ),
        )


@contextlib.contextmanager
def _failing(kind: type[LedgerError]) -> Iterator[None]:
    try:
        yield
    except DBAPIError as failure:
        raise kind(
            _("The secrets in the database cannot be used: {detail}.").format(detail=failure.orig),
            fix=_("Check the database server and the way to it: tillbridge doctor"),
        ) from None  # its statement has the secret's name and token


# -- the app's secret, and the service it belongs to: it is sent to no other address


_ORIGIN = f"{CLIENT_SECRET}/origin"


@dataclass(frozen=True, slots=True)
class StoredClientSecret:
    """The app's secret in the vault, and the origin it belongs to; None if unknown."""

    secret: str | None = field(repr=False)
    origin: str | None

    @classmethod
    def of(cls, vault: Vault) -> "StoredClientSecret":
        """Return what the vault has."""
        return cls(vault.get(CLIENT_SECRET), vault.get(_ORIGIN))

    def put(self, vault: Vault) -> None:
        """Store this in the vault. Raises LedgerUnwritable."""
        for name, value in ((CLIENT_SECRET, self.secret), (_ORIGIN, self.origin)):
            if value is None:
                vault.drop(name)
            else:
                vault.put(name, value)


def client_secret_for(vault: Vault, base_url: str) -> str | None:
    """Return the app's secret from the vault; None if it belongs to another service or is missing.

    A secret stored before 0.2 names no service and counts for the configured one.
    """
    stored = StoredClientSecret.of(vault)
    return stored.secret if stored.origin in {None, origin_of(base_url)} else None


def secret_of_setting(vault: Vault, base_url: str, key: str) -> str | None:
    """Return the secret of a setting (dotted key) that says { vault = true }, or None."""
    if key == "service.client_secret":
        return client_secret_for(vault, base_url)
    return vault.get(vault_name(key))


def vault_name(key: str) -> str:
    """Return the vault's name for the secret of a setting."""
    return f"/{key}"


# -- the secrets that sign deliveries to a store or a community

_OLDER_STORED = 4


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret that signs deliveries, since `since_ms` (milliseconds since the epoch).

    `integration_id` and `location_id` are those of the integration that returned it, "" if an
    earlier version stored it; `ended_ms` is when that integration was removed for good. A
    community's secret has the id of its subscription, `webhook_id`.
    """

    secret: str = field(repr=False)
    since_ms: int
    integration_id: str = ""
    location_id: str = ""
    ended_ms: int | None = None
    webhook_id: str = ""


def webhook_secrets(vault: Vault, store: str) -> tuple[WebhookSecret, ...]:
    """Return the secrets of a store or a community, newest first."""
    names = WebhookSecret.__slots__
    return tuple(
        WebhookSecret(**{name: each[name] for name in names if each.get(name) is not None})
        for each in json.loads(vault.get(_secrets_name(store)) or "[]")
        if each.get("secret")  # anybody could sign with an empty key
    )


def counting(
    secrets: Sequence[WebhookSecret], now_ms: int, *, old_secret_s: float
) -> tuple[WebhookSecret, ...]:
    """Return the valid ones: the newest, and older ones until `old_secret_s` after their end.

    A secret that was replaced, or ended with its integration, stays valid for a while, so that
    deliveries signed with it, and their retries, are accepted.
    """
    found = []
    replaced_ms: int | None = None
    for each in secrets:
        ended_ms = replaced_ms if each.ended_ms is None else each.ended_ms
        if ended_ms is None or now_ms - ended_ms < old_secret_s * 1000:
            found.append(each)
        replaced_ms = each.since_ms
    return tuple(found)


def store_webhook_secret(
    vault: Vault,
    store: str,
    secret: str,
    *,
    at_ms: int,
    integration_id: str = "",
    location_id: str = "",
    webhook_id: str = "",
) -> None:
    """Store a new secret with those it replaces. Durable on return; raises LedgerUnwritable."""
    newest = WebhookSecret(secret, at_ms, integration_id, location_id, webhook_id=webhook_id)
    older = [each for each in webhook_secrets(vault, store) if each.secret != secret]
    _save(vault, store, [newest, *older[:_OLDER_STORED]])


def describe_webhook_secret(
    vault: Vault, store: str, *, integration_id: str, location_id: str
) -> None:
    """Record which integration the newest secret belongs to, if an earlier version did not."""
    secrets = webhook_secrets(vault, store)
    if secrets and not secrets[0].integration_id:
        newest = replace(secrets[0], integration_id=integration_id, location_id=location_id)
        _save(vault, store, [newest, *secrets[1:]])


def end_webhook_secrets(vault: Vault, store: str, *, at_ms: int) -> None:
    """Record that the integration was removed: deliveries under way stay valid for a while."""
    ended = [
        each if each.ended_ms is not None else replace(each, ended_ms=at_ms)
        for each in webhook_secrets(vault, store)
    ]
    if ended:
        _save(vault, store, ended)


def forget_webhook_secrets(vault: Vault, store: str, *, now_ms: int, old_secret_s: float) -> None:
    """Delete secrets that are no longer valid."""
    known = webhook_secrets(vault, store)
    left = counting(known, now_ms, old_secret_s=old_secret_s)
    if known and not left:
        vault.drop(_secrets_name(store))
    elif len(left) < len(known):
        _save(vault, store, left)


def _save(vault: Vault, store: str, secrets: Sequence[WebhookSecret]) -> None:
    records = [
        {name: value for name, value in asdict(each).items() if value not in {"", None}}
        for each in secrets
    ]
    vault.put(_secrets_name(store), json.dumps(records))


def prove_writable(vault: Vault, store: str, *, at_ms: int) -> None:
    """Raise LedgerUnwritable now, before a secret is revealed that is revealed only once."""
    vault.put(f"{store}/probe", str(at_ms))
    vault.drop(f"{store}/probe")


def _secrets_name(store: str) -> str:
    return f"{store}/webhook_secrets"
