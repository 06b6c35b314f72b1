"""Texts of unknown origin, made fit to be stored, logged and shown."""


def printable(text: str, *, most: int) -> str:
    """Return one line of at most `most` characters that every encoding of Unicode can hold.

    Half a character (a lone surrogate, as `os.fsdecode` makes of bytes that are no UTF-8) and
    control characters become `?` and blanks.
    """
    clean = text[: most + 1].encode("utf-8", "replace").decode()
    line = " ".join("".join(each if each.isprintable() else " " for each in clean).split())
    return line if len(line) <= most else f"{line[: most - 1]}\u2026"


def is_storable(text: str) -> bool:
    """Return whether the text can be encoded: it holds no half of a character."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
