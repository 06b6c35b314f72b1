"""What commands and the page ask about the bridge's own health: examinations, logs, the bundle.

The checks, and all that a bundle needs, are imported when somebody asks for them, not before.
"""

import asyncio
import base64
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tillbridge.config import LoadedSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log_keeping import LOG_FOLDER
from tillbridge.model.instant import to_iso
from tillbridge.web.ports import Answer

if TYPE_CHECKING:
    from tillbridge.diagnostics.bundle.contents import Bundle
    from tillbridge.diagnostics.checkup import Checkup
    from tillbridge.diagnostics.subject import Subject

_KEPT = 5
_BUNDLE_KEPT_MS = 15 * 60_000


@dataclass(frozen=True, slots=True)
class Examined:
    """The bridge that runs here, as an examination and a bundle need it."""

    subject: "Callable[[], Subject]"
    status: Callable[[], Awaitable[Answer]]
    loaded: LoadedSettings
    clock: Clock


@dataclass(frozen=True, slots=True)
class _Packed:
    """A bundle that is ready; its texts are let go of once it is packed."""

    name: str
    made_at: int
    files: list[Answer]
    data: bytes


class DiagnosticOperations:
    """The operations; `bridge` is None where no daemon runs."""

    def __init__(self, bridge: Examined | None = None) -> None:
        self._bridge = bridge
        self._checkups: dict[str, tuple[int, Checkup]] = {}  # by run, the oldest first
        self._work: asyncio.Task[Answer] | None = None
        self._packing: asyncio.Task[_Packed] | None = None

    async def begin(self) -> Answer:
        """Begin an examination, or join the one under way; return its `run`."""
        return {"run": self._begun()[0]}

    async def result(self, run: str) -> Answer:
        """Return how far an examination is: the report so far, `done` and `running`."""
        begun = self._checkups.get(run)
        if begun is None:
            raise BridgeError(_("Nothing is known of this examination."), fix=_("Begin it again."))
        return begun[1].so_far()

    async def latest(self) -> Answer:
        """Return the last examination, as `result`, with `began_at`; both None before any."""
        bridge = self._running()
        # Only who opens the page wants to know.
        from tillbridge.diagnostics.checks.machine import versions  # noqa: PLC0415 -- (as above)

        told: Answer = {"began_at": None, "report": None, "versions": versions()}
        if self._checkups:
            began_at, checkup = next(reversed(self._checkups.values()))
            told |= {"began_at": to_iso(began_at), "report": checkup.so_far()}
        return {**told, "at": to_iso(bridge.clock.now_ms())}

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
        """Return the last `lines` of the log that fit, the newest first; whether any are `kept`."""
        loaded = self._running().loaded
        # Only where somebody reads them.
        from tillbridge.diagnostics.log_lines import (  # noqa: PLC0415 -- (as above)
            LogFilter,
            latest,
        )

        wanted = LogFilter(level, event, text, store, order)
        folder = loaded.data_dir / LOG_FOLDER
        lines = await asyncio.to_thread(latest, folder, wanted, limit)
        return {"lines": lines[::-1], "kept": bool(loaded.settings.bridge.keep_log_bytes)}

    async def reach(self) -> Answer:
        """Return how the internet may reach the receiver, with every file filled in."""
        loaded = self._running().loaded
        # Only who sets up a tunnel wants to know.
        from tillbridge.diagnostics.reach.place import place_of  # noqa: PLC0415 -- (as above)
        from tillbridge.diagnostics.reach.ways import (  # noqa: PLC0415 -- (as above)
            guidance,
        )

        return await asyncio.to_thread(guidance, place_of(loaded.settings, loaded.path))

    async def bundle(self) -> Answer:
        """Begin to put a support bundle together, or join who has begun."""
        bridge = self._running()
        if self._packing is None or self._packing.done():
            self._packing = asyncio.create_task(self._packed(bridge), name="support_bundle")
            self._packing.add_done_callback(_seen)
        return {"ok": True, "text": _("The support bundle is put together; look through it then.")}

    async def bundle_state(self) -> Answer:
        """Return `state` (none, making, ready, failed); once ready `name`, `made_at`, `files`.

        A file has `name`, `size` in bytes and its `first` lines. It is kept for a quarter of an
        hour.
        """
        packing = self._packing
        if packing is None:
            return {"state": "none"}
        if not packing.done():
            return {"state": "making"}
        if packing.cancelled() or (failure := packing.exception()) is not None:
            why = "" if packing.cancelled() else str(failure)
            return {"state": "failed", "text": why}
        made = packing.result()
        if self._running().clock.now_ms() - made.made_at > _BUNDLE_KEPT_MS:
            self._packing = None
            return {"state": "none"}
        return {
            "state": "ready",
            "name": made.name,
            "made_at": to_iso(made.made_at),
            "size": len(made.data),
            "files": made.files,
        }

    async def bundle_file(self) -> Answer:
        """Return the bundle that is ready: `name`, and the zip as `base64`."""
        if (await self.bundle_state())["state"] != "ready" or self._packing is None:
            raise BridgeError(
                _("There is no support bundle, or it is too old."), fix=_("Make a new one.")
            )
        made = self._packing.result()
        return {"name": made.name, "base64": base64.b64encode(made.data).decode()}

    async def _packed(self, bridge: Examined) -> _Packed:
        _run, work = self._begun()
        # Whoever asks to end the examination does not end it for others.
        doctor = await asyncio.shield(work)
        status = await bridge.status()
        return await asyncio.to_thread(_pack, bridge, status, doctor)

    def _begun(self) -> tuple[str, "asyncio.Task[Answer]"]:
        bridge = self._running()
        if self._work is not None and not self._work.done():
            return next(reversed(self._checkups)), self._work
        # Megabytes that a bridge nobody examines need not carry.
        from tillbridge.diagnostics.checkup import (  # noqa: PLC0415 -- see above
            examination,
        )

        run = secrets.token_hex(8)
        checkup = examination(bridge.subject())
        self._checkups[run] = bridge.clock.now_ms(), checkup
        while len(self._checkups) > _KEPT:
            del self._checkups[next(iter(self._checkups))]
        self._work = asyncio.create_task(checkup.run(), name="doctor")
        return run, self._work

    def _running(self) -> Examined:
        if self._bridge is None:
            raise BridgeError(_("The bridge is not running."), fix=_("Run: tillbridge doctor"))
        return self._bridge


def _pack(bridge: Examined, status: Answer, doctor: Answer) -> _Packed:
    # What no bridge carries that nobody asks for help with.
    from tillbridge.diagnostics.bundle.contents import gather  # noqa: PLC0415 -- (as above)

    made: Bundle = gather(bridge.loaded, status, doctor, now_ms=bridge.clock.now_ms())
    return _Packed(made.file_name, made.made_at, made.preview(), made.zipped())


def _seen(task: "asyncio.Task[_Packed]") -> None:
    if not task.cancelled():
        task.exception()  # told by `bundle_state`
