"""Texts that want to be more than text, a `Control` that tells them, and the shape of a page.

A page's test data says `PLANT` wherever text from outside would stand (names of customers and
items, instructions, what a till or the service said). `Planted` puts a hostile text there.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path
from typing import Any

PLANT = "HARMLESS"
CORPUS: list[str] = [
    each["text"]
    for each in json.loads((Path(__file__).parents[1] / "data/hostile.json").read_text())
]


def _together(longest: int) -> Iterator[str]:
    """Yield texts of some of the corpus each, one after another, up to so many characters."""
    joined = ""
    for text in filter(str.strip, CORPUS):
        if joined and len(joined) + len(text) > longest:
            yield joined
            joined = ""
        joined += text + " "
    yield joined


# All of the corpus in a few texts: what is not escaped there changes a page all the same.
TOGETHER = list(_together(600))


def planted(value: Any, text: str) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the value with `text` in place of every `PLANT`, in keys too."""
    if isinstance(value, str):
        return value.replace(PLANT, text)
    if isinstance(value, dict):
        return {planted(key, text): planted(each, text) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [planted(each, text) for each in value]
    return value


class Planted:
    """Stands before a `Control`; whatever it answers is planted with `text`."""

    def __init__(self, inner: object, text: str = PLANT) -> None:
        self._inner = inner
        self.text = text

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the operation is
        value = getattr(self._inner, name)
        if not callable(value):
            return _Under(self, value)
        return self.answering(value)

    def answering(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        async def answered(*args: object, **named: object) -> Any:  # noqa: ANN401 -- any JSON value
            answer = operation(*args, **named)
            return self._plant(await answer if inspect.isawaitable(answer) else answer)

        return answered

    def _plant(self, value: Any) -> Any:  # noqa: ANN401 -- any JSON value
        return planted(value, self.text)


class PlantedInTurn(Planted):
    """Puts the next of the texts wherever one would stand: many on one page, none twice."""

    def __init__(self, inner: object, texts: Sequence[str]) -> None:
        super().__init__(inner)
        self._texts = cycle(texts)
        self.used = 0

    def _plant(self, value: Any) -> Any:  # noqa: ANN401 -- any JSON value
        if isinstance(value, str):
            if PLANT not in value:
                return value
            self.used += 1
            return value.replace(PLANT, next(self._texts))
        if isinstance(value, dict):
            return {key: self._plant(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._plant(each) for each in value]
        return value


class _Under:
    def __init__(self, top: Planted, inner: object) -> None:
        self._top = top
        self._inner = inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the operation is
        return self._top.answering(getattr(self._inner, name))


class _Shape(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)  # text is left out
        self.parts: list[tuple[str, ...]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(("<", tag, *sorted(name for name, _value in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.parts.append((">", tag))

    def handle_comment(self, data: str) -> None:
        self.parts.append(("comment",))

    def handle_decl(self, decl: str) -> None:
        self.parts.append(("!", decl))

    def handle_pi(self, data: str) -> None:
        self.parts.append(("?",))

    def unknown_decl(self, data: str) -> None:
        self.parts.append(("unknown",))


def shape_of(page: str) -> list[tuple[str, ...]]:
    """Return the tags of a page, with the names of their attributes; text is left out."""
    shape = _Shape()
    shape.feed(page)
    shape.close()
    return shape.parts
