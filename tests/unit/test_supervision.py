"""A step that fails is reported, tried again with back-off, and stops nothing else."""

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

import pytest

from tillbridge.core import worker
from tillbridge.core.problems import Found, Scope
from tillbridge.core.worker import LONGEST_PAUSE_S, Supervisor, describe
from tillbridge.ledger.problems import ProblemTracker


class Board:
    """The problems that are open, by code, store and subject."""

    def __init__(self) -> None:
        self.problems: dict[tuple[str, str, str], dict[str, object]] = {}

    def is_open(self, code: str, store: str, subject: str = "") -> bool:
        return (code, store, subject) in self.problems

    def report(self, scope: Scope, found: Iterable[Found]) -> None:
        for key in tuple(self.problems):
            if scope.covers(*key):
                del self.problems[key]
        for each in found:
            self.problems[each.code, scope.store, each.subject] = dict(each.detail)


def supervising(board: Board) -> Supervisor:
    return Supervisor("main", cast("ProblemTracker", board))


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.001)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(worker, "_STEADY_S", 0.02)


@pytest.mark.usefixtures("quick")
async def test_a_step_that_raises_is_a_problem_and_begun_again_until_it_works() -> None:
    board, begun = Board(), 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun < 4:
            raise OverflowError("too large")
        await asyncio.Event().wait()

    supervised = asyncio.create_task(supervising(board).run("tax", work))
    key = ("store.step_failed", "main", "tax")
    await until(lambda: key in board.problems)
    assert board.problems[key] == {"step": "tax", "detail": "OverflowError: too large"}
    await until(lambda: not board.problems)
    assert begun == 4
    supervised.cancel()


@pytest.mark.usefixtures("quick")
async def test_a_problem_of_the_last_life_closes_once_the_step_has_run_for_a_while() -> None:
    board = Board()
    of_yesterday: dict[str, object] = {"step": "writer", "detail": "of yesterday"}
    board.problems["order.step_failed", "main", "writer"] = of_yesterday
    supervised = asyncio.create_task(supervising(board).run("writer", asyncio.Event().wait))
    await until(lambda: not board.problems)
    supervised.cancel()


@pytest.mark.usefixtures("quick")
async def test_a_step_that_ends_by_itself_is_begun_again() -> None:
    board, begun = Board(), 0

    async def ends() -> None:
        nonlocal begun
        begun += 1

    supervised = asyncio.create_task(supervising(board).run("menu", ends))
    await until(lambda: begun > 2)
    assert "ended by itself" in str(board.problems["store.step_failed", "main", "menu"]["detail"])
    supervised.cancel()


async def test_ending_the_bridge_ends_a_step() -> None:
    supervised = asyncio.create_task(supervising(Board()).run("tax", asyncio.Event().wait))
    await asyncio.sleep(0)
    supervised.cancel()
    with pytest.raises(asyncio.CancelledError):
        await supervised


async def test_an_order_at_which_a_step_fails_is_named_and_the_step_counts_as_well() -> None:
    board = Board()
    supervisor = supervising(board)

    async def fails() -> None:
        raise KeyError("x")

    async def works() -> None:
        return

    assert await supervisor.attempt("writer", fails, order="ord_1") == 1
    assert await supervisor.attempt("notifier", fails, order="ord_1") == 1
    assert list(board.problems) == [("order.set_aside", "main", "ord_1")]
    assert await supervisor.attempt("writer", works, order="ord_1") is None
    assert board.problems  # the other step still fails at it
    assert await supervisor.attempt("notifier", works, order="ord_1") is None
    assert not board.problems


def test_pauses_grow_from_a_second_to_five_minutes() -> None:
    supervisor, failure = supervising(Board()), ValueError("x")
    pauses = [supervisor.failed("tax", failure) for _failure in range(1, 40)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE_S == 300
    supervisor.works("tax")
    assert supervisor.failed("tax", failure) == 1


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_whatever_a_failure_says_can_be_stored() -> None:
    assert describe(Unspeakable()) == "Unspeakable"
    assert describe(ValueError("a\ud800b\n" + "c" * 999)).startswith("ValueError: a?b cc")
    assert len(describe(ValueError("c" * 999))) == 200
    assert describe(ExceptionGroup("several", [KeyError("first")])) == "KeyError: 'first'"
