"""Tailscale's funnel: a name and a certificate of Tailscale's, led to this machine from inside."""

from tillbridge.core.i18n import _
from tillbridge.diagnostics.reach.place import OPEN_PATH, Place
from tillbridge.diagnostics.reach.way import Step, Way

_PORTS = (443, 8443, 10000)  # a funnel has no others
_NAMES = ".ts.net"


def way(place: Place) -> Way:
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
                "A funnel has the machine's own name at Tailscale (MACHINE.TAILNET.ts.net; "
                "`tailscale funnel status` tells it). Put https:// and that name into public_url "
                "of [receiver]."
            )
        )
    if place.port not in _PORTS:
        cautions.append(
            _("A funnel is reached on port 443, 8443 or 10000: put one into public_url.")
        )
    return Way(
        "tailscale",
        _("Tailscale's funnel"),
        _(
            "Needs no open port, no domain and no certificate; an account at Tailscale with "
            "Funnel allowed. Tailscale cannot read what passes."
        ),
        (
            Step(_("Once: sign this machine in."), (f"{sudo}tailscale up",)),
            Step(
                _("Open one path, for good: it comes back when the machine starts."),
                (f"{sudo}tailscale funnel --bg --https={port} --set-path={opened} {target}",),
            ),
            Step(_("Look at what is open, and under which name."), ("tailscale funnel status",)),
        ),
        cautions,
    )
