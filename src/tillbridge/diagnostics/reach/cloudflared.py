"""The tunnel of Cloudflare: the machine opens it from inside, so no port of the router is open."""

import re

from tillbridge.core.i18n import _
from tillbridge.diagnostics.reach.place import OPEN_PATH, Place
from tillbridge.diagnostics.reach.way import Step, Way

_TUNNEL = "tillbridge"


def way(place: Place) -> Way:
    """Return the way for this place."""
    windows = r"C:\Windows\System32\config\systemprofile\.cloudflared"
    folder = windows if place.windows else "/etc/cloudflared"
    slash, sudo = ("\\", "") if place.windows else ("/", "sudo ")
    file, credentials = f"{folder}{slash}config.yml", f"{folder}{slash}{_TUNNEL}.json"
    cautions = place.prefix_caution("cloudflared")
    if place.port != 443:
        cautions.append(_("A tunnel is reached on port 443 only: take the port out of public_url."))
    host = place.host
    asking = f"https://{host}{OPEN_PATH}{place.store}"
    first = [
        f"{sudo}cloudflared tunnel login",
        f"{sudo}cloudflared tunnel create --credentials-file {credentials} {_TUNNEL}",
        f"{sudo}cloudflared tunnel route dns {_TUNNEL} {host}",
    ]
    if not place.windows:
        first.insert(0, f"sudo mkdir -p {folder}")
    return Way(
        "cloudflared",
        _("A tunnel of Cloudflare"),
        _(
            "Needs no open port, no fixed address and no certificate; a domain whose DNS is at "
            "Cloudflare. Cloudflare sees what passes."
        ),
        (
            Step(_("Once: sign in, make the tunnel, and let the name lead to it."), first),
            Step(
                _("Tell it what to let in: deliveries, and nothing else."),
                file=file,
                content=_config(place, host, credentials),
            ),
            Step(
                _("Check it; the second command must answer with the first rule."),
                (
                    f"{sudo}cloudflared tunnel --config {file} ingress validate",
                    f"{sudo}cloudflared tunnel --config {file} ingress rule {asking}",
                ),
            ),
            Step(
                _("Let it start with the machine."),
                (f"{sudo}cloudflared --config {file} service install",),
            ),
        ),
        cautions,
    )


def _config(place: Place, host: str, credentials: str) -> str:
    lines = [
        f"tunnel: {_TUNNEL}",
        f"credentials-file: {credentials}",
        "ingress:",
        f"  - hostname: {host}",
        f"    path: ^{re.escape(OPEN_PATH)}",
        f"    service: {place.target}",
    ]
    if place.tls:
        lines += ["    originRequest:", f"      originServerName: {host}"]
    return "\n".join([*lines, "  - service: http_status:404", ""])
