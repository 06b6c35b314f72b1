"""Commands: operations that name one, and functions that are declared here with `@command`.

What is declared as `command="item 86"` is `tillbridge item 86`. Both kinds get their arguments,
help, completion, `--json` and exit code in the same way.
"""

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.answers import ASKED_ON_A_TERMINAL, EFFECTS, SHOWN, progress_text
from tillbridge.cli.control import NotRunning, RunningBridge, find_running, os_user
from tillbridge.cli.say import Arguments, Show
from tillbridge.core.errors import BridgeError, ConfigError, LedgerLocked, nearest
from tillbridge.core.formats import number
from tillbridge.core.i18n import _, in_zone, joined, ngettext
from tillbridge.core.operation import Answer, Argument, Operation, Parameter, parameters_of
from tillbridge.operations import OPERATIONS

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings

Function = TypeVar("Function", bound=Callable[..., object])
T = TypeVar("T")

_JSON = Argument(help=_("Answer as JSON."), option="--json")
_YES = Argument(help=_("Do not ask."), option="--yes")
Json = Annotated[bool, _JSON]  # of a command that prints its answer itself
Yes = Annotated[bool, _YES]
FOLLOWED_S = 120.0  # a menu of 20,000 items is on a storefront by then
_LOOK_AGAIN_S = 0.3
_STARTS_WITHIN_S = 30.0  # a bridge answers by then, also after an update of a large database
COMMANDS: dict[str, Callable[..., None]] = {}  # by what one types: "orders list"


def command(
    path: str,
    show: Show = say.sentence,
    *,
    exit_code: Callable[[Any], int] | None = None,
    is_for_setup: bool = False,
) -> Callable[[Function], Function]:
    """Declare a command that works in this process.

    Its first parameter is `loaded`, the settings, or `context` where it may have to do without.
    The others are declared as an operation's. What it returns is shown, or printed as JSON, and
    ends with `exit_code`; one that returns nothing prints for itself. One `is_for_setup` also works
    with a configuration that names no store yet.
    """

    def declare(run: Function) -> Function:
        loads = "loaded" in inspect.signature(run).parameters
        parameters = parameters_of(run)

        def work(context: typer.Context, given: Arguments) -> object:
            if not loads:
                return run(context, **given)
            loaded = load_settings(context, is_for_setup=is_for_setup)
            _check_names(loaded, parameters, given)
            return run(loaded, **given)

        answers = run.__annotations__["return"] is not None
        shown = show if answers else None
        _add(path, inspect.getdoc(run), parameters.values(), work, shown, exit_code or _exit_code)
        return run

    return declare


def add_operations() -> None:
    """Declare the commands of all operations."""
    for each in OPERATIONS.values():
        if each.command:
            _add_operation(each)


def _add_operation(operation: Operation) -> None:
    effects = EFFECTS.get(operation.name)
    # What has no help is not for the command line.
    parameters = {name: p for name, p in operation.parameters.items() if p.argument.help}
    asks = [] if effects is None else [Parameter("yes", bool, _YES, default=False, is_option=True)]

    def work(context: typer.Context, given: Arguments) -> object:
        loaded = load_settings(context)
        _check_names(loaded, parameters, given)
        named = {name: given[name] for name in parameters if given[name] is not None}
        is_asked = operation.name not in ASKED_ON_A_TERMINAL or sys.stdin.isatty()
        if effects is not None and is_asked and not given["yes"]:
            say.confirm(effects(lambda name: call(loaded, name, named), loaded))
        answer = call(loaded, operation.name, named)
        if operation.name == "menu.approve" and answer["ok"] and sys.stdout.isatty():
            return _followed(loaded, str(given["store"]), answer)
        return answer

    show = SHOWN.get(operation.name, say.sentence)
    _add(operation.command, operation.help, [*parameters.values(), *asks], work, show, _exit_code)


def _add(
    path: str,
    text: str | None,
    parameters: Iterable[Parameter],
    work: Callable[[typer.Context, Arguments], object],
    show: Show | None,
    exit_code: Callable[[Any], int],
) -> None:
    def run(context: typer.Context, **given: Any) -> None:  # noqa: ANN401 -- as declared
        as_json = show is not None and given.pop("as_json")
        answer = work(context, given)
        if as_json:
            say.document(answer)
        elif show is not None:
            say.lines(show(answer, given))
        if show is not None and (code := exit_code(answer)):
            raise typer.Exit(code)

    ordinary = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [inspect.Parameter("context", ordinary, annotation=typer.Context)]
    found += [_parameter(each) for each in parameters]
    if show is not None:
        found.append(_parameter(Parameter("as_json", bool, _JSON, default=False, is_option=True)))
    # What typer reads of a function.
    run.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]  # (as above)
    run.__annotations__ = {each.name: each.annotation for each in found}
    run.__doc__ = text
    COMMANDS[path] = run


def _exit_code(answer: object) -> int:
    return int(isinstance(answer, Mapping) and answer.get("ok") is False)


def _parameter(found: Parameter) -> inspect.Parameter:
    argument = found.argument
    options: dict[str, Any] = {"help": argument.help, "metavar": argument.metavar or None}
    if argument.complete:
        options["autocompletion"] = getattr(complete, argument.complete)
    if argument.least is not None:
        options["min"] = argument.least
    if argument.most is not None:
        options["max"] = argument.most
    if found.is_option:
        names = argument.option.split() or [f"--{found.name.replace('_', '-')}"]
        annotation: Any = Annotated[found.type, typer.Option(*names, **options)]
    else:
        annotation = Annotated[found.type, typer.Argument(**options)]
    named = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(found.name, named, default=found.default, annotation=annotation)


# -- what commands work with


def call(loaded: "LoadedSettings", name: str, arguments: Arguments) -> Any:  # noqa: ANN401 -- as the operation answers
    """Return what the running bridge answers, or do the work here with the ledger's lock held.

    Raises a BridgeError: what the bridge or the work raised, else as `asked_or_alone`.
    """

    def ask(running: RunningBridge) -> Answer:
        how_far = _how_far(running, str(arguments["store"])) if name == "menu.push" else None
        with say.progress(how_far=how_far):
            answer: Answer = running.perform(name, arguments)
            return answer

    def alone() -> Answer:
        import asyncio

        from tillbridge import daemon

        with say.progress():
            return asyncio.run(daemon.perform_alone(loaded, name, arguments, user=os_user()))

    return asked_or_alone(loaded.data_dir, ask, alone)


def asked_or_alone(data_dir: Path, ask: Callable[[RunningBridge], T], alone: Callable[[], T]) -> T:
    """Return what comes of asking the running bridge, or of what is done here without one.

    A bridge that is starting or ending has the ledger and does not answer: `alone` raises
    LedgerLocked. It is waited for, and asked, or done without. Raises LedgerLocked if that takes
    too long, and what `ask` and `alone` raise.
    """
    give_up = time.monotonic() + _STARTS_WITHIN_S
    while True:
        running = find_running(data_dir)
        if running is not None:
            try:
                return ask(running)
            except NotRunning:
                pass  # it ended this very moment
        try:
            return alone()
        except LedgerLocked:
            if time.monotonic() >= give_up:
                raise
        time.sleep(_LOOK_AGAIN_S)


def _how_far(running: RunningBridge, store: str) -> say.HowFar:
    """Return what asks the bridge how far the store's menu is."""

    def ask() -> tuple[str, int, int]:
        try:
            answer = running.perform("menu.progress", {"store": store}, timeout_s=2.0)
        except BridgeError:  # the push itself reports it
            return str(_("Still working")), 0, 0
        return progress_text(answer["phase"]), answer["done"], answer["total"]

    return ask


def _followed(loaded: "LoadedSettings", store: str, answer: Answer) -> Answer:
    """Wait until a change that was approved is on the storefront, and say so."""
    running = find_running(loaded.data_dir)
    if running is None:
        return answer
    give_up = time.monotonic() + FOLLOWED_S
    with say.progress(how_far=_how_far(running, store)):
        while time.monotonic() < give_up:
            state = running.perform("menu.show", {"store": store})
            if state["hold"] is None or not state["hold"]["approved"]:
                count = state["accepted"]
                done = ngettext(
                    "The storefront now has {n} item.", "The storefront now has {n} items.", count
                ).format(n=number(count))
                return {**answer, "text": joined(" ", (answer["text"], done))}
            time.sleep(_LOOK_AGAIN_S)
    text = _("It is not on the storefront yet; see: tillbridge menu history {store}")
    return {**answer, "fix": text.format(store=store)}


def config_path(context: typer.Context) -> Path | None:
    """Return what --config named, None for the search order."""
    return cast("Path | None", context.find_root().obj)


def read_config(context: typer.Context) -> tuple[Path, Path, dict[str, Any]]:
    """Return the configuration's path, its data folder and what it says, unchecked: it is quick.

    Raises ConfigError if it cannot be read.
    """
    from tillbridge.config.toml import data_dir_of, find_file, read_file

    path = find_file(config_path(context))
    _text, configured = read_file(path)
    return path, data_dir_of(path, configured), configured


def load_settings(context: typer.Context, *, is_for_setup: bool = False) -> "LoadedSettings":
    """Load the configuration, and log what goes wrong to stderr. Raises ConfigError."""
    from tillbridge.config.loading import load_to_run
    from tillbridge.core.log import configure

    path = config_path(context)
    loaded = load_to_run(path) if is_for_setup else load_file(path)
    bridge = loaded.settings.bridge
    configure(bridge.log_format, "warning" if bridge.log_level == "info" else bridge.log_level)
    return loaded


def load_file(path: Path | None) -> "LoadedSettings":
    """Load the configuration from this file, or from the first of the usual ones."""
    from tillbridge.config.loading import load

    loaded = load(path)
    # A command beside the service reads the credentials where its unit takes them from.
    credentials = loaded.base_dir / "credentials"
    if credentials.is_dir():
        os.environ.setdefault("CREDENTIALS_DIRECTORY", str(credentials))
    return loaded


def show_zone_of(loaded: "LoadedSettings", store: str = "") -> None:
    """Show times in the zone of a store, else in the one that all of them have."""
    stores = loaded.settings.stores
    zones = {each.timezone for each in stores.values()}
    timezone = stores[store].timezone if store in stores else zones.pop() if len(zones) == 1 else ""
    if timezone:
        from zoneinfo import ZoneInfo

        in_zone(ZoneInfo(timezone))


def _check_names(
    loaded: "LoadedSettings", parameters: Mapping[str, Parameter], given: Arguments
) -> None:
    """Raise ConfigError, which names those there are, for an unknown store or community."""
    settings, path = loaded.settings, loaded.path
    show_zone_of(loaded, str(given.get("store") or ""))
    for parameter, each in parameters.items():
        name = given.get(parameter)
        if name and each.argument.audit == "store" and name not in settings.stores:
            close = nearest(name, settings.stores)
            raise ConfigError(
                _("{path} has no store {name}.").format(path=path, name=name),
                fix=_("Did you mean {name}?").format(name=close)
                if close
                else _("It has: {names}.").format(names=", ".join(settings.stores)),
            )
        if name and each.argument.audit == "community" and name not in settings.communities:
            raise ConfigError(
                _("{path} has no community {name}.").format(path=path, name=name),
                fix=_("It has: {names}.").format(names=", ".join(settings.communities))
                if settings.communities
                else _("Add a table [communities.{name}]; see docs/communities.md.").format(
                    name=name
                ),
            )
