"""Adapters of vendors run in the daemon's process: libraries work there as in any other."""

import json
import mimetypes
import ssl
from pathlib import Path

from aiohttp import web

from tests.support.bridge_process import until
from tests.support.certificates import authority, make_pair
from tests.support.world import World

_STORE = """
[stores.cloud]
location_id = "loc-2"
currency = "USD"
notification_email = "owner@example.net"
[stores.cloud.pos]
adapter = "tests.support.cloud_adapter:ADAPTER"
url = "{url}"
answers = "answers.json"
poll_s = 0.5
"""


async def _hello(_request: web.Request) -> web.Response:
    return web.Response(text="soup of the day")


async def test_an_adapter_calls_https_with_a_plain_client_session(
    world: World, tmp_path: Path
) -> None:
    signer = authority()
    certificate, key = make_pair(tmp_path, by=signer)
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(signer.pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    app = web.Application()
    app.router.add_get("/", _hello)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    answers = world.folder / "answers.json"
    try:
        port = runner.addresses[0][1]
        text = world.config.read_text("utf-8") + _STORE.format(url=f"https://127.0.0.1:{port}/")
        world.config.write_text(text, "utf-8")
        world.bridge.env["SSL_CERT_FILE"] = str(trusted)
        await world.bridge.start()
        await until("the adapter has asked", answers.exists)
    finally:
        await runner.cleanup()
    assert json.loads(answers.read_text("utf-8")) == {
        "answer": "soup of the day",
        "file_type": mimetypes.guess_type("a.xlsx")[0],
        "rich": True,
    }
