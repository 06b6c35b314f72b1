"""Which store is meant, how its integration differs from the configuration, what to do. Pure.

Specification: Integration; Integration status; Stores and integrations. A PUT changes only what is
sent, and does not accept external_store_id: another location needs a new integration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.service.types import Integration, IntegrationRequest, Store

Value = str | bool
_CHANGEABLE = ("webhook_url", "menu_sync_direction", "auto_accept_orders", "notification_email")


class State(StrEnum):
    """The store's integration_status, relative to this app."""

    INTEGRATED = "integrated"
    PENDING = "pending"
    DISABLED = "disabled"
    NOT_INTEGRATED = "not_integrated"


class Kind(StrEnum):
    """What has to be done."""

    NOTHING = "nothing"
    CHANGE = "change"  # by PUT
    REINTEGRATE = "reintegrate"  # another location
    ROTATE = "rotate"  # its secret is unknown here: only a new integration returns one
    INTEGRATE = "integrate"  # there is none
    WAIT = "wait"  # disabled or pending: others must act


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose value at the service differs from the configuration."""

    field: str
    now: Value | None
    wanted: Value

    @property
    def line(self) -> str:
        """The difference for people."""
        now = _("not set") if self.now is None else _shown(self.now)
        return f"{self.field}: {now} -> {_shown(self.wanted)}"


@dataclass(frozen=True, slots=True)
class IntegrationPlan:
    """What to do; `changes` can be made by a PUT, `location` needs a new integration."""

    kind: Kind
    state: State
    changes: tuple[Difference, ...] = ()
    location: Difference | None = None

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All differences."""
        return self.changes if self.location is None else (*self.changes, self.location)

    @property
    def body(self) -> dict[str, Value]:
        """The body of the PUT, with only what differs."""
        return {each.field: each.wanted for each in self.changes}

    @property
    def lines(self) -> tuple[str, ...]:
        """What would be done, for people."""
        return tuple(each.line for each in self.differences)

    @property
    def costs(self) -> tuple[str, ...]:
        """What a person should know first."""
        return costs_of(self.kind)

    def to_json(self) -> dict[str, Any]:
        """Return it for commands and the ledger."""
        return {
            "kind": self.kind,
            "state": self.state,
            "changes": [asdict(each) for each in self.differences],
            "lines": list(self.lines),
            "costs": list(self.costs),
        }


def costs_of(kind: Kind) -> tuple[str, ...]:
    """Return the consequences of doing that, in sentences."""
    if kind not in {Kind.REINTEGRATE, Kind.ROTATE}:
        return ()
    return (
        _("This removes the connection and creates it again, with a new webhook secret."),
        _("The storefront closes for a moment so that no order is lost."),
        _("The service does not repeat deliveries that it was still trying to send."),
        _("Deliveries signed with the old secret are accepted for a while, so orders continue."),
    )


def state_of(store: Store) -> State:
    """Return the state in the answer of GET /pos/stores; an unknown one is derived."""
    status = (store.integration_status or "").lower()
    if status in set(State):
        return State(status)
    integrated = status == "active" or store.integration is not None
    return State.INTEGRATED if integrated else State.NOT_INTEGRATED


def plan_of(
    state: State, now: Integration | None, wanted: IntegrationRequest, *, secret_known: bool
) -> IntegrationPlan:
    """Return what to do; `now` is None unless the store is integrated."""
    if state in {State.DISABLED, State.PENDING}:
        return IntegrationPlan(Kind.WAIT, state)
    if state is State.NOT_INTEGRATED or now is None:
        return IntegrationPlan(Kind.INTEGRATE, State.NOT_INTEGRATED)
    changes = differences(now, wanted)
    location = None
    if now.external_store_id not in {None, wanted.external_store_id}:
        location = Difference("external_store_id", now.external_store_id, wanted.external_store_id)
    if not secret_known:
        kind = Kind.ROTATE
    elif location is not None:
        kind = Kind.REINTEGRATE
    else:
        kind = Kind.CHANGE if changes else Kind.NOTHING
    return IntegrationPlan(kind, state, changes, location)


def differences(now: Integration, wanted: IntegrationRequest) -> tuple[Difference, ...]:
    """Return what a PUT has to change; fields that are not configured stay unchanged."""
    pairs = ((field, getattr(now, field), getattr(wanted, field)) for field in _CHANGEABLE)
    return tuple(
        Difference(field, had, want)
        for field, had, want in pairs
        if want is not None and had != want
    )


def changed_elsewhere(
    plan: IntegrationPlan, acknowledged: Mapping[str, Any]
) -> tuple[Difference, ...]:
    """Return what somebody else has changed after the service accepted the wanted values."""
    return tuple(each for each in plan.differences if acknowledged.get(each.field) == each.wanted)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return value


class SeveralStores(BridgeError):
    """The merchant has several stores, and a person must choose one."""

    def __init__(self, store: str, stores: Sequence[Store]) -> None:
        super().__init__(
            _("This account has several stores: {listed}.").format(listed=_listed(stores)),
            fix=_(
                "Choose one: tillbridge connect {store} --store-id ID, or set store_id in "
                "bridge.toml."
            ).format(store=store),
        )
        self.stores = tuple(stores)


def choose_store(
    stores: Sequence[Store], name: str, *, configured: str = "", chosen: str = ""
) -> Store:
    """Return the store for `name`: the wanted one, or the only one.

    It is wanted by the configuration, by an earlier choice, or ("") not specified. Raises
    SeveralStores, or BridgeError if there is none or not the wanted one.
    """
    wanted = configured or chosen
    if wanted:
        for store in stores:
            if store.store_id == wanted:
                return store
        raise BridgeError(
            _("This account has no store {wanted}. Choose from: {listed}.").format(
                wanted=wanted, listed=_listed(stores) or _("none")
            ),
            fix=_("Correct store_id in bridge.toml.")
            if configured
            else _("Choose one: tillbridge connect {store} --store-id ID").format(store=name),
        )
    if not stores:
        raise BridgeError(
            _("This account has no store yet."),
            fix=_("Create one at the ordering service, then run this again."),
        )
    if len(stores) > 1:
        raise SeveralStores(name, stores)
    return stores[0]


def _listed(stores: Sequence[Store]) -> str:
    return ", ".join(f"{store.store_id} ({store.name or '?'})" for store in stores)
