"""The daemon imports only what it needs; what is heavy and seldom needed stays out."""

import subprocess
import sys
from pathlib import Path

_START = """
import sys
from importlib import metadata
from pathlib import Path

asked = []
metadata.entry_points = lambda **which: asked.append(which) or ()

from tillbridge.configfile.fresh import load_to_run
from tillbridge.adapters.loader import find_adapter

loaded = load_to_run(Path(sys.argv[1]))
import tillbridge.daemon
find_adapter(loaded.settings.stores["main"].pos.adapter)
print([name for name in sys.argv[2:] if name in sys.modules], asked)
"""

_NEVER = [
    "alembic",
    "greenlet",
    "jinja2",
    "multiprocessing",
    "prometheus_client",
    "rich",
    "tillbridge.adapters.folder.menu_json",
    "tillbridge.catalogue.table_round",
    "tillbridge.daemon.condition",
    "tillbridge.model.hours",
    "tillbridge.receiver.certificate",
    "tillbridge.status.control_routes",
    "typer",
    "watchfiles",
]


def test_the_daemon_imports_nothing_that_it_does_without(tmp_path: Path) -> None:
    config = tmp_path / "bridge.toml"
    config.write_text(
        """
        [service]
        base_url = "http://127.0.0.1:9/v2"
        client_id = "app"
        client_secret = "secret"
        [receiver]
        public_url = "https://store.example"
        [stores.main]
        location_id = "loc-1"
        currency = "USD"
        [stores.main.pos]
        adapter = "folder"
        menu = "menu.csv"
        """
    )
    told = subprocess.run(
        [sys.executable, "-c", _START, str(config), *_NEVER],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "[] []"
