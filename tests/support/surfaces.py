"""Every surface that says how the bridge is, made from the same facts, to see that they agree."""

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.support.page_harness import TOKEN, PageHarness
from tillbridge.alerts.episodes import due, follow, is_alerted
from tillbridge.cli.say import lines
from tillbridge.cli.status import LEVELS, show_status
from tillbridge.config.bridge import AlertSettings
from tillbridge.core.clock import Clock
from tillbridge.core.problems import OpenProblem
from tillbridge.diagnostics.check import Check
from tillbridge.diagnostics.checks import Checkup
from tillbridge.ledger.snapshot import ACKNOWLEDGED, acknowledgement
from tillbridge.status.views import StatusDocument

HEADINGS = {"All is well": "ok", "Needs attention": "warning", "Needs help now": "down"}


@dataclass(frozen=True)
class Surfaces:
    """What each surface says: a level, and the codes of the open problems."""

    status: StatusDocument
    command: str
    exit_code: int
    page: str
    heading: str
    metrics: str
    doctor: dict[str, Any]
    alerted: frozenset[str]

    @property
    def codes(self) -> set[str]:
        return {each["code"] for each in self.status["problems"]}


def acknowledged(problems: Sequence[OpenProblem], by: str = "anna") -> list[dict[str, Any]]:
    return [
        {
            "code": p.code,
            "store": p.store,
            "subject": p.subject,
            "since": p.since,
            "at": 1,
            "by": by,
        }
        for p in problems
    ]


async def surfaces(
    harness: PageHarness,
    problems: Sequence[OpenProblem],
    noted: Sequence[OpenProblem] = (),
    checks: Sequence[Check] = (),
) -> Surfaces:
    """Return what every surface says while these problems are open."""
    before = harness.control.facts
    fact = acknowledged(noted)
    facts = {**before.facts, ACKNOWLEDGED: fact}
    harness.control.facts = replace(before, problems=tuple(problems), facts=facts)
    status = await harness.control.status()

    async def open_problems() -> Sequence[Any]:
        return list((await harness.control.status())["problems"])

    doctor = await Checkup(checks, Clock(), open_problems).run()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        lines(show_status(status, {}))
    page = (await harness.get("/")).text
    served = await harness.get("/api/status")
    assert served.status == 200
    metrics = (await harness.get("/metrics", Authorization=f"Bearer {TOKEN}")).text
    heading = re.search(r"<h1>(?:<span[^>]*></span>)?([^<]*)</h1>", page)
    settings = AlertSettings()
    known = {p.key for p in problems if acknowledgement(fact, p) is not None}
    episodes = follow({}, problems, known, 0.0, settings)
    told = {key[0] for each in due(episodes, "way", settings, quiet=False) for key in each.keys}
    return Surfaces(
        status=status,
        command=printed.getvalue(),
        exit_code=LEVELS[status["verdict"]["level"]],
        page=page,
        heading=heading[1] if heading else "",
        metrics=metrics,
        doctor=doctor,
        alerted=frozenset(told),
    )


def disagreements(
    seen: Surfaces, problems: Sequence[OpenProblem], noted: Sequence[OpenProblem] = ()
) -> list[str]:
    """Return where the surfaces differ, in words; nothing where they agree."""
    codes = {each.code for each in problems}
    handled = bool(problems) and len({each.key for each in noted}) == len(problems)
    return [
        *_levels(seen, well=not codes, handled=handled),
        *_codes(seen, codes),
        *_alerts(seen, problems, noted),
        *(
            f"{each.code} is in other words than the table's"
            for each in problems
            if each.text not in {shown["text"] for shown in seen.status["problems"]}
        ),
    ]


def _levels(seen: Surfaces, *, well: bool, handled: bool) -> Iterator[str]:
    level = seen.status["verdict"]["level"]
    if (level == "ok") is not well:
        yield f"status says {level}"
    if seen.exit_code != {"ok": 0, "warning": 1, "down": 2}[level]:
        yield f"the command ends with {seen.exit_code} for {level}"
    wanted = "Being handled" if handled else {v: k for k, v in HEADINGS.items()}[level]
    if seen.heading != wanted:
        yield f"the page says {seen.heading!r}, and status {level}"
    if f'tillbridge_verdict{{level="{level}"}} 1.0' not in seen.metrics:
        yield f"the metrics say another level than {level}"
    if seen.doctor["ok"] is not well or (seen.doctor["text"] == "Everything works.") is not well:
        yield f"doctor says {seen.doctor['text']!r}"


def _codes(seen: Surfaces, codes: set[str]) -> Iterator[str]:
    if seen.codes != codes:
        yield f"status lists {seen.codes}, and {codes} are open"
    for code in codes:
        if f"<code>{code}</code>" not in seen.page:
            yield f"the page lacks {code}"
        if f"({code})" not in seen.command:
            yield f"the command lacks {code}"
        if f'tillbridge_problems{{code="{code}"' not in seen.metrics:
            yield f"the metrics lack {code}"
    in_doctor = {each["code"] for each in seen.doctor["results"] if each["code"]}
    if in_doctor != codes:
        yield f"doctor lists {in_doctor}, and {codes} are open"


def _alerts(
    seen: Surfaces, problems: Sequence[OpenProblem], noted: Sequence[OpenProblem]
) -> Iterator[str]:
    settings = AlertSettings()
    alerts = {each.code for each in problems if each not in noted and is_alerted(each, settings)}
    if seen.alerted != alerts:
        yield f"alerts tell of {set(seen.alerted)}, not of {alerts}"
