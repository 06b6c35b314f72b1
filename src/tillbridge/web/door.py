"""What is decided from a request's head alone. Pure: names, proxies, whose page a write is from.

A browser can be made to send a request by any site it visits, and a tunnel makes the internet look
like this machine: neither the peer's address nor a cookie proves anything by itself.
"""

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from tillbridge.config import is_loopback

_HOST = re.compile(r"^(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:/?#@\s]+))(?::\d{1,5})?$")
_PROXY_NAMES = frozenset({"forwarded", "via", "x-real-ip", "true-client-ip", "x-client-ip"})
_PROXY_STARTS = ("x-forwarded-", "cf-", "x-original-", "tailscale-")
_PORTS = {"http": 80, "https": 443}


def host_allowed(host: str, allowed: Collection[str], own_address: str) -> bool:
    """Return whether the page answers to this Host header.

    It does to this machine's own names, to `allowed` ones, and to the very address the connection
    came to. Anything else may be a name that a stranger's site points here (DNS rebinding).
    """
    found = _HOST.match(host.strip())
    if found is None:
        return False
    name = (found["six"] or found["name"]).lower().rstrip(".")
    return (
        is_loopback(name)
        or name in {each.lower().rstrip(".") for each in allowed}
        or (bool(own_address) and name == own_address.lower())
    )


def proxy_header(headers: Mapping[str, str]) -> str:
    """Return the name of a header that only a proxy or tunnel sets, "" where there is none."""
    for name in headers:
        lower = name.lower()
        if lower in _PROXY_NAMES or lower.startswith(_PROXY_STARTS):
            return name
    return ""


def foreign_write(headers: Mapping[str, str]) -> str:
    """Return why a write does not come from this page itself, "" where it does.

    Every browser of the last ten years sends one of Sec-Fetch-Site, Origin and Referer with a
    form; a program has no business here (commands have /control).
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None and site != "same-origin":
        return f"Sec-Fetch-Site: {site}"
    host = headers.get("Host", "")
    for name in ("Origin", "Referer"):
        told = headers.get(name)
        if told is not None:
            return "" if same_site(told, host) else name
    return "" if site is not None else "no Origin"


def same_site(url: str, host: str) -> bool:
    """Return whether `url` is of the site that the Host header names, whatever its scheme.

    (Behind a proxy that ends TLS the browser's https is not ours to see.)
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        own = urlsplit(f"//{host}")
        own_port = own.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    if parts.scheme not in _PORTS or not parts.hostname:
        return False
    return parts.hostname == own.hostname and port == own_port


def safe_return(path: str) -> str:
    """Return where to go after signing in: a path of this page, never another site's address."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or "\\" in path:
        return "/"
    return path if path.isprintable() and len(path) < 2000 else "/"
