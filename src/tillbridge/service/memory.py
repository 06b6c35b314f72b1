"""Tokens kept in memory, for programs that ask for consent each time they run."""

from tillbridge.service.types import Tokens


class MemoryTokens:
    """A `TokenStore` that forgets with the program."""

    def __init__(self, tokens: Tokens | None = None) -> None:
        self._tokens = tokens

    def load(self) -> Tokens | None:
        """Return what is kept."""
        return self._tokens

    def save(self, tokens: Tokens) -> None:
        """Keep the tokens until the program ends."""
        self._tokens = tokens
