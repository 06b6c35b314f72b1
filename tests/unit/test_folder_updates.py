import errno
import json
import os
import pwd
import time
from pathlib import Path

import pytest

from tests.support.folder_till import open_till
from tillbridge.adapter import PosFailure, PosOffline, RejectReason, TicketStatus, TicketUpdate
from tillbridge.model.order import parse_order
from tillbridge.pos.folder.updates import UpdateFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "news").mkdir()
    return tmp_path / "news"


@pytest.fixture
def files(folder: Path) -> UpdateFiles:
    return UpdateFiles(folder)


def drop(folder: Path, name: str, body: object, *, at: int = 1_000) -> Path:
    path = folder / name
    path.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    os.utime(path, (at, at))
    return path


def settle(monkeypatch: pytest.MonkeyPatch, files: UpdateFiles) -> None:
    """Look again after a file has been quiet for long enough."""
    now = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now + 2)
        files.read_updates()


def test_news_is_read_oldest_first(folder: Path, files: UpdateFiles) -> None:
    drop(folder, "a.json", {"order_id": "ord_1", "status": "ready"}, at=2_000)
    drop(folder, "b.JSON", {"order_id": "ord_1", "status": "accepted"}, at=1_000)
    drop(
        folder,
        "c.json",
        {
            "order_id": "ord_2",
            "status": "rejected",
            "reason": "item_unavailable",
            "external_ids": ["1", 2],
            "message": "No soup",
        },
        at=3_000,
    )
    assert files.read_updates() == [
        TicketUpdate("b.JSON", "ord_1", TicketStatus.ACCEPTED),
        TicketUpdate("a.json", "ord_1", TicketStatus.READY),
        TicketUpdate(
            "c.json",
            "ord_2",
            TicketStatus.REJECTED,
            RejectReason.ITEM_UNAVAILABLE,
            ("1", "2"),
            "No soup",
        ),
    ]


def test_news_is_told_until_it_is_handled(folder: Path, files: UpdateFiles) -> None:
    drop(folder, "a.json", {"order_id": "ord_1", "status": "ready"})
    (update,) = files.read_updates()
    assert list(files.read_updates()) == [update]
    files.update_handled(update)
    assert files.read_updates() == []
    assert (folder / "done" / "a.json").exists()
    files.update_handled(update)  # once more does no harm


def test_the_same_name_may_come_again(folder: Path, files: UpdateFiles) -> None:
    for status in ("accepted", "ready"):
        drop(folder, "ord_1.json", {"order_id": "ord_1", "status": status})
        (update,) = files.read_updates()
        assert update.status == status
        files.update_handled(update)
    assert sorted(path.name for path in (folder / "done").iterdir()) == [
        "ord_1-1.json",
        "ord_1.json",
    ]


def test_news_that_replaces_older_news_before_it_is_handled_is_not_lost(
    folder: Path, files: UpdateFiles
) -> None:
    drop(folder, "ord_1.json", {"order_id": "ord_1", "status": "accepted"}, at=1_000)
    (update,) = files.read_updates()
    drop(folder, "ord_1.json", {"order_id": "ord_1", "status": "preparing"}, at=2_000)
    files.update_handled(update)
    (newer,) = files.read_updates()
    assert newer.status is TicketStatus.PREPARING


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "[]",
        {"status": "ready"},
        {"order_id": 7, "status": "ready"},
        {"order_id": "ord_1"},
        {"order_id": "ord_1", "status": "cooking"},
        {"order_id": "ord_1", "status": "rejected", "external_ids": [{}]},
        {"order_id": "\ud800x", "status": "preparing"},
        {"order_id": "x" * 501, "status": "preparing"},
        {"order_id": "ord_1", "status": "rejected", "external_ids": ["\ud800"]},
        {"order_id": "ord_1", "status": "rejected", "external_ids": ["a"] * 101},
        {"order_id": "ord_1", "status": "x" * 900_000},
    ],
)
def test_what_is_no_news_goes_to_bad_with_the_reason(
    folder: Path, files: UpdateFiles, monkeypatch: pytest.MonkeyPatch, body: object
) -> None:
    drop(folder, "a.json", body)
    assert files.read_updates() == []
    assert (folder / "a.json").exists(), "it may be half written"
    settle(monkeypatch, files)
    assert (folder / "bad" / "a.json").exists()
    assert 0 < len((folder / "bad" / "a.json.error").read_text().strip()) < 300
    (told,) = files.unreadable_updates()
    assert told.place == "bad/a.json"
    (folder / "bad" / "a.json").unlink()
    assert files.unreadable_updates() == []


def test_a_file_that_grows_is_waited_for(
    folder: Path, files: UpdateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(folder, "a.json", '{"order_id": "ord_1",')
    files.read_updates()
    drop(folder, "a.json", '{"order_id": "ord_1", "status":', at=1_001)
    settle(monkeypatch, files)
    assert (folder / "a.json").exists()
    drop(folder, "a.json", {"order_id": "ord_1", "status": "ready"}, at=1_002)
    assert len(files.read_updates()) == 1


def test_a_reason_of_the_tills_own_still_rejects(folder: Path, files: UpdateFiles) -> None:
    body = {"order_id": "ord_1", "status": "rejected", "reason": "oven_broken", "message": "Sorry"}
    drop(folder, "a.json", body)
    (update,) = files.read_updates()
    assert update.reason is RejectReason.OTHER
    assert update.message == "oven_broken: Sorry"


def test_only_news_is_looked_at(folder: Path, files: UpdateFiles, tmp_path: Path) -> None:
    news = {"order_id": "ord_1", "status": "ready"}
    drop(folder, ".a.json", news)
    drop(folder, "a.json.tmp", news)
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to(drop(tmp_path, "elsewhere.json", news))
    assert files.read_updates() == []


def test_a_file_beyond_all_reason_is_not_read(
    folder: Path, files: UpdateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop(folder, "a.json", " " * (1 << 20) + "{}")
    files.read_updates()
    settle(monkeypatch, files)
    assert "larger" in (folder / "bad" / "a.json.error").read_text()


def test_marks_and_wide_text_are_understood(folder: Path, files: UpdateFiles) -> None:
    text = json.dumps({"order_id": "ord_1", "status": "ready"})
    (folder / "a.json").write_bytes(text.encode("utf-8-sig"))
    (folder / "b.json").write_bytes(text.encode("utf-16"))
    assert len(files.read_updates()) == 2


def test_old_handled_news_is_cleared_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def handle_one(name: str) -> None:
        files = UpdateFiles(folder)
        drop(folder, name, {"order_id": "ord_1", "status": "ready"})
        (update,) = files.read_updates()
        files.update_handled(update)

    handle_one("a.json")
    assert (folder / "done" / "a.json").exists()
    later = time.time() + 31 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    handle_one("b.json")
    assert not (folder / "done" / "a.json").exists()


def test_a_folder_that_is_not_there_is_a_till_that_is_offline(tmp_path: Path) -> None:
    with pytest.raises(PosOffline):
        UpdateFiles(tmp_path / "unmounted").read_updates()


def test_no_key_leads_out_of_the_folder(files: UpdateFiles) -> None:
    with pytest.raises(PosFailure):
        files.update_handled(TicketUpdate("../a.json", "ord_1", TicketStatus.READY))


# -- the heartbeat


def test_a_heartbeat_that_is_touched_is_a_till_that_is_there(tmp_path: Path) -> None:
    beat = tmp_path / "alive"
    till = open_till(tmp_path, menu="menu.csv", heartbeat="alive", heartbeat_s=60)
    assert not till.health().online
    beat.touch()
    assert till.health().online
    now = beat.stat().st_mtime
    os.utime(beat, (now + 86_400, now + 86_400))
    assert till.health().online, "a clock that is ahead is no till that is off"
    os.utime(beat, (now - 300, now - 300))
    health = till.health()
    assert not health.online
    assert "no sign of life since" in health.detail
    assert str(beat) in health.detail


def test_folders_that_vanish_are_a_till_that_is_offline(tmp_path: Path) -> None:
    till = open_till(tmp_path, menu="export/menu.csv", orders_dir="orders")
    (tmp_path / "orders").rmdir()
    assert "orders" in till.health().detail
    assert not till.health().online
    (tmp_path / "orders").mkdir()
    assert "export" in till.health().detail
    (tmp_path / "export").mkdir()
    assert till.health().online


@pytest.mark.parametrize("name", ["orders", "updates"])
def test_a_folder_that_may_not_be_written_is_told_before_an_order_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    till = open_till(tmp_path, menu="menu.csv", orders_dir="orders", updates_dir="updates")
    assert till.health().online
    closed = tmp_path / name
    monkeypatch.setattr(os, "access", lambda path, _mode: path != closed)  # root may everything
    health = till.health()
    assert not health.online
    assert str(closed) in health.detail
    assert f"chown -R {pwd.getpwuid(os.geteuid()).pw_name}: {closed}" in health.fix, "what to do"
    closed.chmod(0o500)
    assert f"chmod -R u+rwX {closed}" in till.health().fix, "it is the bridge's user's already"


FOLDERS = ["orders", "orders/.tillbridge", "updates", "updates/done", "updates/bad"]


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.parametrize("how", ["rights", "writing"])
def test_every_folder_that_is_written_into_is_tried_before_an_order_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    till = open_till(tmp_path, menu="menu.csv", orders_dir="orders", updates_dir="updates")
    for each in FOLDERS:
        (tmp_path / each).mkdir(exist_ok=True)
    closed = tmp_path / name
    real = os.open

    def refused(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).parent == closed:  # as a share does whose rights lie
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, mode)

    if how == "rights":
        monkeypatch.setattr(os, "access", lambda path, _mode: path != closed)
    else:
        monkeypatch.setattr(os, "open", refused)
    health = till.health()
    assert not health.online
    assert f"{closed}, which belongs to" in health.detail
    assert str(closed) in health.fix
    monkeypatch.undo()
    assert till.health().online, "as soon as it may be written again"


def test_a_probe_leaves_nothing_behind_and_makes_no_folder(tmp_path: Path) -> None:
    till = open_till(tmp_path, menu="menu.csv", orders_dir="orders", updates_dir="updates")
    assert till.health().online
    assert sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*")) == [
        "orders",
        "updates",
    ]


def test_a_full_disk_is_found_before_an_order_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    till = open_till(tmp_path, menu="menu.csv", orders_dir="orders", updates_dir="updates")

    def full(_file: int, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    health = till.health()
    assert not health.online
    assert "is full" in health.detail
    assert "Free space" in health.fix


def test_a_write_that_is_refused_names_the_folder_that_refused_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    till = open_till(tmp_path, menu="menu.csv", orders_dir="orders", updates_dir="updates")
    journal = tmp_path / "orders/.tillbridge"
    journal.mkdir()
    real = os.open

    def refused(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if Path(path).parent == journal:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(PosOffline) as failure:
        till.write_ticket(parse_order({"id": "ord_1", "items": []}), "ord_1")
    assert f"{journal}, which belongs to" in failure.value.message
    assert str(journal) in failure.value.fix
