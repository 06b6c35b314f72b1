"""`tillbridge run`: the daemon, in the foreground."""

import typer

from tillbridge.cli.settings import config_path
from tillbridge.cli.start import start


def run(context: typer.Context) -> None:
    """Run the bridge in the foreground, until it is told to stop.

    Ctrl-C or SIGTERM lets what has begun finish, and ends within ten seconds.

    Example: tillbridge --config bridge.toml run
    """
    raise typer.Exit(start(config_path(context)))
