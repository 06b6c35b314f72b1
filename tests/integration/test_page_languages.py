"""The page in the language of the browser, and times in the zone of the store."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from tests.support.fake_control import FakeDispatcher
from tests.support.languages import Texts, catalogues
from tests.support.page_harness import TOKEN, PageHarness, page_harness

_GERMAN = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}


@pytest.fixture(autouse=True)
def _german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    texts: Texts = {
        "Orders": "Bestellungen",
        "Settings": "Einstellungen",
        "There is no such page.": "Diese Seite gibt es nicht.",
        "Everything runs.": "Alles läuft.",
        "There is no operation {name}.": "Eine Aktion {name} gibt es nicht.",
    }
    with catalogues(tmp_path, monkeypatch, de=texts):
        yield


@pytest.fixture
async def harness() -> AsyncIterator[PageHarness]:
    async with page_harness() as made:
        yield made


async def test_the_page_follows_the_browser(harness: PageHarness) -> None:
    page = await harness.get("/orders", **_GERMAN)
    assert '<html lang="de">' in page.text
    assert "Bestellungen" in page.text
    plain = await harness.get("/orders")
    assert '<html lang="en">' in plain.text
    assert "Bestellungen" not in plain.text


async def test_who_chose_a_language_here_gets_it_whatever_the_browser_asks_for(
    harness: PageHarness,
) -> None:
    headers = {"Accept-Language": "en-US", "Cookie": "tillbridge-language=de"}
    page = await harness.get("/orders", **headers)
    assert '<html lang="de">' in page.text
    unknown = {"Accept-Language": "de", "Cookie": "tillbridge-language=../de"}
    assert '<html lang="de">' in (await harness.get("/orders", **unknown)).text


async def test_a_language_is_chosen_on_any_page_and_kept_by_the_browser(
    harness: PageHarness,
) -> None:
    plain = await harness.get("/orders")
    assert '<option value="de" lang="de">Deutsch</option>' in plain.text
    came = {"Referer": f"{harness.url}/orders?state=open"}
    chosen = await harness.post("/language", {"language": "de"}, came)
    assert (chosen.status, chosen.headers["Location"]) == (303, "/orders?state=open")
    assert chosen.headers["Set-Cookie"].startswith("tillbridge-language=de;")
    unknown = await harness.post("/language", {"language": "xx"}, came)
    assert "Set-Cookie" not in unknown.headers


async def test_what_went_wrong_is_said_in_the_browser_s_language(harness: PageHarness) -> None:
    page = await harness.get("/nowhere", **_GERMAN)
    assert (page.status, "Diese Seite gibt es nicht." in page.text) == (404, True)


async def test_a_command_is_answered_in_its_language(harness: PageHarness) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", **_GERMAN}
    async with harness.session.post(f"{harness.url}/control/none", headers=headers) as answer:
        error = (await answer.json())["error"]
    assert error["text"] == "Eine Aktion none gibt es nicht."


async def test_times_are_those_of_the_store(harness: PageHarness) -> None:
    cast("FakeDispatcher", harness.listener._site.dispatcher).zones = {
        "": ZoneInfo("Asia/Tokyo"),
        "main": ZoneInfo("America/New_York"),
    }  # it is 08:00 UTC
    assert "2027-01-15 17:00:00" in (await harness.get("/orders")).text
    assert "2027-01-15 03:00:00" in (await harness.get("/stores/main/menu/items")).text
    assert "15.01.2027, 03:00:00" in (await harness.get("/86?store=main", **_GERMAN)).text
