"""Ids for exports that have none: made of category, name and size.

They stay when a price changes or rows move; a dish with another name or category is another dish.
"""

import unicodedata

from tillbridge.pos.folder import cells

_LONGEST_PART = 120


def derived_id(*parts: str) -> str:
    """Return the id that these names give; upper and lower case are the same."""
    return "/".join(_part(part) for part in parts)


def _part(name: str) -> str:
    text = cells.plain(unicodedata.normalize("NFC", name)).casefold()
    return text.replace("%", "%25").replace("/", "%2F")[:_LONGEST_PART]
