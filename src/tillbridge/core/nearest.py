"""What a misspelt word was probably meant to be."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """Return the known word nearest to `word`; None where none is near.

    `likeness` is between 0 (anything) and 1 (the same word).
    """
    # Only for those who mistype: it need not weigh on every start.
    from difflib import get_close_matches  # noqa: PLC0415 -- (as above)

    close = get_close_matches(word, list(known), n=1, cutoff=likeness)
    return close[0] if close else None
