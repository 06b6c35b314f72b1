"""`python -m tillbridge.windows`: what the service control manager starts."""

import argparse
import os
from pathlib import Path


def main() -> None:
    """Be the service."""
    parser = argparse.ArgumentParser(
        prog="python -m tillbridge.windows",
        description="The bridge as a Windows service. Started by Windows, not by hand: "
        "see packaging/windows/README.md, and use `tillbridge run` on a console.",
    )
    parser.add_argument("--name", default="tillbridge", help="the service's name")
    parser.add_argument("--config", type=Path, required=True, help="bridge.toml, as a whole path")
    arguments = parser.parse_args()
    if os.name != "nt":
        parser.exit(2, "This is for Windows. Elsewhere: tillbridge service install\n")
    from tillbridge.windows.service import host  # noqa: PLC0415 -- it needs pywin32

    host(arguments.name, arguments.config)


main()
