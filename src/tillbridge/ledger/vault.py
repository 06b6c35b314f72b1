"""Secrets at rest: tokens and webhook secrets, encrypted, beside the ledger and not inside it.

The key is stored separately (`ledger.key`, or the systemd credential `ledger_key`), and the secrets
have a file of their own, so that a damaged ledger costs no token and no webhook secret (invariant
8).
"""

import base64
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from tillbridge.config import origin_of
from tillbridge.core.errors import LedgerError, LedgerUnwritable
from tillbridge.core.i18n import _
from tillbridge.ledger.database import VAULT_FILE, write_durably

# -- the key, sealed by Windows: a copied data folder does not open the vault elsewhere


_MARK = b"dpapi:"


@dataclass(frozen=True, slots=True)
class Sealing:
    """A way of sealing that only this machine can undo; both functions raise OSError."""

    protect: Callable[[bytes], bytes]
    unprotect: Callable[[bytes], bytes]


def seal(key: bytes, sealing: Sealing | None) -> bytes:
    """Return the content of the key file: sealed, or the plain key if the system cannot seal."""
    return key if sealing is None else _MARK + base64.b64encode(sealing.protect(key))


def unseal(content: bytes, sealing: Sealing | None) -> bytes:
    """Return the key from the content of a key file. Raises OSError if this machine cannot."""
    if not content.startswith(_MARK):
        return content
    if sealing is None:
        raise OSError(0, "it was sealed by Windows, on the machine it comes from")
    try:
        blob = base64.b64decode(content.removeprefix(_MARK).strip(), validate=True)
    except ValueError as slip:
        raise OSError(0, "it is damaged") from slip
    return sealing.unprotect(blob)


def machine_sealing() -> Sealing | None:
    """Return how Windows seals a key for this machine; None on other systems."""
    if sys.platform == "win32":
        import pywintypes  # noqa: PLC0415 -- of pywin32, which only Windows has
        import win32crypt  # noqa: PLC0415 -- (as above)

        local_machine, no_ui = 0x4, 0x1

        def protect(content: bytes) -> bytes:
            try:
                flags = local_machine | no_ui
                return bytes(
                    win32crypt.CryptProtectData(content, "tillbridge", None, None, None, flags)
                )
            except pywintypes.error as failure:
                raise OSError(failure.winerror, failure.strerror) from failure

        def unprotect(content: bytes) -> bytes:
            try:
                return bytes(win32crypt.CryptUnprotectData(content, None, None, None, no_ui)[1])
            except pywintypes.error as failure:
                raise OSError(failure.winerror, failure.strerror) from failure

        return Sealing(protect, unprotect)
    return None


_KEY_FILE = "ledger.key"
_CREDENTIAL = "ledger_key"
# The app's client secret, if the configuration says { vault = true }. As with facts, the
# bridge's own secrets are stored under the store "".
CLIENT_SECRET = "/client_secret"  # noqa: S105 -- the name it is stored under


class Vault:
    """Named secrets. Every change is on disk when the call returns; safe to use from any thread.

    Names: `{store}/refresh_token`, `{store}/webhook_secrets`, ... Raises LedgerError if the key
    does not open the vault, or the vault cannot be read.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / VAULT_FILE
        self._lock = threading.Lock()
        stored = _read(self._path)
        self._fernet = _fernet(data_dir, has_vault=stored is not None)
        self._secrets = {} if stored is None else self._decrypt(stored)

    def get(self, name: str) -> str | None:
        """Return the secret, or None."""
        return self._secrets.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of all secrets."""
        return tuple(self._secrets)

    def put(self, name: str, value: str) -> None:
        """Store the secret, replacing an older one. LedgerUnwritable if the disk refuses."""
        with self._lock:
            if self._secrets.get(name) != value:
                self._save({**self._secrets, name: value})

    def drop(self, name: str) -> None:
        """Delete the secret. LedgerUnwritable if the disk refuses."""
        with self._lock:
            if name in self._secrets:
                self._save({key: value for key, value in self._secrets.items() if key != name})

    def _save(self, secrets: dict[str, str]) -> None:
        token = self._fernet.encrypt(json.dumps(secrets).encode())
        _write(self._path, token)
        self._secrets = secrets

    def _decrypt(self, token: bytes) -> dict[str, str]:
        try:
            secrets = json.loads(self._fernet.decrypt(token))
        except (InvalidToken, ValueError):
            # No cause: decrypted data must not appear in a traceback.
            raise LedgerError(
                _(
                    "The key does not open {path}: it is a different key, or the file is damaged."
                ).format(path=self._path),
                fix=_(
                    "Restore the right {key}. If it is lost, move {path} away and run "
                    "“tillbridge connect” for each store."
                ).format(key=_KEY_FILE, path=self._path.name),
            ) from None
        return {str(name): str(value) for name, value in secrets.items()}


def _fernet(data_dir: Path, *, has_vault: bool) -> Fernet:
    path, key = _find_key(data_dir)
    if key is None:
        if has_vault:
            raise LedgerError(
                _("The key {path} is missing, so the saved secrets cannot be read.").format(
                    path=path
                ),
                fix=_(
                    "Restore it from a backup, or move {vault} away and run “tillbridge connect” "
                    "for each store."
                ).format(vault=VAULT_FILE),
            )
        key = Fernet.generate_key()
        _write(path, seal(key, machine_sealing()) + b"\n")
    try:
        return Fernet(unseal(key.strip(), machine_sealing()))
    except OSError as failure:
        raise LedgerError(
            _("The key {path} cannot be used on this machine: {detail}.").format(
                path=path, detail=failure.strerror
            ),
            fix=_(
                "Move {vault} and the key away, and run “tillbridge connect” for each store."
            ).format(vault=VAULT_FILE),
        ) from failure
    except ValueError:
        raise LedgerError(
            _("{path} does not contain a key.").format(path=path),
            fix=_("A key is 44 characters of URL-safe base64. Restore the right one."),
        ) from None


def _find_key(data_dir: Path) -> tuple[Path, bytes | None]:
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    if credentials:
        path = Path(credentials) / _CREDENTIAL
        # The unit passes an empty one if there is none.
        if (key := _read(path)) is not None and key.strip():
            return path, key
    path = data_dir / _KEY_FILE
    key = _read(path)
    if key is not None and path.stat().st_mode & 0o077 and os.name == "posix":
        path.chmod(0o600)
    return path, key


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise LedgerError(
            _("{path} cannot be read: {detail}.").format(path=path, detail=failure.strerror),
            fix=_("Give the bridge's user, and nobody else, permission to read it."),
        ) from failure


def _write(path: Path, content: bytes) -> None:
    try:
        write_durably(path, content)
    except OSError as failure:
        raise LedgerUnwritable(
            _("{path} cannot be written: {detail}.").format(path=path, detail=failure),
            fix=_("Free disk space, or give the bridge's user permission to write there."),
        ) from failure


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
