"""The page, /api/status, status, doctor, alerts and metrics say the same, whatever is open."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.page_harness import page_harness
from tests.support.surfaces import disagreements, surfaces
from tillbridge.core.problems import PROBLEMS, OpenProblem, Severity

# Problems of communities are shown on their own page, too; they need one that is configured.
CODES = sorted(PROBLEMS)
NOW = 1_795_000_000_000


def problem(code: str, number: int = 0) -> OpenProblem:
    store = "" if code.startswith(("bridge.", "ledger.", "disk.", "clock.", "config.")) else "main"
    return OpenProblem(code, store, "", NOW - 60_000 * (number + 1))


async def agree(problems: Sequence[OpenProblem], noted: Sequence[OpenProblem]) -> None:
    async with page_harness() as harness:
        seen = await surfaces(harness, problems, noted)
        assert disagreements(seen, problems, noted) == []
        leader = seen.status["problems"][0] if problems else None
        unhandled = [each for each in problems if each not in noted]
        if leader is not None and unhandled:
            assert leader["acknowledged"] is None, "what is handled does not lead"
        down = [each for each in unhandled if each.kind.severity is Severity.DOWN]
        assert (seen.status["verdict"]["level"] == "down") is bool(down)


@pytest.mark.parametrize("code", CODES)
async def test_all_surfaces_agree_about_each_problem(code: str) -> None:
    await agree([problem(code)], ())


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
async def test_all_surfaces_agree_about_any_problems(data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.sampled_from(CODES), unique=True, max_size=5))
    problems = [problem(code, number) for number, code in enumerate(codes)]
    seen_to = data.draw(st.sets(st.sampled_from(codes))) if codes else set()
    await agree(problems, [each for each in problems if each.code in seen_to])


async def test_with_nothing_open_all_is_well_everywhere(tmp_path: Path) -> None:
    await agree((), ())


@pytest.mark.parametrize("stands", ["consent.expired", "consent.revoked"])
async def test_no_card_says_days_left_of_a_consent_that_is_gone(stands: str) -> None:
    async with page_harness() as harness:
        facts = harness.control.facts.stores["main"].facts
        facts["consent"] = {"expires_at": harness.control.now_ms + 7 * 86_400_000}
        seen = await surfaces(harness, [problem(stands)])
        assert seen.status["stores"]["main"]["service"]["consent_days_left"] == 0
        assert "days left" not in seen.page
        assert "days left" not in seen.command
        assert "No orders can arrive" not in seen.page, "they do: the webhook needs no consent"


async def test_an_acknowledged_problem_neither_leads_nor_colours() -> None:
    old, new = problem("order.price_differs", 60), problem("menu.held")
    async with page_harness() as harness:
        seen = await surfaces(harness, [old, new], [old])
        assert [each["code"] for each in seen.status["problems"]] == [new.code, old.code]
        assert seen.status["verdict"]["text"].startswith("Menu update on hold")
        alone = await surfaces(harness, [old], [old])
        assert alone.status["verdict"]["text"].startswith("anna is handling this: ")
        assert alone.heading == "Being handled"
