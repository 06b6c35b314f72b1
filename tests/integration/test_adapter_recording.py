"""What an adapter saw and said becomes a case: without secrets, and replayable."""

import base64
import json
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import Field

from tests.support.adapter_command import tillbridge
from tillbridge.adapter import Adapter, AdapterContext, AdapterOptions, Catalogue, Item, PosOffline
from tillbridge.adapter.conformance import Case, run_case
from tillbridge.adapter.conformance.workbook import write_workbook
from tillbridge.adapter.secrets import Secret, read_secret
from tillbridge.core.errors import BridgeError
from tillbridge.model.money import to_minor
from tillbridge.pos.folder import ADAPTER as FOLDER
from tillbridge.pos.kit import find_kit
from tillbridge.pos.recording import Recorded, Source, record
from tillbridge.pos.scaffold import make_package

ROOT = Path(__file__).resolve().parents[2]

PEOPLE = ("Änne Müller-Lüdenscheidt", "anna@mueller.example", "+49 170 1234567", "12 Rue Cachée")
SECRET = 'k3y"with"Ünïcode/and+signs'


class CloudOptions(AdapterOptions):
    url: str
    api_key: Secret
    note: str = ""
    size: int = Field(2, ge=1)


class CloudTill:
    """A till with an HTTP interface, read with nothing but the standard library."""

    def __init__(self, options: CloudOptions, context: AdapterContext) -> None:
        self._options = options
        self._key = read_secret(options.api_key, "api_key", context)
        self._currency = context.currency

    def read_catalogue(self) -> Catalogue:
        items = []
        for page in range(1, self._options.size + 1):
            body = json.dumps({"key": self._key, "page": page}).encode()
            request = urllib.request.Request(f"{self._options.url}/items", body)
            try:
                with urllib.request.urlopen(request, timeout=10) as reply:
                    said = json.load(reply)
            except OSError as failure:
                raise PosOffline(f"No answer: {failure}") from failure
            items += [Item(each["id"], each["name"], self.price(each)) for each in said["items"]]
        return Catalogue.of(items)

    def price(self, said: Mapping[str, Any]) -> int:
        return to_minor(said["price"], self._currency)


class ChangedTill(CloudTill):
    def price(self, said: Mapping[str, Any]) -> int:
        return super().price(said) // 10 * 10


CLOUD = Adapter("cloud", "A till in the cloud", CloudOptions, CloudTill)


@pytest.fixture
def cloud() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert asked["key"] == SECRET
            content = json.dumps(
                {
                    "items": [{"id": f"i{asked['page']}", "name": "Cake", "price": "4.55"}],
                    "customer": {"name": PEOPLE[0], "mails": [PEOPLE[1]]},
                    "about": f"call {PEOPLE[2]}",
                    "token": base64.b64encode(SECRET.encode()).decode(),
                    "link": f"http://x.example/?key={quote(SECRET, safe='')}",
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Set-Cookie", "session=abcdefgh")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as it is called there
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def everything(folder: Path) -> str:
    """Return all that stands in a folder, also what is zipped or escaped."""
    import zipfile

    texts = []
    for path in folder.rglob("*"):
        if path.is_file():
            contents = [path.read_bytes()]
            if path.suffix == ".xlsx":
                with zipfile.ZipFile(path) as archive:
                    contents += [archive.read(name) for name in archive.namelist()]
            for content in contents:
                texts += [content.decode(code, "replace") for code in ("utf-8", "cp850", "utf-16")]
            if path.suffix == ".json":
                texts.append(json.dumps(json.loads(path.read_text("utf-8")), ensure_ascii=False))
    return "\n".join(texts)


def nothing_in(folder: Path, *planted: str) -> None:
    found = everything(folder)
    for each in planted:
        forms = (
            each,
            json.dumps(each)[1:-1],
            quote(each, safe=""),
            base64.b64encode(each.encode()).decode().rstrip("="),
        )
        for form in forms:
            assert form not in found, form


def test_http_is_recorded_without_secrets_and_people_and_replayed_without_a_network(
    cloud: str, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(SECRET)
    options = {"url": f"{cloud}/api", "api_key": {"file": "key"}, "note": "two pages"}
    folder = tmp_path / "case"
    recorded = record(Source(CLOUD, options, "EUR", tmp_path), folder)
    assert recorded.replies == 2
    assert recorded.counts == {"items": 2}
    assert recorded.left_out == ()
    nothing_in(folder, SECRET, *PEOPLE, cloud, cloud.partition("//")[2], "abcdefgh")
    case = Case.of(folder)
    assert case.options["url"] == "http://till1.example.net/api"
    assert run_case(CLOUD, case) == ""
    exchanges = json.loads((folder / "http.json").read_text())["origins"]
    (((reply, _other),),) = [list(exchanges.values())]
    kept = reply["reply"]["json"]
    assert kept["items"] == [{"id": "i1", "name": "Cake", "price": "4.55"}]
    assert len(kept["customer"]["name"]) == len(PEOPLE[0])  # the form stays


def test_a_replay_finds_what_a_changed_adapter_reads_differently(
    cloud: str, tmp_path: Path
) -> None:
    options = {"url": cloud, "api_key": SECRET}
    folder = tmp_path / "case"
    record(Source(CLOUD, options, "EUR", tmp_path), folder)
    changed = Adapter("cloud", "A till", CloudOptions, ChangedTill)
    difference = run_case(changed, Case.of(folder))
    assert '-        "price": 455' in difference
    assert '+        "price": 450' in difference
    (folder / "expected.json").rename(folder / "expected.old")
    assert '+        "price": 455' in run_case(CLOUD, Case.of(folder))  # a case begins without
    (folder / "expected.old").rename(folder / "expected.json")
    more = (folder / "case.toml").read_text().replace("[options]", "[options]\nsize = 3")
    (folder / "case.toml").write_text(more)
    assert "not_recorded" in run_case(CLOUD, Case.of(folder))
    assert '\\"page\\": 3' in run_case(CLOUD, Case.of(folder))


MENU = (
    "Internal use only;;;\r\n"
    "external_id;name;price;Contact e-mail;Waiter\r\n"
    f'17;"Soup; hot";4,50;{PEOPLE[1]};{PEOPLE[0]}\r\n'
    f"18;Tea (ask {PEOPLE[2]});3;;Bo\r\n"
    "19;Cake;x;;\r\n"
)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_an_export_keeps_its_quirks_and_loses_its_people(codec: str, tmp_path: Path) -> None:
    base = tmp_path / "shop"
    base.mkdir()
    content = MENU.split("\r\n", 1)[1].encode(codec)
    (base / "menu.csv").write_bytes(content)
    (base / "tables.csv").write_text("external_id,name\nt1,Window\n")
    (base / "orders").mkdir()
    (base / "orders" / "ord_1.json").write_text(json.dumps({"customer": PEOPLE[0]}))
    options = {"menu": "menu.csv", "tables": str(base / "tables.csv"), "orders_dir": "orders"}
    folder = tmp_path / "case"
    recorded = record(Source(FOLDER, options, "EUR", base), folder)
    assert recorded.files == ("menu.csv", "tables.csv")
    assert not (folder / "orders" / "ord_1.json").exists()
    nothing_in(folder, *PEOPLE[:3], str(base))
    was, now = content.decode(codec), (folder / "menu.csv").read_bytes().decode(codec)
    assert (folder / "menu.csv").read_bytes()[:3] == content[:3]
    assert [len(line) for line in now.split("\r\n")] == [len(line) for line in was.split("\r\n")]
    assert now.split("\r\n")[0] == was.split("\r\n")[0]
    assert now.split("\r\n")[3] == "19;Cake;x;;"
    assert run_case(FOLDER, Case.of(folder)) == ""
    expected = json.loads((folder / "expected.json").read_text())
    assert [each["external_id"] for each in expected["catalogue"]["items"]] == ["17", "18"]
    assert expected["catalogue"]["bad_rows"][0]["place"] == "menu.csv, row 4"


def test_a_workbook_stays_one(tmp_path: Path) -> None:
    clover = find_kit("clover")
    assert clover.root is not None
    case = Case.of(clover.root / "tests/cases/variants")
    options = dict(case.options)
    (name,) = [each.name for each in case.folder.glob("*.xlsx")]
    export = tmp_path / name
    export.write_bytes((case.folder / name).read_bytes())
    folder = tmp_path / "case"
    recorded = record(Source(clover.adapter, options, case.currency, tmp_path), folder)
    assert recorded.left_out == ()
    same = json.loads((folder / "expected.json").read_text())
    assert same == json.loads((case.folder / "expected.json").read_text())

    write_workbook(export, {"Items": [["Name", "Phone"], ["Soup", PEOPLE[2]], [PEOPLE[1], "1"]]})
    folder = tmp_path / "other"
    record(Source(clover.adapter, options, case.currency, tmp_path), folder)
    nothing_in(folder, *PEOPLE)


def test_a_folder_of_dbf_files_is_recorded_with_the_records_where_they_were(
    tmp_path: Path,
) -> None:
    aloha = find_kit("aloha")
    assert aloha.root is not None
    case = Case.of(aloha.root / "tests/cases/western")
    till = tmp_path / "till"
    till.mkdir()
    for path in case.folder.iterdir():
        if path.suffix.lower() == ".dbf":
            (till / path.name).write_bytes(path.read_bytes())
    key = next(name for name, value in case.options.items() if value == ".")
    options = {**case.options, key: str(till)}
    folder = tmp_path / "case"
    recorded = record(Source(aloha.adapter, options, case.currency, tmp_path / "etc"), folder)
    assert recorded.files
    for path in till.iterdir():
        copied = next(folder.rglob(path.name), None)
        if copied is not None:
            assert copied.stat().st_size == path.stat().st_size
    assert run_case(aloha.adapter, Case.of(folder)) == ""
    same = json.loads((folder / "expected.json").read_text())
    assert len(same["catalogue"]["items"]) == recorded.counts["items"]


def test_what_cannot_be_seen_or_is_there_already_is_told(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="already exists"):
        record(Source(FOLDER, {}, "EUR", tmp_path), tmp_path)
    with pytest.raises(BridgeError, match="--with FILE"):
        record(Source(FOLDER, {"menu": "no.csv"}, "EUR", tmp_path), tmp_path / "case")
    assert not (tmp_path / "case").exists()


def test_by_command_a_store_is_recorded_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "menu.csv").write_text(f"external_id,name,price,email\n1,Tea,3,{PEOPLE[1]}\n")
    (tmp_path / "sample.toml").write_text(
        '[stores.main.pos]\nadapter = "folder"\nmenu = "menu.csv"\n'
    )
    code, out, err = tillbridge(
        *("record", "folder", "--sample", "sample.toml", "--out", "cases/tea"), cwd=tmp_path
    )
    assert code == 0, err
    assert "menu.csv" in out
    assert "replaced 1 value" in out
    code, out, _err = tillbridge("replay", "cases/tea", cwd=tmp_path)
    assert (code, "as expected" in out) == (0, True)
    menu = tmp_path / "cases/tea/menu.csv"
    menu.write_text(menu.read_text().replace(",3,", ",4,"))
    code, out, _err = tillbridge("replay", "cases/tea", "--json", cwd=tmp_path)
    said = json.loads(out)
    assert (code, said["same"], said["adapter"]) == (1, False, "folder")
    assert '"price": 400' in said["difference"]


def test_a_program_is_recorded_too(tmp_path: Path) -> None:
    sample = make_package("corner", tmp_path, "process").folder
    till = tmp_path / "till"
    till.mkdir()
    for name in ("menu.jsonl", "sold-out.txt", "tables.json"):
        (till / name).write_bytes((sample / "tests/cases/plain" / name).read_bytes())
    kit = find_kit(str(sample))
    source = Source(kit.adapter, {"options": {"folder": "till"}}, "EUR", tmp_path, [till])
    recorded: Recorded = record(source, tmp_path / "case")
    assert recorded.files == ("till/menu.jsonl", "till/sold-out.txt", "till/tables.json")
    assert (recorded.counts["items"], recorded.counts["availability"]) == (2, 1)
    assert run_case(kit.adapter, Case.of(tmp_path / "case")) == ""
