"""The daemon: builds everything, supervises the tasks, and ends in order (floor 6)."""

from tillbridge.without import without

with without("greenlet"):  # SQLAlchemy takes it if it is there, and we have no use for it
    from tillbridge.daemon.alone import alone, connect_alone
    from tillbridge.daemon.life import run

__all__ = ["alone", "connect_alone", "run"]
