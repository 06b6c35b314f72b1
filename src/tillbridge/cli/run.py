"""`tillbridge run`: the daemon, in the foreground."""

import typer

from tillbridge.cli.settings import load_settings, set_up_log


def run(context: typer.Context) -> None:
    """Run the bridge in the foreground, until it is told to stop.

    Ctrl-C or SIGTERM lets what has begun finish, and ends within ten seconds.

    Example: tillbridge --config bridge.toml run
    """
    loaded = load_settings(context)
    set_up_log(loaded, quiet=False)

    from tillbridge import daemon

    raise typer.Exit(daemon.run(loaded))
