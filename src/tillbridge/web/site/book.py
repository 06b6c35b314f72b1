"""What a subject of the page is made of: pages, files, and actions that ask before they act."""

import re
import tomllib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import web

from tillbridge import operations
from tillbridge.core.actor import Actor, Role
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.i18n import _, in_zone
from tillbridge.core.operation import Dispatcher
from tillbridge.operations import connect, diagnostics, settings, setup_steps  # noqa: F401 -- which no command declares
from tillbridge.status.views import StatusDocument
from tillbridge.web.authenticator import Visitor

# Texts by a name, marked and not translated: `texts.toml` says what they are.
TEXTS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("texts.toml").read_text("utf-8")
)
_PART = re.compile(r"\{([a-z_]+)\}")
_DIGITS = 16  # fewer than so many: more is no number of ours
_PAGES = 100_000


def path_of(path: str, params: Mapping[str, object], query: Mapping[str, object] = {}) -> str:
    """Return the path with its parts put in. KeyError for a part that is not given."""
    made = _PART.sub(lambda match: quote(str(params[match[1]]), safe="", errors="replace"), path)
    asked = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{made}?{urlencode(asked, errors='replace')}" if asked else made


def parts_of(path: str) -> list[str]:
    """Return the names of the parts in braces."""
    return _PART.findall(path)


def route_of(path: str) -> str:
    """Return the path as a route of aiohttp; a part may hold anything, also braces."""
    return _PART.sub(r"{\1:[^/]+}", path)


def link(path: str, **values: object) -> str:
    """Return a path with its parts; what is no part of it goes behind the question mark."""
    parts = set(parts_of(path))
    return path_of(path, values, {name: each for name, each in values.items() if name not in parts})


@dataclass(frozen=True, slots=True)
class Visit:
    """A visitor's request, as a subject needs it.

    `params` are the parts of the path in braces, decoded; `query` what follows the question mark;
    `form` the fields of a POST (the first value of each).
    """

    dispatcher: Dispatcher
    now_ms: int  # this instant
    visitor: Visitor
    actor: Actor  # the visitor, for as long as this request lasts
    params: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""  # where the browser found the page: http://192.168.1.20:8089

    async def perform(self, name: str, **arguments: object) -> Any:  # noqa: ANN401 -- as declared
        """Return the answer of an operation that the visitor asks for. Raises BridgeError."""
        return await self.dispatcher.perform(name, arguments, self.actor)

    async def status(self) -> StatusDocument:
        """Return how the bridge is."""
        document: StatusDocument = await self.perform("status")
        return document

    async def store_name(self, key: str = "") -> str:
        """Return what people call a store (the path's): its name at the service, else its key."""
        key = key or self.params["store"]
        store = (await self.status())["stores"].get(key)
        return (store["service"]["store_name"] if store else None) or key

    def show_zone_of(self, store: str) -> None:
        """Show times in the zone of a store that the path does not name."""
        in_zone(self.dispatcher.zone(store))

    def text(self, name: str, most: int = 100) -> str:
        """Return what the query has of this name, cut; "" for nothing."""
        return self.query.get(name, "")[:most]

    def one_of(self, name: str, known: Collection[str]) -> str:
        """Return which of those known the query names; "" for none of them."""
        asked = self.query.get(name, "")
        return asked if asked in known else ""

    def number(self, name: str) -> int | None:
        """Return a number of the query; None if it is no sensible one."""
        asked = self.query.get(name, "")
        is_number = asked.isascii() and asked.isdecimal() and len(asked) < _DIGITS
        return int(asked) if is_number else None

    @property
    def page(self) -> int:
        """Which page of a long list is asked for, from 1."""
        asked = self.number("page") or 1
        return asked if asked < _PAGES else 1


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an action, shown on the page `to` once (POST, redirect, GET).

    `ok` false: it was not done, because of the field `wrong`; `typed` is the form that was sent
    to the path `at`. `link` is an address to follow next, with its `link_text`; `lines` are what
    changed in a file. `undo` is the path of the action that takes it back, with the fields of its
    form; `about` names what it was done to.
    """

    text: str
    ok: bool = True
    fix: str = ""
    to: str = ""
    link: str = ""
    link_text: str = ""
    wrong: str = ""
    at: str = ""
    typed: Mapping[str, str] = field(default_factory=dict)
    lines: Sequence[str] = ()
    about: str = ""
    undo: str = ""
    undo_fields: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: Mapping[str, Any], *, to: str = "") -> "Done":
        """Return what an operation answered."""
        return cls(
            str(answer.get("text", "")),
            ok=answer.get("ok") is not False,
            fix=str(answer.get("fix", "")),
            to=to,
            wrong=str(answer.get("field", "")),
        )

    @classmethod
    def refused(cls, failure: BridgeError, to: str = "") -> "Done":
        """Return that it was not done, and which field is wrong."""
        wrong = failure.field if isinstance(failure, ConfigError) else ""
        return cls(failure.text, ok=False, fix=failure.fix, wrong=wrong, to=to)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a question. With `choices` (value, label) it is a list to choose from."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]] = ()
    value: str = ""
    required: bool = True
    hint: str = ""

    def translated(self) -> "Field":
        """Return it in the reader's language."""
        choices = [(value, _(label)) for value, label in self.choices]
        hint = self.hint and _(self.hint)
        return replace(self, label=_(self.label), choices=choices, hint=hint)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before an action: in words, what will happen; `button` says yes.

    `risky`: it cannot be undone, and its button is red; `points` are shown as a list. Parts of the
    action's path are in braces in `text` and `button` where the question is the
    same for all (`about`).
    """

    text: str
    button: str
    points: Sequence[str] = ()
    fields: Sequence[Field] = ()
    risky: bool = False

    def about(self, params: Mapping[str, str]) -> "Question":
        """Return the question with the parts of a path put in, in the reader's language."""
        return replace(
            self,
            text=_(self.text).format(**params),
            button=_(self.button).format(**params),
            points=[_(each) for each in self.points],
            fields=[each.translated() for each in self.fields],
        )


Filled = Mapping[str, Any]
Fill = Callable[[Visit], Awaitable[Filled]]
Give = Callable[[Visit], Awaitable[web.Response]]
Ask = Callable[[Visit], Awaitable[Question]]
Do = Callable[[Visit], Awaitable[Done]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: GET `path`, whose template is filled with what `fill` returns.

    `title` went through `_()`; `section` is the path of the navigation's line that
    is marked; a `live` page refreshes its marked regions.
    """

    path: str
    title: str
    template: str
    fill: Fill
    role: Role = Role.LOOK
    section: str = ""
    live: bool = True


@dataclass(frozen=True, slots=True)
class File:
    """Something else to GET: a CSV export, a picture, a fragment."""

    path: str
    give: Give
    role: Role = Role.LOOK


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do: POST `path`. Everyone who may must have `role` at least.

    `audit` is its name in the audit trail. GET `path` shows the question `ask`; without one it
    acts at a touch (for what is undone as easily). `back` is the page to return to, with the same
    parts in braces.
    """

    path: str
    title: str
    audit: str
    role: Role
    do: Do
    ask: Question | Ask | None = None
    back: str = ""
    section: str = ""


def performs(
    path: str,
    title: str,
    operation: str,
    *,
    do: Do | None = None,
    ask: Question | Ask | None = None,
    back: str = "",
    fixed: Mapping[str, Any] = MappingProxyType({}),
) -> Action:
    """Return the action that performs an operation, with its role and its name in the trail.

    The operation's parameters are parts of the path or fields of the form with the same names; an
    instant left empty is not given. `fixed` are those that neither names. `do` says it another way.
    """
    declared = operations.OPERATIONS[operation]
    # Who acts is the visitor, whatever a form says of it.
    names = [name for name in declared.parameters if name != "by"]
    looked_up = {name for name, each in declared.parameters.items() if each.argument.resolve}

    async def perform(visit: Visit) -> Done:
        known = {**visit.form, **visit.params, **fixed}
        given = {
            name: known[name]
            for name in names
            if name in known and (known[name] or name not in looked_up)
        }
        return Done.of(await visit.perform(operation, **given))

    return Action(path, title, operation, declared.role, do or perform, ask, back)


What = Page | File | Action


def subject(*whats: What, home: str = "") -> tuple[What, ...]:
    """Return pages, files and actions that belong together.

    `home` is the page they belong to: where an action leads back to, and the navigation's line that
    is marked, unless they say otherwise.
    """

    def placed(what: What) -> What:
        if isinstance(what, File):
            return what
        section = what.section or home
        if isinstance(what, Page):
            return replace(what, section=section)
        return replace(what, section=section, back=what.back or home or "/")

    return tuple(map(placed, whats))


@dataclass(frozen=True, slots=True)
class NavigationLine:
    """A line of the navigation: shown once its page is there, to those who may see it.

    `title` is marked with N_; `icon` is one of `static/icons.svg`. It is marked for
    the pages `also` too, and left out where the page `unless` is there.
    """

    path: str
    title: str
    icon: str
    also: tuple[str, ...] = ()
    unless: str = ""
