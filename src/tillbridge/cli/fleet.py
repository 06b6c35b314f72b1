"""`tillbridge fleet ...`: many bridges, seen from one place."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, add_operations, argument, option
from tillbridge.core.i18n import _

app = typer.Typer(help=_("Many bridges, seen from one place."), no_args_is_help=True)

_ON_ITS_WAY_S = 1.0
_LEVELS = {"ok": "ok", "warning": "warning"}


add_operations(app, "fleet")


@app.command()
def show(
    folder: Annotated[Path, argument("FOLDER", _("Where the reports are collected."))],
    keys: Annotated[
        Path,
        option("--keys", _("Lines NAME KEY (tillbridge fleet key)."), "FILE"),
    ],
    silent_after: Annotated[
        float,
        option(
            "--silent-after",
            _("A report that is older means that the bridge is silent."),
            "SECONDS",
            min=1,
        ),
    ] = 300,
    as_json: Json = False,
) -> None:
    """Show a folder of signed reports, the worst bridge first. Needs no configuration.

    Ends with 1 where a bridge is down, silent, or not to be believed.

    Example: tillbridge fleet show /srv/reports --keys keys.txt
    """
    from tillbridge.core.errors import ConfigError
    from tillbridge.fleet.minisign import NotSigned
    from tillbridge.fleet.report import look, read_keys, summary

    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    try:
        known = read_keys(keys.read_text(encoding="utf-8"))
        if not folder.is_dir():
            _no_folder(folder)
        seen = look(folder, known, now_ms=now_ms, silent_after_s=silent_after)
        if any(each.level == "untrusted" for each in seen):
            # A report and its signature are two files: one of them may have been on its way.
            time.sleep(_ON_ITS_WAY_S)
            seen = look(folder, known, now_ms=now_ms, silent_after_s=silent_after)
    except (NotSigned, UnicodeDecodeError) as slip:
        raise ConfigError(
            _("{path}: {slip}.").format(path=keys, slip=slip),
            fix=_("Write the lines that `tillbridge fleet key` prints at each bridge."),
        ) from slip
    except OSError as failure:
        raise ConfigError(
            _("{path} cannot be read: {detail}.").format(
                path=failure.filename, detail=failure.strerror
            ),
            fix=_("Name a file of keys and a folder that you may read."),
        ) from failure
    well = all(each.level in {"ok", "warning"} for each in seen)
    if as_json:
        say.document({"bridges": [asdict(each) for each in seen], "text": summary(seen)})
    else:
        for each in seen:
            say.line(
                say.clean(f"{each.level:<10}{each.bridge:<24}{each.text}"),
                level=_LEVELS.get(each.level, "down"),
            )
            for problem in each.problems:
                say.line(say.clean(f"{'':<34}{problem}"))
        say.line(summary(seen))
    raise typer.Exit(0 if well else 1)


def _no_folder(folder: Path) -> NoReturn:
    from tillbridge.core.errors import ConfigError

    raise ConfigError(
        _("{path} is not a folder.").format(path=folder),
        fix=_("Name the folder in which the reports are collected."),
    )
