"""One life of the bridge after another, and an address that is held between them."""

import asyncio
import socket

import pytest

from tillbridge.core.errors import BridgeError
from tillbridge.daemon.reload import RestartController
from tillbridge.web.listener import HeldAddress


def nothing(_failure: BridgeError) -> None:
    raise AssertionError


async def test_a_life_that_is_to_begin_anew_ends_once_what_is_asked_is_answered() -> None:
    restarts = RestartController()
    restarts.begin()
    restarts.restart(nothing, connect="main")
    restarts.restart(nothing, connect="another")  # pressed twice
    assert restarts.again
    assert not restarts.end.is_set()
    await asyncio.wait_for(restarts.end.wait(), 5)
    restarts.begin()
    assert not restarts.end.is_set()
    assert not restarts.again
    assert restarts.to_connect == "main"


async def test_what_is_told_to_stop_stops_whatever_else_was_wanted() -> None:
    restarts = RestartController()
    restarts.restart(nothing)
    restarts.stop()
    assert restarts.end.is_set()
    assert not restarts.again
    restarts.begin()
    restarts.restart(nothing)
    assert restarts.end.is_set()
    assert not restarts.again


async def test_a_life_that_cannot_be_is_taken_back_and_one_that_is_stays() -> None:
    taken_back: list[BridgeError] = []
    failure = BridgeError("No.")
    restarts = RestartController()
    assert not restarts.undo(failure)
    restarts.restart(taken_back.append, connect="main")
    assert restarts.undo(failure)
    assert taken_back == [failure]
    assert restarts.refused is failure
    assert restarts.to_connect == ""
    restarts.begin()
    restarts.restart(taken_back.append)
    assert restarts.refused is None
    restarts.ready()
    assert not restarts.undo(failure)


async def test_what_is_asked_for_between_two_lives_is_done_once_and_its_failure_told() -> None:
    restarts, done = RestartController(), list[str]()
    await restarts.between_runs(lambda: None)  # nothing was asked for
    restarts.restart(nothing, between=lambda: done.append("restored"))
    await restarts.between_runs(lambda: done.append("alive"))
    await restarts.between_runs(lambda: None)
    assert sorted(done) == ["alive", "restored"]

    def fail() -> None:
        raise BridgeError("The disk is full.")

    restarts.begin()
    restarts.restart(nothing, between=fail)
    with pytest.raises(BridgeError, match="disk is full"):
        await restarts.between_runs(lambda: None)


async def test_whoever_comes_between_two_lives_waits() -> None:
    held = HeldAddress()
    (first,) = await held.sockets("127.0.0.1", 0)
    port = first.getsockname()[1]
    first.close()
    visitor = socket.create_connection(("127.0.0.1", port), 5)
    (second,) = await held.sockets("127.0.0.1", 0)
    assert second.getsockname()[1] == port
    second.settimeout(5)
    served, _address = second.accept()
    for each in (served, visitor, second):
        each.close()
    held.close()


async def test_another_address_is_taken_in_its_place() -> None:
    held = HeldAddress()
    (first,) = await held.sockets("127.0.0.1", 0)
    before = first.getsockname()[1]
    others = await held.sockets("localhost", 0)
    assert before not in {each.getsockname()[1] for each in others}
    for each in (first, *others):
        each.close()
    held.close()
    held.close()
