"""What a cancel brings about in other rooms. Contract: Failures of a POS."""

from tillbridge.adapter import PosOffline
from tillbridge.orders.ports import OrderEffects
from tillbridge.orders.presence import PosPresence
from tillbridge.orders.reasons import Cancellation
from tillbridge.orders.state import CancelWanted


async def bring_about(
    cancellation: Cancellation, effects: OrderEffects, presence: PosPresence
) -> None:
    """Let the other rooms know.

    Called before the cancel is kept: after a crash between the two the POS refuses again, and they
    hear of it twice rather than never.
    """
    if cancellation.items_out:
        await effects.items_out(cancellation.items_out)
    if cancellation.price_mismatch:
        await effects.price_mismatch()
    if cancellation.pos_offline:
        await presence.write_failed(PosOffline(cancellation.message))
    if cancellation.lost_to_absence:
        effects.order_lost()


def wanted_by(cancelled: Cancellation, *, pos_has_none: bool, by: str = "") -> CancelWanted:
    """Return the event of a cancel; `by` names the person who asks for it, "" for none."""
    return CancelWanted(
        cancelled.code, cancelled.message, cancelled.cause, pos_has_none=pos_has_none, by=by
    )
