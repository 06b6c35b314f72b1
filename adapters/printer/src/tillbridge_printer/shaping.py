"""Joins Arabic letters and puts right-to-left text into the order in which it is drawn.

Small on purpose: letters take their joined forms from the Unicode database, and a line is split
into runs of one direction. Numbers in right-to-left text keep their order. That is enough for the
names of dishes; brackets across runs and the letters of Indic scripts are not handled.
"""

import unicodedata
from functools import cache

_RTL = {"R", "AL", "RLE", "RLO"}
_WEAK = {"WS", "ON", "CS", "ES", "ET", "NSM", "BN", "S"}
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")


def drawn(text: str) -> str:
    """Return the text as a printer draws it, from left to right."""
    if not any(unicodedata.bidirectional(each) in _RTL for each in text):
        return text
    runs = _runs(_joined(text))
    # A line that begins right to left is read from its right end.
    ordered = runs[::-1] if runs and runs[0][0] else runs
    return "".join(_reversed(run) if rtl else run for rtl, run in ordered)


def _runs(text: str) -> list[tuple[bool, str]]:
    """Split into runs; what has no direction belongs to the run around it, or the one before."""
    directions: list[bool | None] = []
    for each in text:
        kind = unicodedata.bidirectional(each)
        directions.append(True if kind in _RTL else None if kind in _WEAK else False)
    runs: list[tuple[bool, str]] = []
    current = next((each for each in directions if each is not None), False)
    start = 0
    for at, direction in enumerate(directions):
        if direction is None or direction == current:
            continue
        edge = at
        while edge > start and directions[edge - 1] is None:
            edge -= 1  # blanks between two runs stay with the outer one, which is the first
        edge = at if not runs else edge
        while edge > start and text[edge - 1] in "([{<":
            edge -= 1  # a bracket opens what follows
        runs.append((current, text[start:edge]))
        start, current = edge, direction
    runs.append((current, text[start:]))
    return [(rtl, run) for rtl, run in runs if run]


def _reversed(run: str) -> str:
    """Reverse a run, with each accent behind its letter, and digits in their order."""
    clusters: list[str] = []
    for each in run:
        if clusters and (
            unicodedata.combining(each) or (each.isdigit() and clusters[-1].isdigit())
        ):
            clusters[-1] += each
        else:
            clusters.append(each)
    return "".join(reversed(clusters)).translate(_MIRRORED)


def _joined(text: str) -> str:
    letters = list(text)
    shaped = []
    for at, letter in enumerate(letters):
        forms = _forms().get(letter)
        if forms is None:
            shaped.append(letter)
            continue
        before = _neighbour(letters, at, -1)
        after = _neighbour(letters, at, 1)
        joins_before = before is not None and "initial" in _forms().get(before, {})
        joins_after = after is not None and "final" in _forms().get(after, {})
        wanted = (
            "medial"
            if joins_before and joins_after
            else "final"
            if joins_before
            else "initial"
            if joins_after
            else "isolated"
        )
        if wanted == "medial" and "medial" not in forms:
            wanted = "final"
        if wanted == "initial" and "initial" not in forms:
            wanted = "isolated"
        shaped.append(forms.get(wanted, letter))
    return "".join(shaped)


def _neighbour(letters: list[str], at: int, step: int) -> str | None:
    at += step
    while 0 <= at < len(letters):
        if not unicodedata.combining(letters[at]):
            return letters[at]
        at += step
    return None


@cache
def _forms() -> dict[str, dict[str, str]]:
    """Return each Arabic letter's forms: initial, medial, final, isolated."""
    forms: dict[str, dict[str, str]] = {}
    for code in (*range(0xFB50, 0xFBFF), *range(0xFE70, 0xFEFD)):
        kind, *letters = unicodedata.decomposition(chr(code)).split() or ("",)
        if len(letters) == 1 and kind in {"<initial>", "<medial>", "<final>", "<isolated>"}:
            forms.setdefault(chr(int(letters[0], 16)), {})[kind.strip("<>")] = chr(code)
    return forms
