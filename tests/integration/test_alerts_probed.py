"""Would somebody be told? Found out without telling anybody."""

import sys
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from tests.integration.test_alerts_sent import email_way, webhook_way
from tests.support.bridge_process import free_port
from tests.support.mail_harness import Hook, mail_server, web_hook
from tillbridge.alerts.channels import AppriseChannel, HeartbeatProbe, NotSent, reach
from tillbridge.config.bridge import AppriseSettings
from tillbridge.core.errors import ConfigError
from tillbridge.diagnostics.check import Level
from tillbridge.diagnostics.checks.bridge import check_channel


async def test_a_mail_server_is_signed_in_at_and_gets_no_letter() -> None:
    async with mail_server() as mail:
        await email_way(mail, username="bridge").probe()
        assert len(mail.logins) == 1
        assert mail.letters == []
        mail.credentials = b"other"
        with pytest.raises(NotSent, match="user name and password") as failed:
            await email_way(mail, username="bridge").probe()
        assert "p4ssword" not in str(failed.value)


async def test_a_mail_server_that_says_nothing_is_told_of() -> None:
    async with mail_server() as mail:
        mail.mute = True
        with pytest.raises(NotSent, match="cannot be reached"):
            await email_way(mail, timeout_s=0.2).probe()


async def test_a_webhook_is_reached_and_not_asked() -> None:
    async with web_hook() as hook:
        await webhook_way(hook).probe()
        assert hook.requests == []
    with pytest.raises(NotSent) as failed:
        await webhook_way(Hook(f"http://127.0.0.1:{free_port()}")).probe()
    assert "hook" not in failed.value.text
    assert "key=1" not in failed.value.text + failed.value.fix


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:{port}/x", "http://nowhere.invalid/x", "http://[x"]
)
async def test_what_is_wrong_on_the_way_is_said_in_words(url: str) -> None:
    async with web_hook() as hook:
        address = url.format(port=hook.url.rpartition(":")[2])
        with pytest.raises(NotSent):
            await reach(address, timeout_s=2, fix="Check it.")
        assert hook.requests == []


async def test_apprise_is_asked_whether_it_knows_the_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Apprise:
        def add(self, url: str) -> bool:
            return url.startswith("json:")

    settings = AppriseSettings(urls=[SecretStr("x")])
    monkeypatch.setitem(sys.modules, "apprise", SimpleNamespace(Apprise=Apprise))
    await AppriseChannel(settings, [lambda: "json://a"]).probe()
    with pytest.raises(NotSent, match="Address 2"):
        await AppriseChannel(settings, [lambda: "json://a", lambda: "what://secret"]).probe()
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(ConfigError, match="not installed"):
        await AppriseChannel(settings, [lambda: "json://a"]).probe()


async def test_a_heartbeat_is_not_beaten_to_be_looked_at() -> None:
    async with web_hook() as hook:
        found = await check_channel(HeartbeatProbe(f"{hook.url}/beat"))
        assert found.level is Level.OK
        assert hook.requests == []
    found = await check_channel(HeartbeatProbe(f"http://127.0.0.1:{free_port()}/t0ken"))
    assert found.level is Level.FAILED
    assert "heartbeat_url" in found.fix
    assert "t0ken" not in found.text
