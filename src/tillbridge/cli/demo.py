"""`tillbridge demo`: a local ordering service, a sample till, and the bridge between them."""

import asyncio
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from tillbridge.cli.demo_scenario import scenario
from tillbridge.cli.demo_stage import Stage, set_up
from tillbridge.cli.say import line
from tillbridge.core.i18n import _
from tillbridge.core.log import configure
from tillbridge.sandbox import SandboxSettings

_COOKING_S = 4.0
_COOKING_ONCE_S = 0.3


def play(*, once: bool, adapter: str = "") -> int:
    """Play the demo with an adapter's till, or the sample one; returns an exit code.

    It is in a folder of its own that is removed at the end.
    """
    configure("auto", "warning")
    with (
        tempfile.TemporaryDirectory(
            prefix="tillbridge-demo-", ignore_cleanup_errors=True
        ) as folder,
        suppress(KeyboardInterrupt),
    ):
        return asyncio.run(
            _once(Path(folder), adapter) if once else _until_interrupted(Path(folder), adapter)
        )
    return 0


async def _once(folder: Path, adapter: str) -> int:
    line(_("Playing the whole thing once. Nothing outside this machine is touched."))
    line()
    settings = SandboxSettings(auto_consent=True, job_duration_s=0.5)
    async with set_up(
        folder, settings, cooking_s=_COOKING_ONCE_S, usual_ports=False, adapter=adapter
    ) as stage:
        return await scenario(stage)


async def _until_interrupted(folder: Path, adapter: str) -> int:
    line(_("Starting an ordering service, a till, and the bridge between them ..."))
    settings = SandboxSettings(auto_consent=True)
    async with set_up(
        folder, settings, cooking_s=_COOKING_S, usual_ports=True, adapter=adapter
    ) as stage:
        await stage.connect()
        await stage.until(_("the menu is on sale"), stage.menu_is_on_sale)
        _tell_addresses(stage)
        await _tell_what_happens(stage)
    return 0


def _tell_addresses(stage: Stage) -> None:
    rows = (
        (_("Storefront"), f"{stage.service_url}/store/st_main", _("order something here")),
        (_("The bridge"), f"{stage.page_url}/", _("what works, what does not, what to do")),
        (_("The service"), f"{stage.service_url}/", _("its control panel: faults, clock")),
        (_("The till"), *stage.till.place),
    )
    line()
    for name, place, what in rows:
        line(f"  {name:<12} {place:<45} {what}")
    line()
    line(_("Change what the till exports (a price, what is sold out): the storefront follows."))
    line(_("Ctrl-C ends it, and removes everything."))
    line()


async def _tell_what_happens(stage: Stage) -> None:
    """Tell the bridge's log in plain words, as it grows; start a bridge that was killed again."""
    with stage.log_path.open(encoding="utf-8") as log:
        log.seek(0, 2)
        while True:
            if not stage.bridge_runs():
                line(_("The bridge has ended. It is started again, as a service manager would."))
                await stage.start_bridge()
            for text in log.read().splitlines():
                if told := _in_words(text):
                    line(told)
            await asyncio.sleep(0.2)


_WORDS = {
    "order.received": _("order {order}: received"),
    "order.written": _("order {order}: the till has it"),
    "order.accepted": _("order {order}: accepted"),
    "order.preparing": _("order {order}: in the kitchen"),
    "order.ready": _("order {order}: ready"),
    "order.completed": _("order {order}: delivered"),
    "order.cancelled": _("order {order}: cancelled"),
    "export.read": _("the till's export was read"),
    "menu.pushed": _("the menu was pushed"),
    "availability.pushed": _("availability was pushed"),
    "menu.held": _("a menu change waits for a person"),
    "problem.opened": _("problem: {code}"),
    "problem.closed": _("over: {code}"),
}


def _in_words(text: str) -> str:
    try:
        event: dict[str, Any] = json.loads(text)
    except ValueError:
        return ""
    words = _WORDS.get(str(event.get("event")))
    if words is None:
        return ""
    at = str(event.get("at", ""))[11:19]
    return f"{at}  {words.format_map({'order': '?', 'code': '?', **event})}"
