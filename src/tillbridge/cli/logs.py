"""`tillbridge logs`: what the bridge wrote down lately, filtered, and what it writes just now."""

import json
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.commands import Json, option
from tillbridge.cli.settings import load_settings, store_of
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError
from tillbridge.core.i18n import _
from tillbridge.core.spans import since_ms

if TYPE_CHECKING:
    from pathlib import Path

    from tillbridge.diagnostics.log_lines import LogFilter

_LOOK_EVERY_S = 0.3
_COLOURS = {"warning": "warning", "error": "error", "critical": "error"}


class LogLevel(StrEnum):
    """The least severe lines that are shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def logs(  # noqa: PLR0913, PLR0917 -- one for each option of the command
    context: typer.Context,
    level: Annotated[
        LogLevel | None,
        option("--level", _("Only lines as severe: debug, info, warning, error."), "LEVEL"),
    ] = None,
    event: Annotated[
        str,
        option("--event", _("Only events that begin so, as order."), "NAME"),
    ] = "",
    text: Annotated[str, option("--text", _("Only lines with this text in them."), "TEXT")] = "",
    store: Annotated[
        str | None,
        option("--store", _("Only this store's lines."), "STORE", autocompletion=complete.stores),
    ] = None,
    order: Annotated[
        str,
        option("--order", _("Only this order's lines."), "ID", autocompletion=complete.orders),
    ] = "",
    since: Annotated[
        str,
        option("--since", _("Only lines since then: 2h, 18:30, today, ISO 8601."), "TIME"),
    ] = "",
    limit: Annotated[
        int,
        option("--limit", _("How many, the last ones."), "N", min=1, max=100_000),
    ] = 200,
    follow: Annotated[
        bool, option("--follow", _("Go on with new lines, until Ctrl-C."), short="-f")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the bridge's last log lines, while it runs and when it does not any more.

    Kept in the data folder (keep_log_bytes). With --follow and --json each line is a JSON object.

    Example: tillbridge logs --level warning --since 2h
    """
    from tillbridge.diagnostics.log_lines import LogFilter

    loaded = load_settings(context)
    if store is not None:
        store_of(loaded, store)
    wanted = LogFilter(level or "", event, text, store or "", order, _since(since))
    folder = _folder(loaded.data_dir, loaded.settings.bridge.keep_log_bytes)
    if follow:
        _follow(folder, wanted, limit, as_json=as_json)
    else:
        _show(folder, wanted, limit, as_json=as_json)


def _show(folder: "Path", wanted: "LogFilter", limit: int, *, as_json: bool) -> None:
    from tillbridge.diagnostics.log_lines import latest

    lines = latest(folder, wanted, limit)
    if as_json:
        say.document({"lines": lines})
    elif lines:
        _tell(lines)
    else:
        say.aside(_("No line fits. The bridge keeps its log from its first start on."))


def _follow(folder: "Path", wanted: "LogFilter", limit: int, *, as_json: bool) -> None:
    from tillbridge.diagnostics.log_lines import end_of, following, latest

    place = end_of(folder)
    lines = latest(folder, wanted, limit)
    while True:
        if as_json:
            for line in lines:
                say.line(json.dumps(line))
        else:
            _tell(lines)
        lines, place = following(folder, place, wanted)
        if not lines:
            time.sleep(_LOOK_EVERY_S)


def _tell(lines: Iterable[Mapping[str, Any]]) -> None:
    from tillbridge.diagnostics.log_lines import fields_of

    for line in lines:
        level = str(line.get("level", ""))
        fields = " ".join(f"{name}={value}" for name, value in fields_of(line).items())
        text = f"{_time(line.get('at'))} {level:<7} {line.get('event', '')}  {fields}".rstrip()
        say.line(say.clean(text), level=_COLOURS.get(level, ""))
        for each in str(line.get("exception") or "").splitlines():
            say.line("    " + say.clean(each))


def _time(at: object) -> str:
    try:
        return say.local_time(str(at or ""))
    except (ValueError, OverflowError, OSError):  # a file that somebody wrote into
        return str(at)


def _since(text: str) -> int | None:
    if not text:
        return None
    try:
        return since_ms(text, now_ms=Clock().now_ms(), zone=None)
    except (ValueError, OverflowError) as slip:
        raise ConfigError(str(slip), fix=_("Say --since 2h, 18:30, today or ISO 8601.")) from None


def _folder(data_dir: "Path", keep_log_bytes: int) -> "Path":
    from tillbridge.core.log import LOG_FOLDER

    if not keep_log_bytes:
        raise ConfigError(
            _("No log is kept here."),
            fix=_("Set keep_log_bytes in [bridge], and restart the bridge."),
        )
    return data_dir / LOG_FOLDER
