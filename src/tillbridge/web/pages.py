"""What every answer of the page carries, and the page that a merchant sees after consent."""

from collections.abc import Mapping
from html import escape

from tillbridge.core.i18n import _
from tillbridge.web.ports import CallbackAnswer
from tillbridge.web.rendering import harmless, static_address

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


# `templates/base.html` without Jinja: a bridge that was connected should not carry that for it.
_CALLBACK = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{heading} · tillbridge</title>
<link rel="icon" href="{icon}" type="image/svg+xml">
<link rel="stylesheet" href="{style}">
</head>
<body>
<main class="inner narrow">
  <section class="verdict {level}" role="status">
    <h1>{heading}</h1>
    {paragraphs}
  </section>
  <p class="quiet">{close}</p>
</main>
</body>
</html>
"""


def callback_page(answer: CallbackAnswer) -> str:
    """Return what the merchant sees after consent."""
    told = [answer.text, *([answer.fix] if answer.fix else [])]
    return _CALLBACK.format(
        heading=_escaped(_("Connected") if answer.ok else _("Not connected")),
        icon=static_address("icon.svg"),
        style=static_address("style.css"),
        level="ok" if answer.ok else "down",
        paragraphs="\n    ".join(f"<p>{_escaped(text)}</p>" for text in told),
        close=_escaped(_("You can close this page.")),
    )


def _escaped(text: str) -> str:
    return escape(harmless(text))
