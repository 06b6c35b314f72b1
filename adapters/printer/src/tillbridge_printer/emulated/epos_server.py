"""An emulated Epson printer with its ePOS-Print service, on a real socket."""

import base64
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree as ET

from tillbridge_printer.emulated.sheet import Look, Sheet

_NAMESPACE = "{http://www.epson-pos.com/schemas/2011/03/epos-print}"
_ALIGN = {"left": 0, "center": 1, "right": 2}


@dataclass(slots=True)
class EposMachine:
    """The printer. `fails_with` is the code that the next ticket ends with, after half of it."""

    dots: int = 576
    cover_open: bool = False
    paper_out: bool = False
    paper_low: bool = False
    device: str = "local_printer"
    fails_with: str = ""
    sheets: list[Sheet] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The bits of the answer."""
        bits = 0x0F00_0000
        bits |= 0x08 * (self.cover_open or self.paper_out)
        bits |= 0x20 * self.cover_open
        bits |= 0x2_0000 * (self.paper_low or self.paper_out)
        return bits | 0x8_0000 * self.paper_out

    def ask(self, device: str, body: bytes) -> str:
        """Do what the document says, and return the attributes of the answer."""
        if device != self.device:
            return self._answer("DeviceNotFound")
        try:
            document = ET.fromstring(body)  # noqa: S314 -- written by the adapter under test
        except ET.ParseError:
            return self._answer("SchemaError")
        ticket = document.find(f".//{_NAMESPACE}epos-print")
        if ticket is None:
            return self._answer("SchemaError")
        if not len(ticket):
            return self._answer("")
        if self.cover_open:
            return self._answer("EPTR_COVER_OPEN")
        if self.paper_out:
            return self._answer("EPTR_REC_EMPTY")
        self._print(ticket)
        code, self.fails_with = self.fails_with, ""
        return self._answer(code)

    def _print(self, ticket: ET.Element) -> None:
        sheet = Sheet(self.dots)
        for element in ticket:
            name = element.tag.removeprefix(_NAMESPACE)
            given = element.attrib
            match name:
                case "text":
                    look = Look(
                        align=_ALIGN[given.get("align", "left")],
                        bold=given.get("em") == "true",
                        invert=given.get("reverse") == "true",
                        wide=int(given.get("width", "1")),
                        tall=int(given.get("height", "1")),
                    )
                    for line in (element.text or "").removesuffix("\n").split("\n"):
                        sheet.print_text(line, look)
                case "image":
                    data = base64.b64decode(element.text or "")
                    sheet.print_picture(int(given["width"]) // 8, data, Look())
                case "feed":
                    sheet.feed_dots(30 * int(given.get("line", "1")))
                case "cut":
                    self.sheets.append(sheet)
                    sheet = Sheet(self.dots)
                case _:
                    self.strange.append(name)
        if sheet.lines:
            self.sheets.append(sheet)

    def _answer(self, code: str) -> str:
        good = str(not code and not (self.cover_open or self.paper_out)).lower()
        status = self.status | 0x02 * (good == "true")
        return f'success="{good}" code="{code}" status="{status}" battery="0"'


class EposServer:
    """Listens on a loopback port. `mute` and `loses_answer` as for the ESC/POS printer."""

    def __init__(self, certificate: ssl.SSLContext | None = None) -> None:
        self.machine = EposMachine()
        self.certificate = certificate  # with one it speaks HTTPS
        self.loses_answer = False
        self.port = 0
        self._talking = threading.Event()
        self._talking.set()
        self._server: _Server | None = None
        self.switch_on()

    @property
    def mute(self) -> bool:
        """Whether it takes requests and answers none."""
        return not self._talking.is_set()

    @mute.setter
    def mute(self, mute: bool) -> None:
        self._talking.clear() if mute else self._talking.set()

    def switch_on(self) -> None:
        """Listen, on the same port as before."""
        self._server = _Server(self)
        self.port = self._server.server_port
        threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="epos", daemon=True
        ).start()

    def switch_off(self) -> None:
        """Answer nobody any more."""
        server, self._server = self._server, None
        self._talking.set()
        if server is not None:
            server.shutdown()
            server.server_close()

    def answer(self, device: str, body: bytes) -> bytes | None:
        """Return the answer's document; None where it gets lost."""
        if not self._talking.is_set():
            self._talking.wait(60)
            return None
        attributes = self.machine.ask(device, body)
        prints = b"<text" in body or b"<image" in body
        if prints and self.loses_answer:
            self.loses_answer = False
            return None
        return (
            '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv='
            '"http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body><response xmlns='
            f'"http://www.epson-pos.com/schemas/2011/03/epos-print" {attributes}/>'
            "</soapenv:Body></soapenv:Envelope>"
        ).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: EposServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", owner.port), _Handler)
        if owner.certificate is not None:
            self.socket = owner.certificate.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 -- as the library has it
        """Say nothing of callers that hang up."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        """Take a document."""
        where = urlsplit(self.path)
        if where.path != "/cgi-bin/epos/service.cgi":
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        device = parse_qs(where.query).get("devid", [""])[0]
        answer = self.server.owner.answer(device, body)
        if answer is None:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 -- as the library has it
        """Write nothing."""
