"""People hear of problems: by mail, again, not once acknowledged, and of the end; also of death."""

import json
import shutil

from tests.support.bridge_process import until
from tests.support.mail_harness import mail_server, web_hook
from tests.support.world import World

STEP_MIN = 0.02  # 1.2 seconds


def alerts(mail_port: int, hook_url: str) -> str:
    return f"""
[alerts]
severity = "down"
repeat_min = [0, {STEP_MIN}, {STEP_MIN * 1000}]
settle_s = 0.5
heartbeat_url = "{hook_url}/beat"
heartbeat_s = 0.2

[alerts.email]
host = "127.0.0.1"
port = {mail_port}
tls = "none"
sender = "bridge@example.com"
to = ["anna@example.com"]

[alerts.webhook]
url = "{hook_url}/hook"
"""


async def test_a_till_that_goes_away_is_told_until_somebody_takes_note(world: World) -> None:
    async with mail_server() as mail, web_hook() as hook:
        world.write_config()
        text = world.config.read_text("utf-8").replace(
            "[stores.main.pos]", "[stores.main.pos]\nhealth_s = 0.2"
        )
        world.config.write_text(text + alerts(mail.port, hook.url), "utf-8")
        await world.bridge.start()
        code, out, err = await world.connect()
        assert code == 0, out + err
        await until(
            "consent.missing is over", lambda: any("Resolved" in each for each in mail.subjects())
        )
        mail.letters.clear()

        shutil.move(world.till.orders, world.till.folder / "away")
        await until("a letter at once", lambda: mail.letters)
        assert "The till is not taking orders" in mail.subjects()[0]
        await until("one again", lambda: len(mail.letters) == 2)
        code, out, err = await world.bridge.run("problems", "ack", "pos.offline", "--json")
        assert code == 0, err
        assert json.loads(out)["acknowledged"] == 1
        (problem,) = [
            each for each in (await world.status())["problems"] if each["code"] == "pos.offline"
        ]
        assert problem["acknowledged"]["by"]

        shutil.move(world.till.folder / "away", world.till.orders)
        await until("one about the end", lambda: len(mail.letters) == 3)
        assert "Resolved: The till is not taking orders" in mail.subjects()[2]

        def kinds() -> list[str]:
            told = [json.loads(body) for path, body, _headers in hook.requests if path == "/hook"]
            return [each["kind"] for each in told if each["code"] == "pos.offline"]

        await until("the hook heard of the end, too", lambda: "over" in kinds())
        assert kinds() == ["open", "again", "over"]

        code, out, err = await world.bridge.run("alerts", "test", "--json")
        assert code == 0, out + err
        assert [each["way"] for each in json.loads(out)["ways"]] == ["email", "webhook"]

        await until("the heart beats", lambda: hook.paths().count("/beat") > 2)
        await world.bridge.kill()
        beats = hook.paths().count("/beat")
        code, out, err = await world.bridge.run("alerts", "test")
        assert code == 0, out + err
        assert hook.paths().count("/beat") == beats
