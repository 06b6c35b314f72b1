"""Puts the signed report where it is collected: into a folder, at an address, or both."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError
from tillbridge.core.log import get_logger
from tillbridge.fleet.minisign import SigningKey
from tillbridge.fleet.report import Report, SignedReport

log = get_logger()

_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Places:
    """Where reports go: `url` is a folder of an HTTP server that takes PUT."""

    folder: Path | None
    url: str
    token: Callable[[], str] | None
    tls: ssl.SSLContext | bool


class StatusSender:
    """Sends a report every `every_s` seconds. Failures are logged when they begin and end."""

    def __init__(
        self,
        name: str,
        places: Places,
        key: SigningKey,
        *,
        every_s: float,
        status: Callable[[], Awaitable[Mapping[str, Any]]],
        clock: Clock,
    ) -> None:
        self._name = name
        self._places = places
        self._key = key
        self._every_s = every_s
        self._status = status
        self._clock = clock
        self._failing: set[str] = set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self.send()
            await asyncio.sleep(max(0.0, self._every_s - (self._clock.monotonic() - began)))

    async def send(self) -> None:
        """Send one report."""
        report = Report(self._name, self._clock.now_ms(), await self._status())
        signed = SignedReport.of(report, self._key)
        # The signature comes last: whoever sees it finds the content that it signs.
        files = {
            f"{self._name}.json": signed.content,
            f"{self._name}.json.minisig": signed.signature,
        }
        if self._places.folder is not None:
            self._tell("folder", await asyncio.to_thread(_write, self._places.folder, files))
        if self._places.url:
            self._tell("url", await self._put(files))

    async def _put(self, files: Mapping[str, bytes]) -> str:
        try:
            token = self._places.token
            headers = {} if token is None else {"Authorization": f"Bearer {token()}"}
        except ConfigError as failure:
            return failure.text
        connector = aiohttp.TCPConnector(ssl=self._places.tls, limit=1, force_close=True)
        timeout = aiohttp.ClientTimeout(total=min(_TIMEOUT_S, self._every_s))
        try:
            async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
                for name, content in files.items():
                    url = f"{self._places.url.rstrip('/')}/{name}"
                    async with http.put(
                        url, data=content, headers=headers, allow_redirects=False
                    ) as answer:
                        if answer.status >= 300:
                            return f"HTTP {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            return type(failure).__name__
        return ""

    def _tell(self, place: str, failure: str) -> None:
        if failure and place not in self._failing:
            self._failing.add(place)
            log.warning("fleet.not_sent", to=place, detail=failure)
        elif not failure and place in self._failing:
            self._failing.remove(place)
            log.info("fleet.sent", to=place)


def _write(folder: Path, files: Mapping[str, bytes]) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            fresh = folder / f".{name}.new"
            fresh.write_bytes(content)
            fresh.replace(folder / name)
    except OSError as failure:
        return failure.strerror or type(failure).__name__
    return ""
