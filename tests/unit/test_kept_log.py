"""Kept log lines: bounded on disk, read back in order, filtered, and never more than one torn."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core.log import FILES, LogFiles, backwards, log_files
from tillbridge.diagnostics.log_lines import LogFilter, LogPlace, end_of, following, latest
from tillbridge.model.instant import from_iso

ALL = LogFilter()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


def line(number: int = 0, event: str = "order.written", **fields: object) -> str:
    at = f"2026-11-21T19:02:{number % 60:02d}.000Z"
    return json.dumps({"event": event, "level": "info", "at": at, "n": number, **fields})


def numbers(lines: list) -> list[int]:
    return [each["n"] for each in lines]


def test_lines_come_back_in_the_order_in_which_they_were_written(folder: Path) -> None:
    kept = LogFiles(folder, 1_000_000)
    for number in range(20):
        kept.write(line(number))
    assert numbers(latest(folder, ALL, 5)) == [15, 16, 17, 18, 19]
    assert numbers(latest(folder, ALL, 100)) == list(range(20))


def test_they_never_take_more_than_they_may_and_the_newest_stay(folder: Path) -> None:
    most = 200_000
    kept = LogFiles(folder, most)
    for number in range(5000):
        kept.write(line(number, text="x" * 100))
        if number % 500 == 0:
            assert sum(path.stat().st_size for path in log_files(folder)) <= most
    told = numbers(latest(folder, ALL, 10_000))
    assert told == list(range(told[0], 5000))
    assert len(told) * 200 > most * (FILES - 3) / FILES


def test_nothing_is_kept_where_that_is_not_wanted(folder: Path) -> None:
    LogFiles(folder, 0).write(line())
    assert not folder.exists()


def test_lines_from_before_the_data_folder_is_made_are_not_lost(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "log"
    kept = LogFiles(folder, 1_000_000)
    kept.write(line(1))
    assert not folder.parent.exists()
    folder.parent.mkdir(mode=0o700)
    kept.write(line(2))
    assert numbers(latest(folder, ALL, 10)) == [1, 2]


def test_only_the_bridge_s_user_may_read_them(folder: Path) -> None:
    LogFiles(folder, 1_000_000).write(line())
    assert folder.stat().st_mode & 0o077 == 0
    assert log_files(folder)[0].stat().st_mode & 0o077 == 0


def test_a_line_that_was_cut_off_costs_itself_only(folder: Path) -> None:
    kept = LogFiles(folder, 1_000_000)
    kept.write(line(1))
    kept.close()
    with log_files(folder)[0].open("a") as file:
        file.write('{"event": "order.wri')
    again = LogFiles(folder, 1_000_000)
    again.write(line(2))
    assert numbers(latest(folder, ALL, 10)) == [1, 2]


def test_a_disk_that_refuses_stops_nothing(folder: Path) -> None:
    folder.write_text("no folder at all")
    kept = LogFiles(folder, 1_000_000)
    kept.write(line(1))
    folder.unlink()
    kept.write(line(2))
    assert numbers(latest(folder, ALL, 10)) == [1, 2]


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b""))), st.integers(1, 9))
def test_reading_backwards_is_reading_forwards_turned_round(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], block: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(b"\n".join(parts))
    wanted = b"\n".join(parts).split(b"\n") if parts and b"\n".join(parts) else [b""]
    assert list(backwards(path, block)) == wanted[::-1]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LogFilter(level="warning"), [2, 3]),
        (LogFilter(level="error"), [3]),
        (LogFilter(event="order."), [1, 2]),
        (LogFilter(event="rder"), []),
        (LogFilter(text="OVEN"), [2]),
        (LogFilter(text="café"), [3]),
        (LogFilter(store="main"), [1, 4]),
        (LogFilter(order="ord_1"), [1]),
        (LogFilter(order="ord_"), []),
        (LogFilter(since_ms=from_iso("2026-11-21T19:02:03.000Z")), [3, 4]),
        (LogFilter(store="main", event="bridge"), [4]),
    ],
)
def test_a_filter_lets_through_what_it_says(
    folder: Path, wanted: LogFilter, found: list[int]
) -> None:
    kept = LogFiles(folder, 1_000_000)
    kept.write(line(1, store="main", order="ord_1"))
    kept.write(line(2, "order.late", level="warning", detail="the Oven is cold"))
    kept.write(line(3, "pos.failed", level="error", detail={"said": ["Café"]}))
    kept.write(line(4, "bridge.ready", stores=["main", "bar"]))
    assert numbers(latest(folder, wanted, 10)) == found


def test_a_follower_hears_each_line_once_over_the_end_of_a_file(folder: Path) -> None:
    kept = LogFiles(folder, 200_000)
    for number in range(300):
        kept.write(line(number, text="x" * 100))
    place, heard = end_of(folder), []
    for number in range(300, 900):
        kept.write(line(number, text="x" * 100))
        if number % 97 == 0:
            new, place = following(folder, place, ALL)
            heard += numbers(new)
    new, place = following(folder, place, ALL)
    assert heard + numbers(new) == list(range(300, 900))
    assert following(folder, place, ALL) == ([], place)


def test_a_follower_of_nothing_hears_the_first_line(folder: Path) -> None:
    assert end_of(folder) == LogPlace()
    LogFiles(folder, 200_000).write(line(7))
    assert numbers(following(folder, LogPlace(), ALL)[0]) == [7]


def test_what_somebody_else_wrote_into_a_file_breaks_nothing(folder: Path) -> None:
    folder.mkdir()
    (folder / "00000001.jsonl").write_bytes(b'[]\n"x"\nnot json\n\xff\n{"event": 5, "level": 7}\n')
    (folder / "notes.txt").write_text("hello")
    assert latest(folder, ALL, 10) == [{"event": 5, "level": 7}]
