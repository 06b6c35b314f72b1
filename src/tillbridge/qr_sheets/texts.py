"""Texts from a POS, made fit for paper and for file names. Pure."""

import re
import unicodedata
from collections.abc import Iterable

_JOINERS = "\u200c\u200d"  # they shape Persian words and emoji, and steer nothing
_LONGEST = 40


def printable(text: str) -> str:
    """Return the text on one line, without characters that steer (control, bidi, surrogates)."""
    kept = "".join(each if each.isprintable() or each in _JOINERS else " " for each in text)
    return " ".join(kept.split())


def slug(text: str) -> str:
    """Return lower-case ASCII letters, digits and hyphens; "" where nothing of it is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:_LONGEST].strip("-")


def file_stems(prefix: str, named: Iterable[tuple[str, str]]) -> list[str]:
    """Return a stem of a file name for each (name, id), no two the same on any file system.

    `prefix` begins each, so that none is hidden, a folder, or a name that Windows keeps.
    """
    taken: set[str] = set()
    stems = []
    for name, external_id in named:
        first = "-".join(filter(None, (prefix, slug(name) or "table")))
        second = "-".join(filter(None, (first, slug(external_id))))
        stem, number = first if first not in taken else second, 2
        while stem in taken:
            stem, number = f"{second}-{number}", number + 1
        taken.add(stem)
        stems.append(stem)
    return stems
