"""Runs checks side by side, each with a time limit; one that hangs hangs nobody else."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tillbridge.clock import Clock
from tillbridge.diagnostics.result import Finding, Result, failed, report
from tillbridge.i18n import _
from tillbridge.redaction import masked, masked_value

LONGEST_S = 18.0  # for all of them together


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

    def __init__(self, checks: Sequence[Check], clock: Clock) -> None:
        self._checks = tuple(checks)
        self._clock = clock
        self._began: float | None = None
        self._results: dict[int, Result] = {}

    async def run(self) -> dict[str, Any]:
        """Run the checks; return the report. It takes `LONGEST_S` seconds at most."""
        self._began = self._clock.monotonic()
        numbered = enumerate(self._checks)
        await asyncio.gather(*(self._one(number, check) for number, check in numbered))
        return self.so_far()

    def so_far(self) -> dict[str, Any]:
        """Return the report of what is done, `done`, and `running`: what is still looked at."""
        results = [self._results[number] for number in sorted(self._results)]
        waits = [check for number, check in enumerate(self._checks) if number not in self._results]
        took = 0.0 if self._began is None else self._clock.monotonic() - self._began
        return {
            **report(results),
            "done": not waits,
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
    return Finding(finding.level, masked(finding.text), masked(finding.fix), details)


def _forget(task: "asyncio.Future[Finding]") -> None:
    if not task.cancelled():
        task.exception()
