"""`tillbridge demo`: the whole thing on this machine."""

from typing import Annotated

import typer

from tillbridge.core.i18n import _


def demo(
    once: Annotated[
        bool,
        typer.Option("--once", help=_("Play the scenario once, tell what happened, and end.")),
    ] = False,
    till: Annotated[
        str,
        typer.Option(
            "--till",
            metavar="NAME",
            help=_("Play it with the till of this adapter: clover, square, ... or a folder's."),
        ),
    ] = "folder",
) -> None:
    """Play the whole thing here: a local ordering service, a till, the bridge, and orders.

    Nothing outside this machine is touched. With --once it ends with 0 only if all went well.

    Example: tillbridge demo --once
    """
    from tillbridge.cli.demo_play import play

    raise typer.Exit(play(once=once, adapter=till))
