"""The page Settings writes bridge.toml in place: comments stay, hand edits count, secrets hide."""

import json
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from tests.support.ledger_harness import opened
from tests.support.page_harness import FakeTrail
from tillbridge.config.loading import load
from tillbridge.core.actor import Actor, Role
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError
from tillbridge.core.operation import Dispatcher
from tillbridge.daemon.reload import RestartController
from tillbridge.ledger.backup import back_ups
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.models import OrderRow, StoreOverride
from tillbridge.ledger.vault import vault_name
from tillbridge.operations.setup import Setup
from tillbridge.setup.proposal import ChangeSignal, SetupContext
from tillbridge.setup.sections import SECTIONS, SettingsSection
from tillbridge.setup.settings_file import FormField, changes_of, fields_of, shown, value_of
from tillbridge.web.passwords import password_hash

TEXT = """\
# Our till, set up by Anna in May.
[bridge]
data_dir = "data"   # on the second disk
keep_backups = 3    # the disk is small

[service]
base_url = "http://127.0.0.1:9000/v2"
client_id = "app_123"
client_secret = "hush-hush-hush"  # the old one

[receiver]
public_url = "https://till.example.net"

[stores.main]
location_id = "loc-1"
currency = "USD"

[stores.main.pos]
adapter = "folder"
menu = "menu.csv"
"""
PASSWORD = "mail-server-password-17"
EMAIL = {
    "alerts.email.host": "smtp.example.com",
    "alerts.email.sender": "bridge@example.com",
    "alerts.email.to": "anna@example.com\r\nben@example.com",
}
WITH_PASSWORD = {
    **EMAIL,
    "alerts.email.username": "bridge",
    "alerts.email.password": PASSWORD,
}


@dataclass
class Page:
    """The settings of a bridge that is a stand-in but for its file and its ledger."""

    path: Path
    ledger: Ledger
    trail: FakeTrail
    restarts: RestartController
    dispatcher: Dispatcher

    async def ask(self, name: str, **given: object) -> Any:  # noqa: ANN401 -- as declared
        return await self.dispatcher.perform(name, given, Actor("page:tea", Role.TECHNICIAN))

    async def save(self, section: str, form: Mapping[str, str], **given: object) -> Any:  # noqa: ANN401 -- as declared
        store = "main" if section == "store" else ""
        shown = await self.ask("config.show", section=section, store=store)
        given = {"digest": shown["digest"], "store": store, **given}
        return await self.ask("config.change", section=section, form=dict(form), **given)

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def says(self) -> Mapping[str, Any]:
        return tomllib.loads(self.text)


@asynccontextmanager
async def settings_of(folder: Path, text: str = TEXT) -> AsyncIterator[Page]:
    path = folder / "bridge.toml"
    path.write_text(text, "utf-8")
    loaded = load(path)
    async with opened(folder / "data") as ledger:
        restarts, trail = RestartController(), FakeTrail()
        place = SetupContext(path, ledger, Clock(), restarts, "", ChangeSignal(), cast("Any", None))
        bridge = SimpleNamespace(
            is_set_up=True,
            setup=Setup(place),
            loaded=loaded,
            settings=loaded.settings,
            stores={},
            ledger=ledger,
            clock=Clock(),
            base_dir=folder,
        )
        dispatcher = Dispatcher(cast("Any", bridge), cast("Any", trail))
        yield Page(path, ledger, trail, restarts, dispatcher)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with settings_of(tmp_path) as made:
        yield made


async def test_a_setting_is_changed_where_it_stands_and_all_else_stays(page: Page) -> None:
    answer = await page.save("backup", {"bridge.keep_backups": "9", "bridge.backup_at": ""})
    assert page.text == TEXT.replace("keep_backups = 3 ", "keep_backups = 9 ")
    assert answer["lines"] == [
        " [bridge]",
        "-keep_backups = 3    # the disk is small",
        "+keep_backups = 9    # the disk is small",
    ]
    assert [copy.read_text("utf-8") for copy in page.path.parent.glob("*.bak")] == [TEXT]
    assert page.trail.noted[-1] | {"who": ""} == {
        "action": "config.change",
        "who": "",
        "store": "",
        "target": "backup",
        "ok": True,
    }


async def test_a_form_that_is_sent_as_it_was_shown_writes_nothing(page: Page) -> None:
    for section in SECTIONS:
        answer = await page.ask("config.show", section=section.name, store="")
        form = {
            field["name"]: field["value"] for group in answer["groups"] for field in group["fields"]
        }
        saved = await page.save(section.name, form)
        assert saved["lines"] == [], section.name
    assert page.text == TEXT
    assert not list(page.path.parent.glob("*.bak"))


async def test_a_hand_edit_of_what_the_form_shows_is_kept_and_the_form_refused(page: Page) -> None:
    shown = await page.ask("config.show", section="backup")
    edited = TEXT.replace("keep_backups = 3", "keep_backups = 5")
    page.path.write_text(edited, "utf-8")
    with pytest.raises(ConfigError, match="changed by hand") as refused:
        await page.save("backup", {"bridge.keep_backups": "9"}, digest=shown["digest"])
    assert refused.value.field == "digest"
    assert page.text == edited
    now = await page.ask("config.show", section="backup")
    (field,) = [
        each
        for group in now["groups"]
        for each in group["fields"]
        if each["name"] == "bridge.keep_backups"
    ]
    assert field["value"] == "5"


async def test_a_hand_edit_elsewhere_is_kept_and_no_reason_to_refuse(page: Page) -> None:
    shown = await page.ask("config.show", section="backup")
    edited = TEXT.replace('currency = "USD"', 'currency = "EUR"  # since June')
    page.path.write_text(edited, "utf-8")
    await page.save("backup", {"bridge.keep_backups": "9"}, digest=shown["digest"])
    assert page.text == edited.replace("keep_backups = 3 ", "keep_backups = 9 ")


@pytest.mark.parametrize(
    ("section", "form", "field", "text"),
    [
        ("backup", {"bridge.keep_backups": "0"}, "bridge.keep_backups", "1 or more"),
        ("backup", {"bridge.keep_backups": "a few"}, "bridge.keep_backups", "whole number"),
        ("backup", {"bridge.backup_at": "4 am"}, "bridge.backup_at", "HH:MM"),
        ("alerts", {"alerts.email.host": "smtp.example.com"}, "alerts.email.sender", "required"),
        ("alerts", {**EMAIL, "alerts.email.to": "anna"}, "alerts.email.to", "e-mail address"),
        ("alerts", {"alerts.repeat_min": "0\nsoon"}, "alerts.repeat_min", "a number"),
        (
            "people",
            {"status_page.listen": "0.0.0.0:8089"},
            "status_page.listen",
            "",
        ),
        (
            "store",
            {"stores.main.timezone": "Roma"},
            "stores.main.timezone",
            "IANA",
        ),
        (
            "store",
            {"stores.main.schedule.pauses": "friday 9-10"},
            "stores.main.schedule.pauses",
            "",
        ),
    ],
)
async def test_what_is_wrong_stands_beside_its_field_and_nothing_is_written(
    page: Page, section: str, form: Mapping[str, str], field: str, text: str
) -> None:
    with pytest.raises(ConfigError) as wrong:
        await page.save(section, form)
    assert wrong.value.field == field
    assert text in wrong.value.text
    assert page.text == TEXT


async def test_a_secret_goes_into_the_vault_and_nowhere_else(page: Page) -> None:
    answer = await page.save("alerts", WITH_PASSWORD)
    assert page.says["alerts"]["email"]["password"] == {"vault": True}
    assert page.says["alerts"]["email"]["to"] == ["anna@example.com", "ben@example.com"]
    assert page.ledger.vault.get(vault_name("alerts.email.password")) == PASSWORD
    shown = await page.ask("config.show", section="alerts")
    said = json.dumps([answer, shown, page.trail.noted], default=str)
    assert PASSWORD not in said + page.text
    assert '"stored": true' in said

    before = page.text
    await page.save("alerts", {"alerts.email.password": "another-one-4711"})
    assert page.ledger.vault.get(vault_name("alerts.email.password")) == "another-one-4711"
    assert page.text == before

    form = {"remove:alerts.email.password": "1", "alerts.email.username": ""}
    await page.save("alerts", form)
    assert page.ledger.vault.get(vault_name("alerts.email.password")) is None
    assert "password" not in page.says["alerts"]["email"]


async def test_a_secret_of_a_form_that_is_refused_is_not_kept(page: Page) -> None:
    form = {"alerts.email.host": "smtp.example.com", "alerts.email.password": PASSWORD}
    with pytest.raises(ConfigError):
        await page.save("alerts", form)
    assert page.ledger.vault.get(vault_name("alerts.email.password")) is None


async def test_a_way_of_alerting_goes_when_its_fields_are_emptied(page: Page) -> None:
    await page.save("alerts", WITH_PASSWORD)
    emptied = dict.fromkeys(WITH_PASSWORD, "")
    await page.save("alerts", {**emptied, "remove:alerts.email.password": "1"})
    assert "email" not in page.says.get("alerts", {})
    assert page.ledger.vault.get(vault_name("alerts.email.password")) is None
    load(page.path)


async def test_what_waits_for_a_restart_is_told_and_what_counts_at_once_is_not(page: Page) -> None:
    await page.save("backup", {"bridge.keep_backups": "9"})
    assert (await page.ask("config.show"))["restart"] == []
    await page.save("store", {"stores.main.orders.accept_within_s": "90"})
    assert (await page.ask("config.show"))["restart"] == ["stores.main.orders.accept_within_s"]
    assert not page.restarts.again
    await page.save("store", {"stores.main.orders.accept_within_s": "80"}, restart=True)
    assert page.restarts.again
    assert page.restarts.undo(ConfigError("no"))
    assert page.says["stores"]["main"]["orders"]["accept_within_s"] == 90


async def test_users_are_added_changed_and_removed(page: Page) -> None:
    hashed = password_hash("four plain words here")
    with pytest.raises(ConfigError, match="nobody could change settings"):
        await page.ask("users.save", user="sam", role="staff", password_hash=hashed)
    await page.ask("users.save", user="tea", role="technician", password_hash=hashed)
    await page.ask("users.save", user="sam", role="staff", password_hash=hashed)
    assert load(page.path).settings.status_page.users.keys() == {"tea", "sam"}
    await page.ask("users.save", user="sam", role="look")
    assert page.says["status_page"]["users"]["sam"] == {"role": "look", "password": hashed}
    with pytest.raises(ConfigError, match="nobody could change settings"):
        await page.ask("users.remove", user="tea")
    await page.ask("users.remove", user="sam")
    await page.ask("users.remove", user="tea")
    assert load(page.path).settings.status_page.users == {}
    assert page.text.startswith(TEXT.rstrip())
    assert hashed not in json.dumps(page.trail.noted)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "Ä"])
async def test_a_name_that_cannot_be_typed_is_no_users(page: Page, name: str) -> None:
    hashed = password_hash("four plain words here")
    with pytest.raises(ConfigError) as wrong:
        await page.ask("users.save", user=name, role="technician", password_hash=hashed)
    assert wrong.value.field == "name"


async def test_a_user_in_one_line_with_others_is_changed_in_it(tmp_path: Path) -> None:
    hashed = password_hash("four plain words here")
    inline = f'{TEXT}\n[status_page]\nusers = {{ tea = {{ role = "technician", password = "x" }} }}'
    async with settings_of(tmp_path, inline) as page:
        await page.ask("users.save", user="sam", role="staff", password_hash=hashed)
        await page.ask("users.save", user="tea", role="technician", password_hash=hashed)
        users = page.says["status_page"]["users"]
        assert users["tea"]["password"] == users["sam"]["password"] == hashed


async def test_a_back_up_is_made_and_listed(page: Page) -> None:
    assert (await page.ask("config.show"))["backups"] == []
    answer = await page.ask("ledger.backup")
    (saved,) = back_ups(page.ledger.data_dir)
    assert saved.name in answer["text"]
    (listed,) = (await page.ask("config.show"))["backups"]
    assert listed["file"] == saved.name


async def test_the_steps_after_set_up_are_ticked_once_done(page: Page) -> None:
    def done(answer: Mapping[str, Any]) -> set[str]:
        return {each["name"] for each in answer["next"] if each["done"]}

    assert not done(await page.ask("config.show")) - {"service"}
    hashed = password_hash("four plain words here")
    await page.ask("users.save", user="tea", role="technician", password_hash=hashed)
    await page.save("alerts", EMAIL)
    await page.save("backup", {"bridge.backup_at": "04:00"})
    assert done(await page.ask("config.show")) >= {"password", "alerts", "backup"}


# -- every field there is


FIELDS = [
    (section, field)
    for section in SECTIONS
    for field in fields_of(section, "main" if section.each_store else "")
]


@pytest.mark.parametrize(
    ("section", "field"), FIELDS, ids=[field.name for _section, field in FIELDS]
)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_form_shows_of_a_value_is_that_value(
    section: SettingsSection, field: FormField, data: st.DataObject
) -> None:
    lines = st.text("abc 12:-.@", min_size=1).map(str.strip).filter(bool)
    kinds: Mapping[str, st.SearchStrategy[Any]] = {
        "text": lines,
        "number": st.integers(0, 10**6)
        if field.number is int
        else st.integers(0, 400) | st.just(0.5),
        "flag": st.booleans(),
        "choice": st.sampled_from([each for each in field.choices if each] or ["x"]),
        "lines": st.lists(st.integers(0, 99) if field.number else lines, min_size=1),
        "secret": st.just("hush"),
    }
    value = data.draw(kinds[field.kind])
    if field.kind == "secret":
        assert shown(field, value) == ""
        changes, secrets = changes_of(section, "main", {field.name: value}, {})
        assert secrets[field.name] == value
        assert value not in repr(changes)
        return
    assert value_of(field, shown(field, value)) == value


async def test_a_backup_says_what_it_holds_and_what_restoring_it_costs(page: Page) -> None:
    def order(number: int, at: int) -> dict[str, Any]:
        states = {"ticket": "written", "desired_state": "accepted", "service_state": "accepted"}
        row = {"store": "main", "order_id": f"o{number}", "payload": "{}", "received_at": at}
        return {**row, **states}

    def off_sale(item: str) -> dict[str, Any]:
        return {"store": "main", "external_id": item, "by": "anna", "at": 1}

    now = Clock().now_ms()
    await page.ledger.write(lambda c: c.execute(insert(OrderRow), [order(1, now - 60_000)]))
    await page.ledger.write(lambda c: c.execute(insert(StoreOverride), [off_sale("cola")]))
    await page.ledger.put_fact("main", "service_store_name", "Main Street", at=now)
    await page.ledger.put_fact("", "running", {"version": "1.2"}, at=now)
    made = await page.ask("ledger.backup")
    name = Path(made["path"]).name
    later = [order(2, now + 60_000), order(3, now + 60_000)]
    await page.ledger.write(lambda c: c.execute(insert(OrderRow), later))
    await page.ledger.write(lambda c: c.execute(insert(StoreOverride), [off_sale("soup")]))
    held = await page.ask("ledger.contents", backup=name)
    assert (held["version"], held["stores"], held["orders"]) == ("1.2", ["Main Street"], 1)
    assert (held["orders_since"], held["back_on_sale"]) == (2, 1)
    assert (await page.ask("config.show"))["backups"][0]["replaced"] is False


async def test_only_a_sound_backup_of_this_bridge_is_restored(page: Page) -> None:
    for name in ("ledger-1.db", "../ledger.db", "/etc/passwd"):
        with pytest.raises(ConfigError, match="no backup"):
            await page.ask("ledger.restore", backup=name)
    saved = Path((await page.ask("ledger.backup"))["path"])
    saved.write_bytes(b"SQLite format 3" + bytes(5000))
    with pytest.raises(ConfigError, match="not an intact database"):
        await page.ask("ledger.restore", backup=saved.name)
    assert not page.restarts.again


async def test_a_restore_is_taken_back_where_the_bridge_cannot_start_with_it(page: Page) -> None:
    await page.ledger.put_fact("main", "mood", "before", at=1)
    saved = Path((await page.ask("ledger.backup"))["path"])
    await page.ledger.put_fact("main", "mood", "since", at=2)
    answer = await page.ask("ledger.restore", backup=saved.name)
    assert answer["ok"]
    assert page.restarts.again
    folder = page.ledger.data_dir

    async def mood() -> str:
        async with opened(folder) as ledger:
            return str(await ledger.get_fact("main", "mood"))

    await page.ledger.close()
    await page.restarts.between_runs(lambda: None)
    assert await mood() == "before"
    assert page.restarts.undo(BridgeError("The port is taken."))
    assert await mood() == "since"
