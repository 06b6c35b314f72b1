"""Background tasks that must not die unnoticed (invariant 12)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from tillbridge.core.errors import BridgeError
from tillbridge.core.i18n import _
from tillbridge.core.log import get_logger

log = get_logger()


async def supervise(
    tasks: Mapping[str, Coroutine[Any, Any, object]],
    stop: asyncio.Event,
    *,
    on_stop: Callable[[], Awaitable[None]],
) -> None:
    """Run the tasks until `stop` is set, then await `on_stop` and end them.

    A task that ends by itself, by an exception or by returning, ends all of them: raises
    BridgeError, and the service manager starts the bridge anew.
    """
    running = {asyncio.create_task(work, name=name) for name, work in tasks.items()}
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        done, _rest = await asyncio.wait(running | {stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {stopping}:
            failure = _innermost(task.exception())
            log.error("task.died", task=task.get_name(), exc_info=failure)
            raise BridgeError(
                _("The bridge's task {name} ended unexpectedly: {detail}").format(
                    name=task.get_name(), detail=failure or _("it returned")
                ),
                fix=_("The service manager starts the bridge again; the log has the details."),
            ) from failure
        await on_stop()
    finally:
        for task in (*running, stopping):
            task.cancel()
        await asyncio.gather(*running, stopping, return_exceptions=True)


def _innermost(failure: BaseException | None) -> BaseException | None:
    """Return what a group of tasks died of: the first of them."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
