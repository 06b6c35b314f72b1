"""What a subject of the page is made of: pages, files, and actions that ask before they act."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote, urlencode

from aiohttp import web

from tillbridge import operations
from tillbridge.core.actor import Actor, Role
from tillbridge.core.clock import Clock
from tillbridge.core.operation import Answer, Dispatcher
from tillbridge.web.authenticator import Visitor

_PART = re.compile(r"\{([a-z_]+)\}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was found, and the parts of its path, decoded."""

    what: T
    params: Mapping[str, str]


class Routes(Generic[T]):
    """Paths and what they mean. Raises ValueError for a path that is there twice."""

    def __init__(self, routes: Iterable[tuple[str, T]]) -> None:
        self._plain: dict[str, T] = {}
        self._parts: list[tuple[re.Pattern[str], T]] = []
        seen: set[str] = set()
        for path, what in routes:
            shape = _PART.sub("{}", path)
            if shape in seen:
                raise ValueError(f"the path {path} is there twice")
            seen.add(shape)
            if "{" not in path:
                self._plain[path] = what
                continue
            pattern = "".join(
                f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part)
                for place, part in enumerate(_PART.split(path))
            )
            self._parts.append((re.compile(pattern), what))

    def find(self, raw_path: str) -> Found[T] | None:
        """Return what this path (as sent, still escaped) means; None for nothing."""
        if (plain := self._plain.get(raw_path)) is not None:
            return Found(plain, {})
        for pattern, what in self._parts:
            if match := pattern.fullmatch(raw_path):
                return Found(
                    what, {name: unquote(part) for name, part in match.groupdict().items()}
                )
        return None


def path_of(path: str, params: Mapping[str, object], query: Mapping[str, object] = {}) -> str:
    """Return the path with its parts put in. KeyError for a part that is not given."""
    made = _PART.sub(lambda match: quote(str(params[match[1]]), safe="", errors="replace"), path)
    asked = {name: str(value) for name, value in query.items() if value not in (None, "")}
    return f"{made}?{urlencode(asked, errors='replace')}" if asked else made


def parts_of(path: str) -> list[str]:
    """Return the names of the parts in braces."""
    return _PART.findall(path)


@dataclass(frozen=True, slots=True)
class Visit:
    """A visitor's request, as a subject needs it.

    `params` are the parts of the path in braces, decoded; `query` what follows the question mark;
    `form` the fields of a POST (the first value of each; `many` has them all).
    """

    dispatcher: Dispatcher
    clock: Clock
    visitor: Visitor
    params: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    many: Mapping[str, Sequence[str]] = field(default_factory=dict)
    actor: Actor = field(init=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen; this is its own making.
        object.__setattr__(self, "actor", self.visitor.actor)

    async def perform(self, name: str, **arguments: object) -> Answer:
        """Return the answer of an operation that the visitor asks for. Raises BridgeError."""
        return await self.dispatcher.perform(name, arguments, self.actor)

    @property
    def now_ms(self) -> int:
        """This instant, ms since the epoch."""
        return self.clock.now_ms()


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an action, shown on the page `to` once (POST, redirect, GET).

    `ok` false: it was not done. `link` is an address to follow next, with its `link_text`.
    """

    text: str
    ok: bool = True
    fix: str = ""
    to: str = ""
    link: str = ""
    link_text: str = ""

    @classmethod
    def of(cls, answer: Mapping[str, Any], *, to: str = "") -> "Done":
        """Return what an operation answered."""
        return cls(
            str(answer.get("text", "")),
            ok=answer.get("ok") is not False,
            fix=str(answer.get("fix", "")),
            to=to,
        )


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a question. With `choices` (value, label) it is a list to choose from."""

    name: str
    label: str
    choices: Sequence[tuple[str, str]] = ()
    value: str = ""
    required: bool = True
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before an action: in words, what will happen; `button` says yes.

    `risky` colours the button; `points` are shown as a list.
    """

    text: str
    button: str
    title: str = ""
    points: Sequence[str] = ()
    fields: Sequence[Field] = ()
    risky: bool = False


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

    `audit` is its name in the audit trail. GET `path` shows the question of `ask`; without one it
    acts at a touch (for what is undone as easily). `back` is the page to return to, with the same
    parts in braces.
    """

    path: str
    title: str
    audit: str
    role: Role
    do: Do
    ask: Ask | None = None
    back: str = ""
    section: str = ""


def performs(
    path: str,
    title: str,
    operation: str,
    *,
    do: Do | None = None,
    ask: Ask | None = None,
    back: str = "",
    section: str = "",
    fixed: Mapping[str, Any] = MappingProxyType({}),
) -> Action:
    """Return the action that performs an operation, with its role and its name in the trail.

    The operation's parameters are parts of the path or fields of the form with the same names;
    `fixed` are those that neither names. `do` says it another way.
    """
    declared = operations.OPERATIONS[operation]

    async def perform(visit: Visit) -> Done:
        known = {**visit.form, **visit.params, **fixed}
        given = {name: known[name] for name in declared.parameters if name in known}
        return Done.of(await visit.perform(operation, **given))

    return Action(path, title, operation, declared.role, do or perform, ask, back, section)


@dataclass(frozen=True, slots=True)
class Subject:
    """Pages, files and actions that belong together.

    `home` is the page they belong to: where an action leads back to, and the navigation's line that
    is marked, unless they say otherwise.
    """

    pages: Sequence[Page] = ()
    files: Sequence[File] = ()
    actions: Sequence[Action] = ()
    home: str = ""

    def __post_init__(self) -> None:
        # The dataclass is frozen; this is its own making.
        pages = tuple(replace(each, section=each.section or self.home) for each in self.pages)
        actions = tuple(
            replace(each, back=each.back or self.home or "/", section=each.section or self.home)
            for each in self.actions
        )
        object.__setattr__(self, "pages", pages)
        object.__setattr__(self, "actions", actions)


@dataclass(frozen=True, slots=True)
class NavigationLine:
    """A line of the navigation: shown once its page is there, to those who may see it."""

    path: str
    title: str
