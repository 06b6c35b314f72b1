"""An Epson printer that is reached by HTTPS: its certificate is trusted by a file that is named."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.certificates import authority, make_pair
from tillbridge.adapter import PosOffline
from tillbridge_printer.emulated.epos_server import EposServer
from tillbridge_printer.emulated.trying import opened, order_of


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EposServer]:
    signer = authority()
    (tmp_path / "printer.pem").write_bytes(signer.pem)
    certificate, key = make_pair(tmp_path, by=signer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    printer = EposServer(context)
    yield printer
    printer.switch_off()


def test_a_printer_whose_certificate_is_named_is_trusted(
    server: EposServer, tmp_path: Path
) -> None:
    place = f"epos+tls://127.0.0.1:{server.port}"
    pos = opened(tmp_path, place, ca_file="printer.pem")
    pos.write_ticket(order_of(), "ord_1")
    assert len(server.machine.sheets) == 1


def test_a_printer_whose_certificate_nobody_knows_gets_nothing(
    server: EposServer, tmp_path: Path
) -> None:
    pos = opened(tmp_path, f"epos+tls://127.0.0.1:{server.port}")
    with pytest.raises(PosOffline, match="is not trusted") as refused:
        pos.write_ticket(order_of(), "ord_1")
    assert "name the file as ca_file" in str(refused.value.fix)
    assert pos.find_ticket("ord_1") is None
    assert server.machine.sheets == []


def test_a_certificate_that_is_not_there_is_told_at_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gone\.pem"):
        opened(tmp_path, "epos+tls://127.0.0.1:443", ca_file="gone.pem")
