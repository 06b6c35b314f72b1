"""The webhook secrets that count now, from the vault. Specification: Authentication, rule 9.

The vault keeps them under `{store}/webhook_secrets`: a JSON array of {"secret", "since_ms"},
newest first, each optionally with {"location_id", "ended_ms"}. A secret that was replaced, or
ended with its integration, still counts for a while, so that deliveries signed with it, and their
retries, are taken.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class SecretStore(Protocol):
    """Where secrets are kept: the vault."""

    def get(self, name: str) -> str | None:
        """Return the secret of this name, or None."""


@dataclass(frozen=True, slots=True)
class WebhookSecret:
    """A secret, and since when (ms) it is the store's.

    `location_id` is that of the integration it signs for, "" where it is not known; `ended_ms` is
    when the integration was removed.
    """

    secret: bytes
    since_ms: int
    location_id: str = ""
    ended_ms: int | None = None


def read_secrets(vault: SecretStore, store: str) -> tuple[WebhookSecret, ...]:
    """Return the store's secrets, newest first; none where it was never connected."""
    stored = vault.get(f"{store}/webhook_secrets")
    if stored is None:
        return ()
    return tuple(
        WebhookSecret(
            str(each["secret"]).encode(),
            int(each["since_ms"]),
            str(each.get("location_id") or ""),
            each.get("ended_ms"),
        )
        for each in json.loads(stored)
        if each.get("secret")  # an empty key would be anybody's
    )


def current(
    secrets: Sequence[WebhookSecret], now_ms: int, *, old_secret_s: float
) -> tuple[WebhookSecret, ...]:
    """Return those that count: the newest, and older ones for `old_secret_s` after their end."""
    counting = []
    replaced_ms: int | None = None
    for each in secrets:
        ended_ms = replaced_ms if each.ended_ms is None else each.ended_ms
        if ended_ms is None or now_ms - ended_ms < old_secret_s * 1000:
            counting.append(each)
        replaced_ms = each.since_ms
    return tuple(counting)
