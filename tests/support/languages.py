"""Small catalogues in place of the program's, for tests of what is shown in another language."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.pofile import write_po

from tillbridge.core import i18n

# A text, or the forms for one and for many; and the same in the other language.
Texts = Mapping[str | tuple[str, str], str | tuple[str, ...]]


def write_catalogue(folder: Path, language: str, texts: Texts) -> None:
    """Write a catalogue where the program looks for it, below `folder`."""
    made = Catalog(locale=language)
    for text, other in texts.items():
        made.add(text, other)
    path = folder / language / "LC_MESSAGES/tillbridge.po"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, made)


@contextmanager
def catalogues(folder: Path, monkeypatch: pytest.MonkeyPatch, **texts: Texts) -> Iterator[None]:
    """Let the program have these catalogues, by language, and no others."""
    for language, each in texts.items():
        write_catalogue(folder, language, each)
    monkeypatch.setattr(i18n, "LOCALES", folder)
    forget()
    try:
        yield
    finally:
        monkeypatch.undo()
        forget()


def forget() -> None:
    """Let what was read of catalogues be read again."""
    for each in (i18n.languages, i18n.catalogue, i18n._of_header):
        each.cache_clear()
