"""The help page of each problem: what one sees, what it means, what to do, step by step.

The texts stand in `problem_help.toml`. The page `/help/CODE`, `tillbridge problems show CODE` and
docs/problems.md are made of them.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tillbridge.core.i18n import N_, _
from tillbridge.core.problems import PROBLEMS, Ends
from tillbridge.core.started import command_to

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


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield every text to translate, with its code."""
    for code, entry in _entries().items():
        for name in ("title", "means", "restaurant", "technician", "why"):
            texts = entry[name]
            yield from ((code, each) for each in ([texts] if isinstance(texts, str) else texts))


@lru_cache(maxsize=1)
def _entries() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(HELP_FILE.read_text("utf-8"))
