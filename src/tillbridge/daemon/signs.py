"""What the pulse of this bridge looks at: its writer, the inboxes of its stores, its timers."""

import faulthandler
import time

from tillbridge.core.scheduler import Scheduler
from tillbridge.daemon.building import Building
from tillbridge.daemon.pulse import Pulse, Sign
from tillbridge.daemon.service_manager import ServiceManager

# A commit waits for the disk, and memory cards have been seen to take ten seconds over one.
_WRITER_S = 30.0
# Taking in begins with asking the tills, whose calls end within their own time-outs.
_INBOX_S = 120.0
_TIMERS_S = 60.0
# Every hour it begins again.
_HOUSEKEEPING_S = 3600.0


def pulse(manager: ServiceManager, building: Building, scheduler: Scheduler) -> Pulse:
    """Return the pulse of this bridge."""
    # Without a pulse it is ended by SIGABRT: the log then has what each thread was at.
    faulthandler.enable()
    signs = _Signs(building, scheduler)
    return Pulse(manager, signs.seen)


class _Signs:
    """Looks at everything that has to get on."""

    def __init__(self, building: Building, scheduler: Scheduler) -> None:
        self._building = building
        self._ledger = building.house.ledger
        self._scheduler = scheduler
        self._unwritable_at = 0.0

    def seen(self) -> list[Sign]:
        """Return what there is to see now."""
        if not self._ledger.writable:
            self._unwritable_at = time.monotonic()
        return [
            Sign("writer", self._ledger.writing_since, _WRITER_S),
            *(
                Sign(f"{name}.inbox", self._since_writable(rooms.orders.behind_since), _INBOX_S)
                for name, rooms in self._building.stores.items()
            ),
            Sign("timers", self._scheduler.late_since(), _TIMERS_S),
            Sign("housekeeping", self._scheduler.busy_since, _HOUSEKEEPING_S),
        ]

    def _since_writable(self, since: float | None) -> float | None:
        """Leave out the time in which nothing could be taken in: the disk refused."""
        return None if since is None else max(since, self._unwritable_at)
