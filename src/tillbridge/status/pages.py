"""What every answer of the page carries, and the page that a merchant sees after consent."""

from collections.abc import Mapping

from tillbridge.status.ports import CallbackAnswer
from tillbridge.status.rendering import template

# Our own style sheet, script and pictures, and nothing inline: what an export or an order says can
# run nothing, load nothing and send nothing anywhere.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "media-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not no-referrer: with that a browser sends `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Server": "tillbridge",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def callback_page(answer: CallbackAnswer) -> str:
    """Return what the merchant sees after consent."""
    return template("callback.html").render(answer=answer)
