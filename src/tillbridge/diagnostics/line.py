"""One exchange over the network, as the world sees it: look up, connect, encrypt, ask.

Blocking, for a thread (`apart`). No token and no cookie goes out, and no redirect is followed.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from tillbridge import __version__
from tillbridge.core.network import system_trust

Resolve = Callable[[str], list[str]]
Trust = Callable[[], ssl.SSLContext]
# Where it ended: no name, nobody there, silence, no way, cut off, encryption, no HTTP.
Trouble = Literal[
    "", "no_name", "dns_timeout", "refused", "timeout", "no_route", "reset", "tls", "no_http"
]

_MOST_BODY = 8192


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came of a request. `detail` are the system's words for a `trouble`.

    `sent_ms` and `received_ms` are this machine's wall clock around the answer's head; `rtt_s` is
    what lay between, by the monotonic clock.
    """

    addresses: tuple[str, ...] = ()
    trouble: Trouble = ""
    detail: str = ""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)  # names in small letters
    body: str = ""
    sent_ms: int = 0
    received_ms: int = 0
    rtt_s: float = 0.0


def resolve(host: str) -> list[str]:
    """Return a name's addresses, as this machine looks them up. Raises OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def no_trust() -> ssl.SSLContext:
    """Return a context that takes any certificate, to look at it. Nothing secret goes there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def port_of(parts: SplitResult) -> int:
    """Return the port of a URL."""
    return parts.port or (443 if parts.scheme == "https" else 80)


def look_up(host: str, names: Resolve) -> tuple[tuple[str, ...], Trouble, str]:
    """Return addresses, or why there are none."""
    try:
        return tuple(names(host)), "", ""
    except socket.gaierror as failure:
        temporary = failure.errno in {socket.EAI_AGAIN, getattr(socket, "EAI_FAIL", -4)}
        return (), "dns_timeout" if temporary else "no_name", str(failure.strerror or failure)
    except (OSError, UnicodeError) as failure:
        return (), "no_name", str(failure)


def connect(addresses: tuple[str, ...], port: int, timeout_s: float) -> socket.socket:
    """Return a connection to the first address that takes one. Raises OSError."""
    end = time.monotonic() + timeout_s
    last: OSError = TimeoutError("timed out")
    for number, address in enumerate(addresses):
        left = end - time.monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((address, port), left / (len(addresses) - number))
        except OSError as failure:
            last = failure
    raise last


def exchange(
    url: str,
    *,
    names: Resolve = resolve,
    trust: Trust = system_trust,
    timeout_s: float = 8.0,
) -> Exchange:
    """Send `GET url` and return what happened. Never raises for what the network does."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    addresses, trouble, detail = look_up(host, names)
    if trouble:
        return Exchange(trouble=trouble, detail=detail)
    try:
        line = connect(addresses, port_of(parts), timeout_s)
    except OSError as failure:
        return Exchange(addresses, trouble_of(failure), _words(failure))
    with line:
        line.settimeout(timeout_s)
        try:
            if parts.scheme == "https":
                line = trust().wrap_socket(line, server_hostname=host)
        except (ssl.SSLError, ssl.CertificateError, OSError) as failure:
            kind: Trouble = "timeout" if isinstance(failure, TimeoutError) else "tls"
            return Exchange(addresses, kind, _words(failure))
        with line:
            return _asked(parts, line, addresses)


def _asked(parts: SplitResult, line: socket.socket, addresses: tuple[str, ...]) -> Exchange:
    connection = http.client.HTTPConnection(parts.hostname or "", port_of(parts))
    connection.sock = line
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {
        "Host": parts.netloc.rpartition("@")[2],
        "User-Agent": f"tillbridge/{__version__} (doctor)",
        "Accept": "*/*",
        "Connection": "close",
    }
    sent_ms, began = time.time_ns() // 1_000_000, time.monotonic()
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        received_ms, rtt_s = time.time_ns() // 1_000_000, time.monotonic() - began
        body = answer.read(_MOST_BODY)
    except http.client.HTTPException as failure:
        gone = isinstance(failure, ConnectionError)
        return Exchange(addresses, "reset" if gone else "no_http", _words(failure))
    except OSError as failure:
        return Exchange(addresses, trouble_of(failure), _words(failure))
    return Exchange(
        addresses,
        status=answer.status,
        headers={name.lower(): value for name, value in answer.getheaders()},
        body=body.decode("utf-8", "replace"),
        sent_ms=sent_ms,
        received_ms=received_ms,
        rtt_s=rtt_s,
    )


def trouble_of(failure: OSError) -> Trouble:
    """Return the kind of a failure to connect or to speak."""
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, ConnectionRefusedError):
        return "refused"
    if isinstance(failure, ssl.SSLError):
        return "tls"
    if isinstance(failure, ConnectionError):
        return "reset"
    return "no_route"


def _words(failure: BaseException) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return str(failure.verify_message or failure)
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    return str(failure) or type(failure).__name__
