"""No program between: the receiver speaks TLS itself, and takes a renewed certificate up live."""

import json

from tillbridge.core.i18n import _
from tillbridge.diagnostics.reach.place import OPEN_PATH, Place
from tillbridge.diagnostics.reach.way import Step, Way

_FOLDER = "/etc/tillbridge/tls"
_HOOK = "/etc/tillbridge/new-certificate"


def way(place: Place) -> Way:
    """Return the way for this place."""
    certificate = place.certificate or f"{_FOLDER}/fullchain.pem"
    key = place.key or f"{_FOLDER}/privkey.pem"
    steps = [
        Step(
            _("In the router, lead TCP port {port} to port {own} of this machine.").format(
                port=place.port, own=_own_port(place)
            )
        )
    ]
    if not place.windows:
        steps += [
            Step(
                _(
                    "Let each new certificate be copied to where the bridge may read it. The "
                    "bridge looks every few seconds and takes a new pair up live: nothing restarts."
                ),
                (f"sudo chmod +x {_HOOK}",),
                file=_HOOK,
                content=_hook(certificate, key),
            ),
            Step(
                _("Get a certificate; port 80 must lead to this machine while this runs."),
                (f"sudo certbot certonly --standalone -d {place.host} --deploy-hook {_HOOK}",),
            ),
        ]
    else:
        steps.append(
            Step(
                _(
                    "Let your certificate's program put its PEM files here: {certificate} (with "
                    "its chain) and {key}. The bridge takes a new pair up live."
                ).format(certificate=certificate, key=key)
            )
        )
    steps += [
        Step(
            _("Let the receiver listen to the network and speak TLS: these lines in bridge.toml."),
            file=str(place.config),
            content=_receiver(place, certificate, key),
        ),
        Step(
            _("Read it over, then restart the bridge."),
            (f"tillbridge --config {place.config} config check",),
        ),
    ]
    return Way(
        "direct",
        _("Straight to the bridge"),
        _(
            "Needs one port of the router led to this machine, a name that leads to the router, "
            "and a certificate. Nobody else sees what passes; the receiver answers to {path} and "
            "its health, and to nothing else."
        ).format(path=OPEN_PATH),
        steps,
        place.prefix_caution(_("a router")),
    )


def _own_port(place: Place) -> int:
    return place.at_port or 8088


def _receiver(place: Place, certificate: str, key: str) -> str:
    # Only a receiver that listens to itself alone has to change.
    host = place.listens_on if place.listens_on not in {"127.0.0.1", "::1"} else "0.0.0.0"  # noqa: S104 -- shown, not listened on
    host = f"[{host}]" if ":" in host else host
    rows = (
        ("listen", f"{host}:{_own_port(place)}"),
        ("public_url", place.public),
        ("tls_cert", certificate),
        ("tls_key", key),
    )
    return "\n".join(
        ["[receiver]", *(f"{name:<10} = {json.dumps(text)}" for name, text in rows), ""]
    )


def _hook(certificate: str, key: str) -> str:
    return "\n".join(
        [
            "#!/bin/sh",
            "set -e",
            f'install -D -g tillbridge -m 640 "$RENEWED_LINEAGE/fullchain.pem" "{certificate}"',
            f'install -D -g tillbridge -m 640 "$RENEWED_LINEAGE/privkey.pem" "{key}"',
            "",
        ]
    )
