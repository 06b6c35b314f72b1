"""Tills that are no folder: one behind the sample program, and one that is a database."""

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tillbridge.adapter import Item
from tillbridge.pos.scaffold import make_package
from tillbridge_sql.rig_profiles import UnicentaOnPostgresql

_TELL = """
CREATE OR REPLACE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('tillbridge', TG_ARGV[0]); RETURN NULL; END $$
"""
_TRIGGER = """
CREATE OR REPLACE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION tell('{what}')
"""


class CornerShop:
    """A till's files behind the sample program; `settings` are those of its adapter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "corner"
        self.program = folder / "corner.py"
        (self.folder / "tickets").mkdir(parents=True)
        (self.folder / "news").mkdir()
        self.made = make_package("corner", folder / "adapter", "process").folder / "corner.py"
        shutil.copy(self.made, self.program)

    @property
    def settings(self) -> str:
        command = json.dumps([sys.executable, str(self.program)])
        return (
            f'adapter = "process"\ncommand = {command}\n'
            f"options = {{ folder = {json.dumps(str(self.folder))} }}\n"
            "restart_cap_s = 0.2\nsteady_s = 1\n"
        )

    def sell(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Export a menu: `external_id`, `name` and `price` of each row."""
        lines = [
            json.dumps({"id": row["external_id"], "name": row["name"], "price": row["price"]})
            for row in rows
        ]
        fresh = self.folder / "menu.jsonl.new"
        fresh.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        fresh.replace(self.folder / "menu.jsonl")


def telling_database(folder: Path, items: Iterable[Item]) -> UnicentaOnPostgresql:
    """Return a till that sells these, and tells of changes. CannotDo: there is no PostgreSQL."""
    folder.mkdir()
    rig = UnicentaOnPostgresql(folder)
    rig.run(
        _TELL,
        _TRIGGER.format(table="products", what="catalogue"),
        _TRIGGER.format(table="stockcurrent", what="availability"),
    )
    rig.sell(list(items), "USD")
    return rig


def database_settings(rig: UnicentaOnPostgresql) -> str:
    """Return the settings of its adapter, for a bridge.toml in the folder above its own."""
    options = rig.options()
    return f"""
adapter = "sql"
profile = "{options["profile"]}"
url = "{options["url"]}"
password = {{ file = "{rig.folder.name}/password" }}
parameters = {{ host = "till-1", stock_location = "0" }}
orders = true
change = "notify"
timeout_s = 2
health_s = 0.5
"""


def close_database(rig: UnicentaOnPostgresql) -> None:
    """Leave it as it was found, for the next one; its bridge has ended."""
    rig.server.start()  # whatever has become of it
    rig.run("DROP FUNCTION tell CASCADE")
    rig.close()
