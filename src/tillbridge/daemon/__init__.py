"""The daemon: builds everything, supervises the tasks, and ends in order (floor 6)."""

from tillbridge.without import without, without_certificates

# Both are memory for nothing; see docs/decisions/0010.
with without("greenlet"), without_certificates():
    from tillbridge.daemon.alone import SigningUp, alone, connect_alone
    from tillbridge.daemon.connecting import Wanted
    from tillbridge.daemon.life import run
    from tillbridge.stores.consent import ConsentRequest

__all__ = ["ConsentRequest", "SigningUp", "Wanted", "alone", "connect_alone", "run"]
