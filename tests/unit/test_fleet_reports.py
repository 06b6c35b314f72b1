"""Signed reports: as minisign makes them, believed only as they were signed, read at a glance."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.fleet import (
    NotSigned,
    PublicKey,
    Report,
    SignedReport,
    SigningKey,
    look,
    read_keys,
    summary,
)

NOW = 1_795_287_720_000
STATUS = {
    "verdict": {"level": "ok", "text": "Taking orders."},
    "problems": [],
    "bridge": {"version": "1.2.3"},
}
# A file that minisign itself has signed, and its key.
CONTENT = b"made by minisign\n"


def put(folder: Path, name: str, key: SigningKey, **changed: object) -> None:
    at_ms = int(str(changed.pop("at_ms", NOW)))
    signed = SignedReport.of(Report(name, at_ms, {**STATUS, **changed}), key)
    (folder / f"{name}.json").write_bytes(signed.content)
    (folder / f"{name}.json.minisig").write_bytes(signed.signature)


@given(st.binary(max_size=3000), st.text(st.characters(exclude_categories=["C", "Z"]), max_size=80))
def test_what_was_signed_is_believed(content: bytes, comment: str) -> None:
    key = SigningKey.from_secret(SigningKey.new().secret)
    public = PublicKey.read(str(key.public))
    assert public.check(content, key.sign(content, comment)) == comment


@given(st.data())
def test_nothing_else_is(data: st.DataObject) -> None:
    key = SigningKey.new()
    content = data.draw(st.binary(min_size=1, max_size=300))
    signature = key.sign(content, "timestamp:1\tfile:a.json")
    place = data.draw(st.integers(0, len(content) - 1))
    other = bytearray(content)
    other[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(NotSigned):
        key.public.check(bytes(other), signature)
    with pytest.raises(NotSigned):
        key.public.check(content, signature.replace("timestamp:1", "timestamp:2"))
    with pytest.raises(NotSigned):
        SigningKey.new().public.check(content, signature)


@given(st.text(max_size=300))
def test_rubbish_is_no_signature_and_no_key(text: str) -> None:
    with pytest.raises(NotSigned):
        SigningKey.new().public.check(b"", text)
    with pytest.raises(NotSigned):
        PublicKey.read(text)


@pytest.mark.skipif(not shutil.which("minisign"), reason="needs minisign")
def test_minisign_believes_it_too(tmp_path: Path) -> None:
    key = SigningKey.new()
    put(tmp_path, "corner", key)
    command = ["minisign", "-V", "-m", str(tmp_path / "corner.json"), "-P", str(key.public)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "file:corner.json" in told.stdout
    (tmp_path / "corner.json").write_bytes(b"{}")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_a_signature_of_minisign_is_believed() -> None:
    signature = (Path(__file__).parents[1] / "data" / "minisign" / "content.minisig").read_text()
    public = PublicKey.read(
        (Path(__file__).parents[1] / "data" / "minisign" / "minisign.pub").read_text()
    )
    assert public.check(CONTENT, signature) == "timestamp:1795287720\tfile:content"


def test_a_folder_of_reports_shows_the_worst_first(tmp_path: Path) -> None:
    keys = {name: SigningKey.new() for name in ("good", "late", "lying", "never", "open", "shut")}
    put(tmp_path, "good", keys["good"])
    put(tmp_path, "late", keys["late"], at_ms=NOW - 3_600_000)
    put(tmp_path, "lying", SigningKey.new())
    put(tmp_path, "stranger", SigningKey.new())
    put(tmp_path, "open", keys["open"], verdict={"level": "warning", "text": "One problem."})
    problems = [{"code": "pos.offline", "store": "main"}]
    down = {"level": "down", "text": "The till is away."}
    put(tmp_path, "shut", keys["shut"], verdict=down, problems=problems)
    seen = look(
        tmp_path,
        {name: key.public for name, key in keys.items()},
        now_ms=NOW + 1000,
        silent_after_s=300,
    )
    assert [(each.bridge, each.level) for each in seen] == [
        ("lying", "untrusted"),
        ("stranger", "untrusted"),
        ("shut", "down"),
        ("late", "silent"),
        ("never", "silent"),
        ("open", "warning"),
        ("good", "ok"),
    ]
    assert summary(seen) == "1 of 7 bridges are working normally."
    assert seen[2].problems == ("main: pos.offline",)
    assert "60 minutes" in seen[3].text
    assert seen[-1].version == "1.2.3"


def test_a_report_counts_what_its_stores_sold_and_what_waits(tmp_path: Path) -> None:
    key = SigningKey.new()
    stores = {
        "main": {"orders": {"waiting": 1, "today": {"orders": 12, "revenue": {"EUR": 950}}}},
        "harbour": {"orders": {"waiting": 2, "today": {"orders": 30, "revenue": {"EUR": 50}}}},
    }
    put(tmp_path, "new", key, stores=stores)
    put(tmp_path, "old", key, stores={"main": {"orders": {"waiting": 0}}})
    found = look(tmp_path, {"new": key.public, "old": key.public}, now_ms=NOW, silent_after_s=300)
    assert [(each.stores, each.orders_today, each.waiting) for each in found] == [
        (2, 42, 3),
        (1, None, 0),
    ]
    assert [each.revenue_today for each in found] == [{"EUR": 1000}, {}]


def test_a_report_under_another_name_is_not_believed(tmp_path: Path) -> None:
    key = SigningKey.new()
    put(tmp_path, "corner", key)
    for end in (".json", ".json.minisig"):
        (tmp_path / f"corner{end}").rename(tmp_path / f"harbour{end}")
    (seen,) = look(tmp_path, {"harbour": key.public}, now_ms=NOW, silent_after_s=300)
    assert (seen.level, seen.text) == ("untrusted", "The report under this name is from corner.")


def test_a_report_of_a_later_format_says_so() -> None:
    key = SigningKey.new()
    told = {"format": 2, "bridge": "a", "at": "2026-11-21T19:02:00Z", "status": {}}
    content = json.dumps(told).encode()
    with pytest.raises(NotSigned, match="format is 2"):
        SignedReport(content, key.sign(content, "").encode()).read(key.public)


def test_the_list_of_keys_names_the_line_that_is_wrong() -> None:
    good = f"corner {SigningKey.new().public}"
    assert set(read_keys(f"# ours\n\n{good}\n")) == {"corner"}
    with pytest.raises(NotSigned, match="line 2 is not: NAME KEY"):
        read_keys(f"{good}\nharbour\n")
    with pytest.raises(NotSigned, match="line 1: "):
        read_keys(f"corner {base64.b64encode(b'x' * 20).decode()}")


ODD: list[dict[str, object]] = [
    {"verdict": []},
    {"verdict": None},
    {"verdict": {"level": ["down"]}},
    {"problems": [1]},
    {"problems": {"code": "x"}},
    {"problems": [{"store": "main"}]},
    {"bridge": "1.2.3"},
    {"bridge": {"version": {}}},
]


@pytest.mark.parametrize("changed", ODD, ids=str)
def test_an_odd_report_of_one_bridge_leaves_the_list_of_the_others(
    changed: dict[str, object], tmp_path: Path
) -> None:
    odd, well = SigningKey.new(), SigningKey.new()
    put(tmp_path, "odd", odd, **changed)
    put(tmp_path, "well", well)
    seen = look(tmp_path, {"odd": odd.public, "well": well.public}, now_ms=NOW, silent_after_s=300)
    assert [(each.bridge, each.level) for each in seen] == [("odd", "untrusted"), ("well", "ok")]


@pytest.mark.parametrize(
    "content",
    [b"[]", b"null", b'{"format": 1, "bridge": "odd", "at": 5, "status": {}}', b"[" * 100_000],
    ids=["list", "null", "at", "deep"],
)
def test_what_is_signed_and_no_report_is_not_believed(content: bytes, tmp_path: Path) -> None:
    key = SigningKey.new()
    (tmp_path / "odd.json").write_bytes(content)
    (tmp_path / "odd.json.minisig").write_text(key.sign(content, "timestamp:1"))
    (seen,) = look(tmp_path, {"odd": key.public}, now_ms=NOW, silent_after_s=300)
    assert seen.level == "untrusted"


def test_a_report_of_the_future_is_never_well(tmp_path: Path) -> None:
    key = SigningKey.new()
    put(tmp_path, "ahead", key, at_ms=NOW + 86_400_000)
    (seen,) = look(tmp_path, {"ahead": key.public}, now_ms=NOW, silent_after_s=300)
    assert (seen.level, seen.age_s) == ("warning", None)
    assert "clock" in seen.text
