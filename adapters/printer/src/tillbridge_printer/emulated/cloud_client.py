"""An emulated Star printer: it polls, fetches pictures, and confirms them."""

import http.client
import json
import threading
import zlib
from dataclasses import dataclass, field
from functools import cache, cached_property
from urllib.parse import quote

from tillbridge_printer.raster import glyph_of

_POLL_S = 0.05


@dataclass(frozen=True)
class Picture:
    """A ticket as it was fetched: its PNG, and its dots as rows of bits."""

    png: bytes
    width: int
    rows: tuple[int, ...]

    @cached_property
    def text(self) -> str:
        """Return what the lines say, read letter by letter off the dots.

        Plain lines on the left, and the white on black letters of a banner, twice as large.
        """
        lines, top = [], 0
        while top + 32 <= len(self.rows):
            banner = self._banner(top)
            if banner is None:
                lines.append(self._read(top, 0, self.width // 16, 2, white=False))
            else:
                lines.append(self._read(top, banner[0], banner[1] // 32, 4, white=True))
            top += 32 if banner is None else 64
        return "\n".join(lines).rstrip()

    def _banner(self, top: int) -> tuple[int, int] | None:
        """Return where a bar of black begins and how wide it is; None where there is none."""
        row = self.rows[top]
        low = (row & -row).bit_length() - 1
        solid = row and row >> low == (1 << (row.bit_length() - low)) - 1
        return (self.width - row.bit_length(), row.bit_length() - low) if solid else None

    def _read(self, top: int, left: int, count: int, scale: int, *, white: bool) -> str:
        letters = []
        for number in range(count):
            shift = self.width - left - (number + 1) * 8 * scale
            cell = tuple(
                self._dots(self.rows[top + scale * row] >> shift, scale, white=white)
                for row in range(16)
            )
            letters.append(_letters().get(cell, "?"))
        return "".join(letters).rstrip()

    def _dots(self, row: int, scale: int, *, white: bool) -> int:
        """Return eight dots; the last of those that stand for one, since bold smears the first."""
        return sum(1 << bit for bit in range(8) if bool(row >> (scale * bit) & 1) is not white)


@dataclass(slots=True)
class CloudClient:
    """Polls as soon as it is started. `code` is the status it tells.

    `silent`: it does not poll. `confirms_with`: what it says of the next ticket, "" for nothing
    (it lost its power after printing). `loads`: whether it can load the next ticket.
    """

    port: int
    token: str
    code: str = "200 OK"
    silent: bool = False
    confirms_with: str = "200 OK"
    confirms_again: bool = True
    tickets: list[Picture] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    polls: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to poll."""
        self._thread = threading.Thread(target=self._run, name="star", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop polling for good."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def ask(self, method: str, query: str = "", body: bytes | None = None) -> tuple[int, bytes]:
        """Send one request to our address, and return status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, f"/{self.token}{query}", body)
            response = connection.getresponse()
            self.cuts += [response.headers["X-Star-Cut"]] * ("X-Star-Cut" in response.headers)
            return response.status, response.read()
        finally:
            connection.close()

    def poll(self) -> dict[str, object]:
        """Poll once, and return what was answered."""
        report = {"status": "23 6 0 0 0 0 0 0 0", "printerMAC": "00:11:62", "statusCode": self.code}
        status, body = self.ask("POST", body=json.dumps(report).encode())
        self.answers.append(status)
        self.polls += 1
        answer = json.loads(body) if status == 200 else {}
        return answer if isinstance(answer, dict) else {}

    def _run(self) -> None:
        while not self._stop.wait(_POLL_S):
            if self.silent:
                continue
            try:
                answer = self.poll()
                if answer.get("jobReady") and self.code.startswith("2"):
                    self._fetch(str(answer["jobToken"]))
            except (OSError, http.client.HTTPException):
                continue  # the server is not there; the next poll tries again

    def _fetch(self, token: str) -> None:
        status, body = self.ask("GET", f"?mac=00:11:62&type=image/png&token={quote(token)}")
        if status != 200:
            self.ask("DELETE", f"?mac=00:11:62&code=520&token={quote(token)}")
            return
        self.tickets.append(read_png(body))
        code = self.confirms_with
        if not self.confirms_again:
            self.confirms_with, self.confirms_again = "200 OK", True
        if code:
            self.ask("DELETE", f"?mac=00:11:62&code={quote(code)}&token={quote(token)}")


def read_png(data: bytes) -> Picture:
    """Return the dots of a PNG of one bit a dot, as a printer would decode it."""
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    packed = b""
    at = 8
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        packed += data[at + 8 : at + 8 + size] * (kind == b"IDAT")
        at += 12 + size
    raw = zlib.decompress(packed)
    bytes_wide = (width + 7) // 8
    shift, white = bytes_wide * 8 - width, (1 << width) - 1
    rows = tuple(
        (int.from_bytes(raw[start + 1 : start + 1 + bytes_wide], "big") >> shift) ^ white
        for start in range(0, height * (bytes_wide + 1), bytes_wide + 1)
    )
    return Picture(data, width, rows)


@cache
def _letters() -> dict[tuple[int, ...], str]:
    return {glyph_of(chr(code))[0]: chr(code) for code in range(0x20, 0x7F)}
