"""Connections that were begun, and the commands that wait for them."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from tillbridge.core.errors import BridgeError
from tillbridge.operations.connect import ConnectionRequest, Connections
from tillbridge.stores.consent import ConsentRequest


def test_a_connection_is_remembered_while_hundreds_of_others_are_begun() -> None:
    unused = cast("Any", None)
    connections = Connections(unused, unused)
    for number in range(1000):
        begun = ConsentRequest(f"store{number}", "https://example.net/", f"state{number}")
        connections.begin(begun, ConnectionRequest(begun.store))
    assert connections.result("state0") == {"done": False}
    with pytest.raises(BridgeError, match="unknown or too old"):
        connections.result("state of nobody")


async def test_a_command_is_told_of_a_defect_and_does_not_wait_for_ten_minutes() -> None:
    begun = ConsentRequest("main", "https://example.net/", "state")
    bridge = SimpleNamespace(
        stores={"main": SimpleNamespace(integrator=AsyncMock())},
        consents=AsyncMock(returned=AsyncMock(return_value="main")),
        ask=None,
        begun_elsewhere=lambda _state: None,
    )
    bridge.stores["main"].integrator.integrate.side_effect = KeyError("store_id")
    connections = Connections(cast("Any", bridge), cast("Any", None))
    connections.begin(begun, ConnectionRequest("main"))
    assert (await connections.returned({"state": "state"})).ok
    while not connections.result("state")["done"]:
        await asyncio.sleep(0)
    answer = connections.result("state")
    assert not answer["ok"]
    assert answer["text"].endswith("a defect of its own: KeyError.")
