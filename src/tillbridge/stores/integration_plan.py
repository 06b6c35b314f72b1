"""What differs between a store's integration and the configuration, and what follows. Pure.

Specification: Integration; Integration status; Stores and integrations. A PUT changes only what is
sent, and takes no external_store_id: another location takes a new integration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tillbridge.core.i18n import _
from tillbridge.service.types import Integration, IntegrationRequest, Store

Value = str | bool


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
    ROTATE = "rotate"  # its secret is not known here: only a new integration gives one
    INTEGRATE = "integrate"  # there is none
    WAIT = "wait"  # disabled or pending: others must act


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that the service has otherwise than the configuration wants it."""

    field: str
    now: Value | None
    wanted: Value

    @property
    def line(self) -> str:
        """The difference for people."""
        now = _("not told") if self.now is None else _shown(self.now)
        return f"{self.field}: {now} -> {_shown(self.wanted)}"


@dataclass(frozen=True, slots=True)
class IntegrationPlan:
    """What has to be done; `changes` are those of a PUT, `location` takes a new integration."""

    kind: Kind
    state: State
    changes: tuple[Difference, ...] = ()
    location: Difference | None = None

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All that differs."""
        return self.changes if self.location is None else (*self.changes, self.location)

    @property
    def body(self) -> dict[str, Value]:
        """The body of the PUT: nothing but what differs."""
        return {each.field: each.wanted for each in self.changes}

    @property
    def lines(self) -> tuple[str, ...]:
        """What would be done, for people."""
        return tuple(each.line for each in self.differences)

    @property
    def costs(self) -> tuple[str, ...]:
        """What a person should know before it is done."""
        return costs_of(self.kind)

    def to_json(self) -> dict[str, Any]:
        """Return it for commands and the ledger."""
        return {
            "kind": self.kind,
            "state": self.state,
            "changes": [
                {"field": each.field, "now": each.now, "wanted": each.wanted}
                for each in self.differences
            ],
            "lines": list(self.lines),
            "costs": list(self.costs),
        }


def costs_of(kind: Kind) -> tuple[str, ...]:
    """Return what doing that costs, in sentences."""
    if kind not in {Kind.REINTEGRATE, Kind.ROTATE}:
        return ()
    return (
        _("The integration is removed and made anew, which gives a new webhook secret."),
        _("The storefront is closed for a moment, so that no order falls between."),
        _("Deliveries that the service was still trying to repeat are not sent again."),
        _("Deliveries signed with the old secret are taken for a while; orders go on."),
    )


def state_of(store: Store) -> State:
    """Return the state in the answer of GET /pos/stores; an unknown one counts as it looks."""
    status = (store.integration_status or "").lower()
    if status in set(State):
        return State(status)
    integrated = status == "active" or store.integration is not None
    return State.INTEGRATED if integrated else State.NOT_INTEGRATED


def plan_of(
    state: State, now: Integration | None, wanted: IntegrationRequest, *, secret_known: bool
) -> IntegrationPlan:
    """Return what has to be done; `now` is None unless the store is integrated."""
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
    """Return what a PUT has to change; what the configuration leaves open stays as it is."""
    pairs: tuple[tuple[str, Value | None, Value | None], ...] = (
        ("webhook_url", now.webhook_url, wanted.webhook_url),
        ("menu_sync_direction", now.menu_sync_direction, wanted.menu_sync_direction),
        ("auto_accept_orders", now.auto_accept_orders, wanted.auto_accept_orders),
        ("notification_email", now.notification_email, wanted.notification_email),
    )
    return tuple(
        Difference(field, had, want)
        for field, had, want in pairs
        if want is not None and had != want
    )


def changed_elsewhere(
    plan: IntegrationPlan, acknowledged: Mapping[str, Any] | None
) -> tuple[Difference, ...]:
    """Return what somebody else has changed: the service had taken it as it is wanted."""
    known = acknowledged or {}
    return tuple(each for each in plan.differences if known.get(each.field) == each.wanted)


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return value
