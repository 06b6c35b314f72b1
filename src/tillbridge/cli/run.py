"""`tillbridge run`, the daemon in the foreground; `sandbox` and `demo`, to try it with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tillbridge.cli import importing, say
from tillbridge.cli.commands import command, config_path
from tillbridge.cli.exits import Exit, until_signalled
from tillbridge.core.i18n import _
from tillbridge.core.operation import Argument

if TYPE_CHECKING:
    from tillbridge.sandbox import RunningSandbox


@command("run")
def run(context: typer.Context) -> None:
    """Run the bridge in the foreground.

    With a configuration that names no store yet, it serves only the page on which you set
    everything up; see docs/setup.md.

    Stop it with Ctrl-C or SIGTERM: it completes what has begun, within ten seconds.

    Example: tillbridge --config bridge.toml run
    """
    with importing():
        from tillbridge.config.loading import load_to_run
        from tillbridge.core.log import LOG_FOLDER, LogFiles, configure

    loaded = load_to_run(config_path(context))
    bridge = loaded.settings.bridge
    files = LogFiles(loaded.data_dir / LOG_FOLDER, bridge.keep_log_bytes)
    configure(bridge.log_format, bridge.log_level, on_line=files.write, headline_first=True)

    with importing():
        from tillbridge import daemon  # what it imports may log

    raise typer.Exit(daemon.run(loaded))


@command("sandbox")
def sandbox(
    _context: typer.Context,
    *,
    host: Annotated[str, Argument("HOST", _("The address to listen on."))] = "127.0.0.1",
    port: Annotated[
        int, Argument("PORT", _("The port. 0 uses any free one."), least=0, most=65_535)
    ] = 9000,
    state: Annotated[
        Path | None,
        Argument("FILE", _("Save the state in this file, and continue from it.")),
    ] = None,
) -> None:
    """Run a practice ordering service on this machine, with a storefront to order from.

    It needs no bridge. Without --state it forgets everything when it stops.

    Example: tillbridge sandbox --state sandbox.json
    """
    import asyncio
    from contextlib import suppress

    from tillbridge.core.log import configure
    from tillbridge.sandbox import UnusableStateError, serve

    configure()
    try:
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(until_signalled(serve(host=host, port=port, state=state, ready=_ready)))
    except UnusableStateError as failure:
        say.trouble(
            f"{failure}.", _("Choose another file with --state, or delete this one to begin again.")
        )
        raise typer.Exit(Exit.FAILED) from None
    except OSError as failure:
        from tillbridge.core.errors import reason_of
        from tillbridge.core.network import port_taken

        other = _("choose another port: tillbridge sandbox --port 0")
        holder, fix = port_taken(port, other, failure)
        say.trouble(
            _("The sandbox cannot listen on {host}:{port}: {why}{holder}.").format(
                host=host, port=port, why=reason_of(failure), holder=holder
            ),
            fix,
        )
        raise typer.Exit(Exit.FAILED) from None


def _ready(running: "RunningSandbox") -> None:
    say.line(_("base_url:   {url}").format(url=running.base_url))
    say.line(_("storefront: {url}/").format(url=running.url))
    for app in running.sandbox.settings.apps:
        text = _("client_id:  {id}, its secret: {secret}")
        say.line(text.format(id=app.client_id, secret=app.client_secret))
    say.line(_("Stop it with Ctrl-C."))


@command("demo")
def demo(
    _context: typer.Context,
    *,
    once: Annotated[
        bool, Argument(help=_("Run the scenario once, show the result, and stop."))
    ] = False,
    till: Annotated[
        str,
        Argument(
            "NAME",
            _("The till to use: clover, square, ..., or the folder of an adapter."),
        ),
    ] = "folder",
) -> None:
    """Try everything on this machine: a practice service, a till, the bridge and orders.

    Touches nothing outside this machine. With --once, the exit code is 0 only if all went well.

    Example: tillbridge demo --once
    """
    from tillbridge.cli.demo_play import play

    raise typer.Exit(play(once=once, adapter=till))
