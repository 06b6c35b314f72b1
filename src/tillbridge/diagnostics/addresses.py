"""What an address or a name says of where it leads. Pure, but for `own_addresses`."""

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress

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
    if host.lower().rstrip(".") == "localhost" or host.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        # Connecting a datagram socket sends nothing; it tells the address that would be used.
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            found.add(str(probe.getsockname()[0]))
    return frozenset(found)


def any_public(addresses: Iterable[str]) -> bool:
    """Whether one of the addresses is routed in the internet."""
    return any(is_public(each) for each in addresses)
