"""A mail server and a web server on loopback that remember what they were given."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiohttp import web


@dataclass
class MailServer:
    """Takes mail by SMTP; `refuse` answers every recipient with 550, `mute` says nothing at all."""

    port: int = 0
    refuse: bool = False
    mute: bool = False
    credentials: bytes | None = None
    letters: list[EmailMessage] = field(default_factory=list)
    envelopes: list[list[str]] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)

    def subjects(self) -> list[str]:
        return [str(letter["Subject"]) for letter in self.letters]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(line.encode() + b"\r\n")

        if self.mute:
            await reader.read()
            return
        say("220 loopback")
        recipients: list[str] = []
        while line := await reader.readline():
            verb = line.strip().split(b" ")[0].upper()
            match verb:
                case b"EHLO":
                    say("250-loopback")
                    say("250 AUTH PLAIN")
                case b"AUTH":
                    self.logins.append(line.strip().split(b" ")[-1])
                    good = self.credentials in {None, self.logins[-1]}
                    say("235 welcome" if good else "535 no")
                case b"RCPT" if self.refuse:
                    say("550 nobody here")
                case b"RCPT":
                    recipients.append(line.decode().strip())
                    say("250 ok")
                case b"DATA":
                    say("354 go on")
                    body = b""
                    while not body.endswith(b"\r\n.\r\n"):
                        body += await reader.readline()
                    letter = message_from_bytes(body[:-5], policy=policy.default)
                    self.letters.append(letter)
                    self.envelopes.append(recipients)
                    recipients = []
                    say("250 taken")
                case b"QUIT":
                    say("221 bye")
                    return
                case _:
                    say("250 ok")


@asynccontextmanager
async def mail_server() -> AsyncIterator[MailServer]:
    """Run a mail server."""
    harness = MailServer()
    server = await asyncio.start_server(harness.serve, "127.0.0.1", 0)
    harness.port = server.sockets[0].getsockname()[1]
    try:
        yield harness
    finally:
        server.close()


@dataclass
class Hook:
    """Takes requests on any path, and answers them with `status`."""

    url: str = ""
    status: int = 200
    requests: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append((request.path_qs, body, dict(request.headers)))
        return web.Response(status=self.status)

    def paths(self) -> list[str]:
        return [path for path, _body, _headers in self.requests]


@asynccontextmanager
async def web_hook() -> AsyncIterator[Hook]:
    """Run a web server."""
    hook = Hook()
    server = web.Application()
    server.router.add_route("*", "/{path:.*}", hook.take)
    runner = web.AppRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    hook.url = f"http://{host}:{port}"
    try:
        yield hook
    finally:
        await runner.cleanup()
