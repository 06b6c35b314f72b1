import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from watchfiles.main import FileChange

from tillbridge.pos import watch as watch_module
from tillbridge.pos.watch import FileWatch, FolderEvents

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
    hints = FolderEvents()
    watch = FileWatch(hints, store="main", poll_s=poll_s)
    subscribe(watch)
    tasks = [asyncio.create_task(watch.run())]
    if events:
        tasks.append(asyncio.create_task(hints.run()))
    try:
        yield hints
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


async def test_a_folder_is_told_of_for_as_long_as_a_file_is_in_it(tmp_path: Path) -> None:
    told, other = Told(), Told()
    news = tmp_path / "news"
    news.mkdir()
    put(news / "a.json", "{}")

    def subscribe(watch: FileWatch) -> None:
        watch.subscribe_folder(news, told)
        watch.subscribe([tmp_path / "other"], SETTLE_MS, other)

    async with watching(subscribe, poll_s=0.05, events=False):
        for _look in range(3):
            await told.again()
        (news / "a.json").unlink()
        put(tmp_path / "other", "1")
        await other.again()  # a look that found the folder empty was made, and reported
        told.count = 0
        put(tmp_path / "other", "2")
        await other.again()
    assert told.count == 0


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


@pytest.mark.parametrize(
    ("failure", "detail"),
    [
        (OSError("OS file watch limit reached"), "OS file watch limit reached"),
        (ExceptionGroup("tasks", [RuntimeError("watcher ended")]), "watcher ended"),
    ],
    ids=["at the start", "later"],
)
async def test_polling_goes_on_where_the_system_sends_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, detail: str
) -> None:
    refused: list[tuple[str, ...]] = []

    async def refuse(*folders: str, **_options: object) -> AsyncIterator[set[FileChange]]:
        refused.append(folders)
        if isinstance(failure, ExceptionGroup):
            yield set()
        raise failure

    monkeypatch.setattr(watch_module, "awatch", refuse)
    menu, told = tmp_path / "menu.csv", Told()
    with capture_logs() as logged:
        async with watching(
            lambda watch: watch.subscribe([menu], SETTLE_MS, told), poll_s=0.05
        ) as events:
            for round_ in range(3):
                put(menu, "x" * (round_ + 1))
                await told.again()
                events.renew()
    assert refused[:2] == [(str(tmp_path),)] * 2
    assert {(each["event"], each["detail"]) for each in logged} == {("watch.no_events", detail)}
    if isinstance(failure, OSError):
        assert len(logged) == 1, "a watch that never stood is logged once"


async def test_a_share_that_hangs_while_its_watch_opens_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, answers = threading.Event(), threading.Event()

    async def hang(*_folders: str, **_options: object) -> AsyncIterator[set[FileChange]]:
        opening.set()
        answers.wait(60)  # as a system call on a dead share does
        yield set()

    monkeypatch.setattr(watch_module, "awatch", hang)
    menu, told = tmp_path / "menu.csv", Told()
    try:
        async with watching(lambda watch: watch.subscribe([menu], SETTLE_MS, told), poll_s=0.05):
            while not opening.is_set():
                await asyncio.sleep(0.01)
            put(menu, "1")
            await told.again()
        assert not answers.is_set(), "and ending does not wait for it"
    finally:
        answers.set()


async def test_a_change_is_reported_by_folder_and_name_however_it_happens(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "zwei \u00fc"
    one.mkdir()
    two.mkdir()
    events, heard = FolderEvents(), {name: asyncio.Event() for name in ("written", "came", "left")}
    events.listen(one, frozenset({"written"}), heard["written"].set, settle_ms=SETTLE_MS)
    events.listen(one, frozenset({"came \u00fc"}), heard["came"].set)
    events.listen(two, frozenset({"came \u00fc"}), heard["left"].set)

    async def reported(*names: str) -> None:
        async with asyncio.timeout(20):
            for name in names:
                await heard[name].wait()
        await asyncio.sleep(0.1)  # whatever else this change is reported as
        assert {name for name in heard if heard[name].is_set()} == set(names)
        for event in heard.values():
            event.clear()

    task = asyncio.create_task(events.run())
    try:
        await reported("written", "came", "left")  # the watch stands
        (one / "written").write_text("x", encoding="utf-8")
        await reported("written")
        (two / "came \u00fc").write_text("x", encoding="utf-8")
        await reported("left")
        (two / "came \u00fc").rename(one / "came \u00fc")
        await reported("came", "left")
        (one / "written").unlink()
        await reported("written")
        (one / "nobody listens").write_text("x", encoding="utf-8")
        await reported()
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_folder_that_is_moved_away_and_made_again_is_watched_anew(tmp_path: Path) -> None:
    folder, heard = tmp_path / "share", asyncio.Event()
    folder.mkdir()
    events = FolderEvents()
    events.listen(folder, None, heard.set)
    # With it, something is left to watch while the folder is away.
    events.listen(tmp_path, frozenset({"probe"}), lambda: None)

    async def hint() -> None:
        async with asyncio.timeout(20):
            await heard.wait()
        heard.clear()

    task = asyncio.create_task(events.run())
    try:
        await hint()  # the watch stands
        folder.rename(tmp_path / "elsewhere")
        await hint()  # the watch is renewed, since the folder reported that it went
        folder.mkdir()
        events.renew()  # as a poll does that finds another folder
        for number in range(5):  # watches that now stand account for two of the hints at most
            await hint()
            (folder / "export").write_text(str(number), encoding="utf-8")
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_share_that_does_not_answer_is_a_problem_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    reports: list[tuple[str, float | None]] = []

    def stat(path: Path) -> watch_module._Look:
        assert answers.wait(60), path
        return watch_module._Look(None)

    monkeypatch.setattr(watch_module, "_look", stat)
    watch = FileWatch(
        FolderEvents(),
        store="main",
        poll_s=300,
        hangs_after_s=0.1,
        on_hang=lambda name, ran_s: reports.append((name, ran_s)),
    )
    watch.subscribe([tmp_path / "menu.csv"], SETTLE_MS, lambda: None)
    running = asyncio.create_task(watch.run())
    async with asyncio.timeout(30):
        while not reports:
            await asyncio.sleep(0.01)
        answers.set()
        while len(reports) < 2:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (name, ran_s), over = reports
    assert name == "watch"
    assert ran_s is not None
    assert ran_s >= 0.1
    assert over == ("watch", None)
