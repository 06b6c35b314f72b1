"""The bridge's own health: examine every link, read the log, put a support bundle together."""

import asyncio
import base64
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from tillbridge.core.actor import Role
from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import LOG_FOLDER
from tillbridge.core.operation import Answer, Argument, operation
from tillbridge.diagnostics.bundle import gather
from tillbridge.diagnostics.checks import examination
from tillbridge.diagnostics.checks.bridge import versions
from tillbridge.diagnostics.log_lines import LogFilter, latest
from tillbridge.diagnostics.reach import guidance, place_of
from tillbridge.model.instant import to_iso
from tillbridge.operations.status import status
from tillbridge.setup.proposal import ways

if TYPE_CHECKING:
    from tillbridge.config.loading import LoadedSettings
    from tillbridge.diagnostics.check import Subject
    from tillbridge.diagnostics.checks import Checkup
    from tillbridge.operations.bridge import Bridge

_MOST_REMEMBERED = 5
_BUNDLE_LASTS_MS = 15 * 60_000


@dataclass(slots=True)
class Diagnostics:
    """The examinations of a running bridge, by run, the oldest first; and its support bundle."""

    loaded: "LoadedSettings"
    subject: "Callable[[], Subject]"
    checkups: "dict[str, tuple[int, Checkup]]" = field(default_factory=dict)
    examining: "asyncio.Task[Answer] | None" = None
    packing: "asyncio.Task[_Packed] | None" = None


@dataclass(frozen=True, slots=True)
class _Packed:
    """A bundle that is ready: the zip, and what is shown of it; its texts need not stay."""

    made_at: int  # ms since the epoch
    shown: Answer
    data: bytes


@operation("diagnostics.begin", role=Role.STAFF, reads=True)
async def begin(bridge: "Bridge") -> Answer:
    """Begin to examine every link, or join the examination under way; return its `run`."""
    return {"run": _begun(bridge)[0]}


@operation("diagnostics.result", role=Role.LOOK, reads=True)
async def result(bridge: "Bridge", run: str) -> Answer:
    """Return the report so far: `ok`, `level`, `text`, `counts`, `results`, `took_ms`.

    `done` is false while links are still looked at; `running` names them. A result has `name`,
    `store`, `level` (ok, warning, failed, skipped), `text`, `fix`, `took_ms`, `details`.
    """
    begun = _running(bridge).checkups.get(run)
    if begun is None:
        raise BridgeError(_("These diagnostics are unknown or too old."), fix=_("Run them again."))
    return begun[1].so_far()


@operation("diagnostics.latest", role=Role.LOOK, reads=True)
async def latest_result(bridge: "Bridge") -> Answer:
    """Return the last examination: `began_at`, and `report` as `result`; None before any.

    Also `versions` of what runs here, by name.
    """
    checkups = _running(bridge).checkups
    answer: dict[str, Any] = {"began_at": None, "report": None, "versions": versions()}
    if checkups:
        began_at, checkup = next(reversed(checkups.values()))
        answer |= {"began_at": to_iso(began_at), "report": checkup.so_far()}
    return {**answer, "at": to_iso(bridge.clock.now_ms())}


@operation("diagnostics.logs", role=Role.LOOK, reads=True)
async def logs(
    bridge: "Bridge",
    *,
    level: str = "",
    event: str = "",
    text: str = "",
    store: str = "",
    order: str = "",
    limit: Annotated[int, Argument(least=1, most=100_000)] = 200,
) -> Answer:
    """Return the last `lines` of the log that fit, the newest first; whether any are `kept`.

    A line has `at`, `level`, `event` and fields of its own; `exception` is a traceback.
    """
    loaded = _running(bridge).loaded
    wanted = LogFilter(level, event, text, store, order)
    lines = await asyncio.to_thread(latest, loaded.data_dir / LOG_FOLDER, wanted, limit)
    return {"lines": lines[::-1], "kept": bool(loaded.settings.bridge.keep_log_bytes)}


@operation("diagnostics.reach", role=Role.LOOK, reads=True, before_setup=True)
async def reach(bridge: "Bridge") -> Answer:
    """Return how the internet may reach the receiver, with every file filled in.

    `public_url`, `receiver`, `path`, `cautions`, `fits` and `ways`; a way has `name`, `title`,
    `text`, `cautions`, `steps`, `installed` and `running`.
    """
    if not bridge.is_set_up and bridge.setup is not None:
        return await ways(bridge.setup.context)
    loaded = _running(bridge).loaded
    return await asyncio.to_thread(guidance, place_of(loaded.settings, loaded.path))


@operation("diagnostics.bundle", role=Role.TECHNICIAN)
async def bundle(bridge: "Bridge") -> Answer:
    """Begin to create a support file, or join who has begun."""
    found = _running(bridge)
    if found.packing is None or found.packing.done():
        found.packing = asyncio.create_task(_packed(bridge, found.loaded), name="support_bundle")
        # A failure is reported by `bundle_state`.
        found.packing.add_done_callback(lambda task: task.cancelled() or task.exception())
    return {"ok": True, "text": _("Creating the support file.")}


@operation("diagnostics.bundle_state", role=Role.TECHNICIAN, reads=True)
async def bundle_state(bridge: "Bridge") -> Answer:
    """Return `state` (none, making, ready, failed); a bundle stays for a quarter of an hour.

    Once it is ready also `name`, `made_at`, `size` and `files`, each with `name`, `size` and
    its `first` lines; where it failed, why as `text`.
    """
    found = _running(bridge)
    packing = found.packing
    if packing is None:
        return {"state": "none"}
    if not packing.done():
        return {"state": "making"}
    if packing.cancelled() or (failure := packing.exception()) is not None:
        return {"state": "failed", "text": "" if packing.cancelled() else str(failure)}
    made = packing.result()
    if bridge.clock.now_ms() - made.made_at > _BUNDLE_LASTS_MS:
        found.packing = None
        return {"state": "none"}
    return {"state": "ready", **made.shown}


@operation("diagnostics.bundle_file", role=Role.TECHNICIAN, reads=True)
async def bundle_file(bridge: "Bridge") -> Answer:
    """Return the bundle that is ready: `name`, and the zip as `base64`."""
    packing = _running(bridge).packing
    if packing is None or (await bundle_state(bridge))["state"] != "ready":
        raise BridgeError(
            _("There is no support file, or it is too old."), fix=_("Create a new one.")
        )
    made = packing.result()
    return {"name": made.shown["name"], "base64": base64.b64encode(made.data).decode()}


async def _packed(bridge: "Bridge", loaded: "LoadedSettings") -> _Packed:
    # Whoever ends this does not end the examination for others.
    doctor = await asyncio.shield(_begun(bridge)[1])
    document = await status(bridge)
    now_ms = bridge.clock.now_ms()

    def pack() -> _Packed:
        made = gather(loaded, document, doctor, now_ms=now_ms)
        data = made.zipped()
        shown = {"name": made.file_name, "made_at": to_iso(now_ms), "size": len(data)}
        return _Packed(now_ms, {**shown, "files": made.preview()}, data)

    return await asyncio.to_thread(pack)


def _begun(bridge: "Bridge") -> "tuple[str, asyncio.Task[Answer]]":
    """Return the examination under way; begin one where there is none."""
    found = _running(bridge)
    if found.examining is not None and not found.examining.done():
        return next(reversed(found.checkups)), found.examining
    run, checkup = secrets.token_hex(8), examination(found.subject())
    found.checkups[run] = bridge.clock.now_ms(), checkup
    while len(found.checkups) > _MOST_REMEMBERED:
        del found.checkups[next(iter(found.checkups))]
    found.examining = asyncio.create_task(checkup.run(), name="doctor")
    return run, found.examining


def _running(bridge: "Bridge") -> Diagnostics:
    if bridge.diagnostics is None:
        raise BridgeError(_("The bridge is not running."), fix=_("Run: tillbridge doctor"))
    return bridge.diagnostics
