"""The receipt number (`pos_reference`) of an order of ours: made of its key, and found by it. Pure.

`Online ord_123 40281-937-0552`. The digits are worked out from the key, so that the whole can be
searched for exactly, and so that a receipt number of somebody else's is not taken for ours. Odoo
17's own point of sale looks for 14 digits and dashes in it, and cannot load an order without.
"""

import hashlib
import re
import uuid
from dataclasses import dataclass

_NAMESPACE = uuid.UUID("6f0d0d5e-8c0b-5d0a-9a59-6f64f3a0c7a1")
_WHOLE = re.compile(r"^(?P<word>\S+) (?P<key>.+) (?P<digits>\d{5}-\d{3}-\d{4})$")


@dataclass(frozen=True, slots=True)
class Reference:
    """How Odoo knows an order of ours; `word` is what all of them begin with."""

    word: str
    key: str

    @property
    def digits(self) -> str:
        """The number that people read: 5, 3 and 4 digits."""
        digest = hashlib.sha256(self.key.encode()).digest()
        plain = f"{int.from_bytes(digest[:8]) % 10**12:012}"
        return f"{plain[:5]}-{plain[5:8]}-{plain[8:]}"

    @property
    def text(self) -> str:
        """The whole receipt number."""
        return f"{self.word} {self.key} {self.digits}"

    def refund(self, order: int) -> "Reference":
        """Return the receipt number of what gives back the order with that id.

        Odoo 17 takes a second refund with the same number and lines for one that it has.
        """
        return Reference(f"{self.word}Refund", f"{self.key} {order}")

    def uuid(self, part: str = "") -> str:
        """Return the same UUID each time for the order, or for a part of it."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.text}\n{part}"))


def key_in(reference: str, word: str) -> str | None:
    """Return the key of an order of ours, None for another's receipt number."""
    match = _WHOLE.match(reference)
    if match is None or match["word"] != word:
        return None
    return match["key"] if Reference(word, match["key"]).text == reference else None
