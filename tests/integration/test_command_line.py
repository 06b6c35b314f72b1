"""The program's commands as processes: beside a running bridge, and without one."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.fake_control import FakeControl
from tests.support.fork_server import run
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, Unreachable
from tillbridge.core.metrics import Metrics
from tillbridge.core.problems import OpenProblem
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import open_problem
from tillbridge.ledger.snapshot import StoreSnapshot
from tillbridge.web.authenticator import AccessRules, Authenticator
from tillbridge.web.listener import StatusListener

CONFIG = """\
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:1/v2"
client_id = "app_123"
client_secret = "sup3r-s3cret-value"
[receiver]
public_url = "https://store-17.example.net"
[stores.main]
location_id = "loc-1"
currency = "USD"
timezone = "Europe/Prague"
[stores.main.pos]
adapter = "folder"
menu = "export/menu.csv"
orders_dir = "orders"
"""
TOKEN = "control-token-0123456789"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


class Program:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "bridge.toml"
        self.data = folder / "data"
        self.config.write_text(CONFIG, "utf-8")

    async def __call__(self, *arguments: str, config: bool = True) -> Ran:
        named = ["--config", str(self.config)] if config else []
        done = await asyncio.to_thread(run, *named, *arguments, cwd=self.folder, within_s=60)
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.delenv("TILLBRIDGE_DATA_DIR", raising=False)
    return Program(tmp_path)


@pytest.fixture
async def bridge(program: Program) -> AsyncIterator[FakeControl]:
    """A running bridge, as far as commands can tell."""
    control = FakeControl()
    dispatcher = control.dispatcher()
    listener = StatusListener(
        dispatcher, Authenticator(AccessRules(), Clock()), token=TOKEN, metrics=Metrics()
    )
    host, port = await listener.start("127.0.0.1", 0)
    program.data.mkdir()
    told = {"url": f"http://{host}:{port}", "token": TOKEN, "pid": 7}
    (program.data / "control.json").write_text(json.dumps(told))
    yield control
    await listener.close()


@pytest.mark.parametrize("command", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(command: str) -> None:
    code = (
        "import sys\n"
        "from tillbridge.cli import main\n"
        f"sys.argv = ['tillbridge', {command!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'pydantic.main', 'sqlalchemy', 'aiohttp', 'structlog', 'rich', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


async def test_status_without_a_bridge_imports_nothing_heavy(program: Program) -> None:
    code = (
        "import sys\n"
        "from tillbridge.cli import main\n"
        f"sys.argv = ['tillbridge', '--config', {str(program.config)!r}, 'status']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'sqlalchemy', 'aiohttp', 'structlog', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


async def test_status_of_a_bridge_that_never_ran_is_down(program: Program) -> None:
    ran = await program("status", "--json")
    told = json.loads(ran.out)
    assert ran.code == 2
    assert told["verdict"]["level"] == "down"
    assert [problem["code"] for problem in told["problems"]] == ["bridge.stopped"]
    assert list(told["stores"]) == ["main"]


async def test_status_reads_the_ledger_while_the_bridge_is_down(program: Program) -> None:
    ledger = await Ledger.open(program.data, clock=Clock())
    await ledger.write(
        lambda db: open_problem(db, "menu.held", "main", "", {"detail": "34 items gone"}, 1)
    )
    await ledger.close()
    ran = await program("status")
    assert ran.code == 2
    assert "The bridge is not running" in ran.out
    assert "main: Menu update on hold: 34 items gone" in ran.out
    assert "tillbridge menu approve main" in ran.out


@pytest.mark.parametrize(
    ("problems", "code"),
    [
        ((), 0),
        ((OpenProblem("store.paused", "main", "", 0),), 1),
        ((OpenProblem("pos.offline", "main", "", 0, {"detail": "off"}),), 2),
    ],
)
async def test_status_asks_the_running_bridge(
    program: Program, bridge: FakeControl, problems: tuple[OpenProblem, ...], code: int
) -> None:
    from dataclasses import replace

    bridge.facts = replace(bridge.facts, problems=problems)
    ran = await program("status", "--json")
    assert ran.code == code
    assert json.loads(ran.out)["bridge"]["running"] is True


@pytest.mark.parametrize("options", [(), ("--json",)])
async def test_status_of_a_damaged_ledger_is_down(
    program: Program, options: tuple[str, ...]
) -> None:
    program.data.mkdir()
    (program.data / "ledger.db").write_bytes(b"no ledger at all" * 1000)
    ran = await program("status", *options)
    assert ran.code == 2
    assert "cannot be read" in ran.err
    assert "Start the bridge: it repairs a damaged database when it starts." in ran.err


async def test_status_says_how_long_ago_each_link_answered(
    program: Program, bridge: FakeControl
) -> None:
    from dataclasses import replace

    ago = Clock().now_ms() - 150_000
    store = StoreSnapshot(
        facts={
            "service_contact": {"ok_at": ago},
            "pos_health": {"online": False, "detail": "no heartbeat"},
        },
        acknowledged_items=1,
    )
    bridge.facts = replace(bridge.facts, stores={"main": store}, pos_seen={"main": ago})
    told = (await program("status")).out
    assert "  service   answered 2 minutes ago\n" in told
    assert "  till      offline, answered 2 minutes ago\n" in told
    assert "  menu      1 item, not updated yet\n" in told
    assert "  today     0 orders\n" in told


async def test_a_control_file_left_by_a_crash_does_not_mislead(program: Program) -> None:
    program.data.mkdir()
    for left in ("{", '{"url": "http://127.0.0.1:9", "token": "x", "pid": 1}'):
        (program.data / "control.json").write_text(left)
        ran = await program("status")
        assert ran.code == 2
        assert "not running" in ran.out


async def test_an_item_is_86ed_until_what_was_typed(program: Program, bridge: FakeControl) -> None:
    ran = await program("item", "86", "main", "B/1", "--until", "2099-06-01T18:30")
    assert (ran.code, ran.out) == (0, "Did 86.\n")
    assert bridge.asked == [("86", "main", "B/1", "2099-06-01T18:30")]
    await program("item", "restore", "main", "B/1")
    assert bridge.asked[-1] == ("restore", "main", "B/1")


async def test_a_time_that_is_none_is_bad_usage(program: Program) -> None:
    ran = await program("item", "86", "main", "B1", "--until", "soon")
    assert ran.code == 2
    assert "soon is not a time" in ran.err


async def test_menu_commands_reach_the_bridge(program: Program, bridge: FakeControl) -> None:
    assert (await program("menu", "push", "main", "--full")).code == 0
    assert (await program("menu", "approve", "main")).code == 0
    assert bridge.asked == [("push", "main", True), ("approve", "main")]


async def test_a_plan_is_shown_as_a_difference(program: Program, bridge: FakeControl) -> None:
    bridge.menu.planned = {
        "kind": "held",
        "held": ["Too many prices moved."],
        "approved": False,
        "calls": [{"call": "POST menus/batch"}],
        "lines": ["+ B1 Burger\x1b[31m, 4.50", "~ B3 Cola: price 2.00 -> 2.50"],
        "bad_rows": [{"place": "menu.csv, row 3", "text": "No price.", "fix": "Add one."}],
        "first_import_lines": [],
    }
    ran = await program("menu", "plan", "main")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "This change is on hold (publish it with: tillbridge menu approve):",
        "  ! Too many prices moved.",
        "  + B1 Burger [31m, 4.50",
        "  ~ B3 Cola: price 2.00 -> 2.50",
        "  ? menu.csv, row 3: No price. Add one.",
    ]
    assert json.loads((await program("menu", "plan", "main", "--json")).out) == bridge.menu.planned


async def test_a_menu_in_step_is_said_to_be(program: Program, bridge: FakeControl) -> None:
    ran = await program("menu", "plan", "main")
    assert ran.out == "Nothing to push: the service has the menu as the till has it.\n"


async def test_orders_are_retried_and_cancelled_with_a_code(
    program: Program, bridge: FakeControl
) -> None:
    assert (await program("orders", "retry", "ord_1")).code == 0
    assert (await program("orders", "cancel", "ord_1", "--reason", "CAPACITY")).code == 0
    assert bridge.asked == [("retry", "ord_1"), ("cancel", "ord_1", "CAPACITY")]
    ran = await program("orders", "cancel", "ord_1", "--reason", "BORED")
    assert ran.code == 2


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (BridgeError("There is no such order.", fix="See the list."), 1),
        (Unreachable("The service cannot be reached.", fix="See the list."), 3),
    ],
)
async def test_a_failure_is_two_lines_and_an_exit_code(
    program: Program, bridge: FakeControl, failure: BridgeError, code: int
) -> None:
    bridge.failure = failure
    ran = await program("orders", "retry", "ord_1")
    assert ran.code == code
    assert ran.out == ""
    assert ran.err == f"{failure.text}\n{failure.fix}\n"


async def test_connect_prints_the_address_and_waits_for_the_merchant(
    program: Program, bridge: FakeControl
) -> None:
    done = {"done": True, "ok": True, "text": "main is connected.", "webhook_url": "https://w/x"}
    bridge.connected = [{"done": False}, done]
    ran = await program("connect", "main", "--no-browser", "--reintegrate")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "Open: http://127.0.0.1:9/authorize?state=st4te"
    assert lines[2:] == ["main is connected.", "Orders go to: https://w/x"]
    assert bridge.asked[0] == ("connect", "main", True)


async def test_connect_that_the_merchant_declines_fails(
    program: Program, bridge: FakeControl
) -> None:
    bridge.connected = [{"done": True, "ok": False, "text": "Declined.", "fix": "Ask again."}]
    ran = await program("connect", "main", "--no-browser")
    assert (ran.code, ran.err) == (1, "Declined.\nAsk again.\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("connect", "mian"),
        ("menu", "plan", "mian"),
        ("item", "86", "mian", "B1"),
        ("orders", "list", "--store", "mian"),
    ],
)
async def test_an_unknown_store_names_the_nearest(
    program: Program, arguments: tuple[str, ...]
) -> None:
    ran = await program(*arguments)
    assert ran.code == 2
    assert "Did you mean main?" in ran.err


async def test_config_check_says_that_it_is_right(program: Program) -> None:
    (program.folder / "export").mkdir()
    (program.folder / "orders").mkdir()
    (program.folder / "export/menu.csv").write_text("external_id,name,price\n")
    ran = await program("config", "check")
    assert (ran.code, ran.out) == (0, "bridge.toml is valid: 1 store (main).\n"), ran.err


async def test_config_check_tells_what_is_wrong(program: Program) -> None:
    program.config.write_text(CONFIG.replace("public_url", "public_ulr"), "utf-8")
    ran = await program("config", "check")
    assert ran.code == 2
    assert "line 8: receiver.public_ulr is not a setting" in ran.err
    assert "Traceback" not in ran.err


async def test_config_check_checks_adapters_options_and_the_secret(program: Program) -> None:
    text = CONFIG.replace('"folder"', '"foldr"').replace('"sup3r-s3cret-value"', '{ file = "no" }')
    program.config.write_text(text, "utf-8")
    ran = await program("config", "check")
    assert ran.code == 2
    assert "line 6: service.client_secret: the file" in ran.err
    assert "[stores.main.pos]" in ran.err
    assert "foldr" in ran.err


async def test_config_show_masks_the_secret(program: Program) -> None:
    more = """
[stores.main.fallback]
adapter = "process"
command = ["till"]
options = { login = { key = "sup3r-program" } }
[alerts]
heartbeat_url = "https://hc.example.net/ping/sup3r-9f1c2a90"
[fleet]
url = "https://fleet.example.net/in/sup3r-0815"
"""
    program.config.write_text(CONFIG + 'api_password = "sup3r-too"\n' + more, "utf-8")
    ran = await program("config", "show")
    told = json.loads(ran.out)
    assert ran.code == 0
    assert told["stores"]["main"]["menu"]["settle_ms"] == 150
    assert told["stores"]["main"]["pos"]["menu"] == "export/menu.csv"
    assert "sup3r" not in ran.out


async def test_config_schema_is_json(program: Program) -> None:
    ran = await program("config", "schema", config=False)
    assert json.loads(ran.out)["title"] == "bridge.toml of tillbridge"


async def test_a_missing_configuration_is_bad_usage(program: Program) -> None:
    program.config.unlink()
    named, sought = await program("status"), await program("status", config=False)
    assert named.code == sought.code == 2
    assert f"The configuration file {program.config} does not exist." in named.err
    assert "No configuration file found." in sought.err


async def test_orders_are_listed_and_shown_from_the_ledger(program: Program) -> None:
    assert (await program("orders", "list")).code == 1  # there is no ledger yet
    ledger = await Ledger.open(program.data, clock=Clock())
    await ledger.close()
    assert (await program("orders", "list")).out == "No orders yet.\n"
    order = {
        "id": "ord_1",
        "order_number": "17",
        "currency": "USD",
        "items": [{"product_name": "Burger\x07", "quantity": 2, "unit_price": 450}],
        "special_instructions": "no onions",
    }
    with sqlite3.connect(program.data / "ledger.db") as database:
        database.execute(
            "INSERT INTO orders (store, order_id, order_number, payload, received_at, ticket,"
            " wanted, told, updated_at, last_failure) VALUES"
            " ('main', 'ord_1', '17', ?, 1, 'waiting', 'accepted', 'created', 1, 'offline: x')",
            [json.dumps(order)],
        )
        database.execute(
            "INSERT INTO order_log (store, order_id, at, event, detail)"
            " VALUES ('main', 'ord_1', 1, 'order.received', '{\"lines\": 1}')"
        )
    database.close()
    listed = await program("orders", "list")
    assert listed.code == 0, listed.err
    assert listed.out.splitlines()[1].startswith("17 "), "people know the number"
    assert "ord_1" not in listed.out
    assert "Not yet -> Accepted" in listed.out
    told = json.loads((await program("orders", "list", "--json")).out)
    assert (told[0]["id"], told[0]["state"], told[0]["ticket"]) == ("ord_1", "created", "waiting")
    shown = await program("orders", "show", "ord_1")
    assert "2 x Burger   $4.50" in shown.out
    assert "! no onions" in shown.out
    assert "  Order read: 1 line." in shown.out
    whole = json.loads((await program("orders", "show", "ord_1", "--json")).out)
    assert whole["order"] == order
    assert [each["event"] for each in whole["life"]] == ["delivery.kept", "order.received"]
    assert (await program("orders", "show", "ord_2")).code == 1


def test_an_unforeseen_failure_is_short_and_kept_without_secrets(tmp_path: Path) -> None:
    code = (
        "from tillbridge.cli import main\nfrom tillbridge.cli import app\n"
        "from tillbridge.core.redaction import learn_secret\n"
        "planted = 'planted' + '-secret'; learn_secret(planted)\n"
        "def broken(**_): raise KeyError(planted)\n"
        "app.app = broken\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "An unexpected error" in done.stderr
    assert "Traceback" not in done.stderr
    (kept,) = tmp_path.glob("tillbridge-error-*.txt")
    assert "Traceback" in kept.read_text()
    assert "planted-secret" not in kept.read_text() + done.stderr
    assert kept.stat().st_mode & 0o077 == 0
