"""What a person is told to type is what fits how the bridge was started."""

import pytest

from tillbridge.core.problems import OpenProblem
from tillbridge.core.started import Verb, command_to, how_to
from tillbridge.status.document import BridgeFacts, document

SYSTEMD = {"NOTIFY_SOCKET": "/run/systemd/notify"}


@pytest.mark.parametrize(
    ("verb", "environment", "in_terminal", "cgroup", "words"),
    [
        ("restart", SYSTEMD, False, "", "systemctl restart tillbridge"),
        (
            "start",
            SYSTEMD,
            False,
            "0::/system.slice/system-tillbridge.slice/tillbridge@bar.service\n",
            "systemctl start tillbridge@bar",
        ),
        ("start", {}, True, "", "tillbridge run"),
        ("restart", {}, True, "", "press Ctrl-C in its terminal, then type tillbridge run"),
        ("restart", {}, False, "", "stop it, then start it the way you did before"),
    ],
)
def test_the_command_fits_how_it_was_started(
    verb: Verb, environment: dict[str, str], in_terminal: bool, cgroup: str, words: str
) -> None:
    assert how_to(verb, environment, in_terminal=in_terminal, cgroup=cgroup) == words


def test_what_counts_after_a_restart_says_how_to_restart_this_bridge() -> None:
    problem = OpenProblem("config.restart_needed", "", "", 1, {"keys": "receiver.listen"})
    assert problem.fix == (
        f"Restart the bridge: {command_to('restart')}. Orders that arrive meanwhile wait."
    )


def test_a_bridge_that_was_stopped_is_started_as_before() -> None:
    facts = BridgeFacts(
        "1", False, {}, stopped_at=1, facts={"running": {"start": "tillbridge run"}}
    )
    (problem,) = document(facts, 2)["problems"]
    assert problem["fix"] == "Start it: tillbridge run"
    (problem,) = document(BridgeFacts("1", False, {}, stopped_at=1), 2)["problems"]
    assert problem["fix"] == "Start it: systemctl start tillbridge, or tillbridge run"
