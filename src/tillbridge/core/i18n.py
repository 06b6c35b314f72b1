"""Text that people read, ready for translation.

Plain gettext: the catalogue `tillbridge` is looked up next to the package (`locale/`) and in the
language of the environment; without one, the English of the source is shown.
"""

import gettext
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def _translations() -> gettext.NullTranslations:
    return gettext.translation("tillbridge", Path(__file__).parents[1] / "locale", fallback=True)


def _(text: str) -> str:
    """Return `text` in the reader's language."""
    return _translations().gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """Return the form of a text that fits `count`, in the reader's language."""
    return _translations().ngettext(one, many, count)


def N_(text: str) -> str:  # noqa: N802 - gettext's own name for it
    """Mark a text that stands in a table; pass it through `_` where it is shown."""
    return text
