"""What a check is: the link it looks at, the bridge it looks at it in, and what it finds."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import SplitResult, urlsplit

from tillbridge.config.loading import LoadedSettings
from tillbridge.config.store import StoreSettings
from tillbridge.core.clock import Clock
from tillbridge.core.network import system_trust
from tillbridge.core.problems import Found, OpenProblem, Severity
from tillbridge.diagnostics.network import Exchange, Resolve, Trust, exchange, resolve
from tillbridge.ledger.snapshot import Snapshot
from tillbridge.pos.runner import PosRunner
from tillbridge.service.tokens import StoreTokens

if TYPE_CHECKING:
    from tillbridge.alerts.channels import Channel, HeartbeatProbe
    from tillbridge.receiver import Echo
    from tillbridge.service.client import ServiceClient

Look = Callable[[], Awaitable["Finding"]]
Role = Literal["service", "public"]  # base_url, or public_url


class Level(StrEnum):
    """How a link is. `skipped`: it could not be looked at, and the text says why."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


BAD = {Level.FAILED, Level.WARNING}


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of a check; `details` are JSON values for machines and support.

    `code` is the problem that this is; with it texts and severity are the problem's.
    """

    level: Level
    text: str
    fix: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One link to look at, of the bridge or of a store.

    `title` names it for people, `limit_s` is how long it may take, `code` is the problem that its
    failure is ("": one of its own), and `after` are the checks whose failure alone makes it fail,
    the nearest to the cause first.
    """

    name: str
    title: str
    look: Look
    store: str = ""
    limit_s: float = 8.0
    code: str = ""
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreSubject:
    """One store. A till that could not be opened has `tills_failure` instead of runners."""

    name: str
    settings: StoreSettings
    tokens: StoreTokens
    client: "ServiceClient"
    store_id: str | None
    tills: Mapping[str, PosRunner] = field(default_factory=dict)  # "pos"; "orders", "fallback"
    tills_failure: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The bridge as it runs, or what can be seen of it while it does not.

    `running`: a daemon runs, and this is inside it. `echo` is None if no receiver of this
    process listens. `snapshot` raises LedgerError.
    """

    loaded: LoadedSettings
    clock: Clock
    snapshot: Callable[[], Awaitable[Snapshot]]
    stores: Mapping[str, StoreSubject] = field(default_factory=dict)
    running: bool = False
    echo: "Echo | None" = None
    writable: bool | None = None  # None: not known from here
    hung: bool = False  # a daemon is there and does not answer
    no_secret: str = ""  # why the app's secret cannot be read
    channels: "Sequence[Channel | HeartbeatProbe]" = ()
    # The status document, so that doctor finds what everything else shows; None: there is none.
    status: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    names: Resolve = resolve
    trust: Trust = system_trust
    # What came of asking the service without any credential; several checks look at it.
    asked: "dict[str, asyncio.Task[Exchange]]" = field(default_factory=dict)

    def address(self, role: Role) -> SplitResult:
        """Return base_url or public_url, in its parts."""
        settings = self.loaded.settings
        url = settings.service.base_url if role == "service" else settings.receiver.public_url
        return urlsplit(url)

    def fetch(self, url: str) -> Exchange:
        """Ask an address (blocking)."""
        return exchange(url, names=self.names, trust=self.trust)


def ok(text: str, **details: object) -> Finding:
    """Return that all is well."""
    return Finding(Level.OK, text, "", details)


def warning(text: str, fix: str, **details: object) -> Finding:
    """Return what a person should look at."""
    return Finding(Level.WARNING, text, fix, details)


def failed(text: str, fix: str, **details: object) -> Finding:
    """Return what is broken."""
    return Finding(Level.FAILED, text, fix, details)


def skipped(text: str, fix: str = "", **details: object) -> Finding:
    """Return that there was nothing to look at, or no way to."""
    return Finding(Level.SKIPPED, text, fix, details)


def detailed(finding: Finding, **details: object) -> Finding:
    """Return a finding with these details, and those that it has."""
    return replace(finding, details={**details, **finding.details})


def level_of(severity: Severity) -> Level:
    """Return the level of a problem."""
    return Level.FAILED if severity is Severity.DOWN else Level.WARNING


def of_problem(found: Found, store: str = "", /, **details: object) -> Finding:
    """Return a problem as a finding, in the words that every other surface uses."""
    problem = OpenProblem(found.code, store, found.subject, 0, found.detail)
    level = level_of(problem.kind.severity)
    return Finding(level, problem.text, problem.fix, details, problem.code)


def coded(finding: Finding, code: str) -> Finding:
    """Return a finding that something is wrong as that of a problem, in the check's own words."""
    return replace(finding, code=code) if finding.level in BAD else finding
