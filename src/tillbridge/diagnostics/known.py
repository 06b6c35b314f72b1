"""What is secret or personal on this machine: collected, and taken out of what leaves it."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tillbridge.config.loading import LoadedSettings, load
from tillbridge.config.secrets import SecretSource, resolve_secret
from tillbridge.config.store import AdapterSection, StoreSettings
from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.redaction import (
    EMAIL,
    MASK,
    PHONE,
    SECRET_NAME,
    KnownTexts,
    Rule,
    by_rules,
    coded_forms,
    leaves,
    lowered,
    masked,
    parts_of_secret,
    quoted_forms,
    redacted,
    secret_options,
    url_safe,
    userinfo_of,
)
from tillbridge.ledger.backend import stored_secrets

_PERSONAL_NAME = re.compile(
    r"customer|guest|contact|recipient|delivery_address|^address$|billing|payer|person|"
    r"instruction|(?:^|_)notes?$|comment|phone|e_?mail|first_name|last_name|full_name"
)
# Parts of an address that half the town shares, and that say nothing of anybody.
_SHARED = frozenset({"country", "currency", "locale", "state", "type", "city"})
_SHORTEST = 6
_TOKEN_LIKE = 8
_PHONE_DIGITS = 7


def secrets_here(loaded: LoadedSettings) -> set[str]:
    """Return what is known to be secret: of files, vault and environment.

    What cannot be read is left out; then nothing of it can have been written into a bundle either.
    A configuration that was changed since the bridge started has new secrets, and the old ones may
    be in the log.
    """
    secrets = {*_files(loaded.data_dir), *_vaulted(loaded), *_environment(os.environ)}
    known = [loaded]
    with suppress(ConfigError):
        known.append(load(loaded.path))
    for each in known:
        secrets |= {*_configured(each), *_options(each)}
    return secrets


def personal_of(payload: object) -> set[str]:
    """Return what an order, or a delivery, says of a customer."""
    found: set[str] = set()
    for names, leaf in leaves(payload):
        kinds = set(map(_kind, names))
        if "personal" not in kinds or "shared" in kinds:
            continue
        if isinstance(leaf, str | int) and not isinstance(leaf, bool):
            text = str(leaf).strip()
            found.add(text)
            found.update(line.strip() for line in text.splitlines())
            digits = re.sub(r"\D", "", text)
            if len(digits) >= _PHONE_DIGITS:
                found.add(digits)
    return found


@lru_cache(4096)
def _kind(name: str) -> str:
    """Return whether what is under a name is personal, shared by many, or neither ("")."""
    key = name.lower()
    if key in _SHARED:
        return "shared"
    return "personal" if _PERSONAL_NAME.search(key) else ""


def _configured(loaded: LoadedSettings) -> Iterator[str]:
    settings = loaded.settings
    users = settings.status_page.users
    hashes = [(("status_page", "users", name), user.password) for name, user in users.items()]
    for path, source in [*settings.secrets(), *hashes]:
        try:
            key = ".".join(map(str, path))
            secret = resolve_secret(source, key=key, base_dir=loaded.base_dir).get_secret_value()
        except ConfigError:
            continue
        yield from parts_of_secret(secret)
    for address in (settings.alerts.heartbeat_url, settings.fleet.url):
        if address is not None:
            yield from parts_of_secret(str(address))
    for _names, text in leaves(settings.model_dump(mode="json")):
        if isinstance(text, str) and "://" in text and "@" in text:
            yield from userinfo_of(text)


def adapter_sections(store: StoreSettings) -> Mapping[str, AdapterSection]:
    """Return the tables of a store that hold options of adapters, by their names."""
    sections = {"pos": store.pos, "orders": store.orders, "fallback": store.fallback}
    return {name: each for name, each in sections.items() if each is not None}


def _options(loaded: LoadedSettings) -> Iterator[str]:
    for store in loaded.settings.stores.values():
        for section in adapter_sections(store).values():
            yield from _pointed_at(section.options, loaded.base_dir)
            yield from secret_options(section.options)
            yield from _handed_on(section.options.get("env"))


def _handed_on(names: object) -> Iterator[str]:
    """Yield what a program is given of the environment, which only the configuration names."""
    for name in names if isinstance(names, list) else ():
        value = os.environ.get(str(name), "")
        if not value.startswith("/"):  # a path is no secret
            yield value


def _pointed_at(value: object, base_dir: Path) -> Iterator[str]:
    """Yield the secrets that options only point at: `{ file = ... }` and the like."""
    if isinstance(value, list):
        for each in value:
            yield from _pointed_at(each, base_dir)
    if not isinstance(value, Mapping):
        return
    for each in value.values():
        yield from _pointed_at(each, base_dir)
    if len(value) == 1 and set(value) <= set(SecretSource.model_fields):
        try:
            source = SecretSource.model_validate(dict(value))
            yield resolve_secret(source, key="", base_dir=base_dir).get_secret_value()
        except (ValidationError, ConfigError):
            return


def _files(data_dir: Path) -> Iterator[str]:
    paths = [data_dir / "ledger.key"]
    if credentials := os.environ.get("CREDENTIALS_DIRECTORY"):
        paths += [path for path in Path(credentials).glob("*") if path.is_file()]
    for path in paths:
        yield _text(path)
    try:
        yield str(json.loads(_text(data_dir / "control.json"))["token"])
    except (ValueError, KeyError, TypeError):
        return


def _vaulted(loaded: LoadedSettings) -> Iterator[str]:
    try:
        vault = stored_secrets(loaded.data_dir, loaded.ledger_url(), loaded.ledger_key())
    except (ConfigError, LedgerError):
        return
    if vault is None:
        return
    for name in vault.names():
        text_of_secret = vault.get(name) or ""
        try:
            value: Any = json.loads(text_of_secret)
        except ValueError:
            value = text_of_secret
        # Dates, scopes and ids are there too; a token is long, and no sentence.
        for _names, text in leaves(value):
            if isinstance(text, str) and len(text) >= _TOKEN_LIKE and " " not in text:
                yield text


def _environment(variables: Mapping[str, str]) -> Iterator[str]:
    for name, value in variables.items():
        if "://" in value and "@" in value:
            yield from userinfo_of(value)
        # A path to a key is no key.
        secret = SECRET_NAME.search(name) and not name.startswith(("XDG_", "DBUS_"))
        if secret and len(value) >= _SHORTEST and not value.startswith("/"):
            yield from parts_of_secret(value)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, ValueError):
        return ""


PERSONAL = "[personal]"
_LEAST = 4  # characters; a shorter text cannot be distinguished from others, and stays
_PIECE = 4
_SHORT = 24  # characters of a text that is looked at once only

# What looks like a secret, whoever wrote it.
_RULES: Sequence[Rule] = (
    (
        re.compile(r"(?i)\b((?:proxy-)?authorization\\?[\"']?\s*[:=]\s*+)(?!\[)[^\r\n\"'\\,;}\]]+"),
        rf"\g<1>{MASK}",
    ),
    (
        re.compile(r"(?i)\b((?:set-)?cookie\\?[\"']?\s*[:=]\s*+)(?!\[)[^\r\n\"'\\}\]]+"),
        rf"\g<1>{MASK}",
    ),
    (re.compile(r"(?i)\b(tillbridge_session\s*=\s*)[^\s\"'\\;,]+"), rf"\g<1>{MASK}"),
    (
        re.compile(
            r"(?i)\b(x-[a-z-]*(?:key|token|secret)\\?[\"']?\s*[:=]\s*\\?[\"']?)[^\s\"'\\,;]+"
        ),
        rf"\g<1>{MASK}",
    ),
    (re.compile(r"\$argon2[a-z]*\$[^\s\"'\\]+"), MASK),
    (re.compile(r"\bgAAAA[A-Za-z0-9_=-]{20,}"), MASK),  # what Fernet has encrypted
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@\"'\\]+@", re.IGNORECASE), rf"\g<1>{MASK}@"),
    (EMAIL, PERSONAL),
    (PHONE, PERSONAL),
    (re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL), MASK),
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{24,}(?![A-Za-z0-9_-])")
# What identifies and opens nothing: the service's ids, and words put together.
_HARMLESS = re.compile(
    r"(?:st|ord|int|app|job|tbl|tax|com|cus|evt|del|whk|str)_[A-Za-z0-9]+|[a-z_-]+"
)


class Scrubber:
    """Takes out `secrets` and `personal` texts, and what looks like either.

    With `among` (see `pieces_of`) personal texts that cannot are in those pieces are not even
    remembered: there are tens of thousands of them, and hardly any is ever found.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        personal: Iterable[str] = (),
        *,
        among: AbstractSet[str] | None = None,
    ) -> None:
        self._known = KnownTexts()
        self._short: dict[str, str] = {}
        for texts, mask in ((secrets, MASK), (personal, PERSONAL)):
            pieces = among if mask is PERSONAL else None
            for text in {each.strip() for each in texts}:
                if len(text) < _LEAST:
                    continue
                for form in quoted_forms(text):
                    if _may_occur(form, pieces):
                        self._known.add(form, mask)
                coded = coded_forms(text)
                for form in (*coded, *map(url_safe, coded)):
                    if len(form) >= _SHORTEST and _may_occur(form, pieces):
                        self._known.add(form, mask, anywhere=True)

    def text(self, text: str) -> str:
        """Return a text without them, and without what looks like a secret."""
        if len(text) > _SHORT:
            return self._scrubbed(text)
        # Names of fields and of events are in a log by the thousand.
        if text not in self._short:
            self._short[text] = self._scrubbed(text)
        return self._short[text]

    def _scrubbed(self, text: str) -> str:
        text = masked(by_rules(self.known(text), _RULES))
        return self.known(_TOKEN.sub(_token, text))

    def value(self, value: object) -> object:
        """Return a JSON value without them; keys too, and numbers that are known."""
        return redacted(value, self.text, number=self._number)

    def _number(self, number: int) -> object:
        return self.text(str(number)) if self.known(str(number)) != str(number) else number

    def known(self, text: str) -> str:
        """Return a text without what is known, whatever it looks like."""
        return self._known.replaced(text)


def pieces_of(values: Iterable[object]) -> AbstractSet[str]:
    """Return all runs of a few characters in the texts of JSON values."""
    return {
        low[place : place + _PIECE]
        for value in values
        for names, leaf in leaves(value)
        for text in (*names, *([] if leaf is None or isinstance(leaf, bool) else [str(leaf)]))
        for low in (lowered(text),)
        for place in range(len(low) - _PIECE + 1)
    }


def _may_occur(form: str, among: AbstractSet[str] | None) -> bool:
    """Whether a text may stand where these pieces come from."""
    if among is None:
        return True
    low = lowered(form)
    middle = (len(low) - _PIECE) // 2
    return all(low[at : at + _PIECE] in among for at in (0, middle, len(low) - _PIECE))


def _token(found: re.Match[str]) -> str:
    text = found[0]
    kinds = (any(map(str.islower, text)), any(map(str.isupper, text)), any(map(str.isdigit, text)))
    if sum(kinds) < 3 or _HARMLESS.fullmatch(text):
        return text
    return MASK
