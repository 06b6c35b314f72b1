"""The daemon: composes everything, supervises its tasks, and ends in order."""

from tillbridge.daemon.compose import Session, connecting, examine_alone, perform_alone
from tillbridge.daemon.run import run

__all__ = ["Session", "connecting", "examine_alone", "perform_alone", "run"]
