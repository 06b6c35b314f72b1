"""Connections that were begun, and the commands that wait for them."""

from typing import Any, cast

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
