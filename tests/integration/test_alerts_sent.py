"""Alerts go out by real mail and web servers, once, and their own failure alerts nobody."""

import asyncio
import base64
import hashlib
import hmac
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from pydantic import SecretStr

from tests.support.bridge_process import free_port, until
from tests.support.mail_harness import Hook, MailServer, mail_server, web_hook
from tests.support.problem_reports import report_open, report_over
from tests.support.service_link import HandClock
from tillbridge.alerts.channels import (
    AppriseChannel,
    Channel,
    EmailChannel,
    Heartbeat,
    NotSent,
    WebhookChannel,
)
from tillbridge.alerts.dispatcher import AlertDispatcher
from tillbridge.alerts.episodes import Message, trial
from tillbridge.config.bridge import AlertSettings, AppriseSettings, EmailSettings, WebhookSettings
from tillbridge.core.clock import Clock
from tillbridge.core.errors import ConfigError, LedgerError
from tillbridge.core.scheduler import Scheduler
from tillbridge.core.worker import Supervisor
from tillbridge.ledger.ledger import Ledger
from tillbridge.ledger.problems import ProblemTracker, acknowledge

REAL = Clock()
ONCE = AlertSettings(repeat_min=[0], settle_s=0.3)


def email_way(server: MailServer, **changed: object) -> EmailChannel:
    settings = EmailSettings.model_validate(
        {
            "host": "127.0.0.1",
            "port": server.port,
            "tls": "none",
            "sender": "bridge@example.com",
            "to": ["anna@example.com", "ben@example.com"],
            "timeout_s": 1.0,
            **changed,
        }
    )
    return EmailChannel(settings, lambda: "p4ssword")


def webhook_way(hook: Hook, *, secret: str | None = None, form: str = "json") -> WebhookChannel:
    settings = WebhookSettings.model_validate(
        {"url": SecretStr("x"), "format": form, "timeout_s": 1.0}
    )
    return WebhookChannel(
        settings, lambda: f"{hook.url}/hook?key=1", (lambda: secret) if secret else None
    )


class Book:
    """A way that writes down what it is given; it fails as often as `failures` says."""

    def __init__(self, name: str = "book", failures: int = 0) -> None:
        self.name = name
        self.failures = failures
        self.tries = 0
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise NotSent("The book is shut.", fix="Open it.")
        self.messages.append(message)

    async def probe(self) -> None:
        pass

    def has(self, count: int) -> bool:
        return len(self.messages) == count

    def kinds(self) -> list[str]:
        return [message.kind for message in self.messages]


@asynccontextmanager
async def telling(
    folder: Path,
    ways: Sequence[Channel],
    settings: AlertSettings,
    *,
    readable: bool = True,
    clock: Clock = REAL,
) -> AsyncIterator[tuple[ProblemTracker, Ledger]]:
    ledger = await Ledger.open(folder, clock=clock)
    tracker = await ProblemTracker.start(ledger, clock=clock)

    async def about(store: str) -> tuple[str, str]:
        if not readable:
            raise LedgerError("The ledger cannot be read.")
        return "Trattoria" if store else "", ""

    dispatcher = AlertDispatcher(
        ways, settings, ledger, tracker, clock=clock, about=about, retry_first_s=0.05
    )
    running = asyncio.create_task(dispatcher.run())
    try:
        yield tracker, ledger
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await tracker.settle()
        await ledger.close()


async def test_a_letter_reaches_everybody_with_what_to_do(tmp_path: Path) -> None:
    async with mail_server() as server:
        async with telling(
            tmp_path, [email_way(server, username="bridge", password="x")], ONCE
        ) as (
            tracker,
            _ledger,
        ):
            report_open(tracker, "pos.offline", "main", detail="no answer")
            await until("a letter", lambda: server.letters)
        (letter,) = server.letters
        assert letter["Subject"] == "Trattoria: The till is not taking orders: no answer"
        assert letter["Auto-Submitted"] == "auto-generated"
        assert "What to do:" in letter.get_content()
        assert len(server.envelopes[0]) == 2
        assert base64.b64decode(server.logins[0]) == b"\0bridge\0p4ssword"


async def told_three_times(book: Book, tracker: ProblemTracker, clock: HandClock) -> None:
    """Wait for the three messages about what was opened a moment ago, and five minutes more."""
    before = len(book.messages)
    for count in (1, 2, 3):
        await until(f"{count} messages", partial(book.has, before + count))
        clock.pass_s(300)
        tracker.noticed()


def over_by_now(book: Book, tracker: ProblemTracker, clock: HandClock) -> bool:
    """Let half a minute pass; whether the last message is that something is over."""
    clock.pass_s(30)
    tracker.noticed()
    return book.kinds()[-1] == "over"


async def test_each_step_once_then_nothing_and_one_message_when_it_is_over(tmp_path: Path) -> None:
    book, clock = Book(), HandClock()
    async with telling(tmp_path, [book], AlertSettings(), clock=clock) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await told_three_times(book, tracker, clock)
        report_over(tracker, "pos.offline", "main")
        await until("its end", lambda: over_by_now(book, tracker, clock))
    assert book.kinds() == ["open", "again", "again", "over"]


async def test_an_acknowledged_problem_is_told_no_more(tmp_path: Path) -> None:
    book, clock = Book(), HandClock()
    async with telling(tmp_path, [book], AlertSettings(), clock=clock) as (tracker, ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the first message", lambda: book.messages)
        now = tracker.current()
        await ledger.write(lambda connection: acknowledge(connection, now, by="anna", at=1))
        tracker.noticed()
        report_open(tracker, "menu.held", "main", detail="31 items")  # its three steps take as long
        await told_three_times(book, tracker, clock)
        report_over(tracker, "pos.offline", "main")
        await until("its end", lambda: over_by_now(book, tracker, clock))
    codes = [message.facts["code"] for message in book.messages]
    assert codes == ["pos.offline", "menu.held", "menu.held", "menu.held", "pos.offline"]


async def test_a_restart_tells_nothing_twice(tmp_path: Path) -> None:
    first, second = Book(), Book()
    async with telling(tmp_path, [first], ONCE) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the message", lambda: first.messages)
    async with telling(tmp_path, [second], ONCE) as (tracker, _ledger):
        report_open(tracker, "menu.held", "main", detail="31 items")
        await until("another message", lambda: second.messages)
        report_over(tracker, "pos.offline", "main")
        await until("the end of the first", lambda: len(second.messages) == 2)
    assert [(each.kind, each.facts["code"]) for each in second.messages] == [
        ("open", "menu.held"),
        ("over", "pos.offline"),
    ]


async def test_a_problem_that_ended_while_the_bridge_was_down_is_told_to_be_over(
    tmp_path: Path,
) -> None:
    first, second = Book(), Book()
    async with telling(tmp_path, [first], ONCE) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the message", lambda: first.messages)
    clock = Clock()
    ledger = await Ledger.open(tmp_path, clock=clock)
    tracker = await ProblemTracker.start(ledger, clock=clock)
    report_over(tracker, "pos.offline", "main")
    await tracker.settle()
    await ledger.close()
    async with telling(tmp_path, [second], ONCE):
        await until("its end", lambda: second.messages)
    assert second.kinds() == ["over"]


async def test_a_way_that_fails_is_tried_again_and_is_a_problem_that_nobody_is_alerted_of(
    tmp_path: Path,
) -> None:
    broken, sound = Book("email", failures=2), Book("webhook")
    async with telling(tmp_path, [broken, sound], ONCE) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the problem", lambda: tracker.is_open("alerts.not_sent", subject="email"))
        await until("the message", lambda: broken.messages)
        await until("its end", lambda: not tracker.is_open("alerts.not_sent", subject="email"))
    assert broken.tries == 3
    assert broken.kinds() == sound.kinds() == ["open"]


async def test_a_way_that_hangs_delays_no_other(tmp_path: Path) -> None:
    class Hung(Book):
        async def send(self, message: Message) -> None:
            await asyncio.Event().wait()

    book = Book("webhook")
    async with telling(tmp_path, [Hung("email"), book], ONCE) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the message", lambda: book.messages)
        report_open(tracker, "menu.held", "main", detail="31 items")
        await until("the next", lambda: len(book.messages) == 2)


async def test_the_problem_of_a_way_that_is_gone_is_over(tmp_path: Path) -> None:
    async with telling(tmp_path, [Book("email", failures=99)], ONCE) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the problem", lambda: tracker.is_open("alerts.not_sent", subject="email"))
    async with telling(tmp_path, [Book("webhook")], ONCE) as (tracker, _ledger):
        await until("its end", lambda: not tracker.is_open("alerts.not_sent", subject="email"))


async def test_a_webhook_gets_everything_signed() -> None:
    async with web_hook() as hook:
        await webhook_way(hook, secret="s3cret").send(trial(5))
        ((path, body, headers),) = hook.requests
    assert path == "/hook?key=1"
    told = json.loads(body)
    assert told["kind"] == "test"
    assert "this is a test" in told["subject"]
    expected = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    assert headers["X-Tillbridge-Signature"] == expected
    assert headers["X-Tillbridge-Alert-Id"] == told["id"]


@pytest.mark.parametrize(
    ("form", "key"), [("slack", "text"), ("teams", "text"), ("discord", "content")]
)
async def test_chats_get_the_text_in_their_field(form: str, key: str) -> None:
    async with web_hook() as hook:
        await webhook_way(hook, form=form).send(trial(5))
        ((_path, body, headers),) = hook.requests
    assert "this is a test" in json.loads(body)[key]
    assert "X-Tillbridge-Signature" not in headers


async def test_a_webhook_that_refuses_is_told_without_its_address() -> None:
    async with web_hook() as hook:
        hook.status = 403
        with pytest.raises(NotSent, match="403") as refused:
            await webhook_way(hook).send(trial(5))
    assert "hook?key" not in str(refused.value)
    with pytest.raises(NotSent, match="cannot be reached") as gone:
        await webhook_way(hook).send(trial(5))
    assert "hook?key" not in str(gone.value)


async def test_a_mail_server_that_fails_is_told_with_what_to_do() -> None:
    async with mail_server() as server:
        server.refuse = True
        with pytest.raises(NotSent, match="none of the addresses"):
            await email_way(server).send(trial(5))
        server.refuse = False
        server.credentials = b"other"
        with pytest.raises(NotSent, match="user name and password") as refused:
            await email_way(server, username="bridge", password="x").send(trial(5))
        assert "p4ssword" not in str(refused.value)
        server.mute = True
        with pytest.raises(NotSent, match="no answer in time"):
            await email_way(server, timeout_s=0.2).send(trial(5))
        server.mute = False
        with pytest.raises(NotSent, match="STARTTLS"):
            await email_way(server, tls="starttls").send(trial(5))
        with pytest.raises(NotSent, match="cannot be reached"):
            await email_way(server, port=free_port()).send(trial(5))


async def test_without_apprise_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    way = AppriseChannel(AppriseSettings(urls=[SecretStr("json://x")]), [lambda: "json://x"])
    with pytest.raises(ConfigError, match=r"pip install 'tillbridge\[apprise\]'"):
        await way.send(trial(5))


async def test_apprise_is_given_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    class Apprise:
        answer = True

        def add(self, url: str) -> bool:
            given.append(url)
            return url.startswith("json:")

        async def async_notify(self, *, body: str, title: str) -> bool:
            given.append((title, body))
            return self.answer

    monkeypatch.setitem(sys.modules, "apprise", SimpleNamespace(Apprise=Apprise))
    settings = AppriseSettings(urls=[SecretStr("x")])
    await AppriseChannel(settings, [lambda: "json://a", lambda: "json://b"]).send(trial(5))
    assert given[:2] == ["json://a", "json://b"]
    with pytest.raises(NotSent, match="Address 1"):
        await AppriseChannel(settings, [lambda: "what://secret"]).send(trial(5))
    Apprise.answer = False
    with pytest.raises(NotSent, match="every address"):
        await AppriseChannel(settings, [lambda: "json://a"]).send(trial(5))


async def test_the_heartbeat_beats_while_the_bridge_is_well_and_says_when_it_is_not() -> None:
    well = True

    async def is_well() -> bool:
        return well

    async with web_hook() as hook:
        beat = Heartbeat(f"{hook.url}/ping/1?a=b", every_s=0.05, fail="/fail", is_well=is_well)
        scheduler = Scheduler(Clock(), Supervisor("", Mock()))
        beat.plan(scheduler)
        scheduler.start()
        await until("two beats", lambda: hook.paths()[:2] == ["/ping/1?a=b"] * 2)
        well = False
        await until("a failure", lambda: "/ping/1/fail?a=b" in hook.paths())
        hook.status = 500
        well = True
        count = len(hook.requests)
        await until("it goes on though nobody hears", lambda: len(hook.requests) > count + 2)
        scheduler.stop()
        await asyncio.sleep(0)


async def test_a_heartbeat_without_an_end_for_failures_is_silent_then() -> None:
    looked = 0

    async def is_well() -> bool:
        nonlocal looked
        looked += 1
        return False

    async with web_hook() as hook:
        beat = Heartbeat(hook.url, every_s=0.02, fail="", is_well=is_well)
        scheduler = Scheduler(Clock(), Supervisor("", Mock()))
        beat.plan(scheduler)
        scheduler.start()
        await until("some looks", lambda: looked > 3)
        scheduler.stop()
        await asyncio.sleep(0)
        assert hook.requests == []


async def test_a_disk_that_fails_is_told_all_the_same(tmp_path: Path) -> None:
    book = Book()
    async with telling(tmp_path, [book], ONCE, readable=False) as (tracker, _ledger):
        report_open(tracker, "pos.offline", "main", detail="no answer")
        await until("the message", lambda: book.messages)
    assert book.messages[0].subject.startswith("main: ")


async def test_an_address_that_mail_cannot_take_is_told_and_ends_nothing() -> None:
    async with mail_server() as server:
        with pytest.raises(NotSent):
            await email_way(server, to=["änna@exämple.com"]).send(trial(5))
