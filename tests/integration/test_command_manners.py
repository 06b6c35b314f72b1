"""How commands behave on a terminal, in a pipe, when they fail, and when <Tab> is pressed."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert

from tests.support import fork_server
from tests.support.bridge_process import free_port
from tests.support.ledger_harness import opened
from tests.support.postgresql import ledger_table
from tillbridge.cli.say import progress
from tillbridge.ledger.models import MenuItem, OrderRow
from tillbridge.ledger.problems import open_problem
from tillbridge.ledger.pushes import put_hold
from tillbridge.model.instant import from_iso

NOW = 1_800_000_000_000
ESCAPE = "\x1b["
# What completion must not load: each costs more than all the rest.
HEAVY = (
    "sqlalchemy",
    "aiohttp",
    "cryptography",
    "prometheus_client",
    "jinja2",
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("s3cret")
    path = tmp_path / "bridge.toml"
    path.write_text(
        f"""
{ledger_table(tmp_path / "data")}
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:{free_port()}/v2"
client_id = "app_123"
client_secret = {{ file = "secret" }}
[receiver]
public_url = "https://store.example.net"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "menu.csv"
orders_dir = "orders"
[stores.bar]
location_id = "loc-2"
currency = "USD"
[stores.bar.pos]
adapter = "folder"
menu = "menu.csv"
orders_dir = "orders"
[communities.hall]
community_id = "com_1"
""",
        "utf-8",
    )
    return path


def fill(connection: Connection) -> None:
    connection.execute(
        insert(OrderRow),
        [
            {
                "store": "main",
                "order_id": f"ord_{n}",
                "payload": "",
                "received_at": n,
                "ticket": "written",
                "desired_state": "accepted",
                "service_state": "accepted",
                "updated_at": n,
            }
            for n in range(3)
        ],
    )
    connection.execute(
        insert(MenuItem),
        [
            {
                "store": store,
                "external_id": item,
                "body": json.dumps({"name": f"Dish {item}"}),
                "pos_available": True,
            }
            for store, item in (("main", "B1"), ("main", "B_2"), ("main", "C1"), ("bar", "B9"))
        ],
    )
    open_problem(connection, "pos.offline", "main", "", {"detail": "off"}, NOW)


@pytest.fixture
async def shop(config: Path) -> Path:
    async with opened(config.parent / "data") as ledger:
        await ledger.write(fill)
    return config


def run(config: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = ("--config", str(config), *arguments)
    return fork_server.run(*command, env={**os.environ, **env}, within_s=60)


def on_terminal(config: Path, *arguments: str, typed: bytes = b"", **env: str) -> str:
    master, slave = pty.openpty()
    os.write(master, typed)
    with subprocess.Popen(
        [sys.executable, "-m", "tillbridge", "--config", str(config), *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **env},
    ) as process:
        os.close(slave)
        told = b""
        try:
            while piece := os.read(master, 4096):
                told += piece
        except OSError:  # the other end is closed
            pass
        process.wait(30)
    os.close(master)
    return told.decode()


def completed(config: Path, line: str, shell: str = "bash") -> subprocess.CompletedProcess[str]:
    words = ["tillbridge", "--config", str(config), *line.split(" ")]
    asks = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    if shell != "bash":
        asks = {"_TYPER_COMPLETE_ARGS": " ".join(words)}
        asks |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"} if shell == "fish" else {}
    # As the script `tillbridge` would, whose name the variable bears.
    program = "import sys; sys.argv = ['tillbridge']; from tillbridge.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, **asks, "_TILLBRIDGE_COMPLETE": f"complete_{shell}"},
    )


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("menu plan ", ["main", "bar"]),
        ("menu plan b", ["bar"]),
        ("orders list --store m", ["main"]),
        ("orders show ", ["ord_2", "ord_1", "ord_0"]),
        ("orders retry ord_1", ["ord_1"]),
        ("orders list --day t", ["today"]),
        ("item 86 main B", ["B1", "B_2"]),
        ("item 86 main B_", ["B_2"]),
        ("item restore bar ", ["B9"]),
        ("problems ack ", ["pos.offline"]),
        ("problems show tables.h", ["tables.held"]),
        ("community sync h", ["hall"]),
        ("orders cancel ord_1 --reason POS", ["POS_OFFLINE"]),
    ],
)
async def test_the_shell_completes_names(shop: Path, line: str, offered: list[str]) -> None:
    assert completed(shop, line).stdout.split() == offered


@pytest.mark.usefixtures("each_database")
async def test_what_is_read_without_a_bridge_is_read_from_any_database(shop: Path) -> None:
    assert completed(shop, "orders show ").stdout.split() == ["ord_2", "ord_1", "ord_0"]
    assert completed(shop, "orders retry ord_1").stdout.split() == ["ord_1"]
    assert completed(shop, "orders list --day 19").stdout.split() == ["1970-01-01"]
    assert completed(shop, "item 86 main B_").stdout.split() == ["B_2"]
    status = json.loads(run(shop, "status", "--json").stdout)
    assert status["stores"]["main"]["menu"]["acknowledged_items"] == 3
    assert "pos.offline" in {each["code"] for each in status["problems"]}
    orders = json.loads(run(shop, "orders", "list", "--json").stdout)
    assert len(orders) == 3


@pytest.mark.parametrize("shell", ["zsh", "fish"])
async def test_other_shells_complete_too(shop: Path, shell: str) -> None:
    told = completed(shop, "item 86 main B", shell).stdout
    assert "B1" in told
    assert "Dish B1" in told
    assert "C1" not in told


async def test_completion_loads_nothing_heavy(shop: Path) -> None:
    loaded = completed(shop, "orders show ").stderr
    assert "sqlite3" in loaded
    assert [
        each for each in HEAVY if re.search(rf"\| +{re.escape(each)}$", loaded, re.MULTILINE)
    ] == []


@pytest.mark.parametrize("broken", ["no file", "no toml", "no ledger", "a bad ledger"])
def test_completion_is_silent_about_what_is_broken(config: Path, broken: str) -> None:
    match broken:
        case "no file":
            config.unlink()
        case "no toml":
            config.write_text("[[[")
        case "a bad ledger":
            (config.parent / "data").mkdir()
            (config.parent / "data/ledger.db").write_text("no database")
    told = completed(config, "orders show ")
    assert told.stdout.strip() == ""
    assert "Traceback" not in told.stderr


async def test_colour_is_for_terminals_that_want_it(shop: Path) -> None:
    assert ESCAPE not in run(shop, "status").stdout
    assert ESCAPE in on_terminal(shop, "status")
    assert ESCAPE not in on_terminal(shop, "status", NO_COLOR="1")
    assert ESCAPE not in on_terminal(shop, "status", TERM="dumb")


async def test_commands_and_status_say_the_same_of_a_problem(shop: Path) -> None:
    listed, status = run(shop, "problems", "list"), run(shop, "status")
    assert listed.returncode == 0, listed.stderr
    said = "\n".join(line for line in listed.stdout.splitlines() if "pos.offline" in line)
    assert said
    assert said in status.stdout
    assert "main: The till is not taking orders: off" in listed.stdout
    shown = run(shop, "problems", "show", "pos.offline")
    assert "When it closes: By itself, as soon as the cause is gone." in shown.stdout
    assert "docs/problems.md#posoffline" in shown.stdout


async def test_an_acknowledged_problem_stays_and_says_by_whom(shop: Path) -> None:
    taken = run(shop, "problems", "ack", "pos.offline", "--json", SUDO_USER="anna")
    assert taken.returncode == 0, taken.stderr
    (problem,) = [
        each
        for each in json.loads(run(shop, "status", "--json").stdout)["problems"]
        if each["code"] == "pos.offline"
    ]
    assert problem["acknowledged"]["by"] == "anna"
    assert run(shop, "problems", "ack", "menu.held").returncode == 1


def november(connection: Connection) -> None:
    """Two orders around a midnight in Prague, where both fall on the 21st."""
    for number, received in (("1007", "2026-11-20T23:30Z"), ("1008", "2026-11-21T22:30Z")):
        order = {
            "store": "main",
            "order_id": f"ord_{number}",
            "order_number": number,
            "payload": "{}",
            "received_at": from_iso(received),
            "ticket": "written",
            "desired_state": "accepted",
            "service_state": "accepted",
            "updated_at": 1,
        }
        connection.execute(insert(OrderRow), [order])


@pytest.mark.parametrize(
    ("zone", "asked", "listed"),
    [
        ("UTC", ("--day", "2026-11-21"), ["1008"]),
        ("UTC", ("--day", "2026-11-20"), ["1007"]),
        ("Europe/Prague", ("--day", "2026-11-21"), ["1008", "1007"]),
        ("UTC", ("--search", "100"), ["1008", "1007"]),
        ("UTC", ("--search", "1007", "--day", "2026-11-21"), []),
        ("UTC", ("--day", "today"), []),
    ],
)
async def test_orders_are_listed_by_day_and_by_what_is_searched(
    shop: Path, zone: str, asked: tuple[str, ...], listed: list[str]
) -> None:
    async with opened(shop.parent / "data") as ledger:
        await ledger.write(november)
    told = run(shop, "orders", "list", *asked, "--json", TZ=zone)
    assert told.returncode == 0, told.stderr
    assert [each["order_number"] for each in json.loads(told.stdout)] == listed
    if not listed:
        assert run(shop, "orders", "list", *asked).stdout == "No orders match.\n"


async def test_days_with_orders_are_completed(shop: Path) -> None:
    async with opened(shop.parent / "data") as ledger:
        await ledger.write(november)
    days = completed(shop, "orders list --day 2026").stdout.split()
    assert days[-1] in {"2026-11-20", "2026-11-21"}  # by this machine's zone
    assert days == sorted(set(days), reverse=True)


# A command line that fails, its exit code, and what its last line says to do.
FAILURES = [
    (("menu", "plan", "mian"), 2, "Did you mean main?"),
    (("orders", "show", "ord_none"), 1, "List the orders with: tillbridge orders list"),
    (("item", "86", "main", "none"), 1, "Give its id in the till"),
    (("problems", "show", "pos.ofline"), 2, "Did you mean pos.offline?"),
    (("problems", "ack", "pos.offline", "--store", "x"), 2, "It has: main, bar."),
    (("alerts", "test"), 2, "docs/alerts.md"),
    (("menu", "push", "main"), 1, "tillbridge connect main"),
    (("orders", "retry", "ord_none"), 1, "tillbridge orders list"),
    (("orders", "list", "--day", "21.11."), 2, "Write it like 2026-11-21."),
]


@pytest.mark.parametrize(("arguments", "code", "remedy"), FAILURES, ids=str)
async def test_a_failure_ends_with_its_code_and_with_what_to_do(
    shop: Path, arguments: tuple[str, ...], code: int, remedy: str
) -> None:
    told = run(shop, *arguments)
    assert told.returncode == code, told.stderr
    assert told.stdout == ""
    assert remedy in told.stderr.splitlines()[-1]
    as_json = run(shop, *arguments, "--json")
    assert as_json.returncode == code
    failure = json.loads(as_json.stdout)
    assert failure["ok"] is False
    assert remedy in failure["error"]["fix"]
    assert failure["error"]["exit_code"] == code


def test_a_wrong_configuration_ends_with_2_and_what_to_do(config: Path) -> None:
    config.write_text(config.read_text("utf-8").replace("currency", "curency", 1), "utf-8")
    told = run(config, "menu", "plan", "main", "--json")
    assert told.returncode == 2
    assert "currency" in json.loads(told.stdout)["error"]["text"]
    (config.parent / "secret").unlink()


def test_the_secrets_of_alerts_are_checked_too(config: Path) -> None:
    config.write_text(
        config.read_text("utf-8") + '[alerts.webhook]\nurl = { file = "nowhere" }\n', "utf-8"
    )
    told = run(config, "config", "check")
    assert told.returncode == 2
    assert "alerts.webhook.url" in told.stderr
    assert "nowhere" in told.stderr


def test_a_command_that_takes_long_says_so_once_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tillbridge.cli.say.AFTER_S", 0.01)
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    with progress(lambda: "Pushing"):
        deadline = time.monotonic() + 10
        while not told.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert told.getvalue() == "Pushing ...\n"


@pytest.fixture
async def held(shop: Path) -> Path:
    counts = {"removed": 2960, "added": 0, "changed": 1}
    async with opened(shop.parent / "data") as ledger:
        await ledger.write(
            lambda connection: put_hold(
                connection,
                "main",
                "d",
                ["2,960 of 3,000 items removed"],
                {"counts": counts},
                at=NOW,
            )
        )
    return shop


def test_a_terminal_is_told_what_is_published_and_asked(held: Path) -> None:
    told = on_terminal(held, "menu", "approve", "main", typed=b"n\n")
    assert "2,960 items removed" in told
    assert "1 item changed" in told
    assert "Continue?" in told
    assert "Publishing" not in told
    told = on_terminal(held, "menu", "approve", "main", "--yes")
    assert "Continue?" not in told
    assert "Publishing: 2,960 items removed, 1 item changed." in told


def test_a_script_that_publishes_is_not_asked(held: Path) -> None:
    done = run(held, "menu", "approve", "main")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Publishing: 2,960 items removed, 1 item changed.")
    assert "Continue?" not in done.stderr


def test_a_bar_shows_how_far_a_menu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("tillbridge.cli.say.AFTER_S", 0.01)
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    with progress(how_far=lambda: ("Updating the storefront", 1200, 3000)):
        deadline = time.monotonic() + 10
        while "1200/3000" not in told.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "Updating the storefront" in told.getvalue()
    assert "1200/3000" in told.getvalue()


def test_a_command_that_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    with progress(lambda: "Pushing"):
        pass
    assert told.getvalue() == ""


def test_on_a_terminal_progress_counts_and_wipes_itself_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("tillbridge.cli.say.AFTER_S", 0.01)
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    with progress(lambda: "Pushing"):
        deadline = time.monotonic() + 10
        while not told.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert told.getvalue().startswith("\rPushing, ")
    assert told.getvalue().endswith(" \r")
