"""What customers write, made fit for paper: no byte of it may ever reach a printer as a command.

A template marks with `@` and `|` what is layout. In values these two are replaced by characters
of the private use area, which no value can hold otherwise, and put back when the layout is read.
"""

import unicodedata

_AT, _BAR = "\ue000", "\ue001"
# Control, format, surrogate, private use, not assigned.
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn"}
# Variation selectors, and the colours of skin.
_MODIFIERS = {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0x1F3FB, 0x1F400))}
_BLANKS = {"\t", "\n", "\v", "\f", "\r", "\x85"}


def clean(text: str) -> str:
    """Return `text` on one line, composed (NFC), without anything that is not a visible sign.

    A pictograph becomes its name in brackets: a kitchen reads `[pineapple]`, a printer has no 🍍.
    """
    line = "".join(" " if each in _BLANKS else each for each in text)
    composed = unicodedata.normalize("NFC", line)
    shown = "".join(_shown(each) for each in composed)
    return " ".join(shown.split())


def protected(value: object) -> str:
    """Return a template's value, cleaned, with nothing in it that the layout takes for its own."""
    return clean(str(value)).replace("@", _AT).replace("|", _BAR)


def restored(text: str) -> str:
    """Return the text of a finished layout, with what the customer wrote."""
    return text.replace(_AT, "@").replace(_BAR, "|")


def _shown(character: str) -> str:
    if character == "\ufffd":  # it stands for half a character, which is no sign
        return ""
    category = unicodedata.category(character)
    if category in {"Zl", "Zp", "Zs"}:
        return " "
    if category in _DROPPED or character in _MODIFIERS:
        return ""
    if ord(character) > 0xFFFF and category in {"So", "Sk"}:
        return f"[{unicodedata.name(character, '?').lower()}]"
    return character
