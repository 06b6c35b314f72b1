import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.folder_till import open_till
from tillbridge.adapter import PosFailure, PosOffline, Ticket, TicketOutcomeUnknown
from tillbridge.adapter.folders import sync_folder
from tillbridge.model.order import Order, parse_order
from tillbridge.pos.folder import orders as outbox
from tillbridge.pos.folder.adapter import FolderAdapter
from tillbridge.pos.folder.orders import safe_stem

T = TypeVar("T")

DATA = {"id": "ord_1", "order_number": "17", "items": [], "special_instructions": "Süß, bitte"}


def order(**fields: object) -> Order:
    return parse_order({**DATA, **fields})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders").mkdir()
    return tmp_path / "orders"


def till(folder: Path) -> FolderAdapter:
    return open_till(folder.parent, orders_dir=folder.name)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.json"))


def test_an_order_is_written_as_it_was_received(folder: Path) -> None:
    ticket = till(folder).write_ticket(order(), "ord_1")
    assert ticket == Ticket("ord_1.json")
    text = (folder / "ord_1.json").read_text("utf-8")
    assert json.loads(text) == DATA
    assert "Süß" in text


def test_half_a_character_keeps_no_order_from_the_kitchen(folder: Path) -> None:
    till(folder).write_ticket(order(special_instructions="\ud83d"), "ord_1")
    assert json.loads((folder / "ord_1.json").read_text())["special_instructions"] == "\ud83d"


def test_an_order_is_written_once(folder: Path) -> None:
    till(folder).write_ticket(order(), "ord_1")
    (folder / "ord_1.json").write_text("read by the till")
    assert till(folder).write_ticket(order(), "ord_1") == Ticket("ord_1.json")
    assert (folder / "ord_1.json").read_text() == "read by the till"


def test_an_order_that_the_till_took_away_is_still_known(folder: Path) -> None:
    pos = till(folder)
    assert pos.find_ticket("ord_1") is None
    pos.write_ticket(order(), "ord_1")
    (folder / "ord_1.json").unlink()
    assert till(folder).find_ticket("ord_1") == Ticket("ord_1.json")
    till(folder).write_ticket(order(), "ord_1")
    assert visible(folder) == []


def test_nothing_but_whole_orders_is_visible(folder: Path) -> None:
    till(folder).write_ticket(order(), "ord_1")
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == [
        "ord_1.json"
    ]


class Killed(BaseException):
    """The process ends here."""


class Steps:
    """Counts what the outbox does to the disk, ends it at one point; the till takes files."""

    def __init__(self, folder: Path, end_at: int | None) -> None:
        self.folder = folder
        self.end_at = end_at
        self.count = 0
        self.taken: list[str] = []

    def take(self) -> None:
        for path in self.folder.glob("*.json"):
            self.taken.append(path.name)
            path.unlink()

    def point(self) -> None:
        self.take()
        self.count += 1
        if self.count == self.end_at:
            raise Killed

    def around(self, function: Callable[..., T]) -> Callable[..., T]:
        def stepped(*arguments: object) -> T:
            self.point()
            result = function(*arguments)
            self.point()
            return result

        return stepped

    @contextmanager
    def watching(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(outbox, "sync_folder", self.around(sync_folder))
            patch.setattr(os, "fsync", self.around(os.fsync))
            patch.setattr(Path, "replace", self.around(Path.replace))
            yield


def steps_of_a_write(folder: Path) -> int:
    steps = Steps(folder, None)
    with steps.watching():
        till(folder).write_ticket(order(), "ord_1")
    steps.take()
    assert steps.taken == ["ord_1.json"]
    return steps.count


def test_an_order_reaches_the_till_once_wherever_the_bridge_is_killed(tmp_path: Path) -> None:
    (tmp_path / "counted").mkdir()
    points = steps_of_a_write(tmp_path / "counted")
    assert points > 10
    for end_at in range(1, points + 1):
        folder = tmp_path / f"killed-{end_at}"
        folder.mkdir()
        steps = Steps(folder, end_at)
        with steps.watching(), pytest.raises(Killed):
            till(folder).write_ticket(order(), "ord_1")
        steps.take()
        # After the restart: ask first, then write what is not there.
        if till(folder).find_ticket("ord_1") is None:
            assert steps.taken == [], f"step {end_at}: the till has it, and find_ticket denies it"
            till(folder).write_ticket(order(), "ord_1")
        steps.take()
        assert steps.taken == ["ord_1.json"], f"step {end_at}"


class TakenOver(Steps):
    """At one point the bridge is frozen, and goes on when another one has done its work."""

    def point(self) -> None:
        self.take()
        self.count += 1
        if self.count == self.end_at:
            other = till(self.folder)
            if other.find_ticket("ord_1") is None:
                other.write_ticket(order(), "ord_1")
            self.take()


@pytest.mark.parametrize("killed_at", [None, 4, 6, 8, 10])
def test_an_order_reaches_the_till_once_wherever_a_bridge_is_frozen(
    tmp_path: Path, killed_at: int | None
) -> None:
    (tmp_path / "counted").mkdir()
    for frozen_at in range(1, steps_of_a_write(tmp_path / "counted") + 1):
        folder = tmp_path / f"frozen-{frozen_at}"
        folder.mkdir()
        before, steps = Steps(folder, killed_at), TakenOver(folder, frozen_at)
        if killed_at is not None:
            with before.watching(), pytest.raises(Killed):
                till(folder).write_ticket(order(), "ord_1")
        with steps.watching(), suppress(TicketOutcomeUnknown):
            till(folder).write_ticket(order(), "ord_1")
        steps.take()
        assert before.taken + steps.taken == ["ord_1.json"], f"step {frozen_at}"


def test_an_order_is_written_once_though_killed_again_and_again(tmp_path: Path) -> None:
    for end_at in range(1, 30):
        folder = tmp_path / f"killed-{end_at}"
        folder.mkdir()
        taken = []
        for _ in range(4):
            steps = Steps(folder, end_at)
            with steps.watching():
                try:
                    if till(folder).find_ticket("ord_1") is None:
                        till(folder).write_ticket(order(), "ord_1")
                except Killed:
                    pass
            steps.take()
            taken += steps.taken
        till(folder).write_ticket(order(), "ord_1")
        taken += visible(folder)
        assert taken == ["ord_1.json"], f"step {end_at}"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_disk_that_takes_nothing_is_a_till_that_is_offline(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def full(handle: int) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(PosOffline):
            till(folder).write_ticket(order(), "ord_1")
    assert visible(folder) == []
    assert till(folder).find_ticket("ord_1") is None
    till(folder).write_ticket(order(), "ord_1")
    assert visible(folder) == ["ord_1.json"]


def test_a_rename_that_failed_but_happened_is_a_ticket(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Path.replace

    def lying(path: Path, target: Path) -> None:
        really(path, target)
        if path.suffix == ".ready":
            raise OSError(errno.EIO, "the share went away")

    monkeypatch.setattr(Path, "replace", lying)
    till(folder).write_ticket(order(), "ord_1")
    assert visible(folder) == ["ord_1.json"]


def test_a_share_that_goes_away_at_the_rename_leaves_the_outcome_unknown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, really = outbox._exists, Path.replace
    gone = False

    def replace(path: Path, target: Path) -> None:
        nonlocal gone
        if path.suffix == ".ready":
            gone = True
            raise OSError(errno.EHOSTDOWN, "the share went away")
        really(path, target)

    def exists(path: Path) -> bool:
        if gone:
            raise OSError(errno.EHOSTDOWN, "the share went away")
        return look(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        patch.setattr(outbox, "_exists", exists)
        with pytest.raises(TicketOutcomeUnknown):
            till(folder).write_ticket(order(), "ord_1")
        with pytest.raises(PosOffline):
            till(folder).find_ticket("ord_1")
    assert till(folder).find_ticket("ord_1") is None
    till(folder).write_ticket(order(), "ord_1")
    assert visible(folder) == ["ord_1.json"]


def test_a_folder_of_the_till_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "bridge").mkdir()
    pos = open_till(tmp_path / "bridge", orders_dir="../unmounted")
    with pytest.raises(PosOffline):
        pos.write_ticket(order(), "ord_1")
    with pytest.raises(PosOffline):
        pos.find_ticket("ord_1")
    assert not (tmp_path / "unmounted").exists()


def test_a_folder_that_vanishes_is_not_made_again(tmp_path: Path) -> None:
    pos = till(tmp_path / "orders")
    assert (tmp_path / "orders").is_dir(), "beside the configuration it is the bridge's to make"
    (tmp_path / "orders").rmdir()
    with pytest.raises(PosOffline):
        pos.write_ticket(order(), "ord_1")
    assert not (tmp_path / "orders").exists()


def test_what_was_written_long_ago_is_forgotten(folder: Path) -> None:
    till(folder).write_ticket(order(), "ord_1")
    mark = folder / ".tillbridge" / "ord_1.sent"
    os.utime(mark, (1, 1))
    till(folder).write_ticket(order(id="ord_2"), "ord_2")
    assert not mark.exists()
    assert (folder / ".tillbridge" / "ord_2.sent").exists()


# -- taking an order back


def test_a_cancelled_order_is_told_once(folder: Path) -> None:
    pos = till(folder)
    pos.write_ticket(order(), "ord_1")
    pos.cancel_ticket(order(), "ord_1", "Sold out")
    cancelled = folder / "cancelled" / "ord_1.json"
    assert json.loads(cancelled.read_text()) == {"order_id": "ord_1", "reason": "Sold out"}
    cancelled.unlink()
    till(folder).cancel_ticket(order(), "ord_1", "Sold out")
    assert not cancelled.exists()


def test_an_order_that_was_never_written_need_not_be_cancelled(folder: Path) -> None:
    till(folder).cancel_ticket(order(), "ord_1", "Sold out")
    assert not (folder / "cancelled").exists()


# -- ids come from the network


@pytest.mark.parametrize(
    "key",
    ["../../etc/x", "..", ".", "a/b", "a\\b", "con", "NUL.txt", "x" * 500, "é", "\ud800", " "],
)
def test_no_id_leads_out_of_the_folder(folder: Path, key: str) -> None:
    pos = till(folder)
    pos.write_ticket(order(id=key), key)
    (only,) = visible(folder)
    assert not only.startswith(".")
    assert len(only) <= 130
    assert pos.find_ticket(key) == Ticket(only)
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, "updates"}


def test_ids_as_the_service_makes_them_stay_as_they_are() -> None:
    assert safe_stem("ord_7fA3-x.1") == "ord_7fA3-x.1"


def test_an_empty_id_is_refused(folder: Path) -> None:
    with pytest.raises(PosFailure):
        till(folder).write_ticket(order(), "")


@given(one=st.text(min_size=1), other=st.text(min_size=1))
def test_different_ids_have_different_files(one: str, other: str) -> None:
    assert (safe_stem(one) == safe_stem(other)) == (one == other)
