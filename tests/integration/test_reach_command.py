"""`tillbridge reach` as one types it."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tillbridge.cli.app import app

CONFIG = """
[bridge]
data_dir = "data"
[service]
base_url = "https://service.example/v2"
client_id = "app_123"
client_secret = "s3cret"
[receiver]
listen = "127.0.0.1:18088"
public_url = "https://store.example.net"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "menu.csv"
orders_dir = "orders"
"""


@pytest.fixture
def asked(tmp_path: Path) -> "Asked":
    return Asked(tmp_path / "bridge.toml")


class Asked:
    def __init__(self, config: Path) -> None:
        self.config = config
        config.write_text(CONFIG)

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(app, ["--config", str(self.config), "reach", *words])


def test_four_ways_are_compared_without_a_name(asked: Asked) -> None:
    done = asked()
    assert done.exit_code == 0
    for name in ("cloudflared", "tailscale", "caddy", "direct"):
        assert f"\n{name}: " in done.output
    assert "tillbridge reach " in done.output.splitlines()[-1]
    assert "s3cret" not in done.output


@pytest.mark.parametrize("way", ["cloudflared", "tailscale", "caddy", "direct"])
def test_a_way_ends_with_what_to_test_next(asked: Asked, way: str) -> None:
    done = asked(way)
    assert done.exit_code == 0
    assert "18088" in done.output
    assert "store.example.net" in done.output
    assert done.output.splitlines()[-1] == "Then test it: tillbridge doctor"


def test_a_file_is_printed_alone(asked: Asked) -> None:
    assert asked("caddy", "--file").output.startswith("store.example.net {\n")
    receiver = tomllib.loads(asked("direct", "--file").output)["receiver"]
    assert receiver["listen"] == "0.0.0.0:18088"
    for words in (("--file",), ("tailscale", "--file"), ("ngrok",)):
        assert asked(*words).exit_code == 2, words


def test_programs_read_it_as_json(asked: Asked) -> None:
    told = json.loads(asked("cloudflared", "--json").output)
    assert told["path"] == "/webhooks/"
    (way,) = told["ways"]
    assert way["name"] == "cloudflared"
    assert {"installed", "running", "steps", "cautions"} <= set(way)
