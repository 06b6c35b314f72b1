"""Options that cannot work say so, in words."""

from pathlib import Path

import pytest

from tillbridge_printer.emulated.trying import opened
from tillbridge_printer.places import CloudPlace, DevicePlace, EposPlace, TcpPlace, place_of


def test_every_way_to_a_printer_is_understood() -> None:
    assert place_of("tcp://10.0.0.5") == TcpPlace("10.0.0.5", 9100)
    assert place_of("tcp://printer.local:9101") == TcpPlace("printer.local", 9101)
    assert place_of("usb:/dev/usb/lp0") == DevicePlace(Path("/dev/usb/lp0"), answers=True)
    assert place_of("file:out.prn") == DevicePlace(Path("out.prn"), answers=False)
    assert place_of("epos://10.0.0.6") == EposPlace("http://10.0.0.6:80")
    assert place_of("epos+tls://10.0.0.6/bar") == EposPlace("https://10.0.0.6:443", "bar")
    assert place_of("epos://[fe80::1]:81") == EposPlace("http://[fe80::1]:81")
    assert place_of("cloudprnt://10.0.0.1:8090") == CloudPlace("10.0.0.1", 8090)


@pytest.mark.parametrize(
    ("printer", "more", "words"),
    [
        ("10.0.0.5", {}, "must begin with"),
        ("lpt:1", {}, "reached by"),
        ("tcp://", {}, "names no host"),
        ("tcp://a:99999", {}, "port"),
        ("usb:", {}, "names no file"),
        ("cloudprnt://0.0.0.0", {}, "no port to listen on"),
        ("cloudprnt://0.0.0.0:8090", {}, "token: is missing"),
        ("tcp://a", {"code_pages": ["cp9"]}, "no code page"),
        ("tcp://a", {"timezone": "Mars/Base"}, "IANA"),
        ("tcp://a", {"tickets": []}, "at least 1"),
        ("tcp://a", {"tickets": ["bar"]}, "kitchen"),
    ],
)
def test_what_cannot_work_is_told(
    tmp_path: Path, printer: str, more: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        opened(tmp_path, printer, **more)
