"""`tillbridge run`: the daemon, in the foreground."""

import typer

from tillbridge.cli.settings import config_path, set_up_kept_log


def run(context: typer.Context) -> None:
    """Run the bridge in the foreground, until it is told to stop.

    With a configuration that names no store yet it serves nothing but the page on which everything
    is set up; see docs/setup.md.

    Ctrl-C or SIGTERM lets what has begun finish, and ends within ten seconds.

    Example: tillbridge --config bridge.toml run
    """
    from tillbridge.config.loading import load_to_run

    loaded = load_to_run(config_path(context))
    set_up_kept_log(loaded)

    from tillbridge import daemon

    raise typer.Exit(daemon.run(loaded))
