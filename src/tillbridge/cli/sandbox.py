"""`tillbridge sandbox`: the local ordering service, to develop and test against."""

from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import say
from tillbridge.cli.exits import Exit
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.sandbox import RunningSandbox


def sandbox(
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="HOST", help=_("The address to listen on; keep it this machine's.")
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65_535, help=_("The port; 0 takes a free one.")
        ),
    ] = 9000,
) -> None:
    """Run a strict ordering service on this machine, with a storefront to order from.

    It keeps everything in memory and shares nothing with the bridge.

    Example: tillbridge sandbox --port 9000
    """
    import asyncio

    from tillbridge.core.log import configure
    from tillbridge.sandbox import serve

    configure()
    try:
        asyncio.run(serve(host=host, port=port, ready=_ready))
    except OSError as failure:
        say.trouble(
            _("{host}:{port} cannot be listened on: {why}.").format(
                host=host, port=port, why=failure.strerror
            ),
            _("Choose another: tillbridge sandbox --port 0"),
        )
        raise typer.Exit(Exit.FAILED) from None


def _ready(running: "RunningSandbox") -> None:
    say.line(_("base_url:   {url}").format(url=running.base_url))
    say.line(_("storefront: {url}/").format(url=running.url))
    for app in running.sandbox.settings.apps:
        say.line(
            _("client_id:  {id}, its secret: {secret}").format(
                id=app.client_id, secret=app.client_secret
            )
        )
    say.line(_("Ctrl-C ends it."))
