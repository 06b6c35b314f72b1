"""The watchdog tells as long as everything gets on, and says once what does not."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.daemon.watchdog import ProgressCheck, ServiceManager, Watchdog, stuck

times = st.floats(min_value=0, max_value=1e6)


@dataclass
class FakeManager:
    said: list[str] = field(default_factory=list)

    def alive(self) -> None:
        self.said.append("alive")

    def status(self, text: str) -> None:
        self.said.append(text)


def test_an_idle_part_is_never_stuck() -> None:
    assert stuck([ProgressCheck("writer", None, 0.0)], 1e9) == ()


@given(since=times, patience=times, now=times)
def test_a_part_is_stuck_exactly_when_its_patience_is_over(
    since: float, patience: float, now: float
) -> None:
    assert (stuck([ProgressCheck("writer", since, patience)], now) == ("writer",)) is (
        now - since > patience
    )


def test_the_watchdog_is_silent_while_a_part_is_stuck_and_comes_back_with_it() -> None:
    manager, now = FakeManager(), [0.0]
    checks = [ProgressCheck("writer", 0.0, 30.0)]
    watchdog = Watchdog(manager, lambda: checks, clock=lambda: now[0])  # type: ignore[arg-type]  # a fake
    watchdog.beat()
    now[0] = 31.0
    watchdog.beat()
    watchdog.beat()
    checks[:] = [ProgressCheck("writer", None, 30.0)]
    watchdog.beat()
    assert manager.said == ["alive", "Stuck: writer", "alive"]


def test_a_watchdog_that_is_meant_for_another_process_is_left_alone() -> None:
    named = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "8000000"}
    assert ServiceManager.of(named).watchdog_s == 8.0
    assert ServiceManager.of({**named, "WATCHDOG_PID": "1"}).watchdog_s is None
    assert ServiceManager.of({"WATCHDOG_USEC": "8000000"}) == ServiceManager()


def test_without_a_service_manager_nothing_is_told() -> None:
    ServiceManager().ready("Serving main")
