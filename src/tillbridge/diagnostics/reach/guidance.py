"""The guidance as a document: what the command prints and the page shows."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tillbridge.diagnostics.reach import caddy, cloudflared, direct, tailscale
from tillbridge.diagnostics.reach.place import OPEN_PATH, Place
from tillbridge.diagnostics.reach.seen import Seen, look
from tillbridge.diagnostics.reach.way import Way

WAYS: Mapping[str, Callable[[Place], Way]] = {
    "cloudflared": cloudflared.way,
    "tailscale": tailscale.way,
    "caddy": caddy.way,
    "direct": direct.way,
}

Answer = dict[str, Any]


def guidance(place: Place, *, look_for: Callable[[str], Seen] = look) -> Answer:
    """Return `public_url`, `receiver`, `path`, `cautions`, `fits` (a way's name) and `ways`.

    A way has `name`, `title`, `text`, `cautions`, `steps` (`text`, `commands`, `file`, `content`),
    `installed` (a path or "") and `running` (None: nobody can tell).
    """
    ways, seen = [], {}
    for name, make in WAYS.items():
        found = seen[name] = look_for(name)
        ways.append({**asdict(make(place)), "installed": found.path, "running": found.running})
    return {
        "public_url": f"{place.public}{place.prefix}",
        "receiver": place.target,
        "path": f"{place.prefix}{OPEN_PATH}",
        "cautions": place.cautions(),
        "fits": fitting(place, seen),
        "ways": ways,
        "next": "tillbridge doctor",
    }


def fitting(place: Place, seen: Mapping[str, Seen]) -> str:
    """Return the way that fits best what stands in the configuration, or what is here already."""
    if place.host.endswith(".ts.net"):
        return "tailscale"
    if place.tls:
        return "direct"
    for name in ("caddy", "cloudflared"):  # a web server that runs owns the ports
        if seen[name].running:
            return name
    for name in ("cloudflared", "caddy"):
        if seen[name].path:
            return name
    return "cloudflared"
