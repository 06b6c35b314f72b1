"""The daemon: builds everything, supervises the tasks, and ends in order (floor 6)."""

from tillbridge.without import without, without_certificates

# Both are memory for nothing; see docs/decisions/0010.
with without("greenlet"), without_certificates():
    from tillbridge.daemon.alone import alone, connect_alone
    from tillbridge.daemon.life import run

__all__ = ["alone", "connect_alone", "run"]
