"""Operations: every act that a person or a program can ask of the bridge, declared once.

    @operation("item.86", role=Role.STAFF, command="item 86")
    async def take_off(bridge: "Bridge", store: StoreName, item: ItemId, *, until: Until = None):
        '''Mark an item as sold out, whatever the till says. ...'''

The command with its arguments and help, `POST /control/item.86`, the page's action, the role, the
check of the arguments and the entry in the audit trail follow from the declaration. `perform` is
the only way to call one. Declarations are light, because the command line imports them for
`--help`: a function imports what it needs when it runs.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

from tillbridge.core.actor import Actor, Role, acting_as
from tillbridge.core.errors import BridgeError, ConfigError, NotServedHere, ServedElsewhere
from tillbridge.core.i18n import _

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tillbridge.ledger.audit import AuditTrail
    from tillbridge.operations.bridge import Bridge

# What an operation answers. An act's answer has `text`, one sentence for whoever asked, and `ok`
# (false: it was not done, and the command fails). Instants are ISO 8601; those in ms say so.
Answer = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Awaitable[Answer]])


class BadRequest(ConfigError):
    """What was asked for is not understood."""


class Forbidden(BridgeError):
    """Who asked for it may not."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A kind of argument, used as `StoreName = Annotated[str, Argument(...)]`.

    `metavar` and `help` are the command line's (what has no help is not there), as is `option`,
    its names there where they are not the parameter's; `complete` names a function of
    `cli.complete`.
    `audit` says where it is in an entry of the audit trail: as its "store", "community" or
    "target", or under this name among the details; "" for not at all, as with what may hold a
    customer's data or a secret. `resolve` turns the text that was typed into what the operation
    takes: a store, an instant. It is given what the arguments before it were turned into.
    """

    metavar: str = ""
    help: str = ""
    option: str = ""
    complete: str = ""
    audit: str = ""
    least: int | None = None
    most: int | None = None
    resolve: "Callable[[Bridge, Mapping[str, Any], Any], Awaitable[Any]] | None" = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation: its type when it is asked for; required without a default."""

    name: str
    type: Any
    argument: Argument
    default: Any
    is_option: bool

    @property
    def is_required(self) -> bool:
        """Whether it has to be given."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Operation:
    """What is known of an operation; one that `reads` changes nothing and is not audited.

    `command` is what one types after `tillbridge`, "" for what only the page asks. Without a store
    only what may come `before_setup` is performed.
    """

    name: str
    run: Callable[..., Awaitable[Answer]]
    role: Role
    reads: bool
    command: str
    before_setup: bool
    parameters: Mapping[str, Parameter]

    @property
    def help(self) -> str:
        """What it does, as the command's help says it."""
        return inspect.getdoc(self.run) or ""

    def validated(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, those that were left out too. Raises BadRequest."""
        # Not while the command line is built.
        from pydantic import ValidationError  # noqa: PLC0415 -- (as above)

        try:
            model = _model(self.name)(**given)
        except ValidationError as slip:
            first = slip.errors(include_url=False)[0]
            where = ".".join(str(each) for each in first["loc"])
            text = _("The request is not valid: {where}: {what}.")
            raise BadRequest(text.format(where=where, what=first["msg"])) from None
        return {name: getattr(model, name) for name in self.parameters}

    def audited(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of the arguments goes into the audit trail: what is marked, nothing else."""
        entry: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            place, value = parameter.argument.audit, arguments.get(name)
            if place == "community":
                entry["store"] = f"communities/{value}"
            elif place and value is not None:
                entry[place] = value
        return entry


OPERATIONS: dict[str, Operation] = {}
_NAMES = {"store", "community", "target"}  # what is written down as it was given
_ATTEMPTS = 20  # at an act for a store that is on its way from bridge to bridge
_PAUSE_S = 0.5  # between them
_MOST = 2**53  # the numbers that JSON carries exactly; SQLite takes a thousand times as much


def operation(
    name: str, *, role: Role, command: str = "", reads: bool = False, before_setup: bool = False
) -> Callable[[Function], Function]:
    """Declare an operation; `name` is its name in the audit trail and under `/control/` too."""

    def declare(run: Function) -> Function:
        parameters = parameters_of(run)
        OPERATIONS[name] = Operation(name, run, role, reads, command, before_setup, parameters)
        return run

    return declare


class Dispatcher:
    """The only way to an operation: for the page, for commands of a running bridge, and alone.

    It checks role and arguments, and writes down what was done.
    """

    def __init__(self, bridge: "Bridge", trail: "AuditTrail") -> None:
        self._bridge = bridge
        self.trail = trail

    def zone(self, store: str = "") -> tzinfo | None:
        """Return the time zone of a store, else the one that all have; None is this machine's."""
        return self._bridge.zone(store)

    async def perform(self, name: str, given: Mapping[str, Any], actor: Actor) -> Any:  # noqa: ANN401 -- as declared
        """Do what `actor` asks for, here or at the bridge that serves its store; return the answer.

        An act waits up to ten seconds for a store that moves to another bridge. Raises as
        `perform_here`.
        """
        import asyncio  # noqa: PLC0415 -- declarations are light, as above

        for _attempt in range(_ATTEMPTS - 1):
            try:
                return await self._perform_anywhere(name, given, actor)
            except NotServedHere:
                if self._bridge.ask is None or OPERATIONS[name].reads:
                    raise
            await asyncio.sleep(_PAUSE_S)
        return await self._perform_anywhere(name, given, actor)

    async def _perform_anywhere(self, name: str, given: Mapping[str, Any], actor: Actor) -> Any:  # noqa: ANN401 -- as declared
        try:
            return await self.perform_here(name, given, actor)
        except ServedElsewhere as elsewhere:
            if self._bridge.ask is None:
                raise
            return await self._bridge.ask(elsewhere, name, given, actor)

    async def perform_here(self, name: str, given: Mapping[str, Any], actor: Actor) -> Any:  # noqa: ANN401 -- as declared
        """Do what `actor` asks for, and return the operation's answer.

        Raises what the operation raises, BadRequest for arguments that are not understood, and
        Forbidden for a role that may not. What is no BridgeError is a defect: what an argument can
        cause is a BridgeError, here or in the operation.
        """
        found = OPERATIONS.get(name)
        if found is None:
            raise BadRequest(_("There is no operation {name}.").format(name=name))
        if (actor.role or Role.ANYBODY) < found.role:
            raise Forbidden(_("That needs the role {role}.").format(role=found.role.word))
        if not (self._bridge.is_set_up or found.before_setup):
            raise ConfigError(
                _("Nothing is set up yet."),
                fix=_("Set it up on the page: /setup, see docs/setup.md."),
            )
        arguments = found.validated(given)
        with acting_as(actor):
            if found.reads:
                return await self._run(found, arguments)
            try:
                answer = await self._run(found, arguments)
            except NotServedHere:
                raise  # nothing was done
            except Exception as failure:  # also a defect: somebody tried, and part may be done
                kind = type(failure).__name__
                await self.trail.note(name, ok=False, failure=kind, **found.audited(arguments))
                raise
            ok = answer.get("ok") is not False
            await self.trail.note(name, ok=ok, **found.audited(arguments))
            return answer

    async def _run(self, found: Operation, arguments: dict[str, Any]) -> Answer:
        """Run it with what `arguments` stand for; they stay as they go into the audit trail."""
        resolved: dict[str, Any] = {}
        for name, parameter in found.parameters.items():
            argument, given = parameter.argument, arguments[name]
            resolved[name] = given
            if argument.resolve is None or given is None:
                continue
            if argument.audit not in _NAMES:
                del arguments[name]  # what is not understood is not written down
            resolved[name] = await argument.resolve(self._bridge, resolved, given)
            if argument.audit not in _NAMES:
                arguments[name] = resolved[name]
        return await found.run(self._bridge, **resolved)


def parameters_of(function: Callable[..., object]) -> dict[str, Parameter]:
    """Return the parameters of an operation or a command, but for the first: what it works on."""
    found = list(inspect.signature(function).parameters.values())[1:]
    return {each.name: _parameter(each) for each in found}


def _parameter(found: inspect.Parameter) -> Parameter:
    kind, argument = found.annotation, Argument()
    if get_origin(kind) is Annotated:
        kind, *marks = get_args(kind)
        argument = next((each for each in marks if isinstance(each, Argument)), argument)
    if argument.resolve is not None:
        kind = str if found.default is inspect.Parameter.empty else str | None
    is_option = found.kind is inspect.Parameter.KEYWORD_ONLY
    return Parameter(found.name, kind, argument, found.default, is_option)


@cache
def _model(name: str) -> "type[BaseModel]":
    # Not while the command line is built.
    from pydantic import ConfigDict, Field, create_model  # noqa: PLC0415 -- (as above)

    fields: dict[str, Any] = {}
    for each in OPERATIONS[name].parameters.values():
        default = ... if each.is_required else each.default
        least, most = each.argument.least, each.argument.most
        if int in {each.type, *get_args(each.type)}:
            least = -_MOST if least is None else least
            most = _MOST if most is None else most
        fields[each.name] = (each.type, Field(default, ge=least, le=most))
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
