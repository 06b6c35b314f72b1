"""`tillbridge version`: what this is, and what it fits together with."""

from pathlib import Path
from typing import Any

import typer

import tillbridge
from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.settings import config_path
from tillbridge.core.compatibility import compatibility
from tillbridge.core.i18n import _


def in_short() -> str:
    """Return the version in one line."""
    told = compatibility()
    return _(
        "tillbridge {version} (ledger schema {ledger_schema}, adapter API {adapter_api}, service "
        "specification {specification})"
    ).format(version=tillbridge.__version__, **told)


def version(context: typer.Context, as_json: Json = False) -> None:
    """Show the version, what it fits together with, and what the next start does to the ledger.

    Example: tillbridge version
    """
    import platform
    from importlib.metadata import entry_points

    schema = _schema_on_disk(config_path(context))
    told: dict[str, Any] = {
        "version": tillbridge.__version__,
        **compatibility(),
        "ledger_on_disk": schema,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "adapters": sorted(
            {
                each.name: each.dist.version if each.dist else ""
                for each in entry_points(group="tillbridge.adapters")
            }.items()
        ),
    }
    if as_json:
        say.document({**told, "adapters": dict(told["adapters"])})
        return
    say.line(in_short())
    say.line(_("Python {python} on {platform}").format(**told))
    say.line(
        _("Adapters: {names}").format(
            names=", ".join(f"{name} {each}".strip() for name, each in told["adapters"])
        )
    )
    if schema is not None:
        say.line(_ledger_words(schema, told["ledger_schema"]))


def _ledger_words(on_disk: str, ours: str) -> str:
    if on_disk == ours:
        return _("The ledger here is of this version.")
    if on_disk < ours:
        return _(
            "The ledger here has schema {on_disk}: the next start backs it up and brings it to "
            "{ours}."
        ).format(on_disk=on_disk, ours=ours)
    return _(
        "The ledger here has schema {on_disk}, of a newer tillbridge: install that one, or put a "
        "back-up from before it in place (tillbridge restore)."
    ).format(on_disk=on_disk)


def _schema_on_disk(config: Path | None) -> str | None:
    """Return the schema of the configured ledger; None where there is none to be read."""
    import contextlib
    import sqlite3

    from tillbridge.config.loading import data_dir_of, find_file
    from tillbridge.config.toml import read_file
    from tillbridge.core.errors import ConfigError

    try:
        found = find_file(config)
        path = data_dir_of(found, read_file(found)[1]) / "ledger.db"
        if not path.is_file():
            return None
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as ledger:
            return str(ledger.execute("SELECT version_num FROM alembic_version").fetchone()[0])
    except (ConfigError, OSError, sqlite3.Error, TypeError):
        return None
