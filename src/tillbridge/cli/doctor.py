"""`tillbridge doctor`: looks at every link, inside the running bridge or without one."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json
from tillbridge.cli.control import NotRunning, RunningBridge, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.settings import load_settings
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings

Answer = dict[str, Any]

_ANSWER_S = 5.0
_MARKS = {"ok": "ok", "warning": "look", "failed": "BROKEN", "skipped": "-"}


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Check each link between the service and the till, and say what to do.

    DNS, TLS, clock, the public address from outside in, consent, integration, till, disk, ledger
    and versions. Changes nothing; works also while the bridge is down. Ends with 1 where a link is
    broken.

    Example: tillbridge doctor
    """
    loaded = load_settings(context)
    told = examined(loaded, DoctorProgress().tell)
    if as_json:
        say.document({name: value for name, value in told.items() if name != "running"})
    else:
        _show(told)
    raise typer.Exit(0 if told["ok"] else 1)


def examined(loaded: "LoadedSettings", told: Callable[[Answer], None]) -> Answer:
    """Return the report: of the running bridge, or of what can be seen without one."""
    hung = False
    try:
        running = find_running(loaded.data_dir)
        if running is not None:
            return _inside(running, told)
    except NotRunning:
        pass  # it ended this very moment
    except CommandFailed:
        hung = True
    from tillbridge import daemon

    return daemon.examine_alone(loaded, hung=hung, told=told)


def _inside(running: RunningBridge, told: Callable[[Answer], None]) -> Answer:
    run = running.ask("POST", "diagnostics.begin", body={}, timeout_s=_ANSWER_S)["run"]
    while True:
        answer = running.ask("POST", "diagnostics.result", body={"run": run}, timeout_s=_ANSWER_S)
        told(answer)
        if answer["done"]:
            return answer
        time.sleep(0.2)


class DoctorProgress:
    """Tells what is still looked at, once it takes more than a second."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._width = 0
        self._told = False

    def tell(self, answer: Answer) -> None:
        """Take note of how far it is."""
        titles = [
            f"{each['title']} ({each['store']})" if each["store"] else each["title"]
            for each in answer["running"]
        ]
        if sys.stderr.isatty():
            self._line(", ".join(titles) if time.monotonic() - self._began > 1 else "")
        elif titles and not self._told and time.monotonic() - self._began > 1:
            self._told = True
            typer.echo(_("Still looking at: {what}").format(what=", ".join(titles)), err=True)

    def _line(self, text: str) -> None:
        shown = (_("Looking at: {what}").format(what=text)[:78]) if text else ""
        if shown or self._width:
            typer.echo("\r" + shown.ljust(self._width) + "\r", nl=False, err=True)
            self._width = len(shown)


def _show(told: Answer) -> None:
    store, problems = None, False
    for each in told["results"]:
        if each["name"] == "problem" and not problems:
            problems, store = True, ""
            say.line()
            say.line(_("Open problems"))
        if each["store"] != store:
            store = each["store"]
            say.line()
            if store:
                say.line(say.clean(store))
        level = {"failed": "error", "skipped": ""}.get(each["level"], each["level"])
        head = f"  {_MARKS[each['level']]:<7}"
        say.line(head + say.clean(each["text"]), level=level)
        if each["fix"] and each["level"] != "ok":
            say.line(" " * 9 + "-> " + say.clean(each["fix"]))
    say.line()
    level = "error" if told["level"] == "failed" else told["level"]
    say.line(say.clean(told["text"]), level=level)
