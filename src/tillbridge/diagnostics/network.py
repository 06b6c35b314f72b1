"""One exchange over the network, as the world sees it: look up, connect, encrypt, ask.

Blocking, for a thread (`in_thread`). No token and no cookie goes out, and no redirect is followed.
"""

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from tillbridge import __version__
from tillbridge.config import values
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


@dataclass(frozen=True, slots=True)
class Lookup:
    """A host's addresses, or why there are none: `detail` are the system's words."""

    host: str
    addresses: tuple[str, ...] = ()
    trouble: Trouble = ""
    detail: str = ""


def look_up(host: str, names: Resolve) -> Lookup:
    """Return addresses, or why there are none. Blocks."""
    try:
        return Lookup(host, tuple(names(host)))
    except socket.gaierror as failure:
        temporary = failure.errno in {socket.EAI_AGAIN, getattr(socket, "EAI_FAIL", -4)}
        trouble: Trouble = "dns_timeout" if temporary else "no_name"
        return Lookup(host, trouble=trouble, detail=str(failure.strerror or failure))
    except (OSError, UnicodeError) as failure:
        return Lookup(host, trouble="no_name", detail=str(failure))


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
    url: str, *, names: Resolve = resolve, trust: Trust = system_trust, timeout_s: float = 8.0
) -> Exchange:
    """Send `GET url` and return what happened. Never raises for what the network does."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    found = look_up(host, names)
    addresses = found.addresses
    if found.trouble:
        return Exchange(trouble=found.trouble, detail=found.detail)
    try:
        line = connect(addresses, port_of(parts), timeout_s)
    except OSError as failure:
        return Exchange(addresses, trouble_of(failure), _detail_of(failure))
    with line:
        line.settimeout(timeout_s)
        try:
            if parts.scheme == "https":
                line = trust().wrap_socket(line, server_hostname=host)
        except (ssl.SSLError, ssl.CertificateError, OSError) as failure:
            kind: Trouble = "timeout" if isinstance(failure, TimeoutError) else "tls"
            return Exchange(addresses, kind, _detail_of(failure))
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
        return Exchange(addresses, "reset" if gone else "no_http", _detail_of(failure))
    except OSError as failure:
        return Exchange(addresses, trouble_of(failure), _detail_of(failure))
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


def _detail_of(failure: BaseException) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return str(failure.verify_message or failure)
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    return str(failure) or type(failure).__name__


# Names under which a tunnel's provider answers: never an address of this network.
_TUNNELS = {
    ".trycloudflare.com": "Cloudflare Tunnel",
    ".cfargotunnel.com": "Cloudflare Tunnel",
    ".ts.net": "Tailscale Funnel",
    ".ngrok.io": "ngrok",
    ".ngrok.app": "ngrok",
    ".ngrok-free.app": "ngrok",
    ".loca.lt": "localtunnel",
}
_LOCAL_NAMES = (".local", ".lan", ".home", ".internal", ".home.arpa", ".localhost", ".intranet")


def is_literal(host: str) -> bool:
    """Whether a host is an address and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host or address is this machine's own."""
    plain = host.lower().rstrip(".")
    return plain.endswith(".localhost") or values.is_loopback(plain)


def is_public(address: str) -> bool:
    """Whether the internet can route to an address."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_global
    except ValueError:
        return False


def is_local_name(host: str) -> bool:
    """Whether a name can only mean something in this network."""
    plain = host.lower().rstrip(".")
    if is_literal(plain):
        return not is_public(plain)
    return plain == "localhost" or "." not in plain or plain.endswith(_LOCAL_NAMES)


def tunnel_of(host: str) -> str:
    """Return the tunnel's provider that a name belongs to, "" where it is none that is known."""
    plain = host.lower().rstrip(".")
    return next((name for end, name in _TUNNELS.items() if plain.endswith(end)), "")


def own_addresses() -> frozenset[str]:
    """Return this machine's addresses, as far as it knows them; sends nothing."""
    found: set[str] = set()
    with suppress(OSError):
        found.update(str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None))
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        # Connecting a datagram socket sends nothing; it shows the address that would be used.
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            found.add(str(probe.getsockname()[0]))
    return frozenset(found)


def any_public(addresses: Iterable[str]) -> bool:
    """Whether one of the addresses is routed in the internet."""
    return any(is_public(each) for each in addresses)
