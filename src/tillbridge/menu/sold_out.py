"""Asks a person whether it is true that most of the menu is sold out.

It never waits for the answer: availability has the last word, and a kitchen that closes early looks
just like an export that has lost a column.
"""

from sqlalchemy import Connection

from tillbridge.ledger import menu
from tillbridge.menu.guard import FEW
from tillbridge.menu.shared import Shared

PROBLEM = "menu.mostly_sold_out"


async def ask_about_sold_out(shared: Shared, *, max_percent: float) -> None:
    """Open or close the problem: what the till has off sale, staff overrides apart."""
    words = {key for key, each in (shared.words or {}).items() if not each.available}

    def count(connection: Connection) -> tuple[int, int]:
        known = menu.item_count(connection, shared.store)
        off = menu.count_off_by_pos(connection, shared.store)
        if words and is_most(off + len(words), known, max_percent):
            ids = set(menu.items_off_by_pos(connection, shared.store)) | words
            off = len(menu.accepted_ids(connection, shared.store, ids))
        elif words:
            off += len(words)
        return off, known

    off, known = await shared.ledger.read(count)
    if is_most(off, known, max_percent):
        shared.desk.open(PROBLEM, shared.store, count=off, known=known)
    else:
        shared.desk.close(PROBLEM, shared.store)


def is_most(off: int, known: int, max_percent: float) -> bool:
    """Whether so much is sold out that a person is asked. Pure."""
    return off > FEW and off * 100 > max_percent * known
