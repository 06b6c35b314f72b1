"""One HTTP exchange with the service: what goes out, what comes back, which failure that is.

Proxies named in the environment are not used (`trust_env` off): a token only ever goes to base_url.
Redirects are never followed. Nothing here repeats a call, aiohttp included: `caller` does.
"""

import io
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from tillbridge import __version__
from tillbridge.core.clock import Clock
from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceDown, ServiceError, Unreachable
from tillbridge.core.i18n import _
from tillbridge.core.trust import system_trust
from tillbridge.service.answers import failure_of, parse_json
from tillbridge.service.origin import LEFT_ORIGIN, Origin
from tillbridge.service.retry import Kind
from tillbridge.service.types import unreadable

_LARGEST_ANSWER = 16 * 1024 * 1024
_SLOWEST_LINE_BYTES_PER_S = 50_000.0
_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """A call, ready to send. `body` is JSON; `operation` names it in logs and failures.

    `scheme` is how its credential is presented: Bearer, or Basic for a signup.
    """

    operation: str
    method: str
    url: str
    kind: Kind
    body: bytes | None = None
    scheme: str = "Bearer"


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer; `body` is the JSON value, None where there was no body."""

    status: int
    body: Any


class Transport:
    """One session with one service; every store of the bridge shares it."""

    def __init__(self, base_url: str, *, timeout_s: float, clock: Clock) -> None:
        self.origin = Origin(base_url)
        self._timeout_s = timeout_s
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exchange(self, request: Request, *, token: str | None) -> Answer:
        """Send a call once and return its answer. Raises a ServiceError, never anything else."""
        if not self.origin.owns(request.url):
            raise Refused(
                _("A call to another address than the ordering service's was stopped."),
                code=LEFT_ORIGIN,
                operation=request.operation,
            )
        headers = {} if token is None else {"Authorization": f"{request.scheme} {token}"}
        try:
            async with self._opened().request(
                request.method,
                URL(request.url, encoded=True),
                data=None if request.body is None else io.BytesIO(request.body),
                headers=headers | ({} if request.body is None else _JSON),
                allow_redirects=False,
                timeout=self._patience(request),
            ) as response:
                return await self._answer(request, response)
        except aiohttp.InvalidURL:
            raise unreadable(request.operation, _("the address is not valid")) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as trouble:
            raise _not_connected(request, trouble) from None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as trouble:
            # ValueError: an answer that is no HTTP at all, in the odd way that aiohttp tells it.
            raise _dropped(request, trouble) from None

    async def _answer(self, request: Request, response: aiohttp.ClientResponse) -> Answer:
        operation, status = request.operation, response.status
        fine = 200 <= status < 300
        try:
            raw = await _read(response)
        except (aiohttp.ClientError, OSError, TimeoutError):
            if fine:
                raise
            raw = b""  # the status alone says how to go on
        if raw is None:
            raise unreadable(operation, _("it is too large"))
        if not fine:
            raise failure_of(
                status,
                raw,
                response.headers,
                operation=operation,
                kind=request.kind,
                now_ms=self._clock.now_ms(),
            )
        if not raw.strip():
            return Answer(status, None)
        try:
            return Answer(status, parse_json(raw))
        except ValueError:
            # Not the service: a captive portal, or a proxy's own page. Whether the call got
            # through is anybody's guess.
            raise _not_the_service(request) from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=system_trust() if self.origin.uses_tls else True, limit=0
                ),
                headers={"User-Agent": f"tillbridge/{__version__}", "Accept": "application/json"},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
            # aiohttp repeats a PUT by itself when a kept connection drops: a second retry policy.
            self._session._retry_connection = False  # noqa: SLF001 -- there is no public switch
        return self._session

    def _patience(self, request: Request) -> aiohttp.ClientTimeout:
        upload_s = len(request.body or b"") / _SLOWEST_LINE_BYTES_PER_S
        return aiohttp.ClientTimeout(
            total=self._timeout_s + upload_s, sock_connect=min(self._timeout_s, _CONNECT_S)
        )


_JSON = {"Content-Type": "application/json"}


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    """Return the body, None where it is larger than anything the service has to say."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > _LARGEST_ANSWER:
            response.close()
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _not_connected(request: Request, trouble: Exception) -> Unreachable:
    if isinstance(trouble, aiohttp.ClientConnectorCertificateError):
        return Unreachable(
            _("The ordering service's certificate is not trusted."),
            code="line.certificate",
            operation=request.operation,
            fix=_("Check this machine's date, and that no proxy stands between."),
        )
    if isinstance(trouble, aiohttp.ClientConnectorDNSError):
        return Unreachable(
            _("The ordering service's name cannot be looked up."),
            code="line.dns",
            operation=request.operation,
            fix=_("Check the internet connection and base_url."),
        )
    return Unreachable(
        _("The ordering service cannot be reached."),
        code="line.not_connected",
        operation=request.operation,
        fix=_("Check the internet connection."),
    )


def _dropped(request: Request, trouble: Exception) -> ServiceError:
    kind = OutcomeUnknown if request.kind is Kind.WRITE else Unreachable
    return kind(
        _("The line to the ordering service broke ({detail}).").format(
            detail=type(trouble).__name__
        ),
        code="line.dropped",
        operation=request.operation,
    )


def _not_the_service(request: Request) -> ServiceError:
    kind = OutcomeUnknown if request.kind is Kind.WRITE else ServiceDown
    return kind(
        _("Something that is not the ordering service answered."),
        code="line.not_json",
        operation=request.operation,
        fix=_("Check base_url, and that no proxy or login page stands between."),
    )
