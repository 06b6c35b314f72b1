"""One Odoo: who we are there, which version it is, and its records by model."""

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tillbridge_odoo.rpc import Asks, Fault, NoAnswer, no_odoo

Record = Mapping[str, Any]
Domain = Sequence[object]

PAGE = 500
_SERIE = re.compile(r"(?P<major>\d+)(?:\.(?P<minor>\d+))?")


class LoginRefused(Exception):
    """Odoo does not know the user, or the key is not (any more) the right one."""


@dataclass(frozen=True, slots=True)
class Account:
    """The database at an address, and who works in it; the key is shown nowhere.

    `read_key` reads it again: it may have been renewed since. Raises ValueError.
    """

    url: str
    database: str
    login: str
    read_key: Callable[[], str] = field(repr=False)


class _Logins:
    """Who we are in each Odoo, for all stores of this process.

    Odoo takes half a second of its processor to check a key, so that nobody asks while another
    does, and nobody asks what another has found out.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._locks: dict[tuple[str, str, str], threading.Lock] = {}
        self._lock = threading.Lock()

    def uid(self, account: Account, key: str, ask: Callable[[], object]) -> int:
        """Return the number of our user. Raises LoginRefused, and what `ask` raises."""
        who = (account.url, account.database, account.login)
        with self._lock:
            lock = self._locks.setdefault(who, threading.Lock())
        with lock:
            known = self._known.get(who)
            if known is not None and known[0] == key:
                return known[1]
            uid = ask()
            if not isinstance(uid, int) or isinstance(uid, bool):
                raise LoginRefused
            self._known[who] = (key, uid)
            return uid

    def forget(self, account: Account, key: str) -> None:
        """Ask again next time: Odoo no longer knows us by this key."""
        who = (account.url, account.database, account.login)
        known = self._known.get(who)
        if known is not None and known[0] == key:
            self._known.pop(who, None)


_LOGINS = _Logins()


class Odoo:
    """Asks one database as one user, in `language` or the user's. Safe to use from threads."""

    def __init__(self, rpc: Asks, account: Account, language: str | None = None) -> None:
        self._rpc = rpc
        self._account = account
        self._wanted_language = language
        self._user_language: str | None = None
        self._lock = threading.Lock()
        self._key = account.read_key()
        self._fields: dict[str, Mapping[str, Record]] = {}

    def close(self) -> None:
        """Let go of connections."""
        self._rpc.close()

    @property
    def uid(self) -> int:
        """The number of our user. Raises LoginRefused, NoAnswer, Fault."""
        try:
            return self._login()
        except LoginRefused:
            if not self._key_renewed():
                raise
            return self._login()

    def _login(self) -> int:
        account, key = self._account, self._key
        args: tuple[object, ...] = (account.database, account.login, key, {})
        return _LOGINS.uid(
            account, key, lambda: self._rpc.ask("common", "authenticate", args, changes=False)
        )

    def _key_renewed(self) -> bool:
        """Read the key again; return whether it is another one than before."""
        try:
            key = self._account.read_key()
        except ValueError:  # the file is being replaced, or is gone: what we have is all there is
            return False
        renewed, self._key = key != self._key, key
        return renewed

    def version(self) -> tuple[int, int]:
        """Ask Odoo for its version: (17, 0). Raises NoAnswer, Fault."""
        answer = self._rpc.ask("common", "version", (), changes=False)
        serie = str(answer.get("server_serie") if isinstance(answer, Mapping) else answer)
        match = _SERIE.search(serie)
        return (int(match["major"]), int(match["minor"] or 0)) if match is not None else (0, 0)

    def language(self) -> str | None:
        """Return the language to read names in. Raises LoginRefused, NoAnswer.

        Without one Odoo says names as they were in English, where nobody of a shop that works in
        another language changes them.
        """
        if self._wanted_language is None and self._user_language is None:
            try:
                found = self.call("res.users", "context_get")
            except Fault:
                found = None
            language = found.get("lang") if isinstance(found, Mapping) else None
            self._user_language = language if isinstance(language, str) else ""
        return self._wanted_language or self._user_language or None

    def call(
        self,
        model: str,
        method: str,
        *args: object,
        changes: bool = False,
        **named: object,
    ) -> Any:  # noqa: ANN401 -- any JSON value
        """Return what a method of a model answers. Raises LoginRefused, NoAnswer, Fault."""
        try:
            return self._asked(model, method, args, named, changes=changes)
        except LoginRefused:
            # Odoo looks at the key before it does anything.
            if not self._key_renewed():
                raise
            return self._asked(model, method, args, named, changes=changes)

    def _asked(
        self,
        model: str,
        method: str,
        args: Sequence[object],
        named: Record,
        *,
        changes: bool,
    ) -> Any:  # noqa: ANN401 -- any JSON value
        database, uid, key = self._account.database, self.uid, self._key
        asked = (database, uid, key, model, method, list(args), named)
        try:
            return self._rpc.ask("object", "execute_kw", asked, changes=changes)
        except NoAnswer:
            self._forget()  # it may come back as another version, or with other modules
            raise
        except Fault as fault:
            if fault.kind == "odoo.exceptions.AccessDenied":
                _LOGINS.forget(self._account, key)
                raise LoginRefused from fault
            raise

    def search(
        self, model: str, domain: Domain, *, order: str = "id", context: Record | None = None
    ) -> list[int]:
        """Return the ids of all records of a model that fit."""
        found = self.call(model, "search", list(domain), order=order, context=context or {})
        return _listed(found, int)

    def read(
        self,
        model: str,
        domain: Domain,
        fields: Iterable[str],
        *,
        order: str = "id",
        limit: int | None = None,
        context: Record | None = None,
    ) -> list[Record]:
        """Return the records of a model that fit; of `fields` those that this Odoo has."""
        named: dict[str, Any] = {
            "fields": self.known(model, fields),
            "order": order,
            "context": context or {},
        }
        if limit is not None:
            named["limit"] = limit
        return _listed(self.call(model, "search_read", list(domain), **named), Mapping)

    def read_ids(
        self,
        model: str,
        ids: Sequence[int],
        fields: Iterable[str],
        *,
        context: Record | None = None,
    ) -> dict[int, Record]:
        """Return records by id, in the order of `ids`, page by page; what is gone is left out."""
        found: dict[int, Record] = {}
        wanted = list(fields)
        for start in range(0, len(ids), PAGE):
            domain = [["id", "in", list(ids[start : start + PAGE])]]
            for record in self.read(model, domain, wanted, context=context):
                found[record["id"]] = record
        return {each: found[each] for each in ids if each in found}

    def known(self, model: str, fields: Iterable[str]) -> list[str]:
        """Return those of `fields` that the model has in this Odoo."""
        there = self.fields(model)
        return [each for each in fields if each in there]

    def fields(self, model: str) -> Mapping[str, Record]:
        """Return the model's fields, each with its type and whether it is stored."""
        with self._lock:
            if model not in self._fields:
                found = self.call(model, "fields_get", attributes=["type", "store", "readonly"])
                if not isinstance(found, Mapping):
                    raise no_odoo()
                _listed([*found.values()], Mapping)
                self._fields[model] = found
            return self._fields[model]

    def has_model(self, model: str) -> bool:
        """Return whether the module that brings a model is installed."""
        try:
            return bool(self.fields(model))
        except Fault as fault:
            if "doesn't exist" in fault.text or (
                fault.kind.endswith("KeyError") and model in fault.text
            ):
                with self._lock:
                    self._fields[model] = {}
                return False
            raise

    def _forget(self) -> None:
        self._fields.clear()
        self._user_language = None


def _listed(found: object, kind: Any) -> list[Any]:  # noqa: ANN401 -- of that class
    """Return a list of that kind; what answers otherwise is a proxy, or an Odoo that is starting.

    Raises NoAnswer.
    """
    if isinstance(found, list) and all(isinstance(each, kind) for each in found):
        return found
    raise no_odoo()
