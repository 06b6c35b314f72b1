"""Runs the checks of the bridge, all at once, each within its time, and reports what they found.

The checks are beside it, one file each: facts are gathered, and a pure function judges them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _, ngettext
from tillbridge.core.problems import Severity
from tillbridge.core.redaction import masked, masked_value
from tillbridge.diagnostics.check import (
    BAD,
    Check,
    Finding,
    Level,
    Look,
    StoreSubject,
    Subject,
    coded,
    failed,
    level_of,
)
from tillbridge.diagnostics.checks.bridge import (
    check_bridge,
    check_channel,
    check_no_alerts,
    check_ports,
    check_secret_files,
    check_service_manager,
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

LONGEST_S = 18.0  # for all of them together
_STATUS_S = 3.0
_CALLS_S = 15.0  # a call is tried several times

OpenProblems = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class _Result:
    """A finding, with the check's name, its store ("" for the bridge), and how long it took."""

    name: str
    store: str
    finding: Finding
    took_ms: int = 0
    after: tuple[str, ...] = ()


class Checkup:
    """One examination: `run` it once, and ask `so_far` meanwhile."""

    def __init__(
        self, checks: Sequence[Check], clock: Clock, problems: OpenProblems | None = None
    ) -> None:
        self._checks = tuple(checks)
        self._problems = problems
        self._open: Sequence[Mapping[str, Any]] = ()
        self._clock = clock
        self._began: float | None = None
        self._results: dict[int, _Result] = {}
        self._is_done = False

    async def run(self) -> dict[str, Any]:
        """Run the checks; return the report. It takes `LONGEST_S` seconds at most."""
        self._began = self._clock.monotonic()
        numbered = enumerate(self._checks)
        await asyncio.gather(*(self._one(number, check) for number, check in numbered))
        if self._problems is not None:
            with suppress(BridgeError, TimeoutError):  # a check says what is wrong then
                self._open = await asyncio.wait_for(self._problems(), _STATUS_S)
        self._is_done = True
        return self.so_far()

    def so_far(self) -> dict[str, Any]:
        """Return the report of what is done, `done`, and `running`: what is still looked at."""
        results = [self._results[number] for number in sorted(self._results)]
        if self._is_done:
            titles = {check.name: check.title for check in self._checks}
            results = _with_problems(_one_by_cause(results, titles), self._open)
        waits = [check for number, check in enumerate(self._checks) if number not in self._results]
        took = 0.0 if self._began is None else self._clock.monotonic() - self._began
        return {
            **_report(results),
            "done": self._is_done,
            "running": [
                {"name": check.name, "store": check.store, "title": check.title} for check in waits
            ],
            "took_ms": round(took * 1000),
        }

    async def _one(self, number: int, check: Check) -> None:
        began = self._clock.monotonic()
        task = asyncio.ensure_future(check.look())
        limit_s = min(check.limit_s, LONGEST_S)
        done, _waiting = await asyncio.wait({task}, timeout=limit_s)
        if done:
            finding = _outcome(task, check.code)
        else:
            # Cancelled and not waited for: it may be deaf to that.
            task.cancel()
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            finding = failed(
                _("{title}: no answer within {seconds:g} seconds.").format(
                    title=check.title, seconds=limit_s
                ),
                _("The connection is very slow, or a firewall drops it. Try again."),
                timed_out=True,
            )
        took_ms = round((self._clock.monotonic() - began) * 1000)
        # Whatever the texts of others brought into it, no secret leaves.
        details = {name: masked_value(value) for name, value in finding.details.items()}
        safe = replace(finding, text=masked(finding.text), fix=masked(finding.fix), details=details)
        self._results[number] = _Result(check.name, check.store, safe, took_ms, check.after)


def _outcome(task: "asyncio.Future[Finding]", code: str) -> Finding:
    if task.cancelled():
        return failed(_("The check was stopped."), _("Try again."))
    failure = task.exception()
    if failure is not None:
        text = _("The check failed unexpectedly: {kind}: {text}")
        return failed(
            text.format(kind=type(failure).__name__, text=failure),
            _("Report it with a support file: tillbridge support-bundle"),
        )
    finding = task.result()
    # What is a problem already is not reported a second time.
    return coded(finding, code) if finding.level is Level.FAILED and code else finding


def _one_by_cause(results: Sequence[_Result], titles: Mapping[str, str]) -> list[_Result]:
    """Return the results with one error for one cause: what follows from another is skipped."""
    broken = {each.name for each in results if each.finding.level is Level.FAILED}
    after = []
    for each in results:
        cause = next((name for name in each.after if name in broken), None)
        if each.name in broken and cause is not None:
            text = _("{text} The cause is {cause}.").format(
                text=each.finding.text, cause=titles[cause]
            )
            finding = replace(each.finding, level=Level.SKIPPED, text=text, fix="", code="")
            after.append(replace(each, finding=finding))
        else:
            after.append(each)
    return after


def _with_problems(
    results: Sequence[_Result], problems: Sequence[Mapping[str, Any]]
) -> list[_Result]:
    """Return the results and every open problem of the status that none of them has found."""
    found = {(each.finding.code, each.store) for each in results if each.finding.code}
    found |= {(code, "") for code, _store in found}
    missing = [
        _Result(
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


def _report(results: Sequence[_Result]) -> dict[str, Any]:
    """Return the whole examination: `ok` is false where something failed, or a problem is open."""
    levels = [result.finding.level for result in results]
    broken, odd = levels.count(Level.FAILED), levels.count(Level.WARNING)
    problems = sum(bool(each.finding.code) and each.finding.level in BAD for each in results)
    return {
        "ok": not broken and not problems,
        "level": "failed" if broken else "warning" if odd else "ok",
        "text": _verdict(broken, odd, problems),
        "counts": {str(level): levels.count(level) for level in Level},
        "results": [
            {
                "name": each.name,
                "store": each.store,
                "level": str(each.finding.level),
                "code": each.finding.code,
                "text": each.finding.text,
                "fix": each.finding.fix,
                "took_ms": each.took_ms,
                "details": dict(each.finding.details),
            }
            for each in results
        ],
    }


def _verdict(broken: int, odd: int, problems: int) -> str:
    if broken:
        return ngettext("{n} check failed.", "{n} checks failed.", broken).format(n=broken)
    if problems:
        return ngettext("{n} problem is open.", "{n} problems are open.", problems).format(
            n=problems
        )
    if odd:
        return ngettext(
            "Everything works. {n} check needs a look.",
            "Everything works. {n} checks need a look.",
            odd,
        ).format(n=odd)
    return _("Everything works.")


_WAY = ("dns.service", "tls.service", "service")  # what has to work before a call does


def examination(subject: Subject) -> Checkup:
    """Return the checkup of all links; nothing is looked at before it runs."""

    def of(look: Callable[..., Awaitable[Finding]], *more: object) -> Look:
        return partial(look, subject, *more)

    service = partial(Check, code="service.unreachable")
    public = partial(Check, code="public_address.unreachable")
    service_tls, public_tls = of(check_tls, "service"), of(check_tls, "public")
    reached = ("bridge", "dns.public", "tls.public")
    checks = [
        Check("bridge", _("the bridge"), of(check_bridge)),
        service("dns.service", _("the ordering service's name"), of(check_names, "service")),
        service(
            "tls.service", _("the ordering service's certificate"), service_tls, after=_WAY[:1]
        ),
        service(
            "service", _("the ordering service"), of(check_service), limit_s=12, after=_WAY[:2]
        ),
        Check("clock", _("the clock"), of(check_clock), limit_s=15, after=_WAY),
        public("dns.public", _("the public address's name"), of(check_names, "public")),
        public("tls.public", _("the public address's certificate"), public_tls, after=reached[1:2]),
        public("public", _("the public address"), of(check_public), limit_s=17, after=reached),
        *(each for store in subject.stores.values() for each in _of_store(subject, store)),
        *_of_channels(subject),
        Check("ledger", _("the database"), of(check_ledger), limit_s=10),
        Check("disk", _("the disk"), of(check_disk)),
        Check("ports", _("the ports"), of(check_ports)),
        Check("secret_files", _("files with secrets"), of(check_secret_files)),
        Check("time_sync", _("the time server"), check_time_sync, limit_s=5),
        Check("manager", _("the service manager"), of(check_service_manager)),
        Check("versions", _("the versions"), of(check_versions)),
    ]
    return Checkup(checks, subject.clock, partial(_open_problems, subject))


def _of_store(subject: Subject, store: StoreSubject) -> list[Check]:
    check = partial(Check, store=store.name)
    calls = partial(check, limit_s=_CALLS_S)
    consent = partial(check_consent, subject, store)
    found = [calls("consent", _("the sign-in"), consent, after=_WAY)]
    if not subject.no_secret:
        integration = partial(check_integration, subject, store)
        after = (*_WAY, "consent")
        found.append(calls("integration", _("the store's connection"), integration, after=after))
    for part in store.tills or ("pos",):
        name = "till" if part == "pos" else f"till.{part}"
        found.append(check(name, _("the till"), partial(check_till, store, part)))
    if "pos" in store.tills and store.tills["pos"].reads_catalogue:
        menu = partial(check_menu, store)
        found.append(calls("menu", _("the menu export"), menu, after=("till",)))
    return found


def _of_channels(subject: Subject) -> list[Check]:
    if not subject.channels:
        return [Check("alerts", _("alerts"), check_no_alerts)]
    found = []
    for channel in subject.channels:
        name, title = f"alerts.{channel.name}", _("alerts by {way}").format(way=channel.name)
        if channel.name == "heartbeat":
            name, title = "heartbeat", _("the heartbeat")
        found.append(Check(name, title, partial(check_channel, channel), limit_s=_CALLS_S))
    return found


async def _open_problems(subject: Subject) -> Sequence[Mapping[str, Any]]:
    if subject.status is None:
        return ()
    problems: Sequence[Mapping[str, Any]] = (await subject.status())["problems"]
    return problems
