"""The tokens in the vault: those of stores, and app-level ones."""

import json
import threading
from dataclasses import asdict, dataclass, field

from pydantic import TypeAdapter, ValidationError

from tillbridge.config import origin_of
from tillbridge.core.errors import Refused
from tillbridge.ledger.vault import Vault
from tillbridge.service.tokens import Access, AppTokenStore, StoredToken, TokenStore
from tillbridge.service.types import Tokens, read


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
