"""A problem that is open now, in words. Light to import, for `status` without a daemon."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tillbridge.core.problems import PROBLEMS, ProblemKind


class _Fields(dict[str, Any]):
    """Fields of a text; one that the problem's finder did not give is shown as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


@dataclass(frozen=True, slots=True)
class OpenProblem:
    """An open problem. `store` is "" for the bridge itself; `subject` tells two of a kind apart.

    `since` is ms since the epoch; `detail` holds the fields of the kind's text.
    """

    code: str
    store: str
    subject: str
    since: int
    detail: Mapping[str, Any] = field(default_factory=dict)

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
        own = {"store": self.store, "subject": self.subject}
        return _Fields({**self.kind.defaults, **own, **self.detail})
