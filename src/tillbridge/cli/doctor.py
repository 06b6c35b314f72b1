"""What helps if something is wrong: `doctor`, `support-bundle`, `reach` and `logs`."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tillbridge.cli import say
from tillbridge.cli.commands import Json, command
from tillbridge.cli.control import NotRunning, RunningBridge, find_running
from tillbridge.cli.exits import CommandFailed
from tillbridge.cli.orders import order_id_called
from tillbridge.cli.say import Arguments, Lines
from tillbridge.cli.status import current_status
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError, ConfigError, LedgerError
from tillbridge.core.formats import since_ms
from tillbridge.core.i18n import N_, _
from tillbridge.core.operation import Answer, Argument

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings


_ANSWER_S = 5.0
_WIDEST = 60
_MARKS = {"ok": N_("ok"), "warning": N_("look"), "failed": N_("BROKEN"), "skipped": "-"}


def _show(report: Answer, _given: Arguments) -> Lines:
    store, problems = None, False
    for each in report["results"]:
        if each["name"] == "problem" and not problems:
            problems, store = True, ""
            yield ""
            yield _("Open problems")
        if each["store"] != store:
            store = each["store"]
            yield ""
            if store:
                yield store
        level = {"failed": "error", "skipped": ""}.get(each["level"], each["level"])
        yield f"  {_(_MARKS[each['level']]):<7}{each['text']}", level
        if each["fix"] and each["level"] != "ok":
            yield " " * 9 + f"-> {each['fix']}"
    yield ""
    level = "error" if report["level"] == "failed" else report["level"]
    yield report["text"], level


@command("doctor", _show)
def doctor(loaded: "LoadedSettings") -> Answer:
    """Run diagnostics: check each link from the ordering service to the till, and say what to do.

    DNS, TLS, clock, public address, sign-in, connection, till, disk, database and versions.
    Changes nothing, and works also while the bridge is stopped. Exit code 1: a check failed.

    Example: tillbridge doctor
    """
    report = _examined(loaded)
    return {name: value for name, value in report.items() if name != "running"}


def _examined(loaded: "LoadedSettings") -> Answer:
    """Return the report: of the running bridge, or of what can be seen without one."""
    running: list[str] = []  # the titles of what is looked at now

    def note(answer: Answer) -> None:
        running[:] = [
            f"{each['title']} ({each['store']})" if each["store"] else each["title"]
            for each in answer["running"]
        ]

    def what() -> str:
        return str(_("Still checking: {what}").format(what=", ".join(running)))[:_WIDEST]

    with say.progress(what):
        hung = False
        try:
            bridge = find_running(loaded.data_dir)
            if bridge is not None:
                return _inside(bridge, note)
        except NotRunning:
            pass  # it ended this very moment
        except CommandFailed:
            hung = True
        from tillbridge import daemon

        return daemon.examine_alone(loaded, hung=hung, on_progress=note)


def _inside(bridge: RunningBridge, on_progress: Callable[[Answer], None]) -> Answer:
    run = bridge.perform("diagnostics.begin", {}, timeout_s=_ANSWER_S)
    while True:
        answer: Answer = bridge.perform("diagnostics.result", run, timeout_s=_ANSWER_S)
        on_progress(answer)
        if answer["done"]:
            return answer
        time.sleep(0.2)


@command("support-bundle")
def support_bundle(
    loaded: "LoadedSettings",
    *,
    output: Annotated[
        Path | None, Argument("FILE", _("The zip file to write. Default: one in this folder."))
    ] = None,
    preview: Annotated[bool, Argument(help=_("Only show what it would contain."))] = False,
    yes: Annotated[bool, Argument(help=_("Do not ask."))] = False,
    as_json: Json = False,
) -> None:
    """Create a support file: versions, settings, status, diagnostics and log, without secrets.

    Shows what it contains before it writes it. Customer data and secrets are removed. Works also
    while the bridge is stopped.

    Example: tillbridge support-bundle --output support.zip
    """
    from tillbridge.diagnostics.bundle import gather

    if output is not None and output.exists():
        raise ConfigError(
            _("{path} exists already.").format(path=output),
            fix=_("Choose another file, or delete that one."),
        )
    report = _examined(loaded)
    bundle = gather(loaded, _status(loaded), report, now_ms=Clock().now_ms())
    path, files = output or Path(bundle.file_name), bundle.preview()
    if not as_json:
        for each in files:
            say.line(f"{each['name']:<20}{each['size']:>9,} B")
            for line in each["first"]:
                say.line("    " + say.clean(line))
        say.line()
    if not preview:
        # On a terminal a person has just seen what is in it; in a pipe there is nobody to ask.
        asks = sys.stdin.isatty() and not yes and not as_json
        if asks and not typer.confirm(str(_("Write it to {path}?").format(path=path)), err=True):
            raise typer.Exit(1)
        _write(path, bundle.zipped())
    if as_json:
        say.document({"ok": True, "file": None if preview else str(path), "files": files})
    elif not preview:
        say.line(_("Created {path}. Nothing was sent.").format(path=path), level="ok")


def _status(loaded: "LoadedSettings") -> Mapping[str, object]:
    from tillbridge.config.toml import read_file
    from tillbridge.status.stopped import status_from_ledger

    configured = read_file(loaded.path)[1]
    try:
        try:
            return current_status(loaded.path, loaded.data_dir, configured)
        except CommandFailed:  # it hangs: report what the ledger shows
            return status_from_ledger(loaded.path, loaded.data_dir, configured)
    except BridgeError as failure:
        return {"error": failure.text}


def _write(path: Path, data: bytes) -> None:
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data)
    except OSError as failure:
        raise BridgeError(
            _("{path} cannot be written: {detail}.").format(path=path, detail=failure.strerror),
            fix=_("Choose another file with --output."),
        ) from failure


# -- how the internet may reach the receiver, as configuration to copy


@command("reach")
def reach(
    loaded: "LoadedSettings",
    way: Annotated[
        Literal["cloudflared", "tailscale", "caddy", "direct"] | None,
        Argument("[WAY]", _("The way to show. Default: compare all four.")),
    ] = None,
    *,
    file_only: Annotated[
        bool, Argument(help=_("Print only the file of this way."), option="--file")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show how orders can reach this machine: a tunnel, a web server, or port forwarding.

    Prints every command and file with your address, port and path. Changes nothing.

    Example: tillbridge reach caddy
    """
    if file_only and way is None:
        raise typer.BadParameter(_("Add a way: tillbridge reach caddy --file"))
    from tillbridge.diagnostics.reach import guidance, place_of

    answer = guidance(place_of(loaded.settings, loaded.path))
    chosen = [each for each in answer["ways"] if way is None or each["name"] == way]
    if as_json:
        say.document({**answer, "ways": chosen})
    elif file_only:
        files = [step["content"] for step in chosen[0]["steps"] if step["file"]]
        if not files:
            raise typer.BadParameter(
                _("This way needs no file. See its commands: tillbridge reach {way}").format(
                    way=way
                )
            )
        sys.stdout.write(files[-1])
    else:
        say.lines(_show_ways({**answer, "ways": chosen}, whole=way is not None))


def _show_ways(answer: Answer, *, whole: bool) -> Lines:
    text = _("Deliveries to {public_url} must reach {receiver}; only {path} has to be open.")
    yield text.format_map(answer)
    yield from ((each, "warning") for each in answer["cautions"])
    for way in answer["ways"]:
        yield ""
        yield from _show_way(way, fits=way["name"] == answer["fits"])
        for number, step in enumerate(way["steps"] if whole else (), 1):
            yield from _show_step(number, step)
    yield ""
    if whole:
        yield _("Then test it: {command}").format(command=answer["next"])
    else:
        text = _("See its steps: {command}")
        yield text.format(command=f"tillbridge reach {answer['fits']}")


def _show_way(way: Answer, *, fits: bool) -> Lines:
    marks = []
    if way["running"]:
        marks.append(_("running"))
    elif way["installed"]:
        marks.append(_("installed, not running") if way["running"] is False else _("installed"))
    if fits:
        marks.append(_("recommended here"))
    shown = f" ({', '.join(marks)})" if marks else ""
    yield f"{way['name']}: {way['title']}{shown}", "ok" if fits else ""
    yield "  " + way["text"]
    for caution in way["cautions"]:
        yield "  " + caution, "warning"


def _show_step(number: int, step: Answer) -> Lines:
    yield ""
    yield f"{number}. {step['text']}"
    if step["file"]:
        yield ""
        yield f"   {step['file']}:"
        # As on a terminal: what steers one is taken out of a line, a tab too.
        yield from (f"     {row.expandtabs(8)}".rstrip() for row in step["content"].splitlines())
    if step["commands"]:
        yield ""
        yield from (f"   $ {each}" for each in step["commands"])


_LOOK_EVERY_S = 0.3
# -- `tillbridge logs`: the last lines of the log, and those that come

_COLOURS = {"warning": "warning", "error": "error", "critical": "error"}


@command("logs", is_for_setup=True)
def logs(  # noqa: PLR0913 -- one for each option of the command
    loaded: "LoadedSettings",
    *,
    level: Annotated[
        Literal["debug", "info", "warning", "error"] | None,
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
        with contextlib.suppress(LedgerError):  # a damaged ledger has a log anyway
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
