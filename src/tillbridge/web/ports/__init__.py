"""What the status listener asks of the rest of the bridge; the daemon hands it in."""

from tillbridge.web.ports.answer import Answer, CallbackAnswer, OnCallback
from tillbridge.web.ports.control import Control

__all__ = [
    "Answer",
    "CallbackAnswer",
    "Control",
    "OnCallback",
]
