"""Commands made of operations: what is declared as `command="item 86"` is `tillbridge item 86`."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tillbridge.cli import complete, say
from tillbridge.cli.answers import EFFECTS, SHOWN, Arguments
from tillbridge.cli.control import NotRunning, find_running, os_user
from tillbridge.cli.settings import check_community, load_settings, store_of
from tillbridge.core.i18n import _
from tillbridge.core.operation import Answer, Operation, Parameter
from tillbridge.operations import OPERATIONS

if TYPE_CHECKING:
    from tillbridge.config import LoadedSettings


def option(
    name: str,
    text: str,
    metavar: str = "",
    *,
    short: str = "",
    **more: Any,  # noqa: ANN401 -- whatever typer takes
) -> Any:  # noqa: ANN401 -- typer has no name for it
    """Return an option with its help; it is a flag without a `metavar`."""
    names = (name, short) if short else (name,)
    return typer.Option(*names, help=text, metavar=metavar or None, **more)


def argument(metavar: str, text: str, **more: Any) -> Any:  # noqa: ANN401 -- (as above)
    """Return an argument with its help."""
    return typer.Argument(metavar=metavar, help=text, **more)


Store = Annotated[
    str,
    argument("STORE", _("The store's name in bridge.toml."), autocompletion=complete.stores),
]
Json = Annotated[bool, option("--json", _("Answer as JSON."))]

_ORDINARY = inspect.Parameter.POSITIONAL_OR_KEYWORD
_NAMED = inspect.Parameter.KEYWORD_ONLY


def add_operations(app: typer.Typer, group: str) -> None:
    """Add the operations of a group of commands."""
    for each in OPERATIONS.values():
        path, _space, name = each.command.rpartition(" ")
        if path == group and name:
            app.command(name, help=each.help)(_command(each))


def group(name: str, text: str) -> typer.Typer:
    """Return a group of commands that are all operations; `text` is its help."""
    app = typer.Typer(name=name, help=text, no_args_is_help=True)
    add_operations(app, name)
    return app


def call(loaded: "LoadedSettings", name: str, arguments: Mapping[str, Any]) -> Answer:
    """Return what the running bridge answers, or do the work here with the ledger's lock held.

    Raises a BridgeError: what the bridge or the work raised, LedgerLocked where a bridge has the
    ledger and does not answer (it is starting or ending).
    """
    running = find_running(loaded.data_dir)
    with say.progress():
        if running is not None:
            try:
                return running.ask(name, arguments)
            except NotRunning:
                pass  # it ended this very moment
        return _alone(loaded, name, arguments)


def _alone(loaded: "LoadedSettings", name: str, arguments: Mapping[str, Any]) -> Answer:
    import asyncio

    from tillbridge import daemon

    return asyncio.run(daemon.perform_alone(loaded, name, arguments, user=os_user()))


def _command(operation: Operation) -> Callable[..., None]:
    effects, show = EFFECTS.get(operation.name), SHOWN.get(operation.name)

    def command(
        context: typer.Context,
        *,
        as_json: bool = False,
        yes: bool = True,
        **given: Any,  # noqa: ANN401 -- as declared
    ) -> None:
        loaded = load_settings(context)
        for name, each in operation.parameters.items():
            if each.argument.audit == "store" and given.get(name):
                store_of(loaded, given[name])
            elif each.argument.audit == "community":
                check_community(loaded, given[name])
        if effects is not None and not yes:
            say.confirm(effects(lambda name: call(loaded, name, given), loaded), yes=yes)
        perform(
            loaded,
            operation.name,
            {name: each for name, each in given.items() if each is not None},
            lambda answer: say.answered(answer) if show is None else show(answer, given),
            as_json=as_json,
        )

    found = [inspect.Parameter("context", _ORDINARY, annotation=typer.Context)]
    # What has no help is not for the command line.
    found += [_parameter(each) for each in operation.parameters.values() if each.argument.help]
    if effects is not None:
        found.append(inspect.Parameter("yes", _NAMED, default=False, annotation=say.Yes))
    found.append(inspect.Parameter("as_json", _NAMED, default=False, annotation=Json))
    # What typer reads of a function.
    command.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]  # (as above)
    command.__annotations__ = {each.name: each.annotation for each in found}
    return command


def perform(
    loaded: "LoadedSettings",
    name: str,
    arguments: Arguments,
    show: Callable[[Answer], None],
    *,
    as_json: bool,
) -> None:
    """Call an operation and show its answer; ends with 1 where it was not done."""
    answer = call(loaded, name, arguments)
    if as_json:
        say.document(answer)
    else:
        show(answer)
    if answer.get("ok") is False:
        raise typer.Exit(1)


def _parameter(found: Parameter) -> inspect.Parameter:
    argument = found.argument
    words: dict[str, Any] = {"help": argument.help, "metavar": argument.metavar or None}
    if argument.complete:
        words["autocompletion"] = getattr(complete, argument.complete)
    if argument.least is not None:
        words["min"] = argument.least
    if argument.most is not None:
        words["max"] = argument.most
    if found.is_option:
        name = argument.option or f"--{found.name.replace('_', '-')}"
        annotation: Any = Annotated[found.type, typer.Option(name, **words)]
    else:
        annotation = Annotated[found.type, typer.Argument(**words)]
    return inspect.Parameter(found.name, _NAMED, default=found.default, annotation=annotation)
