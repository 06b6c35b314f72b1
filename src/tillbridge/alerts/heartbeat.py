"""The heartbeat: an address elsewhere is asked while the bridge is well, so that silence speaks."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp

from tillbridge.alerts.channels import reach
from tillbridge.core.clock import Clock
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.trust import system_trust

log = get_logger()

_TIMEOUT_S = 10.0


class Heartbeat:
    """Asks `url` every `every_s` seconds while `is_well` says so.

    Otherwise it asks `url` with `fail` at the end of its path, or nobody where `fail` is "".
    Failures are logged when they begin and end; there is nobody else to tell.
    """

    def __init__(
        self,
        url: str,
        *,
        every_s: float,
        fail: str,
        is_well: Callable[[], Awaitable[bool]],
        clock: Clock,
    ) -> None:
        self._url = url
        self._fail_url = _with_end(url, fail) if fail else None
        self._every_s = every_s
        self._is_well = is_well
        self._clock = clock
        self._heard = True
        self._well = True

    async def run(self) -> None:
        """Beat until cancelled."""
        tls = system_trust() if self._url.startswith("https:") else True
        connector = aiohttp.TCPConnector(ssl=tls, limit=1, force_close=True)
        timeout = aiohttp.ClientTimeout(total=min(_TIMEOUT_S, self._every_s))
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
            while True:
                began = self._clock.monotonic()
                await self._beat(http)
                await asyncio.sleep(max(0.0, self._every_s - (self._clock.monotonic() - began)))

    async def _beat(self, http: aiohttp.ClientSession) -> None:
        well = await self._is_well()
        if well is not self._well:
            self._well = well
            log.warning("heartbeat.well" if well else "heartbeat.unwell")
        url = self._url if well else self._fail_url
        if url is None:
            return
        try:
            async with http.get(url) as answer:
                failure = "" if answer.status < 400 else f"HTTP {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            failure = type(problem).__name__
        if (not failure) is not self._heard:
            self._heard = not failure
            if failure:
                log.warning("heartbeat.not_heard", detail=failure)
            else:
                log.info("heartbeat.heard")


class HeartbeatProbe:
    """Looks whether the heartbeat would be heard, without a beat: that would say all is well."""

    name = "heartbeat"

    def __init__(self, url: str) -> None:
        self._url = url

    async def probe(self) -> None:
        """Find the server and shake hands. Raises NotSent."""
        fix = _("Check heartbeat_url in [alerts], and the internet connection.")
        await reach(self._url, timeout_s=_TIMEOUT_S, fix=fix)


def _with_end(url: str, end: str) -> str:
    parts = urlsplit(url)
    return parts._replace(path=parts.path.rstrip("/") + end).geturl()
