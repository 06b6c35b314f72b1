"""All stores on one page, and all bridges that report."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.page_harness import PageHarness, page_harness
from tests.support.page_sample import busy
from tillbridge.core.errors import ConfigError
from tillbridge.fleet import Report, SignedReport, SigningKey, gathered

NOW = 1_795_287_720_000


def two_stores(harness: PageHarness) -> None:
    facts = harness.control.facts
    names = {**facts.adapters, "harbour": "folder"}
    harness.control.facts = replace(facts, adapters=names)


async def test_each_store_says_how_it_is_and_leads_on() -> None:
    async with page_harness() as harness:
        busy(harness.control, "Anna")
        two_stores(harness)
        page = (await harness.get("/stores")).text
        for told in ("harbour", "Not connected", "Orders today", "Waiting for the till"):
            assert told in page
        for path in ("/orders?store=harbour", "/86?store=harbour", "/store#store-2"):
            assert f'href="{path}"' in page.replace("&amp;", "&")
        assert 'href="/stores"' in (await harness.get("/store")).text


async def test_one_store_is_not_made_a_list_of() -> None:
    async with page_harness() as harness:
        assert 'href="/stores"' not in (await harness.get("/store")).text


async def test_a_bridge_that_collects_no_reports_says_how_to_begin() -> None:
    async with page_harness() as harness:
        page = (await harness.get("/fleet")).text
        assert "See all your restaurants on this page" in page
        assert "tillbridge fleet key" in page


async def test_bridges_are_told_in_the_words_of_the_overview() -> None:
    async with page_harness() as harness:
        usual = {"age_s": 20.0, "version": "1", "problems": (), "stores": 2, "waiting": 0}
        usual |= {"orders_today": 42, "revenue_today": {"EUR": 98_050}, "text": "Taking orders."}
        harness.control.fleet.is_set_up = True
        harness.control.fleet.rows = [
            {**usual, "bridge": "harbour", "level": "untrusted", "age_s": None, "stores": None},
            {**usual, "bridge": "station", "level": "down", "problems": ("main: pos.offline",)},
            {**usual, "bridge": "corner", "level": "ok"},
        ]
        page = (await harness.get("/fleet")).text
        for told in ("Not trusted", "Needs help now", "All is well", "pos.offline", "42", "980.50"):
            assert told in page


async def test_a_folder_that_is_away_is_said_on_the_page() -> None:
    async with page_harness() as harness:

        async def away() -> None:
            raise ConfigError("/srv/reports is not a folder.", fix="Name the folder.")

        harness.control.fleet.list = away  # type: ignore[assignment,method-assign]  # fails so
        answer = await harness.get("/fleet")
        assert answer.status == 200
        assert "/srv/reports is not a folder." in answer.text


async def test_what_the_page_shows_is_read_from_folder_and_keys(tmp_path: Path) -> None:
    key, folder = SigningKey.new(), tmp_path / "reports"
    folder.mkdir()
    keys = tmp_path / "keys.txt"
    keys.write_text(f"corner {key.public}\n")
    status = json.loads('{"verdict": {"level": "ok", "text": "Taking orders."}}')
    signed = SignedReport.of(Report("corner", NOW, status), key)
    (folder / "corner.json").write_bytes(signed.content)
    (folder / "corner.json.minisig").write_bytes(signed.signature)
    (found,) = gathered(folder, keys, now_ms=NOW, silent_after_s=300)
    assert (found.bridge, found.level) == ("corner", "ok")
    with pytest.raises(ConfigError, match="is not a folder"):
        gathered(tmp_path / "away", keys, now_ms=NOW, silent_after_s=300)
    keys.write_text("corner\n")
    with pytest.raises(ConfigError, match="NAME KEY"):
        gathered(folder, keys, now_ms=NOW, silent_after_s=300)
