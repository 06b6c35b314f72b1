"""Where the bridge stands: its address, and what on this machine could lead to it."""

import contextlib
import os
import shutil
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from tillbridge.config import Settings, host_and_port, is_loopback
from tillbridge.core.i18n import _

# All that has to be open: deliveries arrive below it, and doctor asks for healthz there.
OPEN_PATH = "/webhooks/"
_ANYWHERE = {"0.0.0.0", "::"}  # noqa: S104 -- recognised, not listened on


@dataclass(frozen=True, slots=True)
class Place:
    """The receiver of this bridge, and its public address.

    `host`, `port` and `prefix` are of `public_url` (`prefix` is "" or begins with a slash);
    `at_host` and `at_port` are where a program on this machine finds the receiver; `store` is a
    store's name, for examples. `named`: the host is one the internet may know. `https`: whether
    `public_url` is so already; what is shown always is, on port 443 where it was not.
    """

    host: str
    port: int
    prefix: str
    https: bool
    named: bool
    listens_on: str
    at_host: str
    at_port: int
    tls: bool
    certificate: str
    key: str
    max_body_bytes: int
    config: Path
    store: str
    windows: bool = False

    @property
    def at(self) -> str:
        """Where the receiver listens, as `address:port` for a program on this machine."""
        host = f"[{self.at_host}]" if ":" in self.at_host else self.at_host
        return f"{host}:{self.at_port}"

    @property
    def target(self) -> str:
        """The same as a URL."""
        return f"{'https' if self.tls else 'http'}://{self.at}"

    @property
    def public(self) -> str:
        """The public address, without its path, as it has to be: by https."""
        return f"https://{self.host}" + ("" if self.port == 443 else f":{self.port}")

    def cautions(self) -> list[str]:
        """Return what has to be put right first, whichever way is taken."""
        found = []
        if not self.named:
            found.append(
                _(
                    "public_url of [receiver] leads to this machine or network alone. Put the name "
                    "that the internet will know into it; below stands {host} in its place."
                ).format(host=self.host)
            )
        if not self.https:
            found.append(
                _("public_url begins with http://. Orders must not travel readable: use https://.")
            )
        if self.at_port == 0:
            found.append(
                _("listen of [receiver] has port 0, another one at each start. Name one: 8088.")
            )
        return found

    def prefix_caution(self, program: str) -> list[str]:
        """Return what a way says that passes paths on as they are."""
        if not self.prefix:
            return []
        return [
            _(
                "public_url has the path {path}, which {program} passes on and the bridge does not "
                "know. Use {url} alone."
            ).format(path=self.prefix, program=program, url=self.public)
        ]


def place_of(settings: Settings, config: Path, *, windows: bool = os.name == "nt") -> Place:
    """Return the place that a configuration describes."""
    receiver = settings.receiver
    public = urlsplit(receiver.public_url)
    https = public.scheme == "https"
    host = public.hostname or ""
    named = _is_name(host)
    listens_on, port = host_and_port(receiver.listen)
    near = "127.0.0.1" if listens_on in _ANYWHERE else listens_on
    return Place(
        host=host if named else "store.example.com",
        port=public.port or 443 if named and https else 443,
        prefix=public.path.rstrip("/"),
        https=https,
        named=named,
        listens_on=listens_on,
        at_host=near,
        at_port=port,
        tls=receiver.tls_cert is not None,
        certificate=str(receiver.tls_cert or ""),
        key=str(receiver.tls_key or ""),
        max_body_bytes=receiver.max_body_bytes,
        config=config,
        store=next(iter(settings.stores), "main"),
        windows=windows,
    )


def _is_name(host: str) -> bool:
    """Whether a host is one that the internet may know: no address, no name of this network."""
    if is_loopback(host) or "." not in host or host.endswith((".local", ".lan", ".internal")):
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return True


_PROC = Path("/proc")
# A way's program to type, and the process that does the work.
PROGRAMS = {
    "cloudflared": ("cloudflared", "cloudflared"),
    "tailscale": ("tailscale", "tailscaled"),
    "caddy": ("caddy", "caddy"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """`path` of the program, "" where it is not; `running` is None where nobody can tell."""

    path: str = ""
    running: bool | None = None


def look(
    way: str,
    *,
    which: Callable[[str], str | None] = shutil.which,
    processes: Callable[[], AbstractSet[str] | None] | None = None,
) -> Seen:
    """Look for a way's program. A way that needs none is never seen."""
    if way not in PROGRAMS:
        return Seen()
    program, process = PROGRAMS[way]
    names = (processes or running_names)()
    return Seen(which(program) or "", None if names is None else process in names)


def running_names(proc: Path = _PROC) -> frozenset[str] | None:
    """Return the names of all processes; None where the system does not list them in files."""
    if not (proc / "self").exists():
        return None
    names = set()
    for entry in proc.glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has just ended
            names.add(entry.read_text("utf-8", "replace").strip())
    return frozenset(names)
