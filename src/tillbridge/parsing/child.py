"""The child process: one call under limits, its result written as JSON.

`tillbridge.adapter.isolation` starts it and sends three pickles through stdin: the module search
path (which the start-up code reads), the limits, and the function with its arguments.
"""

import json
import os
import pickle
import sys
from typing import Any, BinaryIO

from tillbridge.parsing import Unreadable

_MB = 1 << 20
_GRACE_S = 5  # the parent ends the child in time; this is for a child whose parent has died
_TICKS_PER_S = 10_000_000  # Windows counts a process's time in steps of 100 nanoseconds


def serve() -> None:
    """Make the call that stdin asks for, and write `[outcome, value]` to stdout."""
    requests, answers = sys.stdin.buffer, _only_answers()
    memory_mb, seconds, answer_mb = pickle.load(requests)  # noqa: S301 -- the parent is trusted
    _limit(memory_mb * _MB, seconds + _GRACE_S)
    answers.write(_outcome(requests, answer_mb))
    answers.flush()
    os._exit(0)  # the result is out: clean-up can only fail, or take time


def _only_answers() -> BinaryIO:
    """Return the pipe to the parent; what a parser prints goes to stderr from now on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _outcome(requests: BinaryIO, answer_mb: int) -> bytes:
    try:
        function, arguments = pickle.load(requests)  # noqa: S301 -- (as above)
        answer = _json("returned", function(*arguments))
    except Unreadable as failure:
        parts = {
            "text": failure.text,
            "values": dict(failure.values),
            "place": failure.place,
            "fix": failure.fix,
            "passing": failure.passing,
        }
        return _json("unreadable", parts)
    except MemoryError:
        return _json("out_of_memory", "")
    except Exception as failure:  # noqa: BLE001 -- a parser's, whatever it is
        return _json("raised", f"{type(failure).__name__}: {failure}".removesuffix(": "))
    if len(answer) > answer_mb * _MB:
        return _json("too_large", f"{len(answer) // _MB} MB")
    return answer


def _json(outcome: str, value: Any) -> bytes:  # noqa: ANN401 -- whatever JSON a parser returns
    return json.dumps([outcome, value], separators=(",", ":")).encode("ascii")


if sys.platform == "win32":
    import win32api
    import win32con
    import win32job

    def _limit(memory_bytes: int, seconds: float) -> None:
        """Join a job object that has the limits; no dialogue asks anybody about a crash."""
        win32api.SetErrorMode(win32con.SEM_FAILCRITICALERRORS | win32con.SEM_NOGPFAULTERRORBOX)
        kind = win32job.JobObjectExtendedLimitInformation
        job = win32job.CreateJobObject(None, "")
        settings = win32job.QueryInformationJobObject(job, kind)
        settings["ProcessMemoryLimit"] = memory_bytes
        basic = settings["BasicLimitInformation"]
        basic["PerProcessUserTimeLimit"] = round(seconds * _TICKS_PER_S)
        basic["LimitFlags"] |= (
            win32job.JOB_OBJECT_LIMIT_PROCESS_MEMORY
            | win32job.JOB_OBJECT_LIMIT_PROCESS_TIME
            | win32job.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
        )
        win32job.SetInformationJobObject(job, kind, settings)
        win32job.AssignProcessToJobObject(job, win32api.GetCurrentProcess())
else:
    import contextlib
    import resource
    import signal

    def _limit(memory_bytes: int, seconds: float) -> None:
        """Limit memory, and let a signal end this process when its time is over."""
        signal.alarm(max(1, round(seconds)))
        for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory_bytes)):
            with contextlib.suppress(ValueError, OSError):  # macOS refuses the second
                resource.setrlimit(what, (most, most))
