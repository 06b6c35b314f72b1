"""The adapter: what the program can do, as methods; its answers, as values and failures."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Never

from pydantic import Field, ValidationError

from tillbridge import adapter as api
from tillbridge.adapter.registration import FILE_ONLY
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger
from tillbridge.core.redaction import learn_secret, secret_options
from tillbridge.model.money import exponent
from tillbridge.pos.loader import first_fault
from tillbridge.pos.process.program import (
    Limits,
    NotAnswered,
    NotSent,
    ProgramSupervisor,
    Unusable,
    environment,
)
from tillbridge.pos.process.wire import (
    METHODS,
    BridgeHello,
    Capability,
    Event,
    Failure,
    MissingResult,
    Result,
)

NonEmpty = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


_FAILURES: Mapping[str, type[api.PosFailure]] = {
    each.__name__: each
    for each in (
        api.PosOffline,
        api.StoreClosed,
        api.AtCapacity,
        api.PriceMismatch,
        api.PosFailure,
        api.TicketOutcomeUnknown,
    )
}
_CHANGES = {
    "catalogue_changed": api.Change.CATALOGUE,
    "availability_changed": api.Change.AVAILABILITY,
    "tables_changed": api.Change.TABLES,
    "health_changed": api.Change.HEALTH,
    "order_status": api.Change.UPDATES,
}


class ProcessOptions(api.AdapterOptions):
    """Which program, where it runs, what it is given, and for how long it is waited for."""

    command: tuple[NonEmpty, ...] = Field(
        min_length=1,
        json_schema_extra={FILE_ONLY: True},
        title=_("Program"),
        description=_(
            'The program and its arguments: command = ["dotnet", "MyTill.dll"]. No shell.'
        ),
    )
    cwd: Path = Field(
        Path(),
        json_schema_extra={FILE_ONLY: True},
        title=_("Folder it runs in"),
        description=_("The folder it runs in; relative ones count from bridge.toml."),
    )
    env: tuple[NonEmpty, ...] = Field(
        (),
        json_schema_extra={FILE_ONLY: True},
        title=_("Environment variables"),
        description=(
            _(
                "Names of environment variables that are handed on; of the others it gets only "
                "PATH, "
                "HOME, the language and the time zone."
            )
        ),
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        repr=False,  # a key may be among them
        title=_("Options of the program"),
        description=_("What the program is told at its start; its own affair."),
    )
    capabilities: tuple[Capability, ...] = Field(
        ("catalogue", "tickets", "health"),
        title=_("What the program can do"),
        description=(
            _("What to expect of a program that cannot say so itself when the bridge starts.")
        ),
    )
    start_s: Seconds = Field(
        10, title=_("Time to start (s)"), description=_("It must have said hello by then.")
    )
    answer_s: Seconds = Field(
        10,
        title=_("Time for an answer (s)"),
        description=_("It must have answered by then about orders and health, or it is ended."),
    )
    read_s: Seconds = Field(
        60,
        title=_("Time to read (s)"),
        description=_("The same for reading menus, availability and tables."),
    )
    restart_cap_s: Seconds = Field(
        60,
        title=_("Longest wait before a restart (s)"),
        description=_("The longest wait before it is started again."),
    )
    steady_s: Seconds = Field(
        60,
        title=_("Steady after (s)"),
        description=_("After running so long it counts as well again."),
    )


class NotUnderstood(Exception):
    """The program answered with something that is no answer to the question: its defect."""

    fix = _("Correct what the program answers: docs/adapters/process.md says what is expected.")


class ProcessAdapter:
    """A till behind a program. It has the methods of the capabilities that the program declares."""

    def __init__(self, options: ProcessOptions, context: api.AdapterContext) -> None:
        self._options = options
        self.last_method = ""  # for tests of adapters
        self._lock = threading.Lock()
        self._pushed: dict[str, api.TicketUpdate] = {}
        self._notify: Callable[[api.Change], None] = lambda _change: None
        self._cwd = (context.base_dir / options.cwd).resolve()
        # Mask what it is given, should it ever write it: to stderr, or into a failure.
        named = (os.environ.get(name, "") for name in options.env)
        forwarded = (value for value in named if not value.startswith("/"))  # a path is no secret
        for secret in (*secret_options(options.options), *forwarded):
            learn_secret(secret)
        self._program = ProgramSupervisor(
            options.command,
            cwd=self._cwd,
            env=environment(options.env, os.environ),
            hello=BridgeHello(
                store=context.store,
                currency=context.currency,
                decimals=exponent(context.currency),
                location_id=context.location_id,
                base_dir=str(context.base_dir.resolve()),
                options=options.options,
            ).model_dump(),
            limits=Limits(options.start_s, options.restart_cap_s, options.steady_s),
            store=context.store,
            on_event=self._event_received,
            on_ready=self._ready,
        )
        self.trouble, self.close = self._program.trouble, self._program.close
        # For tests of adapters: why the program cannot be asked now, what it wrote, and its crash.
        self.absence, self.stderr_tail = self._program.absence, self._program.stderr_tail
        self.kill = self._program.kill
        try:
            hello = self._program.start()
        except Unusable as failure:
            self._program.close()
            raise ValueError(str(failure)) from failure
        self._files = hello.files if hello is not None else None
        self._can = frozenset(options.capabilities if hello is None else hello.capabilities)
        for capability, names in _PARTS.items():
            if capability in self._can:
                for name in names:
                    setattr(self, name, self._method(name))

    # -- what every program has: whether it is there at all

    def health(self) -> api.Health:
        """Return what the program reports; of one that reports nothing, whether it runs."""
        if "health" not in self._can:
            absence = self.absence()
            return api.Health(online=not absence, detail=absence)
        try:
            found: api.Health = self._ask("health")
        except api.PosFailure as failure:
            return api.Health(online=False, detail=failure.message, fix=failure.fix)
        return found

    # -- what it may declare

    def _late_write_s(self) -> float:
        hello = self._program.hello
        return 0.0 if hello is None else hello.late_write_s

    def _read_updates(self) -> Sequence[api.TicketUpdate]:
        updates: tuple[api.TicketUpdate, ...] = self._ask("read_updates")
        known = {update.key for update in updates}
        with self._lock:
            return (*updates, *(each for key, each in self._pushed.items() if key not in known))

    def _update_handled(self, update: api.TicketUpdate) -> None:
        self._ask("update_handled", key=update.key)
        with self._lock:
            self._pushed.pop(update.key, None)

    def _on_change(self, callback: Callable[[api.Change], None]) -> None:
        self._notify = callback

    # -- inside

    def _method(self, name: str) -> Callable[..., Any]:
        """Return the method of that name; those that only ask differ in what they ask with."""
        if name in _FILES:
            return partial(self._paths, _FILES[name])
        if name in _PARAMS:
            params = _PARAMS[name]
            return lambda *given, **named: self._ask(name, **params(*given, **named))
        found: Callable[..., Any] = getattr(self, f"_{name}", partial(self._ask, name))
        return found

    def _paths(self, kind: str) -> Sequence[Path]:
        named = () if self._files is None else getattr(self._files, kind)
        return tuple(self._cwd / name for name in named)

    def _event_received(self, event: Event) -> None:
        if event.update is not None:
            with self._lock:
                self._pushed[event.update.key] = event.update.value()
        self._notify(_CHANGES[event.event])

    def _ready(self) -> None:
        """Look at everything again: nobody reported what changed while it was away."""
        hello = self._program.hello
        if hello is not None and hasattr(self, "_can"):
            found = frozenset(hello.capabilities)
            if found != self._can:  # what was not known when the bridge started
                get_logger().warning(
                    "adapter.capabilities_differ",
                    adapter=hello.name,
                    new=sorted(found - self._can),
                    gone=sorted(self._can - found),
                )
        for change in api.Change:
            self._notify(change)

    def _ask(self, method: str, **params: object) -> Any:  # noqa: ANN401 -- each method has a result of its own
        """Return what the program answers. Raises the failure that it states, or its absence."""
        self.last_method = method
        reads = method in _READINGS
        limit_s = self._options.read_s if reads else self._options.answer_s
        try:
            found = METHODS[method].result_of(self._program.ask(method, params, limit_s))
        except (NotSent, NotAnswered) as failure:
            if reads:
                raise api.ExportUnreadable(
                    str(failure),
                    place=Path(self._options.command[0]).name,
                    fix=_("The bridge restarts it. If this continues, look in the log."),
                    passing=True,
                ) from failure
            is_unknown = method == "write_ticket" and isinstance(failure, NotAnswered)
            raise (api.TicketOutcomeUnknown if is_unknown else api.PosOffline)(
                str(failure)
            ) from failure
        except ValidationError as odd:
            # Not as its cause: that would show the values, which may be a customer's.
            raise NotUnderstood(f"{method}: {first_fault(odd)}") from None
        except MissingResult:
            raise NotUnderstood(
                _("{method}: it has neither result nor error").format(method=method)
            ) from None
        if isinstance(found, Failure):
            _raise(method, found)
        return found.value() if isinstance(found, Result) else found


def _raise(method: str, failure: Failure) -> Never:
    """Raise the failure that the program reports."""
    if failure.kind == "ExportUnreadable":
        raise api.ExportUnreadable(
            failure.message, place=failure.place, fix=failure.fix, passing=failure.passing
        )
    if failure.kind == "ItemUnavailable":
        raise api.ItemUnavailable(
            failure.message, external_ids=failure.external_ids, fix=failure.fix
        )
    if failure.kind not in _FAILURES:
        raise NotUnderstood(
            _("{method}: {kind} is no failure of a till").format(method=method, kind=failure.kind)
        )
    raise _FAILURES[failure.kind](failure.message, fix=failure.fix)


_READINGS = frozenset({"read_catalogue", "read_availability", "read_tables"})
_FILES = {
    "catalogue_files": "catalogue",
    "availability_files": "availability",
    "table_files": "tables",
    "update_folders": "updates",
}
_PARAMS: Mapping[str, Callable[..., Mapping[str, object]]] = {
    "write_ticket": lambda order, key: {"key": key, "order": order.payload},
    "find_ticket": lambda key: {"key": key},
    "cancel_ticket": lambda order, key, reason: {
        "key": key,
        "reason": reason,
        "order": order.payload,
    },
    "cancel_listed_ticket": lambda ticket, order, reason: {
        "key": ticket.key,
        "record": ticket.record,
        "reference": ticket.reference,
        "reason": reason,
        "order": order.payload,
    },
}
_PARTS: Mapping[Capability, Sequence[str]] = {
    "catalogue": ("read_catalogue",),
    "availability": ("read_availability",),
    "tables": ("read_tables",),
    "tickets": ("write_ticket", "find_ticket"),
    "cancel": ("cancel_ticket",),
    "list": ("list_tickets", "cancel_listed_ticket"),
    "late_writes": ("late_write_s",),
    "updates": ("read_updates", "update_handled"),
    "unreadable_updates": ("unreadable_updates",),
    "files": tuple(_FILES),
    "changes": ("on_change",),
}


ADAPTER = api.Adapter(
    name="process",
    summary=_("A program of your own in any language, by JSON lines over stdin and stdout"),
    options=ProcessOptions,
    open=ProcessAdapter,
)
