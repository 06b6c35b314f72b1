"""What users rely on, held against `tests/goldens`: a change of any of it is a change of that file.

The texts of help, the routes and the problems are read from the program. The rest is one scripted
day of a shop in a food hall, through the real commands, the real daemon and the sandbox.
"""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.support.bridge_process import until
from tests.support.goldens import RENEW, Normaliser, as_json, compare, invoke
from tests.support.world import SECRET, World, make_world
from tests.unit.test_every_command import EVERY
from tillbridge.core.problems import PROBLEMS, help_of
from tillbridge.operations import OPERATIONS
from tillbridge.sandbox import CommunitySeed, MerchantSeed, StoreSeed
from tillbridge.web.listener import CONTROL
from tillbridge.web.site.book import Action
from tillbridge.web.site.registry import EVERYTHING

HALL = "communities/com_food_hall"
COMMUNITY = """
[communities.hall]
community_id = "com_food_hall"
sync_s = 3600
check_s = 3600
"""
HOURS = 'timezone = "UTC"\n[weekly]\n' + "".join(
    f'{day} = ["00:00-24:00"]\n'
    for day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
)
SETTINGS = 'name = "Corner"\nphone = "+420 123 456 789"\n[delivery]\nminimum = 1.00\n'
STORE = """
store_id = "st_main"
timezone = "UTC"
hours_file = "hours.toml"
settings_file = "store.toml"
"""
TABLES = "external_id,name,seats,zone\n" + "".join(f"t{n},Table {n},4,Hall\n" for n in range(1, 9))
# The commands of the day, as they are typed.
READS = """
status
problems list
problems show pos.offline
orders list
item off main
item find main di
menu plan main
menu history main
menu items main
store show main
store plan main
store plan main --full
tables list main
tables plan main
community show hall
community items hall
community hours hall
community orders hall
integration show main
integration plan main
setup show
audit verify
"""
STORE_AND_TABLES = """
store pause main --reason cleaning --until 1h
store show main --json
store resume main --json
store pause main --json
store resume main
store push main
store push main --full --json
store tax main
store tax main --json
tables push main
tables push main --json
tables approve main
tables approve main --json
store pause nowhere
"""
IN_THE_HALL = """
community 86 hall {one} --until 2h
community restore hall {one} --json
community 86 hall nothing
community sync hall
community sync hall --full --json
community hours hall --push
community webhook test hall --json
community webhook deliveries hall
community show nowhere
"""
THE_BRIDGE = """
integration apply main --yes
integration rotate-secret main --yes --json
integration apply nowhere --yes
token reporting --json
alerts test
alerts test --json
fleet key
audit list --limit 5 --json
audit verify --json
setup show --json
problems list --json
"""
AFTER = """
status
problems list
item off main
item 86 main p2
item restore main p2 --json
menu plan main --json
orders list
audit verify
setup show
store show main
community items hall
tables list main
"""
BEFORE_BOTH = """
status
problems list
audit list
menu plan main
item off main
orders list
"""
BEFORE = """
item 86 main p1
item 86 nowhere p1
problems show nothing
menu push main
store pause main
"""
ITEMS = """
item 86 main p5
item 86 main p6 --until 2h --json
item 86 main nothing
item 86 main p7 --until 1999-01-01T00:00Z
item 86 main p7 --until nonsense
"""
# Rows whose number or order is a matter of timing, and the bridge's own bookkeeping.
NOT_DUMPED = {
    "alembic_version",
    "facts",
    "menu_past",
    "menu_prices",
    "problem_history",
    "community_records",
}
# Orders go on beside each other (a ticket is taken back while the service is told), and rows of a
# table without numbers have no order.
NUMBER = "(SELECT order_number FROM orders WHERE orders.order_id = order_log.order_id)"
LOG = f"{NUMBER}, event = 'order.withdrawn', id"
ORDERED = {"order_log": LOG, "menu_items": "external_id", "orders": "order_number"}
_MAIN = re.compile(r"<main\b.*?</main>", re.DOTALL)
_TAGS = re.compile(r"<(script|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)


@pytest.fixture
def renew(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption(RENEW))


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "TZ": "UTC",
        "SUDO_USER": "anna",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BRIDGE_SECRET", SECRET)
    monkeypatch.delenv("TILLBRIDGE_DATA_DIR", raising=False)
    before = structlog.get_config()
    yield
    structlog.configure(**before)  # each command sets its log up


def test_every_command_says_what_it_said(renew: bool) -> None:
    groups = {tuple(name.split()[:depth]) for name, _command in EVERY for depth in (1, 2, 3)}
    names = sorted(groups | {tuple(name.split()) for name, _command in EVERY})
    told = []
    for name in names:
        code, out, err = invoke(*name[1:], "--help")
        assert code == 0, err
        told.append(f"$ {' '.join(name)} --help\n{out}")
    compare({"help.txt": "\n".join(told)}, renew=renew)


def test_routes_and_their_roles(renew: bool) -> None:
    page = [
        " ".join(
            (
                "GET/POST"
                if isinstance(each, Action) and each.ask
                else "POST"
                if isinstance(each, Action)
                else "GET",
                each.path,
                each.role.word,
                getattr(each, "audit", ""),
            )
        ).rstrip()
        for each in EVERYTHING
    ]
    done = [
        " ".join((f"operation {name}", each.role.word, "reads" * each.reads, *each.parameters))
        for name, each in OPERATIONS.items()
    ]
    told = [*sorted(page), f"POST {CONTROL} technician", *sorted(done)]
    compare({"routes.txt": "\n".join(told)}, renew=renew)


def test_problem_codes(renew: bool) -> None:
    told = [
        f"{code} {kind.severity} {kind.ends_when_seen}\n  {kind.text}\n  {kind.fix}\n"
        f"  {help_of(code).closes}"
        for code, kind in PROBLEMS.items()
    ]
    compare({"problems.txt": "\n".join(told)}, renew=renew)


class Script:
    """A shop on one day; each step's answer is written down under its command."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.told: list[str] = []
        self.page: list[str] = []
        self.same = Normaliser(
            folder=str(world.folder.resolve()),
            port=str(world.receiver_port),
            page=str(world.page_port),
            sandbox=world.url.rpartition(":")[2],
        )

    async def run(self, *arguments: str) -> str:
        """Run a command; write down what it says and ends with."""
        code, out, err = await asyncio.to_thread(
            invoke, "--config", str(self.world.config), *arguments
        )
        try:
            shown = as_json(self.same.value(json.loads(out)))
        except ValueError:
            shown = self._lines(out)
        asked = self.same.text(" ".join(arguments))
        noise = "".join(
            f"! {each}\n" for each in self._lines(err).splitlines() if "Still working" not in each
        )
        self.told.append(f"$ tillbridge {asked}\n{shown}\n{noise}= {code}\n")
        return out

    async def both(self, *arguments: str) -> str:
        """Run a command as people do and as programs do; return its JSON."""
        await self.run(*arguments)
        return await self.run(*arguments, "--json")

    async def get(self, path: str, *, words: bool = True) -> None:
        """Open a page; write down its status, and its words."""
        async with self.world.http.get(self._url(path), allow_redirects=False) as answer:
            text = await answer.text()
        shown = self._words(text) if words else ""
        self.page.append(f"GET {self.same.text(path)} {answer.status}\n{shown}")

    async def post(self, path: str, **form: str) -> None:
        """Press a button of the page; write down what the page says then."""
        origin = self._url("").rstrip("/")
        headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
        async with self.world.http.post(
            self._url(path), data=form, headers=headers, allow_redirects=False
        ) as answer:
            to = answer.headers.get("Location", "")
        if not to.startswith("/"):
            shown = self.same.text(to.partition("?")[0])
        else:
            async with self.world.http.get(self._url(to)) as page:
                text = await page.text()
            found = re.search(r'<div class="flash.*?</div>', text, re.DOTALL)
            shown = (
                self.same.text(to.partition("?")[0]) + "\n" + self._words(found[0] if found else "")
            )
        self.page.append(f"POST {self.same.text(path)} {answer.status} {shown}")

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.world.page_port}{path}"

    def _lines(self, text: str) -> str:
        return "\n".join(
            re.sub(r" {2,}", "  ", each).rstrip() for each in self.same.text(text).splitlines()
        )

    def _words(self, text: str) -> str:
        found = _MAIN.search(text)
        plain = _TAGS.sub("\n", found[0] if found else text)
        lines = [" ".join(each.split()) for each in self.same.text(plain).splitlines()]
        return "".join(f"  {each}\n" for each in lines if each)


@asynccontextmanager
async def food_hall(folder: Path) -> AsyncIterator[World]:
    """A shop that is connected, in a hall, with files for everything a store has."""
    merchants = (MerchantSeed(stores=(StoreSeed(), StoreSeed("st_tea", "Tea Room"))),)
    communities = (CommunitySeed(store_ids=("st_main", "st_tea")),)
    async with make_world(
        folder, merchants=merchants, communities=communities, settings_accept_unknown=True
    ) as world:
        for name, text in {
            "hours.toml": HOURS,
            "store.toml": SETTINGS,
            "tables.csv": TABLES,
        }.items():
            (folder / name).write_text(text, "utf-8")
        world.write_config(
            store=STORE,
        )
        text = world.config.read_text("utf-8")
        updates = 'updates_dir = "updates"'
        text = text.replace(updates, f'{updates}\ntables = "tables.csv"') + COMMUNITY
        world.config.write_text(text, "utf-8")
        yield world


async def test_a_scripted_day(tmp_path: Path, renew: bool) -> None:
    async with food_hall(tmp_path / "shop") as world:
        day = Script(world)
        await before_it_runs(day)
        await world.bridge.start()
        code, out, err = await world.connect()
        assert code == 0, out + err
        await world.menu_is_on_sale()
        await settled(world)
        # By itself it happens half a minute after connecting: before or after what is read.
        await day.run("store", "tax", "main")
        await until("the hall's hours are pushed", lambda: hours_pushed(world))
        await day.run("community", "sync", "hall", "--full")
        await what_is_read(day)
        await orders(day)
        await items_and_menu(day)
        await store_and_tables(day)
        await the_hall(day)
        await the_page(day)
        await the_bridge(day)
        assert await world.bridge.stop() == 0
        await after_it_ended(day)
        ledger = dump(world.folder / "data" / "ledger.db", day.same)
        audit = [each for each in ledger if each.startswith("audit ")]
        ledger = [each for each in ledger if each not in audit]
        found = {"commands": day.told, "page": day.page, "audit": audit, "ledger": ledger}
        texts = {f"{name}.txt": "\n".join(each) for name, each in found.items()}
        compare(texts, renew=renew)


async def settled(world: World) -> None:
    """Wait until nothing is on its way to the service any more."""

    async def look() -> bool:
        store = (await world.status())["stores"]["main"]
        return (
            store["menu"]["pending"] == 0
            and store["tables"]["active"] == 8
            and store["menu"]["last_synced_at"] is not None
            and store["service"]["store_name"] == "Corner"
        )

    await until("everything has reached the service", look)


async def before_it_runs(day: Script) -> None:
    for each in lines(BEFORE_BOTH):
        await day.both(*each.split())
    for each in lines(BEFORE):
        await day.run(*each.split())


async def hours_pushed(world: World) -> bool:
    hours = (await world.status())["communities"]["hall"]["hours"]
    return hours.get("main", {}).get("pushed_at") is not None


async def what_is_read(day: Script) -> None:
    for each in lines(READS):
        await day.both(*each.split())


async def orders(day: Script) -> None:
    world = day.world
    served = await world.order("p1", "p2")
    await is_known(world, served, "accepted")
    for state in ("preparing", "ready"):
        world.till.tell(served, state)
        await is_known(world, served, state)
    refused = await world.order("p3")
    await is_known(world, refused, "accepted")
    await day.both("orders", "show", refused)
    await day.run("orders", "retry", refused)
    await day.run("orders", "retry", "ord_nothing")
    await day.run("orders", "cancel", refused, "--reason", "STORE_CLOSED")
    await day.run("orders", "cancel", refused, "--reason", "NONSENSE")
    await is_known(world, refused, "cancelled")
    by_hand = await world.order("p4")
    await is_known(world, by_hand, "accepted")
    await day.run("orders", "done", by_hand, "--how", "typed", "--json")
    for each in ("orders list", "orders figures", "problems list"):
        await day.both(*each.split())
    for each in (
        "problems ack order.cancelled",
        "problems ack order.cancelled --json",
        "problems ack nothing.at.all",
    ):
        await day.run(*each.split())


async def is_known(world: World, order: str, state: str) -> None:
    """Wait until the service has the order in this state, and the bridge has stored that it has."""
    await world.reaches(order, state)

    async def look() -> bool:
        show = ("--config", str(world.config), "orders", "show", order, "--json")
        _code, out, _err = await asyncio.to_thread(invoke, *show)
        return bool(json.loads(out)["state"] == state)

    await until(f"{order} is known as {state}", look)


async def items_and_menu(day: Script) -> None:
    world = day.world
    for each in lines(ITEMS):
        await day.run(*each.split())
    await settled(world)
    await until("they are off", lambda: reached(world, 2))
    await day.both("item", "off", "main")
    await day.run("item", "restore", "main", "p5")
    await day.run("item", "restore", "main", "p6", "--json")
    await day.run("item", "restore", "main", "p6")
    await settled(world)
    kept = dict(world.till.rows)
    for number in range(1, 9):
        world.till.rows.pop(f"p{number}")
    world.till.write_menu()
    await world.problem("menu.held")
    for each in ("menu plan main", "problems list", "status"):
        await day.both(*each.split())
    await day.get("/menu")
    await day.run("menu", "dismiss", "main")
    await day.run("menu", "approve", "main")
    await world.menu_is_on_sale()
    await settled(world)
    world.till.rows.clear()
    world.till.rows.update(kept)
    world.till.change("p1", price="1.75")
    await world.menu_is_on_sale()
    await settled(world)
    for each in ("menu push main", "menu push main --full --json", "menu approve main --json"):
        await day.run(*each.split())
    await settled(world)
    await day.both("menu", "items", "main")


async def reached(world: World, count: int) -> bool:
    code, out, _err = await asyncio.to_thread(
        invoke, "--config", str(world.config), "item", "off", "main", "--json"
    )
    found = [each for each in json.loads(out)["items"] if each["reached_at"]]
    return code == 0 and len(found) == count


async def store_and_tables(day: Script) -> None:
    for each in lines(STORE_AND_TABLES):
        await day.run(*each.split())
    await settled(day.world)


async def the_hall(day: Script) -> None:
    items = json.loads(await day.run("community", "items", "hall", "--json"))["items"]
    one = items[0]["item_id"]
    for each in lines(IN_THE_HALL):
        await day.run(*each.format(one=one).split())


async def the_page(day: Script) -> None:
    order = await day.world.order("p9")
    await day.world.reaches(order, "accepted")
    parts = {
        "store": "main",
        "order": order,
        "item": "p9",
        "code": "pos.offline",
        "community": "hall",
        "section": "alerts",
        "user": "anna",
        "backup": "ledger-gone.db",
    }
    for each in EVERYTHING:
        path = re.sub(r"\{([a-z_]+)\}", lambda found: parts[found[1]], each.path)
        if not isinstance(each, Action):
            await day.get(path, words=False)
        elif each.ask is not None:
            await day.get(path)
    for path, form in (
        ("/problems/pos.offline/ack", {}),
        ("/stores/main/items/p9/86", {"until": "1h"}),
        ("/stores/main/items/p9/restore", {}),
        ("/stores/main/pause", {"until": "1h", "reason": "cleaning"}),
        ("/stores/main/resume", {}),
        ("/stores/main/settings", {}),
        ("/stores/main/tax", {}),
        ("/stores/main/tables/push", {}),
        ("/stores/main/tables/approve", {}),
        ("/stores/main/menu/push", {}),
        ("/stores/main/menu/approve", {}),
        ("/stores/main/menu/dismiss", {}),
        (f"/orders/{order}/retry", {}),
        (f"/orders/{order}/done", {"how": "typed"}),
        (f"/orders/{order}/cancel", {"reason": "CAPACITY", "reason_code": "CAPACITY"}),
        ("/orders/seen", {}),
        ("/orders/ord_nothing/retry", {}),
        ("/stores/nowhere/pause", {}),
        ("/diagnostics/bundle/make", {}),
        ("/stores/main/integration/apply", {}),
    ):  # fmt: skip
        await day.post(path, **form)
        await settled(day.world)
    await day.world.reaches(order, "cancelled")


async def the_bridge(day: Script) -> None:
    for each in lines(THE_BRIDGE):
        await day.run(*each.split())


async def after_it_ended(day: Script) -> None:
    for each in lines(AFTER):
        await day.run(*each.split())


def lines(commands: str) -> list[str]:
    return commands.strip().splitlines()


def dump(path: Path, same: Normaliser) -> list[str]:
    """Return the ledger's rows, a line each; what differs from run to run is replaced."""
    told: list[str] = []
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        for table in [row[0] for row in connection.execute(names)]:
            if table in NOT_DUMPED or table.startswith("sqlite"):
                continue
            order = ORDERED.get(table, "rowid")
            rows = connection.execute(f"SELECT * FROM {table} ORDER BY {order}")
            told += [f"{table} {json.dumps(cells(row, same), ensure_ascii=False)}" for row in rows]
    return told


def cells(row: sqlite3.Row, same: Normaliser) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name in set(row.keys()) - {"id", "hash", "previous", "digest", "fingerprint"}:
        value = row[name]
        if isinstance(value, bytes):
            value = "<bytes>"
        elif isinstance(value, str) and value.startswith(("{", "[")):
            value = json.loads(value)
        told[name] = same.value(value, name)
    return dict(sorted(told.items()))
