"""Where the bridge stands: its address, and what on this machine could lead to it."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tillbridge.config.bridge import Settings
from tillbridge.config.values import host_and_port
from tillbridge.core.i18n import _
from tillbridge.diagnostics.network import is_local_name

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
                    "public_url in [receiver] can be reached from this machine or network only. "
                    "Set it to the name the internet will use; the steps below use {host} for now."
                ).format(host=self.host)
            )
        if not self.https:
            found.append(
                _("public_url begins with http://. Orders must be encrypted: use https://.")
            )
        if self.at_port == 0:
            found.append(
                _("listen in [receiver] has port 0: another at each start. Use a fixed one: 8088.")
            )
        return found

    def prefix_caution(self, program: str) -> list[str]:
        """Return what a way says that passes paths on as they are."""
        if not self.prefix:
            return []
        return [
            _(
                "public_url contains the path {path}. {program} passes it on, but the bridge does "
                "not know it. Use {url} alone."
            ).format(path=self.prefix, program=program, url=self.public)
        ]


def place_of(settings: Settings, config: Path, *, windows: bool = os.name == "nt") -> Place:
    """Return the place that a configuration describes."""
    receiver = settings.receiver
    public = urlsplit(receiver.public_url)
    https = public.scheme == "https"
    host = public.hostname or ""
    named = not is_local_name(host)
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


_PROC = Path("/proc")
# A way's program to type, and the process that does the work.
PROGRAMS = {
    "cloudflared": ("cloudflared", "cloudflared"),
    "tailscale": ("tailscale", "tailscaled"),
    "caddy": ("caddy", "caddy"),
}


@dataclass(frozen=True, slots=True)
class Seen:
    """`path` of the program, "" where it is not; `running` is None if that is unknown."""

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
    """Return the names of all processes; None if the system does not list them in files."""
    if not (proc / "self").exists():
        return None
    names = set()
    for entry in proc.glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has just ended
            names.add(entry.read_text("utf-8", "replace").strip())
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. `file` is the path of a file whose whole text is `content`."""

    text: str
    commands: Sequence[str] = ()
    file: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """A way: what it is good for, what stands against it here, and its steps."""

    name: str
    title: str
    text: str
    steps: Sequence[Step]
    cautions: Sequence[str] = ()


# The files of the ways, as they work.
_CLOUDFLARED = """\
tunnel: tillbridge
credentials-file: {credentials}
ingress:
  - hostname: {host}
    path: ^{path}
    service: {target}
{origin}  - service: http_status:404
"""
_CADDYFILE = """\
{site} {{
\thandle {prefix}{path}* {{
{strip}\t\trequest_body {{
\t\t\tmax_size {max_bytes}
\t\t}}
\t\treverse_proxy {proxied}
\t}}
\thandle {{
\t\trespond 404
\t}}
}}
"""
_CADDY_TLS = """{{
\t\t\ttransport http {{
\t\t\t\ttls_server_name {host}
\t\t\t}}
\t\t}}"""
_HOOK = """\
#!/bin/sh
set -e
install -D -g tillbridge -m 640 "$RENEWED_LINEAGE/fullchain.pem" "{certificate}"
install -D -g tillbridge -m 640 "$RENEWED_LINEAGE/privkey.pem" "{key}"
"""
_RECEIVER = """\
[receiver]
listen     = {listen}
public_url = {url}
tls_cert   = {certificate}
tls_key    = {key}
"""


def cloudflared(place: Place) -> Way:
    """Return the way for this place."""
    windows = r"C:\Windows\System32\config\systemprofile\.cloudflared"
    folder = windows if place.windows else "/etc/cloudflared"
    slash, sudo = ("\\", "") if place.windows else ("/", "sudo ")
    file, credentials = f"{folder}{slash}config.yml", f"{folder}{slash}tillbridge.json"
    origin = f"    originRequest:\n      originServerName: {place.host}\n" if place.tls else ""
    cautions = place.prefix_caution("cloudflared")
    if place.port != 443:
        cautions.append(_("A tunnel uses port 443 only: remove the port from public_url."))
    host = place.host
    tunnel = f"{sudo}cloudflared tunnel"
    first = [
        f"{tunnel} login",
        f"{tunnel} create --credentials-file {credentials} tillbridge",
        f"{tunnel} route dns tillbridge {host}",
    ]
    if not place.windows:
        first.insert(0, f"sudo mkdir -p {folder}")
    return Way(
        "cloudflared",
        _("Cloudflare Tunnel"),
        _(
            "Needs a domain whose DNS is at Cloudflare; no open port, fixed address or "
            "certificate. Cloudflare can read the orders."
        ),
        (
            Step(_("Once: sign in, create the tunnel and point the name at it."), first),
            Step(
                _("Allow deliveries through, and nothing else."),
                file=file,
                content=_CLOUDFLARED.format(
                    credentials=credentials,
                    host=host,
                    path=OPEN_PATH,
                    target=place.target,
                    origin=origin,
                ),
            ),
            Step(
                _("Check it: the second command must answer with the first rule."),
                (
                    f"{tunnel} --config {file} ingress validate",
                    f"{tunnel} --config {file} ingress rule https://{host}{OPEN_PATH}{place.store}",
                ),
            ),
            Step(
                _("Start it with the machine."),
                (f"{sudo}cloudflared --config {file} service install",),
            ),
        ),
        cautions,
    )


_PORTS = (443, 8443, 10000)  # a funnel has no others
_NAMES = ".ts.net"


def tailscale(place: Place) -> Way:
    """Return the way for this place."""
    sudo = "" if place.windows else "sudo "
    path = OPEN_PATH.rstrip("/")
    scheme = "https+insecure" if place.tls else "http"
    port = place.port if place.port in _PORTS else 443
    opened, target = f"{place.prefix}{path}", f"{scheme}://{place.at}{path}"
    cautions = []
    if not place.host.endswith(_NAMES):
        cautions.append(
            _(
                "A funnel uses the machine's own name at Tailscale (MACHINE.TAILNET.ts.net; "
                "`tailscale funnel status` shows it). Set public_url in [receiver] to https:// and "
                "that name."
            )
        )
    if place.port not in _PORTS:
        cautions.append(_("A funnel uses port 443, 8443 or 10000: use one of them in public_url."))
    return Way(
        "tailscale",
        _("Tailscale Funnel"),
        _(
            "Needs a Tailscale account with Funnel enabled; no open port, domain or certificate. "
            "Tailscale cannot read the orders."
        ),
        (
            Step(_("Once: sign this machine in."), (f"{sudo}tailscale up",)),
            Step(
                _("Open one path permanently, also after a restart of the machine."),
                (f"{sudo}tailscale funnel --bg --https={port} --set-path={opened} {target}",),
            ),
            Step(_("Check what is open, and under which name."), ("tailscale funnel status",)),
        ),
        cautions,
    )


def caddy(place: Place) -> Way:
    """Return the way for this place."""
    sudo = "" if place.windows else "sudo "
    tls = _CADDY_TLS.format(host=place.host)
    proxied = f"{place.target} {tls}" if place.tls else place.at
    file = r"C:\caddy\Caddyfile" if place.windows else "/etc/caddy/Caddyfile"
    return Way(
        "caddy",
        _("Caddy, a web server"),
        _(
            "Needs ports 80 and 443 forwarded from the router to this machine, and a name that "
            "points at the router. Certificates are created and renewed automatically."
        ),
        (
            Step(
                _("In the router, forward TCP ports 80 and {port} to this machine.").format(
                    port=place.port
                )
            ),
            Step(
                _("Add this to the Caddyfile; keep what is there."),
                file=file,
                content=_CADDYFILE.format(
                    site=place.host if place.port == 443 else place.public,
                    prefix=place.prefix,
                    path=OPEN_PATH,
                    strip=f"\t\turi strip_prefix {place.prefix}\n" if place.prefix else "",
                    max_bytes=place.max_body_bytes,
                    proxied=proxied,
                ),
            ),
            Step(
                _("Check it and reload Caddy."),
                (
                    f"{sudo}caddy validate --adapter caddyfile --config {file}",
                    f"{sudo}caddy reload --config {file}"
                    if place.windows
                    else "sudo systemctl reload caddy",
                ),
            ),
        ),
    )


_HOOK_FILE = "/etc/tillbridge/new-certificate"


def direct(place: Place) -> Way:
    """Return the way for this place."""
    certificate = place.certificate or "/etc/tillbridge/tls/fullchain.pem"
    key = place.key or "/etc/tillbridge/tls/privkey.pem"
    port = place.at_port or 8088
    # Only a receiver that listens to itself alone has to change.
    host = "0.0.0.0" if place.listens_on in {"127.0.0.1", "::1"} else place.listens_on  # noqa: S104 -- shown, not listened on
    listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    steps = [
        Step(
            _("In the router, forward TCP port {port} to port {own} of this machine.").format(
                port=place.port, own=port
            )
        )
    ]
    if not place.windows:
        steps += [
            Step(
                _(
                    "Copy each new certificate to where the bridge may read it. The bridge uses a "
                    "new one within seconds, without a restart."
                ),
                (f"sudo chmod +x {_HOOK_FILE}",),
                file=_HOOK_FILE,
                content=_HOOK.format(certificate=certificate, key=key),
            ),
            Step(
                _("Get a certificate. Port 80 must be forwarded to this machine meanwhile."),
                (f"sudo certbot certonly --standalone -d {place.host} --deploy-hook {_HOOK_FILE}",),
            ),
        ]
    else:
        steps.append(
            Step(
                _(
                    "Have your certificate program write its PEM files to {certificate} (with its "
                    "chain) and {key}. The bridge uses new ones without a restart."
                ).format(certificate=certificate, key=key)
            )
        )
    steps += [
        Step(
            _("Open the receiver to the network with TLS: add these lines to bridge.toml."),
            file=str(place.config),
            content=_RECEIVER.format(
                listen=json.dumps(listen),
                url=json.dumps(place.public),
                certificate=json.dumps(certificate),
                key=json.dumps(key),
            ),
        ),
        Step(
            _("Check the file, then restart the bridge."),
            (f"tillbridge --config {place.config} config check",),
        ),
    ]
    return Way(
        "direct",
        _("Directly to the bridge"),
        _(
            "Needs one port forwarded from the router to this machine, a name that points at the "
            "router, and a certificate. Nobody else can read the orders; the receiver answers "
            "{path} and health checks, and nothing else."
        ).format(path=OPEN_PATH),
        steps,
        place.prefix_caution(_("A router")),
    )


WAYS: Mapping[str, Callable[[Place], Way]] = {
    "cloudflared": cloudflared,
    "tailscale": tailscale,
    "caddy": caddy,
    "direct": direct,
}

Answer = dict[str, Any]


def guidance(place: Place, *, look_for: Callable[[str], Seen] = look) -> Answer:
    """Return `public_url`, `receiver`, `path`, `cautions`, `fits` (a way's name) and `ways`.

    A way has `name`, `title`, `text`, `cautions`, `steps` (`text`, `commands`, `file`, `content`),
    `installed` (a path or "") and `running` (None: unknown).
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
    """Return the way that fits best what is in the configuration, or what is here already."""
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
