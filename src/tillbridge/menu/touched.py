"""Which accepted items an overlay touches, found without walking through the menu."""

from sqlalchemy import Connection

from tillbridge.ledger import menu
from tillbridge.ledger.menu_codec import AcceptedItem
from tillbridge.menu.overlay import Overlay


def touched_by(connection: Connection, store: str, overlay: Overlay) -> dict[str, AcceptedItem]:
    """Return the accepted items whose availability an overlay touches, or did when last told."""
    accepted = menu.overlaid_items(connection, store)
    words = overlay.words or {}
    off = {key for key, word in words.items() if not word.available}
    if len(off) < len(words):  # others are on sale over an export that says otherwise
        accepted |= menu.items_off_by_pos(connection, store)
    off |= overlay.overrides.keys()
    accepted |= menu.items_by_id(connection, store, off - accepted.keys())
    strange = overlay.named - accepted.keys()
    strange -= menu.accepted_ids(connection, store, strange)
    if strange:
        owners = menu.variant_owners(connection, store, strange)
        accepted |= menu.items_by_id(
            connection, store, frozenset(owners.values()) - accepted.keys()
        )
    return accepted
