"""What is answered: JSON for a command, a sentence for a merchant's browser."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallbackAnswer:
    """What the merchant's browser shows after consent: whether it worked, and one sentence."""

    ok: bool
    text: str
    fix: str = ""


# Takes the query of a request to redirect_uri (code and state, or error).
OnCallback = Callable[[Mapping[str, str]], Awaitable[CallbackAnswer]]
