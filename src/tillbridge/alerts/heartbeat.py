"""The heartbeat: an address elsewhere is asked while the bridge is well, so that silence speaks."""

import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp

from tillbridge.alerts.channels import reach
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.network import system_trust
from tillbridge.core.scheduler import Scheduler

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
    ) -> None:
        self._url = url
        self._fail_url = _with_end(url, fail) if fail else None
        self._every_s = every_s
        self._is_well = is_well
        self._heard = True
        self._well = True
        self._tls: ssl.SSLContext | bool | None = None  # read from the system once

    def plan(self, scheduler: Scheduler) -> None:
        """Let it beat every `every_s` seconds."""
        scheduler.every("heartbeat", self._every_s, self.beat)

    async def beat(self) -> None:
        """Beat once."""
        well = await self._is_well()
        if well is not self._well:
            self._well = well
            log.warning("heartbeat.well" if well else "heartbeat.unwell")
        url = self._url if well else self._fail_url
        if url is None:
            return
        try:
            async with self._session() as http, http.get(url) as answer:
                failure = "" if answer.status < 400 else f"HTTP {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            failure = type(problem).__name__
        if (not failure) is not self._heard:
            self._heard = not failure
            if failure:
                log.warning("heartbeat.not_heard", detail=failure)
            else:
                log.info("heartbeat.heard")

    def _session(self) -> aiohttp.ClientSession:
        if self._tls is None:
            self._tls = system_trust() if self._url.startswith("https:") else True
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=1, force_close=True)
        timeout = aiohttp.ClientTimeout(total=min(_TIMEOUT_S, self._every_s))
        return aiohttp.ClientSession(connector=connector, timeout=timeout)


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
