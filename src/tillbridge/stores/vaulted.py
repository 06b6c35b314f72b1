"""What a store keeps in the vault: its tokens and its webhook secrets."""

import json
from dataclasses import dataclass, field

from tillbridge.errors import Refused
from tillbridge.ledger.vault import Vault
from tillbridge.service.types import Tokens


class VaultTokenStore:
    """Keeps one store's tokens in the vault, under `{store}/tokens`."""

    def __init__(self, vault: Vault, store: str) -> None:
        self._vault = vault
        self._name = f"{store}/tokens"

    def load(self) -> Tokens | None:
        """Return the kept tokens; None where there are none, or another version wrote them."""
        kept = self._vault.get(self._name)
        if kept is None:
            return None
        try:
            return Tokens.from_record(json.loads(kept))
        except (ValueError, Refused):
            return None

    def save(self, tokens: Tokens) -> None:
        """Keep the tokens; on return they are on disk. Raises LedgerUnwritable."""
        self._vault.put(self._name, json.dumps(tokens.to_record()))


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret that signs deliveries, since `since_ms` (milliseconds since the epoch)."""

    secret: str = field(repr=False)
    since_ms: int


def webhook_secrets(vault: Vault, store: str) -> tuple[WebhookSecret, ...]:
    """Return the store's secrets, the newest first; the receiver honours an older one for a day."""
    kept = vault.get(_secrets_name(store))
    return tuple(
        WebhookSecret(each["secret"], each["since_ms"])
        for each in (json.loads(kept) if kept else [])
    )


def keep_webhook_secret(vault: Vault, store: str, secret: str, *, at_ms: int) -> None:
    """Keep a new secret, and the one it replaces. On return it is on disk; LedgerUnwritable."""
    newest = WebhookSecret(secret, at_ms)
    older = [each for each in webhook_secrets(vault, store) if each.secret != secret]
    vault.put(
        _secrets_name(store),
        json.dumps(
            [{"secret": each.secret, "since_ms": each.since_ms} for each in (newest, *older[:1])]
        ),
    )


def prove_writable(vault: Vault, store: str, *, at_ms: int) -> None:
    """Raise LedgerUnwritable now rather than after a secret has been shown that is shown once."""
    vault.put(f"{store}/probe", str(at_ms))
    vault.drop(f"{store}/probe")


def _secrets_name(store: str) -> str:
    return f"{store}/webhook_secrets"
