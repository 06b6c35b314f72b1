"""What setting up works on: the file, the ledger, and the life that may have to begin anew."""

import asyncio
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tillbridge.config.toml import read_file
from tillbridge.core.clock import Clock
from tillbridge.daemon.bell import Bell
from tillbridge.daemon.lives import Lives
from tillbridge.diagnostics.subject import Echo
from tillbridge.ledger.facts import drop_fact, get_fact, put_fact
from tillbridge.ledger.ledger import Ledger
from tillbridge.setup.draft import Draft, draft_of

_FACT = "setup"


@dataclass(frozen=True, slots=True)
class SetupPlace:
    """The place. `echo` proves that an address leads to the receiver that runs; None: none does.

    `redirect_uri` is where the merchant comes back to; the `bell` is heard by open pages.
    """

    path: Path
    ledger: Ledger
    clock: Clock
    lives: Lives
    redirect_uri: str
    bell: Bell
    echo: Echo | None = None

    @property
    def base_dir(self) -> Path:
        """Where relative paths of the configuration count from."""
        return self.path.parent

    def document(self) -> tuple[str, dict[str, Any]]:
        """Return the file's text and what it says. Raises ConfigError."""
        return read_file(self.path)

    async def draft(self) -> Draft:
        """Return the answers so far; those of the file where nothing was said since."""
        kept = await self.ledger.read(lambda db: get_fact(db, "", _FACT))
        text, document = await asyncio.to_thread(self.document)
        draft = Draft.from_json(kept)
        if draft is None or draft.written == digest_of(text):
            return draft_of(document)
        return draft

    async def keep(self, draft: Draft) -> None:
        """Remember the answers. Raises LedgerError."""
        at, kept = self.clock.now_ms(), draft.to_json()
        await self.ledger.write(lambda db: put_fact(db, "", _FACT, kept, at=at))

    async def forget(self) -> None:
        """Forget the answers. Raises LedgerError."""
        await self.ledger.write(lambda db: drop_fact(db, "", _FACT))


def digest_of(*texts: str) -> str:
    """Return what differs wherever one of the texts does."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def parsed(text: str) -> Mapping[str, Any]:
    """Return what a text of ours says."""
    return tomllib.loads(text)
