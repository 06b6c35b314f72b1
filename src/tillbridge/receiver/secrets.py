"""The webhook secrets that count now, from the vault. Specification: Authentication, rule 9.

The vault keeps them under `{store}/webhook_secrets`: a JSON array of {"secret", "since_ms"},
newest first. After a rotation the one before still counts for a day, so that deliveries signed
with it, and their retries, are taken.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

OVERLAP_MS = 24 * 3600 * 1000


class SecretStore(Protocol):
    """Where secrets are kept: the vault."""

    def get(self, name: str) -> str | None:
        """Return the secret of this name, or None."""


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret, and since when (ms) it is the store's."""

    secret: bytes
    since_ms: int


def read_secrets(vault: SecretStore, store: str) -> tuple[WebhookSecret, ...]:
    """Return the store's secrets, newest first; none where it was never connected."""
    stored = vault.get(f"{store}/webhook_secrets")
    if stored is None:
        return ()
    return tuple(
        WebhookSecret(str(each["secret"]).encode(), int(each["since_ms"]))
        for each in json.loads(stored)
        if each.get("secret")  # an empty key would be anybody's
    )


def current(secrets: Sequence[WebhookSecret], now_ms: int) -> tuple[bytes, ...]:
    """Return those that count: the newest, and the one before it for a day after the change."""
    if len(secrets) > 1 and now_ms - secrets[0].since_ms < OVERLAP_MS:
        return (secrets[0].secret, secrets[1].secret)
    return tuple(each.secret for each in secrets[:1])
