"""Takes known secrets and customers' data out of texts, however they are written there. Pure."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from urllib.parse import quote, quote_plus

from tillbridge.core.redaction import MASK, masked

PERSONAL = "[personal]"

SHORTEST_SECRET = 4
SHORTEST_PERSONAL = 4
_KEY = 4  # characters by which a needle is looked up
_SHORT = 24  # characters of a text that is looked at once only
_SHORTEST_CODED = 6  # of base64 and hex: shorter ones stand everywhere

# What looks like a secret, whoever wrote it.
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"(?i)\b((?:proxy-)?authorization\\?[\"']?\s*[:=]\s*+)(?!\[)[^\r\n\"'\\,;}\]]+"),
        MASK,
    ),
    (re.compile(r"(?i)\b((?:set-)?cookie\\?[\"']?\s*[:=]\s*+)(?!\[)[^\r\n\"'\\}\]]+"), MASK),
    (re.compile(r"(?i)\b(tillbridge_session\s*=\s*)[^\s\"'\\;,]+"), MASK),
    (
        re.compile(
            r"(?i)\b(x-[a-z-]*(?:key|token|secret)\\?[\"']?\s*[:=]\s*\\?[\"']?)[^\s\"'\\,;]+"
        ),
        MASK,
    ),
    (re.compile(r"()\$argon2[a-z]*\$[^\s\"'\\]+"), MASK),
    (re.compile(r"()\bgAAAA[A-Za-z0-9_=-]{20,}"), MASK),  # what Fernet has encrypted
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@\"'\\]+@", re.IGNORECASE), f"{MASK}@"),
    (re.compile(r"()\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), PERSONAL),
    (re.compile(r"()(?<![\w.])\+\d[\d ()./-]{6,}\d"), PERSONAL),
    (re.compile(r"()-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL), MASK),
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{24,}(?![A-Za-z0-9_-])")
# What identifies and opens nothing: the service's ids, and words put together.
_HARMLESS = re.compile(
    r"(?:st|ord|int|app|job|tbl|tax|com|cus|evt|del|whk|str)_[A-Za-z0-9]+|[a-z_-]+"
)


class Scrubber:
    """Takes out `secrets` and `personal` texts: plain, in any case, quoted, base64, hex.

    What is shorter than four characters cannot be told from other text, and stays. With `among`
    (see `pieces_of`) personal texts that cannot stand in those pieces are not even remembered:
    there are tens of thousands of them, and hardly any is ever found.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        personal: Iterable[str] = (),
        *,
        among: AbstractSet[str] | None = None,
    ) -> None:
        self._needles: dict[str, list[tuple[str, str, bool]]] = {}
        self._short: dict[str, str] = {}
        seen: set[str] = set()
        for texts, shortest, mask in (
            (secrets, SHORTEST_SECRET, MASK),
            (personal, SHORTEST_PERSONAL, PERSONAL),
        ):
            for text in {each.strip() for each in texts}:
                if len(text) < shortest:
                    continue
                forms = [*((form, False) for form in _plain(text)), *_coded(text)]
                for form, anywhere in forms:
                    low = _lower(form)
                    possible = mask is MASK or among is None or _stands(low, among)
                    if possible and low not in seen:
                        seen.add(low)
                        self._needles.setdefault(low[:_KEY], []).append((low, mask, anywhere))
        for found in self._needles.values():
            found.sort(key=lambda each: -len(each[0]))

    def text(self, text: str) -> str:
        """Return a text without them, and without what looks like a secret."""
        if len(text) > _SHORT:
            return self._scrubbed(text)
        # Names of fields and of events stand in a log by the thousand.
        if text not in self._short:
            self._short[text] = self._scrubbed(text)
        return self._short[text]

    def _scrubbed(self, text: str) -> str:
        text = self.known(text)
        for pattern, mask in _FORMS:
            text = pattern.sub(rf"\g<1>{mask}", text)
        return self.known(_TOKEN.sub(_token, masked(text)))

    def value(self, value: object) -> object:
        """Return a JSON value without them; keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.value(each) for name, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(each) for each in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return self.text(str(value)) if self.known(str(value)) != str(value) else value
        if value is None or isinstance(value, bool | float):
            return value
        return self.text(str(value))

    def known(self, text: str) -> str:
        """Return a text without what is known; one walk over it, whatever the number."""
        if not self._needles:
            return text
        low = _lower(text)
        needles, pieces, done, place = self._needles, [], 0, 0
        last = len(low) - _KEY
        while place <= last:
            for needle, mask, anywhere in needles.get(low[place : place + _KEY], ()):
                end = place + len(needle)
                if low.startswith(needle, place) and (anywhere or _apart(low, place, end)):
                    pieces += [text[done:place], mask]
                    done = place = end
                    break
            else:
                place += 1
        return "".join([*pieces, text[done:]])


def pieces_of(values: Iterable[object]) -> AbstractSet[str]:
    """Return all runs of four characters in the texts of JSON values."""
    return {
        low[place : place + _KEY]
        for value in values
        for text in _texts(value)
        for low in (_lower(text),)
        for place in range(len(low) - _KEY + 1)
    }


def _stands(low: str, among: AbstractSet[str]) -> bool:
    """Whether a text may stand where these pieces come from."""
    middle = (len(low) - _KEY) // 2
    return all(low[at : at + _KEY] in among for at in (0, middle, len(low) - _KEY))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield str(name)
            yield from _texts(each)
    elif isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from _texts(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _plain(text: str) -> Iterator[str]:
    """Yield the ways in which a text may be quoted."""
    yield text
    as_json = json.dumps(text)[1:-1]
    for form in (
        quote(text, safe=""),
        quote(text),
        quote_plus(text),
        as_json,
        json.dumps(as_json)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
    ):
        if form != text:
            yield form


def _coded(text: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in hex and base64, where it may stand inside of something longer."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) >= _SHORTEST_CODED:
        yield data.hex(), True
    for form in _base64(data):
        if len(form) >= _SHORTEST_CODED:
            yield form, True
            yield form.translate(_URL_SAFE), True


_URL_SAFE = str.maketrans("+/", "-_")


def _base64(data: bytes) -> Iterator[str]:
    """Yield what stays of it in base64 wherever in the encoded bytes it stands."""
    for before, cut in ((0, 0), (1, 2), (2, 3)):
        coded = base64.b64encode(b"\0" * before + data).decode().rstrip("=")
        rest = (before + len(data)) % 3
        yield coded[cut : len(coded) - 1 if rest else None]


def _lower(text: str) -> str:
    low = text.lower()
    if len(low) == len(text):
        return low
    # Some letters become two: each must stay in its place.
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in text)


def _apart(text: str, begin: int, end: int) -> bool:
    """Whether what was found is no part of a longer word; that matters for short ones only."""
    if end - begin >= 8:
        return True
    before = text[begin - 1 : begin] if begin else ""
    after = text[end : end + 1]
    first, last = text[begin], text[end - 1]
    return not (first.isalnum() and before.isalnum()) and not (last.isalnum() and after.isalnum())


def _token(found: re.Match[str]) -> str:
    text = found[0]
    kinds = (any(map(str.islower, text)), any(map(str.isupper, text)), any(map(str.isdigit, text)))
    if sum(kinds) < 3 or _HARMLESS.fullmatch(text):
        return text
    return MASK
