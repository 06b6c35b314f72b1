"""`tillbridge logs`: what the bridge wrote down lately, filtered, and what it writes just now."""

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from tillbridge.cli import say
from tillbridge.cli.commands import Json, command
from tillbridge.cli.orders import order_id_called
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.i18n import _
from tillbridge.core.operation import Argument
from tillbridge.core.spans import since_ms

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings

_LOOK_EVERY_S = 0.3
_COLOURS = {"warning": "warning", "error": "error", "critical": "error"}


class LogLevel(StrEnum):
    """The least severe lines that are shown."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@command("logs", is_for_setup=True)
def logs(  # noqa: PLR0913 -- one for each option of the command
    loaded: "LoadedSettings",
    *,
    level: Annotated[
        LogLevel | None,
        Argument("LEVEL", _("Only lines of this level or above: debug, info, warning, error.")),
    ] = None,
    event: Annotated[
        str, Argument("NAME", _("Only events that begin with this, for example order."))
    ] = "",
    text: Annotated[str, Argument("TEXT", _("Only lines with this text in them."))] = "",
    store: Annotated[
        str | None,
        Argument("STORE", _("Only this store's lines."), complete="stores", audit="store"),
    ] = None,
    order: Annotated[
        str, Argument("ID", _("Only this order's lines: its number or id."), complete="orders")
    ] = "",
    since: Annotated[
        str, Argument("TIME", _("Only lines since then: 2h, 18:30, today, ISO 8601."))
    ] = "",
    limit: Annotated[
        int, Argument("N", _("How many of the last lines."), least=1, most=100_000)
    ] = 200,
    follow: Annotated[
        bool, Argument(help=_("Show new lines until Ctrl-C."), option="--follow -f")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the bridge's last log lines, whether it runs or not.

    The log is in the data folder (keep_log_bytes). With --follow and --json, each line is JSON.

    Example: tillbridge logs --level warning --since 2h
    """
    from tillbridge.core.log import LOG_FOLDER
    from tillbridge.diagnostics.log_lines import LogFilter, end_of, following, latest

    if not loaded.settings.bridge.keep_log_bytes:
        raise ConfigError(
            _("The bridge saves no log here."),
            fix=_("Set keep_log_bytes in [bridge] and restart the bridge."),
        )
    if order:
        with contextlib.suppress(LedgerError):  # a damaged ledger has a log all the same
            order = order_id_called(loaded, order)
    folder = loaded.data_dir / LOG_FOLDER
    wanted = LogFilter(level or "", event, text, store or "", order, _since(since))
    place = end_of(folder)
    lines = latest(folder, wanted, limit)
    if not follow and as_json:
        say.document({"lines": lines})
    elif not (follow or lines):
        say.aside(_("No log line matches. Try a longer time or fewer options."))
    else:
        _print(lines, as_json=as_json)
    while follow:
        lines, place = following(folder, place, wanted)
        _print(lines, as_json=as_json)
        if not lines:
            time.sleep(_LOOK_EVERY_S)


def _print(lines: Iterable[Mapping[str, Any]], *, as_json: bool) -> None:
    from tillbridge.diagnostics.log_lines import fields_of

    for line in lines:
        if as_json:
            say.line(json.dumps(line))
            continue
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
        raise ConfigError(str(slip), fix=_("Use --since 2h, 18:30, today or ISO 8601.")) from None
