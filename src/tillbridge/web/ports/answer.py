"""What is answered: JSON for a command, a sentence for a merchant's browser."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tillbridge.stores.consent import CallbackAnswer

Answer = dict[str, Any]

# Takes the query of a request to redirect_uri (code and state, or error).
OnCallback = Callable[[Mapping[str, str]], Awaitable[CallbackAnswer]]

__all__ = ["Answer", "CallbackAnswer", "OnCallback"]
