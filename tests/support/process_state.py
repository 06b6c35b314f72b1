"""What a command or bridge could find changed in its process; `main` prints it."""

import gc
import json
import logging
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path

import structlog
import tzlocal.unix

from tillbridge.core import files, i18n, redaction, started
from tillbridge.menu import lane
from tillbridge.pos.call_lane import POOL
from tillbridge.web import metrics


def main() -> None:
    """Print it as JSON."""
    root = logging.getLogger()
    umask = os.umask(0)
    os.umask(umask)
    state = {
        "signals": {each.name: str(signal.getsignal(each)) for each in signal.Signals},
        "wakeup_fd": signal.set_wakeup_fd(-1),
        "blocked signals": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "threads": [each.name for each in threading.enumerate()],
        "idle threads": len(POOL._idle),
        "turn": sys.getswitchinterval(),
        "hooks": [
            sys.excepthook is sys.__excepthook__,
            threading.excepthook is threading.__excepthook__,
        ],
        "gc": [gc.isenabled(), gc.get_threshold(), lane._pauses, lane._passed_over],
        "logs": [root.level, root.manager.disable, str(root.handlers), structlog.is_configured()],
        "secrets": list(redaction._learnt),
        "claims": [str(each) for each in (*files._folders, *files._files)],
        "reader": str(i18n._default),
        "zone": [time.tzname, str(tzlocal.unix._cache_tz), tzlocal.unix._cache_tz_name],
        "answers": [
            started.command_to.cache_info().currsize,
            metrics._booted_at.cache_info().currsize,
        ],
        "files": [resource.getrlimit(resource.RLIMIT_NOFILE), umask],
        "argv": sys.argv[1:],
        "path": sys.path[0],
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
    }
    sys.stdout.write(json.dumps(state))
