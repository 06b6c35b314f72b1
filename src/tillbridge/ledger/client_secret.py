"""The app's secret in the vault, and the service it is for: it goes to no other address."""

from dataclasses import dataclass, field

from tillbridge.config import origin_of
from tillbridge.ledger.vault import CLIENT_SECRET, Vault

_ORIGIN = f"{CLIENT_SECRET}/origin"


@dataclass(frozen=True, slots=True)
class StoredClientSecret:
    """The app's secret in the vault, and the origin it is for; None for what is not known."""

    secret: str | None = field(repr=False)
    origin: str | None

    @classmethod
    def of(cls, vault: Vault) -> "StoredClientSecret":
        """Return what the vault holds."""
        return cls(vault.get(CLIENT_SECRET), vault.get(_ORIGIN))

    def put(self, vault: Vault) -> None:
        """Let the vault hold this. Raises LedgerUnwritable."""
        for name, value in ((CLIENT_SECRET, self.secret), (_ORIGIN, self.origin)):
            if value is None:
                vault.drop(name)
            else:
                vault.put(name, value)


def client_secret_for(vault: Vault, base_url: str) -> str | None:
    """Return the app's secret from the vault; None where it is another service's, or there is none.

    What a version before 0.2 put there names no service, and counts for the configured one.
    """
    stored = StoredClientSecret.of(vault)
    return stored.secret if stored.origin in {None, origin_of(base_url)} else None
