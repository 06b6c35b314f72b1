"""Caddy before the bridge: it gets certificates by itself, where ports 80 and 443 lead to it."""

from tillbridge.core.i18n import _
from tillbridge.diagnostics.reach.place import OPEN_PATH, Place
from tillbridge.diagnostics.reach.way import Step, Way


def way(place: Place) -> Way:
    """Return the way for this place."""
    sudo = "" if place.windows else "sudo "
    file = r"C:\caddy\Caddyfile" if place.windows else "/etc/caddy/Caddyfile"
    return Way(
        "caddy",
        _("Caddy, a web server"),
        _(
            "Needs the ports 80 and 443 of the router led to this machine, and a name that leads "
            "to the router. Certificates come and renew by themselves."
        ),
        (
            Step(
                _("In the router, lead TCP ports 80 and {port} to this machine.").format(
                    port=place.port
                )
            ),
            Step(
                _("Put this into the Caddyfile; what else stands there may stay."),
                file=file,
                content=_caddyfile(place),
            ),
            Step(
                _("Check it, and let Caddy take it up."),
                (
                    f"{sudo}caddy validate --adapter caddyfile --config {file}",
                    f"{sudo}caddy reload --config {file}"
                    if place.windows
                    else "sudo systemctl reload caddy",
                ),
            ),
        ),
    )


def _caddyfile(place: Place) -> str:
    site = place.host if place.port == 443 else place.public
    lines = [f"{site} {{", f"\thandle {place.prefix}{OPEN_PATH}* {{"]
    if place.prefix:
        lines.append(f"\t\turi strip_prefix {place.prefix}")
    lines += ["\t\trequest_body {", f"\t\t\tmax_size {place.max_body_bytes}", "\t\t}"]
    if place.tls:
        lines += [
            f"\t\treverse_proxy {place.target} {{",
            "\t\t\ttransport http {",
            f"\t\t\t\ttls_server_name {place.host}",
            "\t\t\t}",
            "\t\t}",
        ]
    else:
        lines.append(f"\t\treverse_proxy {place.at}")
    return "\n".join([*lines, "\t}", "\thandle {", "\t\trespond 404", "\t}", "}", ""])
