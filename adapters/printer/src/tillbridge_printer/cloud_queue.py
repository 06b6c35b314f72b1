"""What a Star printer that polls is given: a job, handed out once, and what became of it.

No network here: the listener asks, the adapter's thread waits.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote

from tillbridge.adapter.texts import _
from tillbridge_printer.states import PrinterState

MEDIA_TYPE = "image/png"


class JobState(StrEnum):
    """How far a job is."""

    OFFERED = "offered"
    TAKEN = "taken"  # the printer has the data: it may be on paper
    PRINTED = "printed"
    REFUSED = "refused"  # the printer could not load it: nothing is on paper
    BROKEN = "broken"  # the printer failed in the middle


@dataclass(slots=True)
class Job:
    """One ticket. `begin` is called before its data is handed out."""

    token: str
    data: bytes
    begin: Callable[[], None]
    state: JobState = JobState.OFFERED
    code: str = ""
    fetchable: bool = True
    failure: Exception | None = None


def state_of_code(code: str) -> PrinterState:
    """Return what a CloudPRNT status code such as `410 Out of paper` says."""
    number = unquote(code).strip().partition(" ")[0]
    if number.startswith("41"):
        jammed = number in {"411", "412"}
        return PrinterState(paper_out=not jammed, error=_("a paper jam") if jammed else "")
    if number.startswith("42"):
        return PrinterState(cover_open=True)
    if number.startswith("2"):
        return PrinterState(paper_low=number in {"210", "211"})
    return PrinterState(error=_("the code {number}").format(number=number[:20] or "?"))


@dataclass(slots=True)
class PrintQueue:
    """Where the jobs of one printer lie: one at a time. Safe between threads."""

    clock: Callable[[], float] = time.monotonic
    on_printed: Callable[[str], None] = lambda _token: None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _job: Job | None = None
    _code: str = ""
    _polled_at: float | None = None

    def seen(self, until: float) -> tuple[float | None, PrinterState]:
        """Return how many seconds ago the printer polled (None: never), and how it was.

        The first poll is waited for until then (monotonic seconds).
        """
        with self._changed:
            while self._polled_at is None and (left := until - self.clock()) > 0:
                self._changed.wait(left)
            if self._polled_at is None:
                return None, PrinterState(offline=True)
            return self.clock() - self._polled_at, state_of_code(self._code)

    # -- the adapter's side

    def offer(self, job: Job, until: float) -> JobState:
        """Lay a job out, and return what became of it by then (monotonic seconds).

        One that was not taken is taken back. One that was taken stays known, so that a word that
        comes late is still heard.
        """
        with self._changed:
            self._job = job
            while job.state in {JobState.OFFERED, JobState.TAKEN} and job.failure is None:
                left = until - self.clock()
                if left <= 0:
                    break
                self._changed.wait(left)
            if job.state is JobState.OFFERED:
                self._job = None
            return job.state

    # -- the printer's side

    def polled(self, code: str) -> dict[str, object]:
        """Note how the printer is, and return what it is answered."""
        with self._changed:
            self._code, self._polled_at = code, self.clock()
            self._changed.notify_all()
            job = self._job
            if job is not None and job.state is JobState.TAKEN:
                # It has begun anew since: what it fetched, it may have printed.
                job.fetchable = False
            if job is None or job.state is not JobState.OFFERED:
                return {"jobReady": False}
            return {
                "jobReady": True,
                "mediaTypes": [MEDIA_TYPE],
                "jobToken": job.token,
                "deleteMethod": "DELETE",
            }

    def fetched(self, token: str | None) -> bytes | None:
        """Hand the job out; None where there is none, or it was handed out before."""
        with self._changed:
            job = self._job
            if job is None or token not in {None, job.token} or not job.fetchable:
                return None
            if job.state is JobState.OFFERED:
                try:
                    job.begin()
                except Exception as failure:  # noqa: BLE001 -- it is raised where the adapter waits
                    job.failure, job.fetchable, self._job = failure, False, None
                    self._changed.notify_all()
                    return None
                job.state = JobState.TAKEN
            return job.data if job.state is JobState.TAKEN else None

    def confirmed(self, token: str | None, code: str) -> None:
        """Note what the printer says of a job that it was handed."""
        result = unquote(code).strip()
        printed = result.startswith("2") or result.upper() == "OK"
        with self._changed:
            job = self._job
            if job is None or token not in {None, job.token}:
                if token is not None and printed:
                    self.on_printed(token)
                return
            if printed:
                self.on_printed(job.token)  # noted before anybody goes on
            job.code = result
            job.state = (
                JobState.PRINTED
                if printed
                else JobState.REFUSED
                if result.startswith("5")
                else JobState.BROKEN
            )
            self._job = None
            self._changed.notify_all()
