"""Where app-level tokens are kept between runs: in the vault, beside the stores' own."""

import json
import threading
from typing import Any

from tillbridge.ledger.vault import Vault
from tillbridge.service.tokens import Access, KeptToken

# As with facts, the bridge's own things stand under the store "".
_NAME = "/app_tokens"


class VaultAppTokens:
    """Keeps the tokens of one app at one service: another's would only be refused."""

    def __init__(self, vault: Vault, *, base_url: str, client_id: str) -> None:
        self._vault = vault
        self._owner = [base_url, client_id]
        self._lock = threading.Lock()

    def load(self, access: Access) -> KeptToken | None:
        """Return the kept token; None where there is none, or another version wrote it."""
        kept = self._records().get(_key(access))
        if kept is None:
            return None
        try:
            return KeptToken(
                str(kept["access_token"]), int(kept["minted_at_ms"]), int(kept["expires_at_ms"])
            )
        except (KeyError, TypeError, ValueError):
            return None

    def save(self, access: Access, token: KeptToken) -> None:
        """Keep the token, and forget those that are over. Raises LedgerUnwritable."""
        with self._lock:
            records = {
                key: each
                for key, each in self._records().items()
                if each["expires_at_ms"] > token.minted_at_ms
            }
            records[_key(access)] = {
                "access_token": token.access_token,
                "minted_at_ms": token.minted_at_ms,
                "expires_at_ms": token.expires_at_ms,
            }
            self._vault.put(_NAME, json.dumps({"owner": self._owner, "tokens": records}))

    def _records(self) -> dict[str, dict[str, Any]]:
        try:
            kept = json.loads(self._vault.get(_NAME) or "{}")
            if kept.get("owner") != self._owner:
                return {}
            return {
                key: each
                for key, each in kept["tokens"].items()
                if isinstance(each, dict) and isinstance(each.get("expires_at_ms"), int)
            }
        except (AttributeError, KeyError, ValueError):
            return {}


def _key(access: Access) -> str:
    return json.dumps([access.audience, access.scope])
