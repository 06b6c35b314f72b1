import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tillbridge.adapters.folder_events import FolderEvents
from tillbridge.adapters.watch import FileWatch

SETTLE_MS = 30


class Told:
    """Counts what was told, and waits for more."""

    def __init__(self) -> None:
        self.count = 0
        self._more = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._more.set()

    async def again(self, within_s: float = 20) -> None:
        async with asyncio.timeout(within_s):
            await self._more.wait()
        self._more.clear()


@asynccontextmanager
async def watching(
    subscribe: Callable[[FileWatch], None], *, poll_s: float, events: bool = True
) -> AsyncIterator[FolderEvents]:
    folder_events = FolderEvents()
    watch = FileWatch(folder_events, store="main", poll_s=poll_s)
    subscribe(watch)
    tasks = [asyncio.create_task(watch.run())]
    if events:
        tasks.append(asyncio.create_task(folder_events.run()))
    try:
        yield folder_events
    finally:
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def put(path: Path, text: str) -> None:
    """Replace a file as a careful till does."""
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


# With events and (as good as) no polling, and the other way round.
WAYS = pytest.mark.parametrize(
    ("poll_s", "events"), [(300, True), (0.05, False)], ids=["by events", "by polling"]
)


@WAYS
async def test_a_file_is_told_of_when_it_is_there_and_whenever_it_changes(
    tmp_path: Path, poll_s: float, events: bool
) -> None:
    menu, told = tmp_path / "menu.csv", Told()
    menu.write_text("1")
    async with watching(
        lambda watch: watch.subscribe([menu], SETTLE_MS, told), poll_s=poll_s, events=events
    ) as hints:
        await told.again()
        if events:
            await until_listening(hints, tmp_path)
        put(menu, "22")
        await told.again()
        with menu.open("a") as file:
            file.write("3")
        await told.again()
        menu.unlink()
        await told.again()
        put(menu, "4444")
        await told.again()


async def until_listening(events: FolderEvents, folder: Path) -> None:
    """Wait until the system's events arrive, so that what is done next is told by them."""
    heard = asyncio.Event()
    events.listen(folder, frozenset({"probe"}), heard.set)
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        for number in range(1000):
            (folder / "probe").write_text(str(number))
            if heard.is_set():
                # Once for the watch that now stands, and then for an event.
                if number > 3:
                    return
                heard.clear()
            await asyncio.sleep(0.05)


async def test_a_file_that_never_comes_to_rest_is_left_alone_until_it_does(tmp_path: Path) -> None:
    menu, told = tmp_path / "menu.csv", Told()
    async with watching(
        lambda watch: watch.subscribe([menu], 400, told), poll_s=0.05, events=False
    ):
        with menu.open("w") as file:
            for _ in range(30):
                file.write("x" * 100)
                file.flush()
                await asyncio.sleep(0.03)
            assert told.count == 0
        await told.again()
    assert told.count == 1


async def test_other_files_that_keep_changing_delay_nothing(tmp_path: Path) -> None:
    menu, told = tmp_path / "menu.csv", Told()
    menu.write_text("1")
    stop = threading.Event()

    def keep_changing() -> None:
        number = 0
        while not stop.wait(0.002):
            number += 1
            (tmp_path / f"other-{number % 7}").write_text(str(number))

    noise = threading.Thread(target=keep_changing)
    async with watching(lambda watch: watch.subscribe([menu], 100, told), poll_s=300) as events:
        await told.again()
        await until_listening(events, tmp_path)
        noise.start()
        try:
            for number in range(3):
                put(menu, "x" * (number + 2))
                await told.again()
        finally:
            stop.set()
            noise.join()
    assert told.count == 4, "and the others are not told of"


@WAYS
async def test_a_folder_may_come_later_and_go_and_come_again(
    tmp_path: Path, poll_s: float, events: bool
) -> None:
    folder = tmp_path / "export"
    menu, told = folder / "menu.csv", Told()
    # The folder that comes is noticed by looking; what happens in it then, by events.
    async with watching(
        lambda watch: watch.subscribe([menu], SETTLE_MS, told), poll_s=0.05, events=events
    ):
        for round_ in range(3):
            folder.mkdir()
            put(menu, "x" * (round_ + 1))
            await told.again()
            shutil.rmtree(folder)
            await told.again()


async def test_a_file_put_back_as_it_was_is_told_of_only_if_it_looks_changed(
    tmp_path: Path,
) -> None:
    menu, told, other, other_told = tmp_path / "menu.csv", Told(), tmp_path / "other", Told()
    menu.write_text("1")

    def subscribe(watch: FileWatch) -> None:
        watch.subscribe([menu], SETTLE_MS, told)
        watch.subscribe([other], SETTLE_MS, other_told)

    async with watching(subscribe, poll_s=0.05, events=False):
        await told.again()
        put(other, "x")
        await other_told.again()
    assert told.count == 1


async def test_a_time_of_its_own_keeps_no_file_from_being_told_of(tmp_path: Path) -> None:
    menu, told = tmp_path / "menu.csv", Told()
    menu.write_text("1")
    async with watching(
        lambda watch: watch.subscribe([menu], SETTLE_MS, told), poll_s=0.05, events=False
    ):
        await told.again()
        for instant in (1, 4_000_000_000):
            menu.write_text(str(instant))
            os.utime(menu, (instant, instant))
            await told.again()


@WAYS
async def test_a_folder_of_news_is_told_of_at_once(
    tmp_path: Path, poll_s: float, events: bool
) -> None:
    told = Told()
    async with watching(
        lambda watch: watch.subscribe_folder(tmp_path, told), poll_s=poll_s, events=events
    ) as hints:
        if events:
            await until_listening(hints, tmp_path)
            await told.again()
        put(tmp_path / "a.json", "{}")
        await told.again()


async def test_hidden_files_and_folders_in_it_are_no_news(tmp_path: Path) -> None:
    told, visible = Told(), Told()
    news = tmp_path / "news"
    news.mkdir()

    def subscribe(watch: FileWatch) -> None:
        watch.subscribe_folder(news, told)
        watch.subscribe_folder(tmp_path, visible)

    async with watching(subscribe, poll_s=0.05, events=False):
        (news / ".hidden").write_text("x")
        (news / "done").mkdir()
        (tmp_path / "seen").write_text("x")
        await visible.again()
        (tmp_path / "seen").write_text("xx")
        await visible.again()
    assert told.count == 0


async def test_looking_goes_on_where_the_system_sends_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import watchfiles._rust_notify

    def refuse(*arguments: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watchfiles._rust_notify, "RustNotify", refuse)
    menu, told = tmp_path / "menu.csv", Told()
    async with watching(lambda watch: watch.subscribe([menu], SETTLE_MS, told), poll_s=0.05):
        put(menu, "1")
        await told.again()
        put(menu, "22")
        await told.again()
