"""Runs the checks of the bridge, all at once, each within its time, and says what they found."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.problems import Severity
from tillbridge.core.redaction import masked, masked_value
from tillbridge.diagnostics.checks.bridge import (
    check_bridge,
    check_no_alerts,
    check_ports,
    check_secret_files,
    check_service_manager,
    check_telling,
    check_time_sync,
    check_versions,
)
from tillbridge.diagnostics.checks.ledger import check_disk, check_ledger
from tillbridge.diagnostics.checks.public import check_names, check_public
from tillbridge.diagnostics.checks.service import check_clock, check_service
from tillbridge.diagnostics.checks.store import (
    check_consent,
    check_integration,
    check_menu,
    check_till,
)
from tillbridge.diagnostics.checks.tls import check_tls
from tillbridge.diagnostics.result import Finding, Level, Result, coded, failed, level_of, report
from tillbridge.diagnostics.subject import StoreSubject, Subject

LONGEST_S = 18.0  # for all of them together
_STATUS_S = 3.0

OpenProblems = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]

# By the name of a check, those whose failure alone makes it fail, the nearest to the cause first.
_FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "tls.service": ("dns.service",),
    "service": ("dns.service", "tls.service"),
    "clock": ("dns.service", "tls.service", "service"),
    "consent": ("dns.service", "tls.service", "service"),
    "integration": ("dns.service", "tls.service", "service", "consent"),
    "tls.public": ("dns.public",),
    "public": ("bridge", "dns.public", "tls.public"),
    "menu": ("till",),
}


@dataclass(frozen=True, slots=True)
class Check:
    """One link to look at. `title` names it for people; `limit_s` is how long it may take."""

    name: str
    title: str
    work: Callable[[], Awaitable[Finding]]
    store: str = ""
    limit_s: float = 8.0


class Checkup:
    """One examination: `run` it once, and ask `so_far` meanwhile."""

    def __init__(
        self, checks: Sequence[Check], clock: Clock, problems: OpenProblems | None = None
    ) -> None:
        self._checks = tuple(checks)
        self._problems = problems
        self._open_problems: Sequence[Mapping[str, Any]] = ()
        self._clock = clock
        self._began: float | None = None
        self._results: dict[int, Result] = {}
        self._is_done = False
        self._titles = {check.name: check.title for check in self._checks}

    async def run(self) -> dict[str, Any]:
        """Run the checks; return the report. It takes `LONGEST_S` seconds at most."""
        self._began = self._clock.monotonic()
        numbered = enumerate(self._checks)
        await asyncio.gather(*(self._one(number, check) for number, check in numbered))
        if self._problems is not None:
            with suppress(BridgeError, TimeoutError):  # a check says what is wrong then
                self._open_problems = await asyncio.wait_for(self._problems(), _STATUS_S)
        self._is_done = True
        return self.so_far()

    def so_far(self) -> dict[str, Any]:
        """Return the report of what is done, `done`, and `running`: what is still looked at."""
        results = [self._results[number] for number in sorted(self._results)]
        if self._is_done:
            results = with_problems(one_by_cause(results, self._titles), self._open_problems)
        waits = [check for number, check in enumerate(self._checks) if number not in self._results]
        took = 0.0 if self._began is None else self._clock.monotonic() - self._began
        return {
            **report(results),
            "done": self._is_done,
            "running": [
                {"name": check.name, "store": check.store, "title": check.title} for check in waits
            ],
            "took_ms": round(took * 1000),
        }

    async def _one(self, number: int, check: Check) -> None:
        began = self._clock.monotonic()
        task = asyncio.ensure_future(check.work())
        limit_s = min(check.limit_s, LONGEST_S)
        done, _waiting = await asyncio.wait({task}, timeout=limit_s)
        if done:
            finding = _outcome(task)
        else:
            # Cancelled and not waited for: it may be deaf to that.
            task.cancel()
            task.add_done_callback(_forget)
            finding = failed(
                _("{title}: no answer within {seconds:g} seconds.").format(
                    title=check.title, seconds=limit_s
                ),
                _("Something on the way swallows what is sent, or is very slow; try again."),
                timed_out=True,
            )
        took_ms = round((self._clock.monotonic() - began) * 1000)
        self._results[number] = Result(check.name, check.store, _safe(finding), took_ms)


def one_by_cause(results: Sequence[Result], titles: Mapping[str, str]) -> list[Result]:
    """Return the results with one error for one cause: what follows from another is skipped."""
    broken = {each.name: each for each in results if each.finding.level is Level.FAILED}
    after = []
    for each in results:
        causes = [broken[name] for name in _FOLLOWS.get(each.name, ()) if name in broken]
        if each.name in broken and causes:
            text = _("{text} This follows from {cause}.").format(
                text=each.finding.text, cause=titles.get(causes[0].name, causes[0].name)
            )
            finding = replace(each.finding, level=Level.SKIPPED, text=text, fix="", code="")
            after.append(replace(each, finding=finding))
        else:
            after.append(each)
    return after


def with_problems(results: Sequence[Result], problems: Sequence[Mapping[str, Any]]) -> list[Result]:
    """Return the results and every open problem of the status that none of them has found."""
    found = {(each.finding.code, each.store) for each in results if each.finding.code}
    found |= {(code, "") for code, _store in found}
    missing = [
        Result(
            "problem",
            str(each["store"]),
            Finding(
                level_of(Severity(each["severity"])),
                str(each["text"]),
                str(each["fix"]),
                {"since": each["since"], "acknowledged": bool(each.get("acknowledged"))},
                str(each["code"]),
            ),
        )
        for each in problems
        if (each["code"], each["store"]) not in found
    ]
    return [*results, *missing]


def _outcome(task: "asyncio.Future[Finding]") -> Finding:
    if task.cancelled():
        return failed(_("The check was stopped."), _("Try again."))
    failure = task.exception()
    if failure is None:
        return task.result()
    return failed(
        _("The check itself failed: {kind}: {text}").format(
            kind=type(failure).__name__, text=failure
        ),
        _("Please report it, with: tillbridge support-bundle"),
    )


def _safe(finding: Finding) -> Finding:
    """Return the finding without secrets, whatever the texts of others brought into it."""
    details = {name: masked_value(value) for name, value in finding.details.items()}
    return replace(finding, text=masked(finding.text), fix=masked(finding.fix), details=details)


def _forget(task: "asyncio.Future[Finding]") -> None:
    if not task.cancelled():
        task.exception()


_UNREACHABLE, _PUBLIC = "service.unreachable", "public_address.unreachable"
_CALLS_S = 15.0  # a call is tried several times

Look = Callable[[Subject], Awaitable[Finding]]


@dataclass(frozen=True, slots=True)
class _Link:
    """A check of the bridge; `code` is the problem that its failure is, "" for one of its own."""

    name: str
    title: str
    look: Look
    limit_s: float = 8.0
    code: str = ""


_BEFORE_THE_STORES: Sequence[_Link] = (
    _Link("bridge", _("the bridge"), check_bridge),
    _Link(
        "dns.service",
        _("the service's name"),
        lambda subject: check_names(subject, "service"),
        code=_UNREACHABLE,
    ),
    _Link(
        "tls.service",
        _("the service's certificate"),
        lambda subject: check_tls(subject, "service"),
        code=_UNREACHABLE,
    ),
    _Link("service", _("the ordering service"), check_service, 12, code=_UNREACHABLE),
    _Link("clock", _("the clock"), check_clock, 15),
    _Link(
        "dns.public",
        _("the public name"),
        lambda subject: check_names(subject, "public"),
        code=_PUBLIC,
    ),
    _Link(
        "tls.public",
        _("the public certificate"),
        lambda subject: check_tls(subject, "public"),
        code=_PUBLIC,
    ),
    _Link("public", _("the public address"), check_public, 17, code=_PUBLIC),
)
_AFTER_THE_STORES: Sequence[_Link] = (
    _Link("ledger", _("the ledger"), check_ledger, 10),
    _Link("disk", _("the disk"), check_disk),
    _Link("ports", _("the ports"), check_ports),
    _Link("secret_files", _("files with secrets"), check_secret_files),
    _Link("time_sync", _("the time server"), lambda _subject: check_time_sync(), 5),
    _Link("manager", _("the service manager"), check_service_manager),
    _Link("versions", _("the versions"), check_versions),
)


def examination(subject: Subject) -> Checkup:
    """Return the checkup; nothing is looked at before it runs."""

    def of_bridge(link: _Link) -> Check:
        return Check(link.name, link.title, partial(_looked, link, subject), limit_s=link.limit_s)

    checks = [of_bridge(link) for link in _BEFORE_THE_STORES]
    for store in subject.stores.values():
        checks += _of_store(subject, store)
    checks += _of_telling(subject)
    checks += [of_bridge(link) for link in _AFTER_THE_STORES]
    return Checkup(checks, subject.clock, partial(_open_problems, subject))


async def _looked(link: _Link, subject: Subject) -> Finding:
    finding = await link.look(subject)
    # What is a problem already is not reported a second time.
    return coded(finding, link.code) if finding.level is Level.FAILED and link.code else finding


def _of_telling(subject: Subject) -> list[Check]:
    if not subject.telling:
        return [Check("alerts", _("alerts"), check_no_alerts)]
    found = []
    for way in subject.telling:
        name, title = f"alerts.{way.name}", _("alerts by {way}").format(way=way.name)
        if way.name == "heartbeat":
            name, title = "heartbeat", _("the heartbeat")
        found.append(Check(name, title, partial(check_telling, way), limit_s=_CALLS_S))
    return found


def _of_store(subject: Subject, store: StoreSubject) -> list[Check]:
    def check(
        name: str, title: str, work: Callable[[], Awaitable[Finding]], limit_s: float = 8.0
    ) -> Check:
        return Check(name, title, work, store.name, limit_s)

    if subject.no_secret:
        found = [check("consent", _("the consent"), partial(_no_secret, subject))]
    else:
        consent = partial(check_consent, subject, store)
        integration = partial(check_integration, subject, store)
        found = [
            check("consent", _("the consent"), consent, _CALLS_S),
            check("integration", _("the integration"), integration, _CALLS_S),
        ]
    for part in store.tills or ("pos",):
        name = "till" if part == "pos" else f"till.{part}"
        found.append(check(name, _("the till"), partial(check_till, store, part)))
    if "pos" in store.tills and store.tills["pos"].reads_catalogue:
        menu = partial(check_menu, store, "pos")
        found.append(check("menu", _("the menu's export"), menu, _CALLS_S))
    return found


async def _open_problems(subject: Subject) -> Sequence[Mapping[str, Any]]:
    if subject.status is None:
        return ()
    problems: Sequence[Mapping[str, Any]] = (await subject.status())["problems"]
    return problems


async def _no_secret(subject: Subject) -> Finding:
    return failed(
        _("The app's secret cannot be read: {detail}").format(detail=subject.no_secret),
        _("Put the client_secret where the configuration says; see: tillbridge config check"),
    )
