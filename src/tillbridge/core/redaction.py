"""The one redaction engine: removes secrets and customers' data from texts and values.

Three ways, since none is enough: by the name of a field, by value (`KnownTexts`: texts that are
known to be secret, wherever and however they are written) and by form (rules: bearer tokens, JWTs,
`secret=...`). The log masks what the program has learnt (`masked`); a support bundle and a recorded
case bring texts and rules of their own.
"""

import base64
import html
import json
import re
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

MASK = "[secret]"
Rule = tuple[re.Pattern[str], str]  # a form, and what is in its place

_REMEMBERED = 400  # secrets; the oldest tokens go first
_SHORTEST = 6  # a shorter text would mask half of every line
_KEY = 3  # characters by which a known text is looked up
_WHOLE = 8  # a shorter one is found as a word only
_DEPTH = 12

_SECRET_KEY = re.compile(
    r"(?:^|[_\-. ])(?:secret|token|password|passwd|passphrase|authorization|signature|cookie|"
    r"credential|api_?key|private_?key|fernet|jwt|bearer)s?(?:$|[_\-. ])",
    re.IGNORECASE,
)
# Names that hold such a word and no secret.
_PLAIN_KEY = re.compile(
    r"(?:_(?:ms|s|at|in|days|count|type|field|kind|url|endpoint|expires|missing)|^token_type)$",
    re.IGNORECASE,
)
# An OAuth code is a secret; a service's error code, a reason code and a problem's code are not.
_PUBLIC_CODE = re.compile(r"[a-z][a-z_]*(?:\.[a-z_]+)+|[A-Z][A-Z_]+|\d{1,3}|[a-z]{1,12}|")

EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
PHONE = re.compile(r"(?<![\w.])\+\d[\d ()./-]{6,}\d")
JWT = re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?")
_NAMES = (
    r"(?:client_|webhook_|refresh_|access_|signing_|id_)?"
    r"(?:secret|token|password|passwd|signature|authorization|api_?key|qr_token)"
)
_SCHEMES = r"(?:Bearer|Basic|Digest|Token|ApiKey|Key|OAuth|Negotiate|Hawk)"
_NAME_MASKED = rf"\g<1>{MASK}"
RULES: Sequence[Rule] = (
    (re.compile(r"(\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), _NAME_MASKED),
    (JWT, MASK),
    # secret=..., "token": "...", 'signature': '...', Authorization: ...
    (
        re.compile(
            rf"({_NAMES}\s*=\s*[\"']?)(?:\[(?:secret|personal)\])*+[^\s\"'&,;)\]}}]+", re.IGNORECASE
        ),
        _NAME_MASKED,
    ),
    (
        re.compile(
            rf"({_NAMES}\\?[\"']\s*:\s*\\?[\"'])(?:\[(?:secret|personal)\])*+[^\"'\\]+",
            re.IGNORECASE,
        ),
        _NAME_MASKED,
    ),
    (re.compile(rf"(\bauthorization:\s*(?:{_SCHEMES}\s+)?)\S+", re.IGNORECASE), _NAME_MASKED),
    (re.compile(r"(signature:\s*)[0-9a-f]{16,}", re.IGNORECASE), _NAME_MASKED),
    # what an OAuth redirect carries
    (re.compile(r"([?&](?:code|state|email)=)[^&\s\"'<>]+", re.IGNORECASE), _NAME_MASKED),
)


class KnownTexts:
    """Texts that are known, and what is in their place: in any case, quoted, base64, hex.

    One walk over a text finds them, whatever their number. Texts may be added while others read.
    """

    def __init__(self) -> None:
        self._forms: dict[str, list[tuple[str, str, bool]]] = {}  # by their first characters

    def add(self, form: str, other: str, *, anywhere: bool = False) -> None:
        """Put `other` in the place of a form; one that is short is a word of its own, or stays.

        `anywhere`: also within a longer word.
        """
        low = lowered(form)
        known = self._forms.get(low[:_KEY], [])
        if len(low) >= _KEY and all(low != each[0] for each in known):
            # A new list: a reader may be in the old one.
            longest_first = sorted([*known, (low, other, anywhere)], key=lambda each: -len(each[0]))
            self._forms[low[:_KEY]] = longest_first

    def replaced(self, text: str) -> str:
        """Return a text with the others in the place of what is known."""
        pieces, done = [], 0
        for begin, end, other in self._found(text) if self._forms else ():
            pieces += [text[done:begin], other]
            done = end
        return "".join([*pieces, text[done:]]) if pieces else text

    def first_in(self, text: str) -> str:
        """Return the first that is in a text; "" where none does."""
        return next((text[begin:end] for begin, end, _other in self._found(text)), "")

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        low, forms, place = lowered(text), self._forms, 0
        last = len(low) - _KEY
        while place <= last:
            for form, other, anywhere in forms.get(low[place : place + _KEY], ()):
                end = place + len(form)
                if low.startswith(form, place) and (anywhere or _is_word(low, place, end)):
                    yield place, end, other
                    place = end
                    break
            else:
                place += 1


def quoted_forms(text: str) -> list[str]:
    """Return the ways in which a text may be quoted, always as many, itself first."""
    as_json = json.dumps(text)[1:-1]
    return [
        text,
        quote(text, safe=""),
        quote(text),
        quote_plus(text),
        as_json,
        json.dumps(as_json)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        text.replace('"', '\\"'),
        repr(text)[1:-1],
        html.escape(text),
    ]


def coded_forms(text: str) -> list[str]:
    """Return a text in hex and base64, as it may stand inside of something longer; always five."""
    data = text.encode("utf-8", "surrogatepass")
    forms = [data.hex(), base64.b64encode(data).decode().rstrip("=")]
    # What stays of it wherever in the encoded bytes it stands.
    for before, cut in ((0, 0), (1, 2), (2, 3)):
        coded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        rest = (before + len(data)) % 3
        forms.append(coded[cut : len(coded) - 1 if rest else None])
    return forms


def url_safe(form: str) -> str:
    """Return a base64 text as addresses write it."""
    return form.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def learn_secret(text: str) -> None:
    """Mask `text` from now on wherever it is, also as a URL or base64 would write it."""
    global _known  # noqa: PLW0603 -- one memory for the whole program
    if len(text) < _SHORTEST:
        return
    with _lock:
        is_new = text not in _learnt
        _learnt[text] = None
        _learnt.move_to_end(text)
        if len(_learnt) > _REMEMBERED:
            _learnt.popitem(last=False)
            _known = KnownTexts()
            for each in _learnt:
                _add_secret(_known, each)
        elif is_new:
            _add_secret(_known, text)


def _add_secret(known: KnownTexts, text: str) -> None:
    for form in (*quoted_forms(text), *coded_forms(text)):
        known.add(form, MASK, anywhere=True)


_lock = threading.Lock()
_learnt: OrderedDict[str, None] = OrderedDict()
_known = KnownTexts()


def masked(text: str) -> str:
    """Return a text without the secrets in it; one without any stays what it is, a `Text` too."""
    found = by_rules(_known.replaced(text), RULES)
    return text if found == text else found


def by_rules(text: str, rules: Iterable[Rule]) -> str:
    """Return a text with what these rules put in the place of what they know by its form."""
    for form, other in rules:
        text = form.sub(other, text)
    return text


def masked_field(name: str, value: object) -> object:
    """Return what may be shown of a field: by its name, and for the rest by what it holds."""
    return MASK if _is_secret(name, value) else masked_value(value)


def _is_secret(name: str, value: object) -> bool:
    """Whether a field is secret by its name, whatever it holds."""
    if isinstance(value, bool | int | float) or value is None:
        return False
    if name == "code":
        return isinstance(value, str) and not _PUBLIC_CODE.fullmatch(value)
    return names_secret(name)


def names_secret(name: str) -> bool:
    """Whether what is under this name is secret, whatever it is."""
    return bool(_SECRET_KEY.search(name)) and not _PLAIN_KEY.search(name)


def redacted(
    value: object,
    text: Callable[[str], str],
    *,
    hides: Callable[[str, object], bool] | None = None,
    number: Callable[[int], object] = lambda number: number,
    depth: int = 0,
) -> object:
    """Return a value with what `text` makes of its texts, and a mask for the fields it `hides`.

    The names of fields are texts too where nothing is hidden by them. What JSON does not know
    becomes text, as does what is nested too deep.
    """
    if isinstance(value, bool | float) or value is None:
        return value
    if isinstance(value, int):
        return number(value)
    if isinstance(value, bytes | bytearray):
        return text(bytes(value).decode("utf-8", "backslashreplace"))
    if depth < _DEPTH:
        inner = partial(redacted, text=text, hides=hides, number=number, depth=depth + 1)
        if isinstance(value, Mapping):
            if hides is None:
                return {text(str(name)): inner(each) for name, each in value.items()}
            return {
                str(name): MASK if hides(str(name), each) else inner(each)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple | AbstractSet):
            return [inner(each) for each in value]
    return text(str(value))


def leaves(value: object, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield what is in a JSON value, with the names of the fields around it.

    An empty list or object is "": its own name is not lost.
    """
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from leaves(each, (*names, str(name)))
    elif isinstance(value, list | tuple | AbstractSet):
        for each in value:
            yield from leaves(each, names)
    else:
        yield names, value
    if isinstance(value, Mapping | list | tuple | AbstractSet) and not value:
        yield names, ""


# A value without the secrets in it; what JSON does not know becomes text.
masked_value: Callable[[object], Any] = partial(redacted, text=masked, hides=_is_secret)


def masked_traceback(failure: BaseException) -> str:
    """Return the failure's traceback as text, without local variables and without secrets."""
    return masked("".join(traceback.format_exception(failure)))


def lowered(text: str) -> str:
    """Return a text in small letters, each in its place."""
    low = text.lower()
    if len(low) == len(text):
        return low
    # Some letters become two: each must stay in its place.
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in text)


def _is_word(text: str, begin: int, end: int) -> bool:
    """Whether what was found is no part of a longer word; that matters for short ones only."""
    if end - begin >= _WHOLE:
        return True
    before = text[begin - 1 : begin] if begin else ""
    after = text[end : end + 1]
    first, last = text[begin], text[end - 1]
    return not (first.isalnum() and before.isalnum()) and not (last.isalnum() and after.isalnum())


# -- which of the values that people configure are secrets, where nothing says so

# Names of variables and options that hold something secret.
SECRET_NAME = re.compile(
    r"secret|token|passw|passphrase|pwd|(?:^|[_-])pin(?:$|[_-])|key|auth|credential|cookie|dsn|"
    r"signature|session|license|licence|webhook",
    re.IGNORECASE,
)
# Options of adapters that may be shown: where something is, and how it is read.
HARMLESS_OPTION = re.compile(
    r"(?:^|_)(?:path|file|files|folder|dir|menu|orders|updates|tables|host|port|encoding|delimiter|"
    r"timeout|poll|format|mode|version|language|zone|currency|decimal|sheet|columns?|base_url)$|"
    r"_(?:s|ms|min|days|percent|bytes|count)$"
)
_TOKEN_LIKE = 16
_WORD = re.compile(r"[a-z_-]{1,15}")  # in an address: it says what is done there, as "services"


def secret_options(value: object, *, named: bool = False) -> Iterator[str]:
    """Yield the texts among an adapter's options that are secrets, by name or by looks."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            shown = HARMLESS_OPTION.search(str(name)) is not None
            yield from secret_options(
                each, named=not shown and (named or bool(SECRET_NAME.search(str(name))))
            )
    elif isinstance(value, list):
        for each in value:
            yield from secret_options(each, named=named)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        text = str(value)
        if named or _looks_like_one(text):
            yield from parts_of_secret(text)


def parts_of_secret(text: str) -> Iterator[str]:
    """Yield a secret; one that is an address also in the parts that make it one."""
    yield text
    if "://" not in text:
        return
    yield from userinfo_of(text)
    try:
        split = urlsplit(text)
    except ValueError:
        return
    parts = [unquote(part) for part in split.path.split("/")]
    parts += [value for _name, value in parse_qsl(split.query)]
    yield from (part for part in parts if len(part) >= _SHORTEST and not _WORD.fullmatch(part))
    if split.scheme not in {"http", "https"} and len(split.netloc) >= _SHORTEST:
        yield split.netloc  # apprise puts tokens where a host would stand


def userinfo_of(url: str) -> Iterator[str]:
    """Yield the user and password of an address, together and each."""
    try:
        split = urlsplit(url)
        given = [part for part in (split.username, split.password) if part]
    except ValueError:
        return
    yield ":".join(given)
    for part in given:
        yield part
        yield unquote(part)


def _looks_like_one(text: str) -> bool:
    return (
        len(text) >= _TOKEN_LIKE
        and any(map(str.isdigit, text))
        and any(map(str.isalpha, text))
        and re.fullmatch(r"[\w.~+=-]+", text) is not None
    )
