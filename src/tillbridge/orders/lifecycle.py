"""Which call brings an order forward. Specification: Order lifecycle driven from the POS.

No endpoint reads an order, so the bridge keeps a `Standing`: where it believes the order to be,
and where else it may be because an answer was lost, the service accepted it by itself, or somebody
moved it by hand. Calls are told one step at a time; a refusal (409) rules out the state that the
call leaves, which makes the next call the read that the specification does not offer.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from tillbridge.model.order import OrderState


class Call(StrEnum):
    """The four order calls of the service."""

    ACCEPT = "accept"
    PREPARING = "preparing"
    READY = "ready"
    CANCEL = "cancel"


_ORDER = (
    OrderState.CREATED,
    OrderState.ACCEPTED,
    OrderState.PREPARING,
    OrderState.READY,
    OrderState.COMPLETED,
)
_RANK = {state: rank for rank, state in enumerate(_ORDER)}
_FORWARD = {
    OrderState.CREATED: Call.ACCEPT,
    OrderState.ACCEPTED: Call.PREPARING,
    OrderState.PREPARING: Call.READY,
}
_LEADS_TO = {
    Call.ACCEPT: OrderState.ACCEPTED,
    Call.PREPARING: OrderState.PREPARING,
    Call.READY: OrderState.READY,
    Call.CANCEL: OrderState.CANCELLED,
}
_LEAVES = {call: state for state, call in _FORWARD.items()}
_FINAL = frozenset({OrderState.COMPLETED, OrderState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an order is at the service: `told` is believed, and `possible` all that may be true."""

    told: OrderState
    possible: frozenset[OrderState]


def standing_of_new(*, auto_accepted: bool) -> Standing:
    """Return the standing of an order that has just arrived.

    The integration may differ from the configuration for a while, so both beginnings are possible.
    """
    return Standing(
        told=OrderState.ACCEPTED if auto_accepted else OrderState.CREATED,
        possible=frozenset({OrderState.CREATED, OrderState.ACCEPTED}),
    )


def standing_after_restart(
    told: OrderState, wanted: OrderState, *, auto_accepted: bool
) -> Standing:
    """Return the standing of an order known only by what the ledger says was told.

    The last call may have been applied without its answer having been kept, so the state it leads
    to is possible too.
    """
    possible = {told}
    if told in _FORWARD:
        possible.add(_LEADS_TO[_FORWARD[told]])
    if auto_accepted and told is OrderState.ACCEPTED:
        possible.add(OrderState.CREATED)
    if wanted is OrderState.CANCELLED:
        possible.add(OrderState.CANCELLED)
    return Standing(told, frozenset(possible))


def next_call(
    standing: Standing, wanted: OrderState, refused: AbstractSet[Call] = frozenset()
) -> Call | None:
    """Return the one call that comes next on the way to `wanted`, None where nothing is to be told.

    A jump is walked: created to ready takes accept, preparing and ready, in order. An order the POS
    has completed is walked to ready and then waits for order.delivered. A call that the service has
    `refused` for good is left out; those after it are still made.
    """
    if standing.told in _FINAL:
        return None
    if wanted is OrderState.CANCELLED:
        return None if Call.CANCEL in refused else Call.CANCEL
    if standing.told in standing.possible:
        here = standing.told
    else:
        here = min(standing.possible - _FINAL, key=_RANK.__getitem__, default=standing.told)
    while _RANK[here] < _RANK[wanted]:
        call = _FORWARD.get(here)
        if call is None or call not in refused:
            return call
        here = _LEADS_TO[call]
    return None


def calls_between(told: OrderState, wanted: OrderState) -> list[Call]:
    """Return the calls that lead from `told` to `wanted`, in order; none to or from a cancel."""
    if told is OrderState.CANCELLED or wanted is OrderState.CANCELLED:
        return []
    return [call for state, call in _FORWARD.items() if _RANK[told] <= _RANK[state] < _RANK[wanted]]


def overtaken(call: Call, told: OrderState) -> bool:
    """Return whether a refused `call` matters no more, now that the service has it in `told`."""
    if told in _FINAL:
        return True
    return call is not Call.CANCEL and _RANK[_LEADS_TO[call]] <= _RANK[told]


def after_answer(call: Call) -> Standing:
    """Return the standing once the service has done what `call` asks."""
    state = _LEADS_TO[call]
    return Standing(state, frozenset({state}))


def after_lost_answer(standing: Standing, call: Call) -> Standing:
    """Return the standing after `call` was sent and nobody knows whether it was applied."""
    return Standing(standing.told, standing.possible | {_LEADS_TO[call]})


def after_conflict(standing: Standing, call: Call) -> Standing | None:
    """Return the standing after 409 order.invalid_transition, or None: the service has closed it.

    A refused accept means accepted or later (somebody, or the service itself, was faster), a
    refused preparing means preparing or later; so the walk goes on. Ready is the last word: where
    that is refused too, and no lost answer explains it, the order is finished or cancelled. So is
    one that cannot be cancelled.
    """
    if call is Call.CANCEL:
        gone = OrderState.CANCELLED
        return Standing(gone, frozenset({gone})) if gone in standing.possible else None
    possible = standing.possible - {_LEAVES[call]} - _FINAL
    if not possible:
        if call is Call.READY:
            return None
        possible = frozenset({_LEADS_TO[call]})
    lowest = min(possible, key=_RANK.__getitem__)
    return Standing(max(standing.told, lowest, key=_RANK.__getitem__), possible)


def merge_wanted(wanted: OrderState, news: OrderState) -> OrderState:
    """Return what the order shall be after `news` from the POS.

    It never goes back: a late "preparing" after "ready" changes nothing. Cancelled and completed
    are final, whichever came first.
    """
    if wanted in _FINAL:
        return wanted
    if news is OrderState.CANCELLED:
        return news
    return max(wanted, news, key=_RANK.__getitem__)


def is_final(state: OrderState) -> bool:
    """Return whether the service does nothing more with an order in this state."""
    return state in _FINAL


def is_confirmed(wanted: OrderState) -> bool:
    """Return whether the POS has taken the order (where being written is enough: is written)."""
    return wanted not in {OrderState.CREATED, OrderState.CANCELLED}
