"""Remembers, at a start, how long the bridge did not run: a gap of the page's 24 hours."""

from sqlalchemy import Connection, func, select

from tillbridge.ledger.facts import get_fact
from tillbridge.ledger.problems import PastProblem, keep_past
from tillbridge.ledger.schema import facts

_BRIEF_MS = 30_000  # a restart is no outage


def keep_downtime(connection: Connection, now_ms: int) -> None:
    """Keep the time since the bridge last ran, if it is worth telling; call it before `running`.

    A bridge that was killed has told no end: then its last sign of life counts.
    """
    running = get_fact(connection, "", "running")
    if not isinstance(running, dict):
        return
    stopped = running.get("stopped_at")
    if not isinstance(stopped, int):
        stopped = connection.execute(select(func.max(facts.c.at))).scalar()
    if isinstance(stopped, int) and now_ms - stopped >= _BRIEF_MS:
        keep_past(connection, PastProblem("bridge.stopped", "", "", stopped, now_ms))
