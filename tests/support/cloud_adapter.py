"""An adapter of a till in the cloud: it asks there with aiohttp as aiohttp comes."""

import asyncio
import json
import mimetypes
import ssl
from pathlib import Path

import aiohttp

from tillbridge.adapter import (
    Adapter,
    AdapterContext,
    AdapterOptions,
    Catalogue,
    Item,
    Order,
    Ticket,
)


class CloudOptions(AdapterOptions):
    """Where the till is asked, and the file that gets what it answered."""

    url: str
    answers: Path


class CloudAdapter:
    """A till with one dish, which it has from its cloud."""

    def __init__(self, options: CloudOptions, context: AdapterContext) -> None:
        self._url = options.url
        self._answers = context.base_dir / options.answers

    def read_catalogue(self) -> Catalogue:
        """Return what the cloud has; write down how asking it went."""
        answer = asyncio.run(self._ask())
        heard = {
            "answer": answer,
            "file_type": mimetypes.guess_type("a.xlsx")[0],
            "rich": _can_import_rich(),
        }
        fresh = self._answers.with_suffix(".new")
        fresh.write_text(json.dumps(heard), encoding="utf-8")
        fresh.replace(self._answers)
        return Catalogue.of([Item(external_id="c1", name="Cloudy soup", price=450)])

    def write_ticket(self, order: Order, key: str) -> Ticket:
        """Take it, and forget it."""
        del order
        return Ticket(key)

    def find_ticket(self, key: str) -> Ticket | None:
        """Find none."""
        del key
        return None

    async def _ask(self) -> str:
        try:
            async with aiohttp.ClientSession() as session, session.get(self._url) as answer:
                return await answer.text()
        except (aiohttp.ClientError, ssl.SSLError) as failure:
            return f"{type(failure).__name__}: {failure}"


def _can_import_rich() -> bool:
    try:
        import rich.traceback  # noqa: F401 -- what is tried
    except ImportError:
        return False
    return True


ADAPTER = Adapter(
    name="tests.support.cloud_adapter:ADAPTER",
    summary="asks a cloud",
    options=CloudOptions,
    open=CloudAdapter,
)
