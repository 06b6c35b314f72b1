"""What is asked about the bridge's own health."""

from typing import Protocol

from tillbridge.web.ports.answer import Answer


class DiagnosticsControl(Protocol):
    """What is asked about the bridge's own health."""

    async def begin(self) -> Answer:
        """Begin to examine every link, or join who has begun; return `run`."""
        ...

    async def result(self, run: str) -> Answer:
        """Return the report so far: `ok`, `level`, `text`, `counts`, `results`, `took_ms`.

        `done` is false while links are still looked at; `running` names them. A result has `name`,
        `store`, `level` (ok, warning, failed, skipped), `text`, `fix`, `took_ms`, `details`.
        """
        ...

    async def latest(self) -> Answer:
        """Return the last examination: `began_at`, and `report` as `result`; None before any.

        Also `versions` of what runs here, by name.
        """
        ...

    async def logs(
        self,
        *,
        level: str = "",
        event: str = "",
        text: str = "",
        store: str = "",
        order: str = "",
        limit: int = 200,
    ) -> Answer:
        """Return the last `lines` of the log that fit, the newest first; whether any are `kept`.

        A line has `at`, `level`, `event` and fields of its own; `exception` is a traceback.
        """
        ...

    async def bundle(self) -> Answer:
        """Begin to put a support bundle together, or join who has begun."""
        ...

    async def bundle_state(self) -> Answer:
        """Return `state` (none, making, ready, failed).

        Once it is ready also `name`, `made_at`, `size` and `files`, each with `name`, `size` and
        its `first` lines; where it failed, why as `text`.
        """
        ...

    async def bundle_file(self) -> Answer:
        """Return the bundle that is ready: `name`, and the zip as `base64`."""
        ...

    async def reach(self) -> Answer:
        """Return how the internet may reach the receiver.

        `public_url`, `receiver`, `path`, `cautions`, `fits` and `ways`; a way has `name`, `title`,
        `text`, `cautions`, `steps`, `installed` and `running`.
        """
        ...
