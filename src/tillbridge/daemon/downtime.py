"""Remembers, at a start, how long the bridge did not run: a gap of the page's 24 hours."""

from sqlalchemy import Connection

from tillbridge.ledger.facts import get_fact, last_change
from tillbridge.ledger.models import PastProblem
from tillbridge.ledger.problems import store_past

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
        stopped = last_change(connection)
    if isinstance(stopped, int) and now_ms - stopped >= _BRIEF_MS:
        store_past(
            connection,
            PastProblem(code="bridge.stopped", store="", subject="", since=stopped, until=now_ms),
        )
