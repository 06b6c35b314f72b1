"""The daemon: composes everything, supervises its tasks, and ends in order."""

from tillbridge.daemon.alone import SigningUp, alone, connect_alone, perform_alone
from tillbridge.daemon.connecting import Wanted
from tillbridge.daemon.examining import examine_alone
from tillbridge.daemon.run import run
from tillbridge.stores.consent import ConsentRequest

__all__ = [
    "ConsentRequest",
    "SigningUp",
    "Wanted",
    "alone",
    "connect_alone",
    "examine_alone",
    "perform_alone",
    "run",
]
