"""What a browser needs to install the board, and how an undo finds its way back."""

import json
import struct

import pytest

from tests.support.page_harness import page_harness
from tests.support.page_sample import busy
from tillbridge.web.rendering import HEADERS


async def test_the_manifest_starts_the_board_of_its_store() -> None:
    async with page_harness() as harness:
        answer = await harness.get("/86/app.webmanifest?store=main")
        assert answer.headers["Content-Type"].startswith("application/manifest+json")
        manifest = json.loads(answer.text)
        assert manifest["start_url"] == "/86"
        assert manifest["display"] == "standalone"
        assert manifest["scope"] == "/"
        assert {each.get("purpose", "any") for each in manifest["icons"]} == {"any", "maskable"}
        for icon in manifest["icons"]:
            async with harness.session.get(harness.url + icon["src"]) as given:
                assert given.status == 200
                assert given.headers["Content-Type"] == "image/png"
                head = await given.read()
            width, height = struct.unpack(">II", head[16:24])
            assert icon["sizes"] == f"{width}x{height}"
        assert len(manifest["short_name"]) <= 12
        assert "manifest-src 'self'" in HEADERS["Content-Security-Policy"]


async def test_each_of_several_stores_installs_a_board_of_its_own() -> None:
    async with page_harness() as harness:
        busy(harness.control, "x")
        harness.control.facts = type(harness.control.facts)(
            **{
                name: getattr(harness.control.facts, name)
                for name in harness.control.facts.__slots__
            }
            | {"adapters": {"main": "folder", "harbour": "folder"}}
        )
        manifest = json.loads((await harness.get("/86/app.webmanifest?store=harbour")).text)
        assert manifest["start_url"] == manifest["id"] == "/86?store=harbour"
        assert manifest["name"] == "Sold out: harbour"
        board = await harness.get("/86?store=harbour")
        assert 'href="/86/app.webmanifest?store=harbour"' in board.text


@pytest.mark.parametrize("until", ["", "never", "2026-13-01T00:00:00.000Z", "1h"])
async def test_an_end_that_the_board_does_not_offer_is_asked_for_again(until: str) -> None:
    async with page_harness() as harness:
        answer = await harness.post("/stores/main/items/p1/86", {"until": until})
        shown = await harness.get(answer.headers["Location"])
        assert "Choose until when." in shown.text
        assert not harness.control.asked


async def test_a_tap_leads_back_to_what_was_looked_at() -> None:
    async with page_harness() as harness:
        form = {"until": "hour", "q": "piz za", "category": "c 1", "page": "2"}
        answer = await harness.post("/stores/main/items/p1/86", form)
        where = answer.headers["Location"]
        assert where.startswith("/86?store=main&q=piz+za&category=c+1&page=2&until=hour&said=")


async def test_a_dish_that_is_back_is_not_said_to_be_hidden() -> None:
    async with page_harness() as harness:
        busy(harness.control, "x")
        stopped = harness.control.items.stopped[0]
        stopped |= {"external_id": "p1", "reached_at": stopped["since"], "reached_ms": 900}
        for action, is_said in (("86", True), ("restore", False)):
            answer = await harness.post(f"/stores/main/items/p1/{action}", {"until": "always"})
            shown = (await harness.get(answer.headers["Location"])).text
            said = shown[shown.index('<div id="said"') :]
            assert ("Hidden from guests" in said) == is_said
