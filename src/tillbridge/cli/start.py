"""Starting the daemon, by the shortest way.

It runs for months beside a till: what parses command lines is not loaded where there is nothing to
parse (decision 10).
"""

from collections.abc import Sequence
from pathlib import Path

from tillbridge import lean
from tillbridge.cli.settings import set_up_kept_log


def start(config: Path | None) -> int:
    """Run the daemon until it is told to stop; return the exit code. Raises BridgeError."""
    lean.starting()
    from tillbridge.configfile.fresh import load_to_run

    loaded = load_to_run(config)
    set_up_kept_log(loaded)

    from tillbridge import daemon

    return daemon.run(loaded)


def plain_run(arguments: Sequence[str]) -> tuple[Path | None] | None:
    """Return the file of `[--config FILE] run`, None in a tuple without one; None for all else."""
    match list(arguments):
        case ["run"]:
            return (None,)
        case ["--config", file, "run"]:
            return (Path(file),)
        case [option, "run"] if option.startswith("--config="):
            return (Path(option.removeprefix("--config=")),)
        case _:
            return None
