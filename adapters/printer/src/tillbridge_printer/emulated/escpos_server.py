"""An emulated ESC/POS printer on a real socket, with one caller at a time, as printers have it."""

import contextlib
import socket
import threading

from tillbridge_printer.emulated.escpos import Died, Machine


class EscPosServer:
    """Listens on a loopback port. `mute`: it takes bytes and answers nothing.

    `loses_answer`: it does the next ticket whole, and hangs up instead of saying so.
    """

    def __init__(self) -> None:
        self.machine = Machine()
        self.mute = False
        self.loses_answer = False
        self.calls = 0
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._caller: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self.port = 0
        self.switch_on()

    def switch_on(self) -> None:
        """Listen, on the same port as before."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(8)
        self.port = listening.getsockname()[1]
        self._socket = listening
        self._thread = threading.Thread(target=self._serve, args=(listening,), daemon=True)
        self._thread.start()

    def switch_off(self) -> None:
        """Hang up, and answer nobody any more."""
        listening, self._socket = self._socket, None
        if listening is not None:
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        self._hang_up()
        if self._thread is not None:
            self._thread.join(5)
            self._thread = None

    def close_cover(self) -> None:
        """Close the cover, or put paper in: what waits is printed, and a caller is told."""
        with self._lock:
            self.machine.cover_open, self.machine.lines_left = False, None
            self._answer(self.machine.go_on())

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                caller, _address = listening.accept()
            except OSError:
                return
            self.calls += 1
            self._caller = caller
            with caller:
                self._talk(caller)
            self._caller = None

    def _talk(self, caller: socket.socket) -> None:
        while True:
            try:
                data = caller.recv(4096)
            except OSError:
                break
            if not data:
                break
            with self._lock:
                try:
                    answer = self.machine.feed(data)
                except Died:
                    break
                if b"\x1dr" in data and self.loses_answer:
                    self.loses_answer = False
                    break
                self._answer(answer)
        with self._lock:
            self.machine.hang_up()

    def _answer(self, data: bytes) -> None:
        if data and not self.mute and self._caller is not None:
            with contextlib.suppress(OSError):
                self._caller.sendall(data)

    def _hang_up(self) -> None:
        caller = self._caller
        if caller is not None:
            with contextlib.suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)
