"""What of a changed configuration counts at once, and what waits for a restart."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger_harness import StoppedClock, opened
from tillbridge.config.bridge import Settings
from tillbridge.config.loading import LoadedSettings, load
from tillbridge.config.writing import LIVE, Change, compare
from tillbridge.core.errors import ConfigError
from tillbridge.daemon import reload
from tillbridge.daemon.reload import Reloader
from tillbridge.ledger.problems import ProblemTracker

SAMPLE = (Path(__file__).resolve().parents[2] / "config" / "bridge.toml").read_text("utf-8")
HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"


def settings(**changed: object) -> Settings:
    """The sample's settings, with other values under dotted keys."""
    document = Settings.model_validate(
        {
            "service": {"base_url": "http://x/v2", "client_id": "a", "client_secret": "b"},
            "receiver": {"public_url": "http://x"},
            "stores": {
                "main": {"location_id": "l", "currency": "USD", "pos": {"adapter": "folder"}}
            },
        }
    ).model_dump()
    document["service"]["client_secret"] = "b"
    for key, value in changed.items():
        table, _dot, name = key.partition("__")
        document[table][name] = value
    return Settings.model_validate(document)


def test_nothing_differs_where_nothing_has_changed() -> None:
    assert compare(settings(), settings()) == Change()


def test_a_log_level_counts_at_once_and_an_address_after_a_restart() -> None:
    change = compare(
        settings(), settings(bridge__log_level="debug", receiver__listen="127.0.0.1:9999")
    )
    assert change == Change(live=("bridge.log_level",), restart=("receiver.listen",))


def test_another_secret_is_seen_and_not_shown() -> None:
    change = compare(settings(), settings(service__client_secret="planted"))
    assert change.restart == ("service.client_secret",)


def test_users_of_the_page_count_at_once() -> None:
    users = {"anna": {"role": "staff", "password": HASH}}
    change = compare(settings(), settings(status_page__users=users))
    assert change.live == ("status_page.users.anna",)
    assert change.restart == ()


def test_a_page_that_is_open_to_a_network_keeps_its_passwords_until_it_moves() -> None:
    users = {"anna": {"role": "staff", "password": HASH}}
    open_to_all = settings(status_page__users=users, status_page__listen="0.0.0.0:8089")
    change = compare(open_to_all, settings())
    assert change.live == ()
    assert "status_page.users.anna" in change.restart


@pytest.mark.parametrize("key", LIVE)
def test_every_key_that_counts_at_once_exists(key: str) -> None:
    table, _dot, name = key.rstrip(".").partition(".")
    assert name in type(getattr(settings(), table)).model_fields


class Harness:
    """A configuration file, and what was applied of it."""

    def __init__(self, folder: Path, tracker: ProblemTracker) -> None:
        self.path = folder / "bridge.toml"
        self.write("")
        self.applied: list[tuple[str, ...]] = []
        self.tracker = tracker
        self.refuse = False
        self.reloader = Reloader(load(self.path), tracker, self.apply)

    def write(self, change: str, to: str = "") -> None:
        self.path.write_text(SAMPLE.replace(change, to) if change else SAMPLE, "utf-8")

    def apply(self, fresh: LoadedSettings, change: Change) -> None:
        if self.refuse:
            raise ConfigError("No hash.", fix="Make one.")
        self.applied.append(change.live)

    def problems(self) -> dict[str, dict[str, Any]]:
        return {each.code: dict(each.detail) for each in self.tracker.current()}


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator["Harness"]:
    clock = StoppedClock()
    async with opened(tmp_path / "ledger", clock) as ledger:
        tracker = await ProblemTracker.start(ledger, clock=clock)
        yield Harness(tmp_path, tracker)
        await tracker.settle()


async def test_what_waits_for_a_restart_is_named_until_it_is_as_before(harness: Harness) -> None:
    harness.write('listen = "127.0.0.1:8088"', 'listen = "127.0.0.1:9999"')
    await harness.reloader.read()
    assert harness.applied == []
    assert harness.problems() == {"config.restart_needed": {"keys": "receiver.listen"}}
    harness.write("")
    await harness.reloader.read()
    assert harness.problems() == {}


async def test_a_file_that_has_not_changed_is_not_parsed(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "load", None)
    harness.write("")
    await harness.reloader.read()
    assert harness.problems() == {}


async def test_a_refusal_is_tried_again_though_the_file_is_the_same(harness: Harness) -> None:
    harness.write('log_level = "info"', 'log_level = "debug"')
    harness.refuse = True
    await harness.reloader.read()
    harness.refuse = False
    await harness.reloader.read()
    assert harness.applied == [("bridge.log_level",)]
    assert harness.problems() == {}


async def test_what_counts_at_once_is_applied_once(harness: Harness) -> None:
    harness.write('log_level = "info"', 'log_level = "debug"')
    await harness.reloader.read()
    await harness.reloader.read()
    assert harness.applied == [("bridge.log_level",)]
    assert harness.problems() == {}


async def test_a_file_that_is_no_configuration_changes_nothing(harness: Harness) -> None:
    harness.write('log_level = "info"', 'log_level = "loud"')
    await harness.reloader.read()
    assert harness.applied == []
    assert "log_level" in harness.problems()["config.unusable"]["detail"]
    harness.write("")
    await harness.reloader.read()
    assert harness.problems() == {}


async def test_options_that_an_adapter_does_not_take_ask_for_no_restart(harness: Harness) -> None:
    place = "# How often files are checked in addition to change events"
    harness.write(place, f'availabilty = "export/sold-out.csv"\n{place}')
    await harness.reloader.read()
    (problem,) = harness.problems().items()
    assert problem[0] == "config.unusable"
    assert "availabilty: the adapter folder has no such option" in problem[1]["detail"]
    assert problem[1]["remedy"] == "Did you mean availability?"
    harness.write("")
    await harness.reloader.read()
    assert harness.problems() == {}


async def test_a_file_that_is_gone_changes_nothing(harness: Harness) -> None:
    harness.path.unlink()
    await harness.reloader.read()
    assert "config.unusable" in harness.problems()


async def test_what_the_file_points_at_must_be_there(harness: Harness) -> None:
    harness.refuse = True
    harness.write('log_level = "info"', 'log_level = "debug"')
    await harness.reloader.read()
    assert harness.problems()["config.unusable"]["detail"] == "No hash."
    harness.refuse = False
    await harness.reloader.read()
    assert harness.applied == [("bridge.log_level",)]
    assert harness.problems() == {}
