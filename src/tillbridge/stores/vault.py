"""What is stored in the vault: the stores' tokens and webhook secrets, and app-level tokens."""

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from tillbridge.config import origin_of
from tillbridge.core.errors import Refused
from tillbridge.ledger.vault import Vault
from tillbridge.service.tokens import Access, AppTokenStore, StoredToken, TokenStore
from tillbridge.service.types import Tokens, read

_OLDER_STORED = 4


class VaultTokenStore(TokenStore):
    """Stores one store's tokens in the vault, under `{store}/tokens`, for one service.

    Tokens of another service are as good as none: sent there, they would be given away.
    """

    def __init__(self, vault: Vault, store: str, base_url: str) -> None:
        super().__init__()
        self._vault = vault
        self._name = f"{store}/tokens"
        self._origin = origin_of(base_url)

    def load(self) -> Tokens | None:
        """Return the tokens; None where there are none for this service, or none to be read."""
        stored = self._vault.get(self._name)
        if stored is None:
            return None
        try:
            record = json.loads(stored)
            # Versions before 0.2 did not say whose they are.
            origin = record.pop("origin", self._origin)
            return read(Tokens, record, "tokens.load") if origin == self._origin else None
        except (AttributeError, ValueError, Refused):
            return None

    def save(self, tokens: Tokens) -> None:
        """Store the tokens; on return they are on disk. Raises LedgerUnwritable."""
        self._vault.put(self._name, json.dumps({**asdict(tokens), "origin": self._origin}))


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret that signs deliveries, since `since_ms` (milliseconds since the epoch).

    `integration_id` and `location_id` are those of the integration it was shown for, "" where an
    earlier version stored it; `ended_ms` is when that integration was removed for good. A
    community's has the id of its subscription, `webhook_id`.
    """

    secret: str = field(repr=False)
    since_ms: int
    integration_id: str = ""
    location_id: str = ""
    ended_ms: int | None = None
    webhook_id: str = ""


def webhook_secrets(vault: Vault, store: str) -> tuple[WebhookSecret, ...]:
    """Return the secrets of a store, or of a community, the newest first."""
    names = WebhookSecret.__slots__
    return tuple(
        WebhookSecret(**{name: each[name] for name in names if each.get(name) is not None})
        for each in json.loads(vault.get(_secrets_name(store)) or "[]")
        if each.get("secret")  # an empty key would be anybody's
    )


def counting(
    secrets: Sequence[WebhookSecret], now_ms: int, *, old_secret_s: float
) -> tuple[WebhookSecret, ...]:
    """Return those that count: the newest, and older ones for `old_secret_s` after their end.

    A secret that was replaced, or ended with its integration, still counts for a while, so that
    deliveries signed with it, and their retries, are taken.
    """
    found = []
    replaced_ms: int | None = None
    for each in secrets:
        ended_ms = replaced_ms if each.ended_ms is None else each.ended_ms
        if ended_ms is None or now_ms - ended_ms < old_secret_s * 1000:
            found.append(each)
        replaced_ms = each.since_ms
    return tuple(found)


def keep_webhook_secret(
    vault: Vault,
    store: str,
    secret: str,
    *,
    at_ms: int,
    integration_id: str = "",
    location_id: str = "",
    webhook_id: str = "",
) -> None:
    """Keep a new secret, and those it replaces. On return it is on disk; LedgerUnwritable."""
    newest = WebhookSecret(secret, at_ms, integration_id, location_id, webhook_id=webhook_id)
    older = [each for each in webhook_secrets(vault, store) if each.secret != secret]
    _save(vault, store, [newest, *older[:_OLDER_STORED]])


def describe_webhook_secret(
    vault: Vault, store: str, *, integration_id: str, location_id: str
) -> None:
    """Note which integration the newest secret is for, where an earlier version did not."""
    secrets = webhook_secrets(vault, store)
    if secrets and not secrets[0].integration_id:
        newest = replace(secrets[0], integration_id=integration_id, location_id=location_id)
        _save(vault, store, [newest, *secrets[1:]])


def end_webhook_secrets(vault: Vault, store: str, *, at_ms: int) -> None:
    """Note that the integration is no more: what is under way counts for a while still."""
    ended = [
        each if each.ended_ms is not None else replace(each, ended_ms=at_ms)
        for each in webhook_secrets(vault, store)
    ]
    if ended:
        _save(vault, store, ended)


def forget_webhook_secrets(vault: Vault, store: str, *, now_ms: int, old_secret_s: float) -> None:
    """Forget the secrets that have not counted for long enough."""
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
    """Raise LedgerUnwritable now rather than after a secret has been shown that is shown once."""
    vault.put(f"{store}/probe", str(at_ms))
    vault.drop(f"{store}/probe")


def _secrets_name(store: str) -> str:
    return f"{store}/webhook_secrets"


# As with facts, the bridge's own things stand under the store "".
_NAME = "/app_tokens"


@dataclass(frozen=True, slots=True)
class _AppTokens:
    """What is stored: whose tokens, and the tokens by audience and scope."""

    owner: list[str] = field(default_factory=list)
    tokens: dict[str, StoredToken] = field(default_factory=dict)


class VaultAppTokens(AppTokenStore):
    """Stores the tokens of one app at one service: another's would only be refused."""

    def __init__(self, vault: Vault, *, base_url: str, client_id: str) -> None:
        super().__init__()
        self._vault = vault
        self._owner = [base_url, client_id]
        self._lock = threading.Lock()

    def load(self, access: Access) -> StoredToken | None:
        """Return the stored token; None where there is none, or another version wrote it."""
        return self._stored().get(_key(access))

    def save(self, access: Access, token: StoredToken) -> None:
        """Store the token, and forget those that are over. Raises LedgerUnwritable."""
        with self._lock:
            before, now_ms = self._stored().items(), token.minted_at_ms
            tokens = {key: each for key, each in before if each.expires_at_ms > now_ms}
            stored = _AppTokens(self._owner, tokens | {_key(access): token})
            self._vault.put(_NAME, json.dumps(asdict(stored)))

    def _stored(self) -> dict[str, StoredToken]:
        try:
            stored = TypeAdapter(_AppTokens).validate_json(self._vault.get(_NAME) or "{}")
        except ValidationError:  # of another version: it costs a minting
            return {}
        return stored.tokens if stored.owner == self._owner else {}


def _key(access: Access) -> str:
    return json.dumps([access.audience, access.scope])
