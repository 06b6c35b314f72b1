"""One HTTP exchange with the service: the request, the answer, and which failure that is.

Proxies named in the environment are not used (`trust_env` off): a token is only ever sent to
base_url. Redirects are never followed. Nothing here repeats a call, including aiohttp: `caller`
does that.
"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

import aiohttp
import orjson
from yarl import URL

from tillbridge import __version__
from tillbridge.core.clock import Clock
from tillbridge.core.errors import OutcomeUnknown, Refused, ServiceDown, Unreachable
from tillbridge.core.i18n import _
from tillbridge.core.network import system_trust
from tillbridge.model.numbers import parse_json_float
from tillbridge.service.answers import Kind, failure_of
from tillbridge.service.types import unreadable

LEFT_ORIGIN = "answer.foreign_url"
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-\[\]-~]+")  # visible ASCII, and no backslash
_LONGEST = 2048


class Origin:
    """The service's root, such as `https://api.example.com/v2`; `root` is without the path."""

    def __init__(self, base_url: str) -> None:
        self._base = urlsplit(base_url.rstrip("/"))
        self.root = f"{self._base.scheme}://{self._base.netloc}"
        self.uses_tls = self._base.scheme == "https"

    def url(self, path: str, *ids: str, query: Mapping[str, str] | None = None) -> str:
        """Return the URL of a path below the root, in which each `{}` stands for an id.

        Raises Refused for a segment that no URL can hold as a name ("", "." and ".."), TypeError
        for more ids than the path takes.
        """
        left = iter(ids)
        segments = [next(left) if part == "{}" else part for part in path.split("/")]
        if surplus := list(left):
            msg = f"{path} takes {len(ids) - len(surplus)} ids, not {len(ids)}"
            raise TypeError(msg)
        for segment in segments:
            if segment in {"", ".", ".."}:
                text = _("{name!r} cannot be used as an id in a call to the ordering service.")
                raise Refused(text.format(name=segment), code="request.validation")
        quoted = "/".join(quote(segment, safe="") for segment in segments)
        return f"{self.root}{self._base.path}/{quoted}" + (f"?{urlencode(query)}" if query else "")

    def poll_url(self, path_or_url: str) -> str:
        """Return the URL for a `poll_url`: a path below the root, with or without its prefix.

        An absolute URL is accepted if its origin is the service's own. Raises Refused (code
        `answer.foreign_url`) for everything else: it might send the token to a stranger.
        """
        if len(path_or_url) > _LONGEST or not _PLAIN.fullmatch(path_or_url):
            raise _foreign()
        try:
            parts = urlsplit(path_or_url)
            own = not (parts.scheme or parts.netloc) or self._is_own(parts)
        except ValueError:
            raise _foreign() from None
        if not own or not parts.path.startswith("/") or parts.path.startswith("//"):
            raise _foreign()
        path = parts.path
        if not path.startswith(f"{self._base.path}/pos/"):
            path = self._base.path + path
        if not path.startswith(f"{self._base.path}/pos/") or _climbs(path):
            raise _foreign()
        return f"{self.root}{path}" + (f"?{parts.query}" if parts.query else "")

    def _is_own(self, parts: SplitResult) -> bool:
        return (
            parts.username is None
            and parts.password is None
            and parts.scheme == self._base.scheme
            and (parts.hostname or "") == (self._base.hostname or "")
            and (parts.port or _PORTS.get(parts.scheme))
            == (self._base.port or _PORTS.get(self._base.scheme))
        )


def _climbs(path: str) -> bool:
    """Return whether a path contains dot segments or hidden separators, however they are quoted."""
    for _round in range(4):
        if "\\" in path or "//" in path or {".", ".."} & set(path.split("/")):
            return True
        plain = unquote(path)
        if plain == path:
            return False
        path = plain
    return True


def _foreign() -> Refused:
    return Refused(
        _(
            "The ordering service sent an address that is not its own, so the bridge did not "
            "call it."
        ),
        code=LEFT_ORIGIN,
        operation="menus.job",
        fix=_("Tell the ordering service's support. The next update is sent as usual."),
    )


def encode(body: object) -> bytes:
    """Return a body as compact JSON (UTF-8); a menu of 20,000 items takes some milliseconds."""
    return orjson.dumps(body, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):  # a tax rate; money is integers
        return int(value) if value == value.to_integral_value() else float(value)
    msg = f"{type(value).__name__} is not JSON"
    raise TypeError(msg)


def parse_json(raw: bytes) -> Any:  # noqa: ANN401 -- JSON is anything
    """Return the JSON value of a body, fractions as Decimal. Raises ValueError for invalid JSON."""
    try:
        return json.loads(raw, parse_float=parse_json_float, parse_constant=_refuse_constant)
    except RecursionError:
        msg = "nested too deeply"
        raise ValueError(msg) from None


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


# -- the exchange

_LARGEST_ANSWER = 16 * 1024 * 1024
_SLOWEST_LINE_BYTES_PER_S = 50_000.0
_CONNECT_S = 10.0
_JSON_BODY = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Request:
    """A call, ready to send. `body` is JSON; `operation` names it in logs and failures."""

    operation: str
    method: str
    url: str
    kind: Kind
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer; `body` is the JSON value, None if there was no body.

    `settled` if it was read from the state, and is not the answer to the call.
    """

    operation: str
    status: int
    body: Any
    settled: bool = False


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

    async def exchange(self, request: Request, *, authorization: str) -> Answer:
        """Send a call once and return its answer; authorization "" sends no header.

        Raises a ServiceError, never anything else.
        """
        if not request.url.startswith(f"{self.origin.root}/"):
            raise Refused(
                _("The bridge stopped a call to an address that is not the ordering service's."),
                code=LEFT_ORIGIN,
                operation=request.operation,
            )
        body, session = request.body, self._session or self._opened()
        headers = {"Authorization": authorization} if authorization else {}
        upload_s = len(body or b"") / _SLOWEST_LINE_BYTES_PER_S
        try:
            async with session.request(
                request.method,
                URL(request.url, encoded=True),
                data=None if body is None else io.BytesIO(body),
                headers=headers if body is None else headers | _JSON_BODY,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=self._timeout_s + upload_s, sock_connect=min(self._timeout_s, _CONNECT_S)
                ),
            ) as response:
                return await self._answer(request, response)
        except aiohttp.InvalidURL:
            raise unreadable(request.operation, _("the address is not valid")) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as trouble:
            raise _not_connected(request, trouble) from None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as trouble:
            # ValueError: an answer that is not HTTP at all, which aiohttp reports this way.
            kind = OutcomeUnknown if request.kind is Kind.WRITE else Unreachable
            text = _("The connection to the ordering service broke ({detail}).")
            raise kind(
                text.format(detail=type(trouble).__name__),
                code="line.dropped",
                operation=request.operation,
            ) from None

    async def _answer(self, request: Request, response: aiohttp.ClientResponse) -> Answer:
        operation, status = request.operation, response.status
        fine = 200 <= status < 300
        raw = bytearray()
        try:
            async for piece in response.content.iter_any():
                raw += piece
                if len(raw) > _LARGEST_ANSWER:  # larger than any answer of the service
                    response.close()
                    raise unreadable(operation, _("it is too large"))
        except (aiohttp.ClientError, OSError, TimeoutError):
            if fine:
                raise
            raw.clear()  # the status is enough to decide
        body, is_json = None, True
        try:
            body = parse_json(bytes(raw)) if raw.strip() else None
        except ValueError:
            is_json = False
        if not fine:
            raise failure_of(
                status,
                body,
                response.headers,
                operation=operation,
                kind=request.kind,
                now_ms=self._clock.now_ms(),
            )
        if not is_json:
            # A captive portal or a proxy's own page: the call may or may not have got through.
            kind = OutcomeUnknown if request.kind is Kind.WRITE else ServiceDown
            raise kind(
                _("Something that is not the ordering service answered."),
                code="line.not_json",
                operation=operation,
                fix=_("Check base_url, and that no proxy or login page is in between."),
            )
        return Answer(operation, status, body)

    def _opened(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=system_trust() if self.origin.uses_tls else True, limit=0
            ),
            headers={"User-Agent": f"tillbridge/{__version__}", "Accept": "application/json"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        # aiohttp repeats a PUT when a reused connection drops: that would be a second retry policy.
        self._session._retry_connection = False  # noqa: SLF001 -- there is no public switch
        return self._session


def _not_connected(request: Request, trouble: Exception) -> Unreachable:
    if isinstance(trouble, aiohttp.ClientConnectorCertificateError):
        text, code = _("The ordering service's certificate is not trusted."), "line.certificate"
        fix = _("Check this machine's date, and that no proxy is in between.")
    elif isinstance(trouble, aiohttp.ClientConnectorDNSError):
        text, code = _("The ordering service's address was not found (DNS)."), "line.dns"
        fix = _("Check the internet connection and base_url.")
    else:
        text, code = _("The ordering service cannot be reached."), "line.not_connected"
        fix = _("Check the internet connection.")
    return Unreachable(text, code=code, operation=request.operation, fix=fix)
