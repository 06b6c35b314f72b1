"""Setting up on the page, as a program without a browser sees it: every way it may go."""

import asyncio
import html
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.support.bridge_process import free_port, until
from tests.support.fresh_machine import Wizard, fresh_machine
from tests.support.page_harness import PASSWORD
from tests.support.world import SECRET
from tillbridge.config.loading import load
from tillbridge.sandbox import SandboxSettings, start
from tillbridge.sandbox.settings import MerchantSeed, StoreSeed
from tillbridge.web.passwords import password_hash

SAMPLE_HOURS = Path(__file__).parents[2] / "config/hours.toml"
LOYVERSE = Path(__file__).parents[2] / "adapters/loyverse/tests/cases/variants/items.csv"

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def wizard_of(folder: Path, **settings: object) -> AsyncIterator[Wizard]:
    sandbox = await start(SandboxSettings(auto_consent=True, **settings))  # type: ignore[arg-type]  # settings by name
    try:
        async with fresh_machine(folder, sandbox.url) as fresh, aiohttp.ClientSession() as http:
            yield Wizard(fresh, http)
    finally:
        await sandbox.stop()


@pytest.fixture
async def wizard(tmp_path: Path) -> AsyncIterator[Wizard]:
    async with wizard_of(tmp_path) as made:
        yield made


async def test_where_nothing_is_set_up_everything_leads_to_the_wizard(wizard: Wizard) -> None:
    async with wizard.http.get(wizard.fresh.page + "/orders") as answer:
        assert answer.url.path == "/setup"
    code, out, _err = await wizard.fresh.bridge.run("status")
    assert code == 2
    assert "not set up yet" in out
    code, _out, err = await wizard.fresh.bridge.run("connect", "main", "--no-browser")
    assert code == 2
    assert "stores" in err
    assert await wizard.fresh.bridge.stop() == 0


async def test_a_step_cannot_be_taken_before_the_one_it_needs(wizard: Wizard) -> None:
    for path, form in {
        "sign-in": {"client_id": "a", "client_secret": "b"},
        "allow": {},
        "store": {"store_id": "st_main", "store": "main"},
        "till": {"adapter": "folder"},
        "address": {"listen": "127.0.0.1:1", "public_url": "http://127.0.0.1:1"},
        "order": {},
    }.items():
        told = await wizard.send(path, **form)
        assert 'class="flash bad"' in told, path
    assert set((await wizard.state()).values()) == {"open", "shut"}


async def test_another_site_can_do_nothing_here(wizard: Wizard) -> None:
    async with wizard.http.post(
        wizard.fresh.page + "/setup/service",
        data={"base_url": wizard.fresh.service},
        headers={"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    ) as answer:
        assert answer.status == 403
    async with wizard.http.get(wizard.fresh.page + "/setup/service") as answer:
        assert answer.status == 405


async def test_one_goes_on_where_one_was_after_a_restart(wizard: Wizard) -> None:
    await wizard.sign_in()
    assert await wizard.fresh.bridge.stop() == 0
    await wizard.fresh.bridge.start(wait=False)
    await wizard.fresh.bridge.logged("bridge.setting_up")
    state = await wizard.state()
    assert (state["service"], state["sign_in"], state["store"]) == ("done", "done", "open")
    assert "1. <strong>Main Street</strong>" in await wizard.page()
    assert "st_main" in await wizard.choose()
    assert (await wizard.state())["adapter"] == "open"


async def test_another_service_makes_signing_in_open_again(wizard: Wizard) -> None:
    await wizard.sign_in()
    await wizard.send("service", base_url=f"{wizard.fresh.service}/v2")
    state = await wizard.state()
    assert (state["service"], state["sign_in"]) == ("done", "open")


async def test_a_merchant_who_is_new_is_signed_up_here(wizard: Wizard) -> None:
    await wizard.send("service", base_url=f"{wizard.fresh.service}/v2")
    await wizard.send("sign-in", client_id="app_123", client_secret=SECRET)
    told = await wizard.send("sign-up", store__name="Bar Nuovo", email="nobody")
    assert "is not an e-mail address" in told
    told = await wizard.send("sign-up", store__name="Bar Nuovo", email="new@example.com")
    await wizard.merchant_allows(told)
    assert "1. <strong>Bar Nuovo</strong>" in await wizard.page()


async def test_of_several_stores_one_is_chosen_by_its_number(tmp_path: Path) -> None:
    stores = (StoreSeed("st_main", "Harbour"), StoreSeed("st_two", "Station"))
    async with wizard_of(tmp_path, merchants=(MerchantSeed(stores=stores),)) as wizard:
        await wizard.sign_in()
        page = await wizard.page()
        assert "1. <strong>Harbour</strong>" in page
        assert "2. <strong>Station</strong>" in page
        assert "You have no store with this id" in await wizard.choose("st_nine")
        assert "Station, in USD." in await wizard.choose("st_two", "station")
        await wizard.send("till", adapter="folder", option__menu="export/menu.csv")
        await wizard.reach()
        await wizard.write()
        await wizard.fresh.bridge.logged("setup.connected", store="station", ok=True)
        settings = load(wizard.fresh.bridge.config).settings
        assert settings.stores["station"].store_id == "st_two"


async def test_an_adapter_that_takes_no_orders_needs_another_one_that_does(wizard: Wizard) -> None:
    await wizard.sign_in()
    await wizard.choose()
    shutil.copy(LOYVERSE, wizard.fresh.folder / "items.csv")
    assert 'name="option-export"' in await wizard.page("?adapter=loyverse")
    told = await wizard.send("till", adapter="loyverse", option__export="items.csv")
    assert "It does not take orders: choose below where they go." in told, told
    assert (await wizard.state())["adapter"] == "open"
    told = await wizard.send("orders", adapter="folder", option__orders_dir="orders")
    assert "folder takes the orders." in told
    assert (await wizard.state())["adapter"] == "done"
    await wizard.reach()
    page = await wizard.page()
    assert '+adapter = "loyverse"' in page
    assert "[stores.main.orders]" in page


async def test_what_it_reads_is_shown_live(wizard: Wizard) -> None:
    await wizard.sign_in()
    await wizard.choose()
    await wizard.send("till", adapter="folder", option__menu="export/menu.csv")
    assert "Dish 3" in await wizard.page()
    wizard.fresh.till.change("p3", name="Sole of the day")

    async def shown() -> bool:
        return "Sole of the day" in await wizard.page()

    await until("the preview shows the new name", shown)


async def test_a_bridge_that_cannot_start_with_it_has_its_file_back(wizard: Wizard) -> None:
    await wizard.everything()
    before = wizard.fresh.bridge.config.read_text("utf-8")
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", wizard.fresh.receiver_port))
        squatter.listen()
        await wizard.write()
        await wizard.fresh.bridge.logged("bridge.configuration_reverted")
        page = await wizard.page()
    assert "The bridge could not start with what was saved" in page
    assert "The receiver cannot listen" in page
    assert wizard.fresh.bridge.config.read_text("utf-8") == before
    await wizard.write()
    await wizard.fresh.bridge.logged("setup.connected", ok=True)


async def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(wizard: Wizard) -> None:
    await wizard.everything()
    told = await wizard.send("write", digest="0" * 64)
    assert "has changed since this was shown" in told
    config = wizard.fresh.bridge.config
    config.write_text(config.read_text("utf-8") + '\n[alerts]\nseverity = "down"\n', "utf-8")
    page = await wizard.page()
    assert "[alerts]" not in page
    await wizard.write()
    await wizard.fresh.bridge.logged("setup.connected", ok=True)
    assert load(config).settings.alerts.severity == "down"


async def test_a_bridge_that_runs_is_changed_on_the_same_page(wizard: Wizard) -> None:
    await wizard.everything()
    await wizard.write()
    await wizard.fresh.bridge.logged("setup.connected", ok=True)

    assert (await wizard.state())["adapter"] == "open"
    await wizard.release()
    other = wizard.fresh.till.export / "other.csv"
    other.write_text("external_id,name,price\nx1,Only this,9.50\n", "utf-8")
    told = await wizard.send("till", adapter="folder", option__menu="export/other.csv")
    assert "Found 1 item in the till's menu: Only this 9.50." in told
    page = await wizard.page()
    assert '-menu = "export/menu.csv"' in page
    assert '+menu = "export/other.csv"' in page
    port = wizard.fresh.receiver_port
    told = await wizard.send(
        "address", listen=f"127.0.0.1:{free_port()}", public_url=f"http://127.0.0.1:{port}"
    )
    assert "Another bridge answers" in told  # the one that runs, and not where it is to be
    told = await wizard.reach()
    assert "same machine or network" in told
    told = await wizard.send("store", currency="EUR", hours_file="hours.toml")
    assert "The opening-hours file hours.toml does not exist." in told
    shutil.copy(SAMPLE_HOURS, wizard.fresh.folder / "hours.toml")
    told = await wizard.send("store", currency="EUR", hours_file="hours.toml")
    assert '+currency = "EUR"' in told
    assert '+hours_file = "hours.toml"' in told
    told = await wizard.send("forget")
    assert "+menu" not in told
    await wizard.send("till", adapter="folder", option__menu="export/other.csv")
    ready = len(wizard.fresh.bridge.events("bridge.ready"))
    await wizard.write()

    async def again() -> bool:
        return len(wizard.fresh.bridge.events("bridge.ready")) > ready

    await until("the bridge has begun anew", again)
    menu = load(wizard.fresh.bridge.config).settings.stores["main"].pos.options["menu"]
    assert menu == "export/other.csv"
    assert await wizard.fresh.bridge.stop() == 0


async def test_from_the_practice_service_one_moves_to_another(wizard: Wizard) -> None:
    """Each step that the other service needs opens, in the order in which it can be taken."""
    await wizard.everything()
    await wizard.write()
    await wizard.fresh.bridge.logged("setup.connected", ok=True)
    await wizard.release()
    real = await start(SandboxSettings(auto_consent=True))
    try:
        told = await wizard.send("service", base_url=f"{real.url}/v2")
        assert "The bridge does not have the app's secret for this service." in told
        assert 'formaction="/stores/main/connect"' not in told
        assert 'href="/stores/main/connect"' not in told  # it would lead to the old service
        state = await wizard.state()
        assert (state["service"], state["sign_in"], state["save"]) == ("done", "open", "shut")
        told = await wizard.send("sign-in", client_id="app_123", client_secret=SECRET)
        assert (await wizard.state())["save"] == "open"
        await wizard.write()

        async def is_asked() -> bool:
            state = await wizard.state()
            return (state["service"], state["sign_in"]) == ("done", "open")

        await until("the merchant is asked to sign in", is_asked)
        assert "/stores/main/connect" in await wizard.page()
        url = f"{wizard.fresh.page}/stores/main/connect"
        body = {"back-to": "/setup"}
        headers = {"Origin": wizard.fresh.page}
        async with wizard.http.post(url, data=body, headers=headers) as answer:
            assert answer.url.path == "/setup"
            found = re.search(r'href="(http[^"]+/oauth2/authorize[^"]+)"', await answer.text())
        assert found
        async with wizard.http.get(html.unescape(found[1])) as answer:
            assert answer.url.path == "/oauth/callback"

        async def all_done() -> bool:
            states = await wizard.state()
            if (states["store"], states["adapter"]) == ("done", "open"):
                approve = f"{wizard.fresh.page}/stores/main/menu/approve"
                async with wizard.http.post(approve, headers=headers) as answer:
                    assert answer.status == 200
            return {each for name, each in states.items() if name != "order"} == {"done"}

        await until("everything is set up at the other service", all_done)
        (link,) = real.sandbox.world.links_of("st_main")
        assert link.catalogue.items
    finally:
        await real.stop()


async def test_what_is_edited_by_hand_is_never_put_back(wizard: Wizard) -> None:
    """Answers that were saved once are forgotten; those that wait yield to a later edit."""
    await wizard.everything()
    config = wizard.fresh.bridge.config
    edited = config.read_text("utf-8") + '\n[stores.main]\ncurrency = "EUR"\n'
    config.write_text(edited, "utf-8")  # before anything was saved
    state = await wizard.state()
    assert (state["sign_in"], state["store"], state["save"]) == ("done", "open", "shut")
    assert 'value="EUR"' in await wizard.page()
    await wizard.send("store", store_id="st_main", store="main", location_id="1", currency="eur")
    await wizard.write()
    await wizard.fresh.bridge.logged("setup.connected", ok=True)

    text = config.read_text("utf-8")
    text = text.replace('currency = "EUR"', 'currency = "CHF"').replace("menu.csv", "hand.csv")
    config.write_text(text, "utf-8")
    page = await wizard.page()
    assert 'name="digest"' not in page
    assert "Everything is in bridge.toml." in page
    port = wizard.fresh.receiver_port
    url = f"http://localhost:{port}"
    await wizard.send("address", listen=f"127.0.0.1:{port}", public_url=url)
    page = await wizard.page()
    assert f'+public_url = "{url}"' in page
    assert "currency" not in page.partition('id="difference"')[2].partition("</ul>")[0]
    assert "menu" not in page.partition('id="difference"')[2].partition("</ul>")[0]
    config.write_text(text.replace('"CHF"', '"USD"'), "utf-8")
    ready = len(wizard.fresh.bridge.events("bridge.ready"))
    (wizard.fresh.folder / "export/hand.csv").write_text("external_id,name,price\nx,X,1\n", "utf-8")
    await wizard.write()

    async def again() -> bool:
        return len(wizard.fresh.bridge.events("bridge.ready")) > ready

    await until("the bridge has begun anew", again)
    written = load(config).settings
    assert (written.receiver.public_url, written.stores["main"].currency) == (url, "USD")
    assert written.stores["main"].pos.options["menu"] == "export/hand.csv"
    # Back to what the file was at first: the answer that was saved does not come again.
    config.write_text(text, "utf-8")
    assert 'name="digest"' not in await wizard.page()


async def test_what_is_typed_wrong_is_told_beside_its_field_and_stays(wizard: Wizard) -> None:
    def beside(field: str, page: str) -> str:
        return re.sub(
            r"\s+|<.*?>", " ", page.partition(f'id="wrong-{field}"')[2].split("</span>")[0]
        )

    told = await wizard.send("service", base_url="nonsense")
    assert "“nonsense” is not a web address." in beside("base_url", told)
    assert 'value="nonsense"' in told
    told = await wizard.send("service", base_url=wizard.fresh.service)
    assert f"the ordering service answers at {wizard.fresh.service}/v2." in beside("base_url", told)
    assert f'value="{wizard.fresh.service}/v2"' in told
    await wizard.send("service", base_url=f"{wizard.fresh.service}/v2")
    told = await wizard.send("sign-in", client_id="app_123", client_secret="not-it")
    assert "does not accept this app's client id" in beside("client_secret", told)
    assert 'value="app_123"' in told
    told = await wizard.send("sign-in", client_id="app_123", client_secret=SECRET)
    await wizard.merchant_allows(told)
    told = await wizard.send("store", store_id="st_main", store="main", currency="dollars")
    assert "“dollars” is not a currency code." in beside("currency", told)
    assert "USD" in beside("currency", told)
    await wizard.choose()
    form = {"option-menu": "export/menu.csv", "option-columns": "external_idd = PLU"}
    told = await wizard.send("till", adapter="folder", **form)
    assert "Did you mean external_id?" in beside("columns", told)
    assert "Input should be" not in told
    told = await wizard.send("till", adapter="folder", option__heartbeat_s="soon")
    assert "“soon” is not a number." in beside("heartbeat_s", told)


async def test_at_the_practice_service_one_click_knows_the_app(wizard: Wizard) -> None:
    told = await wizard.send("service", practice=f"{wizard.fresh.service}/v2")
    assert (await wizard.state())["service"] == "done"
    await wizard.merchant_allows(told)
    await wizard.choose()
    told = await wizard.send("sample-till")
    assert "Found 25 items in the till's menu: Margherita 9.50," in told
    assert (wizard.fresh.folder / "sample-till/export/menu.csv").is_file()


async def test_who_types_the_address_of_the_practice_service_need_not_know_the_app(
    wizard: Wizard,
) -> None:
    url = f"{wizard.fresh.service}/v2"
    await wizard.send("service", base_url=url)
    assert f'name="practice" value="{url}"' in await wizard.page()
    told = await wizard.send("service", practice=url)
    await wizard.merchant_allows(told)
    assert (await wizard.state())["sign_in"] == "done"


async def test_a_stored_secret_goes_to_no_other_address(wizard: Wizard) -> None:
    """Whoever may open the page could else have the secret sent to a machine of their own."""
    await wizard.everything()
    await wizard.write()
    await wizard.fresh.bridge.logged("setup.connected", ok=True)
    heard: list[str] = []

    async def listen(request: web.BaseRequest) -> web.Response:
        heard.append(f"{request.path_qs} {dict(request.headers)} {await request.text()}")
        error = {"code": "auth.invalid_token", "message": "no"}
        return web.json_response({"error": error}, status=401)

    runner = web.ServerRunner(web.Server(listen))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        await wizard.send("service", base_url=f"http://127.0.0.1:{port}/v2")
        told = await wizard.send("sign-in", client_id="app_123", client_secret="")
        assert "flash bad" in told
        await wizard.send("sign-in", client_id="app_123", client_secret="another one")
        await wizard.send("allow", email="owner@example.net")
        await wizard.page()
    finally:
        await runner.cleanup()
    assert heard
    assert not [each for each in heard if SECRET in each or "Bearer" in each]


async def test_the_address_is_held_while_the_bridge_begins_anew(wizard: Wizard) -> None:
    await wizard.everything()
    await wizard.write()
    # Whoever asks meanwhile waits, and is never refused.
    while not wizard.fresh.bridge.events("bridge.ready"):
        async with wizard.http.get(wizard.fresh.page + "/healthz") as answer:
            assert answer.status == 200
        await asyncio.sleep(0.01)


async def test_a_command_writes_what_the_page_may_not(wizard: Wizard) -> None:
    code, out, _err = await wizard.fresh.bridge.run("setup", "show")
    assert code == 1
    assert "1. The ordering service: now" in out
    assert f"The page: {wizard.fresh.page}/setup" in out
    code, _out, err = await wizard.fresh.bridge.run("setup", "write", "--yes")
    assert code == 1
    assert "There is nothing to save" in err
    await wizard.everything()
    code, _out, err = await wizard.fresh.bridge.run("setup", "write")
    assert code == 2  # there is no terminal to ask on
    assert "+[stores.main]" in err
    assert "Add --yes" in err
    code, out, err = await wizard.fresh.bridge.run("setup", "write", "--yes")
    assert code == 0, err
    assert "restarts" in out
    await wizard.fresh.bridge.logged("setup.connected", ok=True)
    assert load(wizard.fresh.bridge.config).settings.stores["main"].currency == "USD"
    assert await wizard.fresh.bridge.stop() == 0
    code, _out, err = await wizard.fresh.bridge.run("setup", "show")
    assert code == 1
    assert "The bridge is not running" in err


async def test_the_ways_in_are_told_before_anything_runs(wizard: Wizard) -> None:
    await wizard.sign_in()
    await wizard.choose()
    await wizard.send("till", adapter="folder", option__menu="export/menu.csv")
    listen = f"127.0.0.1:{wizard.fresh.receiver_port}"
    told = await wizard.send("address", listen=listen, public_url="https://store-17.invalid")
    assert "is not known in the DNS" in told or "was not found (DNS)" in told
    assert 'value="https://store-17.invalid"' in await wizard.page()
    async with wizard.http.get(wizard.fresh.page + "/reach") as answer:
        text = await answer.text()
    assert "https://store-17.invalid" in text
    assert f"http://{listen}" in text


async def test_who_has_signed_in_stays_so_when_the_bridge_begins_anew(wizard: Wizard) -> None:
    config = wizard.fresh.bridge.config
    phc = password_hash(PASSWORD)
    user = f'[status_page.users.tea]\nrole = "technician"\npassword = "{phc}"\n'
    assert await wizard.fresh.bridge.stop() == 0
    config.write_text(config.read_text("utf-8") + user, "utf-8")
    await wizard.fresh.bridge.start(wait=False)
    await wizard.fresh.bridge.logged("bridge.setting_up")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        signed_in = Wizard(wizard.fresh, http)
        form = {"name": "tea", "password": PASSWORD, "next": "/setup"}
        headers = {"Origin": wizard.fresh.page}
        async with http.post(f"{wizard.fresh.page}/login", data=form, headers=headers) as answer:
            assert answer.url.path == "/setup"
        await signed_in.everything()
        await signed_in.write()
        await wizard.fresh.bridge.logged("setup.connected", ok=True)
        async with http.get(f"{wizard.fresh.page}/orders") as answer:
            assert answer.url.path == "/orders"
