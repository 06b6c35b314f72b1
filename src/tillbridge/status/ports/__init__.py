"""What the status listener asks of the rest of the bridge; the daemon hands it in."""

from tillbridge.status.ports.answer import Answer, CallbackAnswer, OnCallback
from tillbridge.status.ports.bridge import DiagnosticsControl, Trail
from tillbridge.status.ports.control import Control
from tillbridge.status.ports.stores import CommunitiesControl

__all__ = [
    "Answer",
    "CallbackAnswer",
    "CommunitiesControl",
    "Control",
    "DiagnosticsControl",
    "OnCallback",
    "Trail",
]
