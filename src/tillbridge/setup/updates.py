"""Notices that a newer version is there: `update_url` of [bridge] is asked once a day.

What it answers is a small JSON, `{"version": "1.4.0"}`, or a package index's (`info.version`).
Nothing about the restaurant is sent, and nothing is installed: the page says what is new.
"""

import json
import re
from typing import Any

import aiohttp

from tillbridge.core.context import BridgeContext
from tillbridge.core.errors import LedgerError
from tillbridge.core.log import get_logger
from tillbridge.core.network import system_trust

FACT = "update"
_DAY_S = 86_400.0
_FIRST_S = 90.0  # nobody waits for it while the bridge starts
_WITHIN_S = 20.0
_MOST_BYTES = 1 << 20  # an index lists every file of every version
_RELEASE = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")

log = get_logger()


def plan(bridge: BridgeContext) -> None:
    """Plan the daily question, where the configuration names whom to ask."""
    url = bridge.settings.bridge.update_url
    if url is None:
        return

    async def look() -> None:
        found = await newest_version(url)
        if found is None:
            return
        try:
            await bridge.ledger.put_fact("", FACT, {"version": found}, at=bridge.clock.now_ms())
        except LedgerError:
            return  # it is reported that the database cannot be written; tomorrow is early enough

    bridge.scheduler.every("update", _DAY_S, look, first_s=_FIRST_S)


async def newest_version(url: str) -> str | None:
    """Return the version that is announced there; None if none is, or nobody answers."""
    timeout = aiohttp.ClientTimeout(total=_WITHIN_S)
    connector = aiohttp.TCPConnector(ssl=system_trust() if url.startswith("https:") else True)
    try:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
            http.get(url, allow_redirects=False) as answer,
        ):
            body = await answer.content.read(_MOST_BYTES + 1)
            while len(body) <= _MOST_BYTES and (more := await answer.content.read(_MOST_BYTES)):
                body += more
            if answer.status != 200 or len(body) > _MOST_BYTES:
                log.info("update.not_read", status=answer.status, bytes=len(body))
                return None
        return _version_in(json.loads(body))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
        log.info("update.not_read", error=type(error).__name__)
        return None


def _version_in(document: Any) -> str | None:  # noqa: ANN401 -- any JSON value
    info = document.get("info", document) if isinstance(document, dict) else None
    version = info.get("version") if isinstance(info, dict) else None
    return version if isinstance(version, str) and _RELEASE.fullmatch(version) else None


def is_newer(version: str, than: str) -> bool:
    """Whether a release (`1.4.0`) comes after the one that runs; a trial version is none."""
    ours = _RELEASE.match(than)
    if ours is None or _RELEASE.fullmatch(version) is None:
        return False
    return _numbers(version) > _numbers(ours[0])


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(each) for each in version.split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))
