"""Set-up is for technicians: nobody else reads it, and nobody else changes anything there."""

import pytest

from tests.support.fake_setup import beside_a_bridge
from tests.support.hostile import CORPUS, Planted, shape_of
from tests.support.page_harness import page_harness, users
from tests.support.page_sample import busy
from tillbridge.web.authenticator import AccessRules
from tillbridge.web.site import setup
from tillbridge.web.site.book import Action

ACTIONS = [each for each in setup.SUBJECT if isinstance(each, Action)]
PATHS = [action.path for action in ACTIONS]


@pytest.mark.parametrize("name", ["lou", "sam"])
async def test_others_neither_see_it_nor_act_there(name: str) -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        await harness.sign_in(name)
        assert (await harness.get("/setup")).status == 403
        assert "/setup" not in (await harness.get("/")).text
        for path in PATHS:
            assert (await harness.post(path, {"base_url": "http://127.0.0.1:1"})).status == 403
        assert not [asked for asked in harness.control.asked if str(asked[0]).startswith("setup")]


async def test_a_technician_does_and_leaves_a_trace_of_every_step() -> None:
    async with page_harness(AccessRules(users=users())) as harness:
        await harness.sign_in("tea")
        assert (await harness.get("/setup")).status == 200
        for path in PATHS:
            assert (await harness.post(path)).status == 303, path
        noted = {str(each["action"]) for each in harness.trail.noted if each["who"] == "page:tea"}
        assert {action.audit for action in ACTIONS} <= noted


async def test_a_secret_that_is_sent_goes_to_the_bridge_and_nowhere_else() -> None:
    async with page_harness() as harness:
        form = {"client_id": "app_123", "client_secret": "hush-hush-hush"}
        done = await harness.post("/setup/sign-in", form)
        assert ("setup sign-in", "app_123", "hush-hush-hush") in harness.control.asked
        page = await harness.get(done.headers["Location"])
        assert "hush-hush-hush" not in page.text + str(harness.trail.noted)


async def test_only_what_an_option_is_called_is_handed_to_the_adapter() -> None:
    async with page_harness() as harness:
        form = {"adapter": "folder", "option-menu": "m.csv", "menu": "other.csv"}
        await harness.post("/setup/till", form)
        assert harness.control.asked[-1] == ("setup till", "folder", {"menu": "m.csv"})


async def test_hostile_text_stays_text_beside_a_bridge_that_runs() -> None:
    async with page_harness() as harness:
        busy(harness.control)
        harness.control.setup.shown = beside_a_bridge()
        control = Planted(harness.control)
        harness.ask(control)
        shape = shape_of((await harness.get("/setup")).text)
        for control.text in CORPUS:
            page = await harness.get("/setup")
            assert page.status == 200
            assert shape_of(page.text) == shape or not control.text.strip(), control.text[:80]
