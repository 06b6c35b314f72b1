"""The registry of problems: every state a person has to know of, with a stable code.

Problems follow from state: whoever changes a state reports what is `Found` in a `Scope`, and what
is open there and not found any more is closed (`ledger.problems.report` in the transaction that
changes the state, `ProblemTracker.report` for state that is in memory only). The kinds and their
texts are in `problems.toml`.

`problem_help.toml` has the help page of each: what one sees, what it means, what to do, step by
step. The page `/help/CODE`, `tillbridge problems show CODE` and docs/problems.md are made of both.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tillbridge.core.i18n import N_, _
from tillbridge.core.started import command_to


class Severity(StrEnum):
    """How bad a problem is: `down` stops orders or sync, `warning` needs a person soon."""

    DOWN = "down"
    WARNING = "warning"


class Ends(StrEnum):
    """When a problem is over."""

    CAUSE = "cause"  # its finder sees that the cause is gone
    DAY = "day"  # somebody has acknowledged it; it goes after a day in any case
    HANDLED = "handled"  # somebody has handled the order, and says so
    SETTLED = "settled"  # the order it is about is accepted, cancelled, completed or handled
    NOTE = "note"  # it has happened, and is over once somebody has acknowledged it


_SUBJECTS = {each: _(each) for each in (N_("menu"), N_("availability"), N_("tables"))}
"""What an export is of, for whoever reads it."""

TEXTS = ("text", "one", "fix", "fix_on_page")  # the fields of an entry that are translated


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """A kind of problem. `text` and `fix` may hold `{field}`s that the finder of it fills in.

    `buttons` are actions of the page, by path, whose {store} and {order} come from the problem;
    `fix_on_page` says what to do in the words of who sees them, where `fix` names a command.
    """

    code: str
    severity: Severity
    text: str
    fix: str
    ends: Ends = Ends.CAUSE
    one: str = ""  # the text where `count` or `days` is 1
    defaults: Mapping[str, str] = field(default_factory=dict)  # of fields that were not filled in
    buttons: tuple[str, ...] = ()
    fix_on_page: str = ""

    @classmethod
    def of(cls, code: str, entry: Mapping[str, Any]) -> "ProblemKind":
        """Return the kind of an entry of `problems.toml`, in the reader's language."""
        texts = {name: _(entry[name]) for name in TEXTS if name in entry}
        defaults = {name: _(text) for name, text in entry.get("defaults", {}).items()}
        return cls(
            code=code,
            severity=Severity(entry["severity"]),
            ends=Ends(entry.get("ends", Ends.CAUSE)),
            defaults=defaults,
            buttons=tuple(entry.get("buttons", ())),
            **texts,
        )

    @property
    def ends_when_seen(self) -> bool:
        """Whether it is over once somebody has acknowledged it."""
        return self.ends in {Ends.DAY, Ends.NOTE}


@dataclass(frozen=True, slots=True)
class Found:
    """A problem that follows from the state as it is now.

    `subject` distinguishes two of a kind; `detail` fills the fields of the kind's texts, and holds
    plain JSON values.
    """

    code: str
    subject: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one report answers for: these codes of one store ("": the bridge itself).

    With a `subject` it answers for that subject alone, with None for all of them.
    """

    store: str
    codes: frozenset[str]
    subject: str | None = None

    @classmethod
    def of_one(cls, code: str, store: str = "", subject: str = "") -> "Scope":
        """Return the scope of one problem alone: of this very subject, "" too."""
        return cls(store, frozenset({code}), subject)

    def covers(self, code: str, store: str, subject: str) -> bool:
        """Return whether a report of this scope says whether that problem is open."""
        return store == self.store and code in self.codes and self.subject in {None, subject}


PROBLEMS_FILE = Path(__file__).with_name("problems.toml")
PROBLEMS: dict[str, ProblemKind] = {
    code: ProblemKind.of(code, entry)
    for code, entry in tomllib.loads(PROBLEMS_FILE.read_text("utf-8")).items()
}


def anchor(code: str) -> str:
    """Return the end of an address that leads to a code's section in docs/problems.md."""
    return code.replace(".", "")


class _Fields(dict[str, Any]):
    """Fields of a text; one that the problem's finder did not give is shown as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


@dataclass(frozen=True, slots=True)
class OpenProblem:
    """An open problem. `store` is "" for the bridge itself; `subject` distinguishes two of a kind.

    `since` is ms since the epoch; `detail` holds the fields of the kind's text.
    """

    code: str
    store: str
    subject: str
    since: int
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str]:
        """Its identity among open problems: code, store and subject."""
        return (self.code, self.store, self.subject)

    @property
    def kind(self) -> ProblemKind:
        """What kind it is. KeyError for a code that this version does not know."""
        return PROBLEMS[self.code]

    @property
    def text(self) -> str:
        """The problem as a plain sentence."""
        fields = self._fields()
        single = self.kind.one and 1 in (fields.get("count"), fields.get("days"))
        return (self.kind.one if single else self.kind.text).format_map(fields)

    @property
    def fix(self) -> str:
        """What to do about it."""
        return self.kind.fix.format_map(self._fields())

    def _fields(self) -> _Fields:
        restart = command_to("restart") if "{restart}" in self.kind.fix else ""
        subject = _SUBJECTS.get(self.subject, self.subject)
        own = {"store": self.store, "subject": subject, "restart": restart}
        return _Fields({**self.kind.defaults, **own, **self.detail})


# -- the help pages


HELP_FILE = Path(__file__).with_name("problem_help.toml")

# The groups of the index, by the beginnings of codes, in the order in which they are shown.
GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        N_("Orders"): ("order.", "fallback."),
        N_("The till"): ("pos.", "adapter."),
        N_("Menu and tables"): ("menu.", "export.", "tables."),
        N_("The store"): ("store.", "tax."),
        N_("The ordering service"): ("service.", "consent.", "integration."),
        N_("How orders get in"): ("public_address.", "receiver."),
        N_("Communities"): ("community.",),
        N_("The bridge and its machine"): (
            "bridge.",
            "ledger.",
            "disk.",
            "clock.",
            "config.",
            "alerts.",
        ),
    }
)
# When a problem is over, for whoever reads its page.
_CLOSES: Mapping[Ends, str] = {
    Ends.CAUSE: N_("By itself, as soon as the cause is gone."),
    Ends.DAY: N_("When you acknowledge it, or by itself after a day."),
    Ends.HANDLED: N_("When you mark the order as handled."),
    Ends.SETTLED: N_(
        "When the ordering service accepts the update, the order is cancelled or completed, or you "
        "mark it as handled."
    ),
    Ends.NOTE: N_("When you acknowledge it."),
}


@dataclass(frozen=True, slots=True)
class Help:
    """What a person reads about a code, in their language; `backticks` mark what is typed.

    `restaurant` are the steps that need no computer knowledge, `technician` those after them.
    """

    code: str
    title: str
    means: str
    restaurant: tuple[str, ...]
    technician: tuple[str, ...]
    closes: str
    why: str


def help_of(code: str, store: str = "", restart: str = "") -> Help:
    """Return the help of a code, its commands for this store. KeyError for no code.

    `restart` says how the bridge is restarted; left out, how the running one is.
    """
    entry = _entries()[code]
    fields = {"store": store or "STORE", "restart": restart or command_to("restart")}

    def filled(text: str) -> str:
        return _(text).format_map(fields)

    return Help(
        code=code,
        title=filled(entry["title"]),
        means=filled(entry["means"]),
        restaurant=tuple(map(filled, entry["restaurant"])),
        technician=tuple(map(filled, entry["technician"])),
        closes=_(_CLOSES[PROBLEMS[code].ends]),
        why=filled(entry["why"]),
    )


def title_of(code: str) -> str:
    """Return what a problem is called, in a few words without details; its code if unknown."""
    entry = _entries().get(code)
    return code if entry is None else _(entry["title"])


def index() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every group's name with the codes and titles in it."""
    return [
        (_(name), [(code, title_of(code)) for code in PROBLEMS if code.startswith(beginnings)])
        for name, beginnings in GROUPS.items()
    ]


@lru_cache(maxsize=1)
def _entries() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(HELP_FILE.read_text("utf-8"))
