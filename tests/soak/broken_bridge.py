"""The program with a planted defect: a soak that loses nothing of it would prove nothing."""

import os

from tests.simulation.mutants import planted
from tillbridge import cli


def main() -> None:
    """Be the program."""
    with planted(os.environ["SOAK_DEFECT"]):
        cli.main()
