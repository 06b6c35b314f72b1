"""Text that people read, in the language of whoever reads it.

`_` returns English: a `Text`, which is put into the reader's language where it is shown, by `str`,
in an f-string, in a template, in a line of a command. So a text may be in a table, wait in
memory or lie in the ledger, and everybody reads it in their own language; what is logged, compared
or joined is English. Who reads is a `Reader`: for the length of a request, a command or else of the
process (`reading`, `set_reader`).

The catalogues are gettext's, `locale/LANGUAGE/LC_MESSAGES/tillbridge.po`; English is the source and
has none. A package with an adapter has its own in its folder; the bridge's has what both say.
"""

import gettext
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cache, lru_cache, wraps
from importlib.util import find_spec
from pathlib import Path, PurePath
from string import Formatter
from typing import Any, ParamSpec, Self, TypeVar, cast

from tillbridge.model.numbers import map_leaves

P = ParamSpec("P")
T = TypeVar("T")

LOCALES = Path(__file__).parents[1] / "locale"
SOURCE = "en"
ADAPTERS = "tillbridge.adapters"
"""The entry points of the packages that have an adapter."""

_CATALOGUE = Path("LC_MESSAGES/tillbridge.po")
_PLAIN = {"C", "POSIX"}
_LONGEST_HEADER = 200


# -- who reads


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: a locale as Babel writes it (`de_AT`), and a time zone (None: this machine's).

    `en` alone is the reader of whom nothing is known: English, with ISO's dates and 24 hours.
    """

    locale: str = SOURCE
    zone: tzinfo | None = None

    @property
    def language(self) -> str:
        """The language of the texts: `de`."""
        return self.locale.partition("_")[0]


NOBODY = Reader()
_default = NOBODY
_reader: ContextVar[Reader | None] = ContextVar("reader", default=None)


def reader() -> Reader:
    """Return who reads what is shown now."""
    return _reader.get() or _default


def set_reader(who: Reader) -> None:
    """Say who reads what this process shows, wherever nobody else is named."""
    global _default  # noqa: PLW0603 -- one for the process, as its environment is
    _default = who


@contextmanager
def reading(who: Reader) -> Iterator[None]:
    """Show to `who` meanwhile, in this task or thread."""
    token = _reader.set(who)
    try:
        yield
    finally:
        _reader.reset(token)


def in_zone(zone: tzinfo | None) -> None:
    """Show times in this zone until the task that calls it ends; None is this machine's."""
    _reader.set(replace(reader(), zone=zone))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages there are texts in, English first."""
    found = (path.parents[1].name for path in LOCALES.glob("*/LC_MESSAGES/tillbridge.po"))
    return (SOURCE, *sorted(found))


def of_environment(environment: Mapping[str, str] = os.environ) -> str:
    """Return the locale that the environment asks for, as gettext reads it: LANGUAGE, LC_ALL ..."""
    names = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    asked = next(filter(None, names), "C")
    if asked.partition(".")[0] in _PLAIN:
        return SOURCE
    listed = environment.get("LANGUAGE", "").split(":")
    return negotiated([each for each in (*listed, asked) if each])


def of_browser(accept_language: str) -> str:
    """Return the locale for the header Accept-Language; English where there is none of them."""
    return _of_header(accept_language[:_LONGEST_HEADER])


@lru_cache(maxsize=256)
def _of_header(header: str) -> str:
    weighed = []
    for place, part in enumerate(header.split(",")):
        tag, *parameters = (each.strip() for each in part.split(";"))
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            weighed.append((-float(weight), place, tag))
        except ValueError:
            continue
    return negotiated([tag for weight, _place, tag in sorted(weighed) if tag and weight])


def negotiated(wanted: Iterable[str]) -> str:
    """Return the first locale whose language there are texts in; English for none.

    Its formats are those of its country, where Babel knows it: `de-AT` is `de_AT`.
    """
    for each in wanted:
        tag = re.split(r"[.@]", each)[0].replace("-", "_")
        language, mark, _rest = tag.partition("_")
        if language.lower() in languages():
            return _known(tag) if mark else language.lower()
    return SOURCE


def _known(tag: str) -> str:
    # Not while the command line is built.
    from babel.core import Locale, UnknownLocaleError  # noqa: PLC0415 -- (as above)

    try:
        return str(Locale.parse(tag))
    except (ValueError, UnknownLocaleError):
        return tag.partition("_")[0].lower()


# -- catalogues


@cache
def catalogue(language: str) -> gettext.NullTranslations:
    """Return the texts of a language; those of English where there is no such catalogue.

    Read once, which takes some 100 ms for the 4,800 texts.
    """
    path = LOCALES / language / _CATALOGUE
    if not path.is_file():
        return gettext.NullTranslations()
    found = _read(path, language)
    for folder in _adapter_folders():
        # One that cannot be read costs nobody the page: its texts are in English.
        with suppress(OSError, ValueError):
            found.add_fallback(_read(folder / "locale" / language / _CATALOGUE, language))
    return found


def _adapter_folders() -> Iterator[Path]:
    """Yield the folders of the packages that have an adapter, which are not imported for it."""
    from importlib import metadata  # noqa: PLC0415 -- for other languages only

    modules = (entry.module for entry in metadata.entry_points(group=ADAPTERS))
    packages = {module.partition(".")[0] for module in modules} - {__name__.partition(".")[0]}
    for package in sorted(packages):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent


def _read(path: Path, language: str) -> gettext.NullTranslations:
    from babel.messages.mofile import write_mo  # noqa: PLC0415 -- for other languages only
    from babel.messages.pofile import read_po  # noqa: PLC0415 -- (as above)

    compiled = io.BytesIO()
    with path.open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


# -- texts


class Text(str):
    """A text in English that is shown in the reader's language.

    `kind` and `of` say how to make it again: plain values, and other texts. Every method of `str`
    but `format`, `format_map` and `+` takes it for the English that it is.
    """

    __slots__ = ("kind", "of")
    kind: str
    of: tuple[Any, ...]

    def __new__(cls, english: str, kind: str, *of: object) -> Self:
        """Return a text that the maker of its kind makes again for each reader."""
        made = super().__new__(cls, english)
        made.kind, made.of = kind, of
        return made

    def __str__(self) -> str:
        return _MAKERS[self.kind](*self.of)

    def __format__(self, how: str) -> str:
        return format(str(self), how)

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, (english(self), self.kind, *self.of)

    def __add__(self, other: str) -> str:
        return joined("", (self, other))

    def __radd__(self, other: str) -> str:
        return joined("", (other, self))

    def format(self, *args: object, **kwargs: object) -> str:
        """Put values into its places, for whoever reads it."""
        return self.format_map({**dict(zip("0123456789", args, strict=False)), **kwargs})

    def format_map(self, mapping: Any, /) -> str:  # noqa: ANN401 -- whatever has the names
        """Put values into its places, for whoever reads it."""
        values = {name: mapping[name] for name in _places(english(self))}
        plain = {name: english(value) for name, value in values.items()}
        return Text(_filled(english(self), plain), "filled", self, values)


def english(value: T) -> T:
    """Return a text as it is in the source; anything else as it is."""
    return cast("T", str.__str__(value)) if isinstance(value, Text) else value


@lru_cache(maxsize=1024)
def _places(text: str) -> tuple[str, ...]:
    """Return the names of the places in a text, numbers for those that have none."""
    numbers = (str(place) for place in range(10))
    return tuple(
        re.split(r"[.\[]", name)[0] or next(numbers)
        for _text, name, _how, _conversion in Formatter().parse(text)
        if name is not None
    )


def _shown(text: str, values: Mapping[str, object]) -> str:
    try:
        return _filled(str(text), values)
    except (LookupError, ValueError, AttributeError):  # a place that the translation made up
        return _filled(english(text), values)


def _filled(text: str, values: Mapping[str, object]) -> str:
    positional = [values[each] for each in "0123456789" if each in values]
    return text.format(*positional, **{k: v for k, v in values.items() if not k.isdecimal()})


def joined(between: str, texts: Iterable[str]) -> str:
    """Return texts as one, which is still shown in the reader's language; `join` makes English."""
    parts = tuple(texts)
    return Text(english(between).join(parts), "joined", between, parts)


def _(text: str) -> str:
    """Return `text`, to be shown in the reader's language."""
    return text if isinstance(text, Text) else Text(text, "text", text)


def ngettext(one: str, many: str, count: int) -> str:
    """Return the form of a text that fits `count`, to be shown in the reader's language."""
    return Text(one if count == 1 else many, "plural", one, many, count)


def N_(text: str) -> str:  # noqa: N802 - gettext's own name for it
    """Mark a text that is in a table; pass it through `_` where it is shown."""
    return text


_MAKERS: dict[str, Callable[..., str]] = {
    "text": lambda text: catalogue(reader().language).gettext(text) if text else "",
    "plural": lambda one, many, count: catalogue(reader().language).ngettext(one, many, count),
    "filled": _shown,
    "joined": lambda between, parts: str(between).join(map(str, parts)),
}


def shown_by_locale(make: Callable[P, str]) -> Callable[P, str]:
    """Let a function of plain values, which formats them for the reader, return a `Text`."""
    kind = make.__name__
    _MAKERS[kind] = make

    @wraps(make)
    def text(*args: P.args, **kwargs: P.kwargs) -> str:
        assert not kwargs, "what is stored of it is a list"  # noqa: S101 -- for who calls it
        with reading(NOBODY):
            plain = make(*args, **kwargs)
        return Text(plain, kind, *args)

    return text


def localised(value: Any) -> Any:  # noqa: ANN401 -- whatever JSON holds
    """Return plain values with every text in them in the reader's language."""
    return map_leaves(value, lambda each: str(each) if isinstance(each, Text) else each)


# -- texts as JSON, in the ledger


_KIND = "$text"
MARK = f'"{_KIND}"'
"""Stands in JSON that has a text in it."""


def to_plain(value: Any) -> Any:  # noqa: ANN401 -- whatever JSON holds
    """Return a value for JSON that `from_plain` makes the same texts of."""
    return map_leaves(value, _plain)


def _plain(value: object) -> object:
    match value:
        case Text():
            return {_KIND: value.kind, "of": to_plain(value.of), "english": english(value)}
        case BaseException() | PurePath():  # a detail of a text
            return str(value)
        case _:
            return value


def from_plain(found: dict[str, Any]) -> Any:  # noqa: ANN401 -- whatever JSON holds
    """Return the text of an object of JSON, the object itself where it is none (`object_hook`)."""
    if found.keys() != {_KIND, "of", "english"}:
        return found
    plain, kind = str(found["english"]), found[_KIND]
    if kind not in _MAKERS:  # of another version
        return plain
    return Text(plain, kind, *found["of"])
