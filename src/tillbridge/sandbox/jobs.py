"""Menu pushes that run in the background (specification, "Menu sync job")."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tillbridge.sandbox.catalogue import Applied
from tillbridge.sandbox.clock import Clock, Timer, as_timestamp
from tillbridge.sandbox.errors import ServiceError
from tillbridge.sandbox.settings import SandboxSettings
from tillbridge.sandbox.state import Job, Link, World, new_id


@dataclass(frozen=True, slots=True)
class NextJob:
    """How the next job shall go: `fail` is its error message, `duration_s` how long it takes."""

    fail: str | None = None
    duration_s: float | None = None


class Jobs:
    """Jobs of all stores, and the timers of those that run."""

    def __init__(self, world: World, clock: Clock, settings: SandboxSettings) -> None:
        self._world = world
        self._clock = clock
        self._settings = settings
        self._timers: dict[str, Timer] = {}
        self.next_job = NextJob()

    def reset(self) -> None:
        """Stop the running ones, without their work."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.next_job = NextJob()

    def start(self, link: Link, *, menus: int, items: int, work: Callable[[], Applied]) -> Job:
        """Accept a push; `work` is done when the job's time is over."""
        plan, self.next_job = self.next_job, NextJob()
        now = self._clock.now_ms()
        job = Job(
            new_id("job"),
            link.app_id,
            link.store.store_id,
            self._settings.job_running_status,
            menus,
            items,
            created_at_ms=now,
            updated_at_ms=now,
        )
        self._world.jobs[job.job_id] = job
        duration = self._settings.job_duration_s if plan.duration_s is None else plan.duration_s
        self._timers[job.job_id] = self._clock.call_later(
            duration, lambda: self._finish(job, link, work, plan.fail)
        )
        return job

    def _finish(
        self, job: Job, link: Link, work: Callable[[], Applied], failure: str | None
    ) -> None:
        self._timers.pop(job.job_id, None)
        job.updated_at_ms = self._clock.now_ms()
        if failure is None and link.active is None:
            failure = "The integration ended before the job did"
        if failure is not None:
            job.status = "failed"
            job.error = {"code": "menu.forward_failed", "message": failure}
            return
        applied = work()
        job.status = "success"
        job.result = {name: count for name, count in applied.counts.items() if name != "menus"}
        if applied.rejected:
            job.result |= {"status": "partial", "message": applied.message}

    def find(self, link: Link, job_id: str) -> Job:
        """A job of this store that has not been forgotten yet. Raises menu.job_not_found."""
        job = self._world.jobs.get(job_id)
        retained_ms = self._settings.job_retention_s * 1000
        if (
            job is not None
            and job.updated_at_ms + retained_ms <= self._clock.now_ms()
            and not self._is_running(job)
        ):
            del self._world.jobs[job_id]
            job = None
        if job is None or job.store_id != link.store.store_id or job.app_id != link.app_id:
            raise ServiceError(
                "menu.job_not_found", f"No menu job {job_id}; jobs are kept for a limited time"
            )
        return job

    def lose(self, *, keep_work: bool) -> list[str]:
        """Forget every job; with `keep_work` those that run still apply their push."""
        lost = list(self._world.jobs)
        self._world.jobs.clear()
        if not keep_work:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
        return lost

    def _is_running(self, job: Job) -> bool:
        return job.job_id in self._timers


def job_body(job: Job) -> dict[str, Any]:
    """The job as its endpoint shows it; `error` (not in the specification) if it failed."""
    body: dict[str, Any] = {
        "job_id": job.job_id,
        "store_id": job.store_id,
        "status": job.status,
        "menus": job.menus,
        "items": job.items,
        "created_at": as_timestamp(job.created_at_ms),
        "updated_at": as_timestamp(job.updated_at_ms),
        "result": job.result,
    }
    if job.error is not None:
        body["error"] = job.error
    return body
