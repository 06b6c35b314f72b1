"""What `config check` finds beyond the file: addresses, and what adapters cannot do."""

import socket
from pathlib import Path

import pytest

from tests.support.bridge_process import free_port
from tests.support.fork_server import run
from tillbridge.core.errors import ConfigError
from tillbridge.setup.proposal import check_address

STORE = """
[bridge]
data_dir = "data"
[service]
base_url = "http://127.0.0.1:9/v2"
client_id = "app_123"
client_secret = "s3cret"
[receiver]
listen = "{receiver}"
public_url = "https://store.example.net"
[status_page]
listen = "{page}"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "{adapter}"
{more}
"""
MENU = 'menu = "menu.csv"'


def checked(
    folder: Path,
    *,
    receiver: str = "127.0.0.1:8088",
    page: str = "127.0.0.1:8089",
    adapter: str = "folder",
    more: str = MENU + '\norders_dir = "orders"',
) -> tuple[int, str]:
    path = folder / "bridge.toml"
    path.write_text(STORE.format(receiver=receiver, page=page, adapter=adapter, more=more))
    ran = run("--config", str(path), "config", "check", within_s=60)
    return ran.returncode, ran.stdout + ran.stderr


def nobody_knows(host: str, *_more: object, **_named: object) -> object:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_an_address_of_another_machine_is_no_place_to_listen(tmp_path: Path) -> None:
    code, told = checked(tmp_path, receiver="198.51.100.77:8088")
    assert code == 2
    assert "line 9: receiver.listen: 198.51.100.77 is not an address of this machine." in told
    assert '"127.0.0.1:PORT"' in told


def test_a_name_that_nobody_knows_is_no_place_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", nobody_knows)
    with pytest.raises(ConfigError, match="this machine does not know the name nowhere"):
        check_address("receiver.listen", "nowhere:8088")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_an_address_of_this_machine_will_do_also_while_the_bridge_has_it(host: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        check_address("receiver.listen", f"{host}:{taken.getsockname()[1]}")


def test_an_adapter_that_takes_no_orders_needs_one_that_does(tmp_path: Path) -> None:
    (tmp_path / "aloha").mkdir()
    options = 'folder = "aloha"'
    code, told = checked(tmp_path, adapter="aloha", more=options)
    assert code == 2
    assert "[stores.main]: with these options, the adapter aloha does not take orders." in told
    assert "line 17" in told
    orders = '[stores.main.orders]\nadapter = "folder"\norders_dir = "orders"\n'
    assert checked(tmp_path, adapter="aloha", more=f"{options}\n{orders}")[0] == 0


def test_what_stands_in_for_a_till_must_print(tmp_path: Path) -> None:
    fallback = '[stores.main.fallback]\nadapter = "folder"\norders_dir = "paper"\n'
    code, told = checked(tmp_path, more=f'{MENU}\norders_dir = "orders"\n{fallback}')
    assert code == 2
    assert "this adapter cannot replace a till" in told
