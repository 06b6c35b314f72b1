"""The command line. `main` is the program `tillbridge`.

Importing this package is cheap, and each command imports what it needs when it runs.
"""

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import Reader, of_environment, set_reader


@contextmanager
def importing() -> Iterator[None]:
    """Import without collections, and leave what was imported out of later ones: it stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """Run the program and exit with the contract's codes."""
    set_reader(Reader(of_environment()))
    atexit.register(gc.freeze)  # its last collections would visit all that was imported
    try:
        with importing():
            from tillbridge.cli.app import program

            command = program()
        code = command.main(prog_name="tillbridge", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except BridgeError as failure:
        from tillbridge.cli.exits import exit_code_of, next_step
        from tillbridge.cli.say import failed

        code = exit_code_of(failure)
        failed(failure.text, next_step(failure), code, as_json="--json" in sys.argv)
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as failure:  # noqa: BLE001 -- the last place: told in words, kept in a file
        from tillbridge.cli.exits import refused, report

        code = refused(failure, as_json="--json" in sys.argv)
        sys.exit(report(failure) if code is None else code)
