"""The subscription's signing secret, shown once: in the vault before anything else happens.

It is kept as the receiver reads a store's secrets, and beside it the subscription's id, since the
service lists no subscriptions: what is not remembered here cannot be found again.
"""

import json
from typing import Any

from tillbridge.ledger.vault import Vault


def keep_secret(vault: Vault, key: str, secret: str, webhook_id: str, *, at_ms: int) -> None:
    """Keep a new secret, and the one it replaces: the receiver honours that for a day.

    On return both are on disk; raises LedgerUnwritable.
    """
    newest = {"secret": secret, "since_ms": at_ms, "webhook_id": webhook_id}
    vault.put(_name(key), json.dumps([newest, *_kept(vault, key)[:1]]))


def webhook_id_of(vault: Vault, key: str) -> str | None:
    """Return the id of the subscription whose secret is here, None where there is none."""
    kept = _kept(vault, key)
    return str(kept[0]["webhook_id"]) if kept and kept[0].get("webhook_id") else None


def prove_writable(vault: Vault, key: str, *, at_ms: int) -> None:
    """Raise LedgerUnwritable now rather than after a secret was shown that is shown once."""
    vault.put(f"{key}/probe", str(at_ms))
    vault.drop(f"{key}/probe")


def _kept(vault: Vault, key: str) -> list[dict[str, Any]]:
    return list(json.loads(vault.get(_name(key)) or "[]"))


def _name(key: str) -> str:
    return f"{key}/webhook_secrets"
