"""An act for a store that moves from one bridge to another is done where the store arrives."""

from collections.abc import Mapping
from typing import Annotated, Any, cast
from unittest.mock import AsyncMock

import pytest

from tillbridge.core import operation
from tillbridge.core.actor import Actor, Role
from tillbridge.core.errors import BridgeError, NotServedHere, ServedElsewhere
from tillbridge.core.operation import Answer, Argument, Dispatcher
from tillbridge.operations.bridge import Bridge

ANNA = Actor("page:anna", Role.STAFF)
MOVED_AWAY = ServedElsewhere("b serves it", holder="b")
STARTING = NotServedHere("it is being started")


class Shops:
    """A bridge whose store is, at each attempt, where `places` says; the last place is for good."""

    is_set_up = True

    def __init__(self, *places: BridgeError | str) -> None:
        self.places = list(places)
        self.attempts = 0
        self.asked: list[str] = []
        self.elsewhere: list[BridgeError | str] = []

    def serve(self) -> str:
        self.attempts += 1
        return _given(self.places)

    async def ask(
        self, elsewhere: ServedElsewhere, _name: str, _given_: Mapping[str, Any], _actor: Actor
    ) -> Answer:
        self.asked.append(elsewhere.holder)
        return {"ok": True, "at": _given(self.elsewhere)}


def _given(places: list[BridgeError | str]) -> str:
    place = places.pop(0) if len(places) > 1 else places[0]
    if isinstance(place, BridgeError):
        raise place
    return place


async def mark(bridge: Shops, dish: Annotated[str, Argument(audit="target")]) -> Answer:
    """Do something to a dish."""
    return {"ok": True, "at": bridge.serve(), "dish": dish}


@pytest.fixture
def act(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(operation, "_PAUSE_S", 0)
    monkeypatch.setattr(operation, "OPERATIONS", {})
    operation.operation("dish.mark", role=Role.STAFF)(mark)
    operation.operation("dish.look", role=Role.LOOK, reads=True)(mark)
    return "dish.mark"


def perform(shops: Shops, trail: AsyncMock, name: str) -> Any:  # noqa: ANN401 -- as the act answers
    dispatcher = Dispatcher(cast("Bridge", shops), trail)
    return dispatcher.perform(name, {"dish": "B1"}, ANNA)


async def test_a_store_that_is_being_started_here_is_waited_for(act: str) -> None:
    shops, trail = Shops(STARTING, STARTING, "here"), AsyncMock()
    assert (await perform(shops, trail, act))["at"] == "here"
    trail.note.assert_awaited_once_with(act, ok=True, target="B1")


async def test_the_bridge_to_which_it_has_moved_is_asked_until_it_is_there(act: str) -> None:
    shops, trail = Shops(MOVED_AWAY), AsyncMock()
    shops.elsewhere = [ServedElsewhere("a serves it"), STARTING, "there"]
    assert (await perform(shops, trail, act))["at"] == "there"
    assert shops.asked == ["b", "b", "b"]
    trail.note.assert_not_awaited()  # whoever does it writes it down


async def test_a_store_that_comes_here_meanwhile_is_served_here(act: str) -> None:
    shops = Shops(MOVED_AWAY, "here")
    shops.elsewhere = [ServedElsewhere("a serves it")]
    assert (await perform(shops, AsyncMock(), act))["at"] == "here"


async def test_nobody_waits_for_ever_and_nobody_who_only_looks(act: str) -> None:
    shops = Shops(STARTING)
    with pytest.raises(NotServedHere):
        await perform(shops, AsyncMock(), act)
    assert shops.attempts == operation._ATTEMPTS
    shops.attempts = 0
    with pytest.raises(NotServedHere):
        await perform(shops, AsyncMock(), "dish.look")
    assert shops.attempts == 1


async def test_what_may_have_been_done_is_not_repeated(act: str) -> None:
    shops = Shops(MOVED_AWAY)
    shops.elsewhere = [BridgeError("The bridge that serves this store does not answer."), "there"]
    with pytest.raises(BridgeError, match="does not answer"):
        await perform(shops, AsyncMock(), act)
    assert shops.asked == ["b"]
