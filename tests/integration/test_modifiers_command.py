"""`tillbridge adapter modifiers`: a shop fills in what its modifiers offer, and types no names."""

import json
from pathlib import Path

import pytest

from tests.support.adapter_command import tillbridge

HEADER = (
    "Handle,SKU,Name,Category,Description,Sold by weight,Option 1 name,Option 1 value,"
    "Option 2 name,Option 2 value,Option 3 name,Option 3 value,Cost,Barcode,SKU of included item,"
    "Quantity of included item,Track stock,Available for sale [Bar],Price [Bar],In stock [Bar],"
    'Low stock [Bar],"Modifier - ""Milk""","Modifier - ""Syrup, sweet"""'
)
LATTE = "latte,1,Latte,Coffee,,N,,,,,,,0.00,,,,N,Y,3.60,,,Y,Y"
CONFIG = """
[bridge]
data_dir = "data"
[service]
base_url      = "http://127.0.0.1:9000/v2"
client_id     = "app"
client_secret = "secret"
redirect_uri  = "http://127.0.0.1:8089/oauth/callback"
[receiver]
public_url = "https://shop.example.net"
[stores.main]
location_id = "loc-1"
currency    = "EUR"
[stores.main.pos]
adapter = "{adapter}"
{options}
[stores.main.orders]
adapter = "folder"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "items.csv").write_text(f"{HEADER}\n{LATTE}\n", "utf-8")
    configure(tmp_path, 'modifiers = "offers.csv"')
    return tmp_path


def configure(folder: Path, more: str = "", adapter: str = "loyverse") -> None:
    export = 'export = "items.csv"' if adapter == "loyverse" else 'menu = "items.csv"'
    text = CONFIG.format(adapter=adapter, options=f"{export}\n{more}")
    (folder / "bridge.toml").write_text(text, "utf-8")


def test_the_file_is_written_with_the_names_in_it(shop: Path) -> None:
    code, out, err = tillbridge("modifiers", "main", cwd=shop)
    assert code == 0, err
    assert "offers.csv: 2 modifiers without options (Milk, Syrup, sweet)" in " ".join(out.split())
    assert (shop / "offers.csv").read_text("utf-8").splitlines() == [
        "modifier,option,price,min,max",
        "Milk,,,,",
        '"Syrup, sweet",,,,',
    ]


def test_what_stands_in_the_file_stays(shop: Path) -> None:
    written = 'price;modifier;option\r\n"0,60";milk;Oat'
    (shop / "offers.csv").write_bytes(written.encode())
    code, out, err = tillbridge("modifiers", "main", "--json", cwd=shop)
    assert code == 0, err
    assert json.loads(out)["modifiers"] == ["Syrup, sweet"]
    after = (shop / "offers.csv").read_bytes().decode()
    assert after == f"{written}\r\n;Syrup, sweet;\r\n"
    code, out, _err = tillbridge("modifiers", "main", cwd=shop)
    assert (shop / "offers.csv").read_bytes().decode() == after  # it has the names already


def test_a_file_that_is_filled_in_needs_nothing(shop: Path) -> None:
    (shop / "offers.csv").write_text(
        'modifier,option,price\nMilk,Oat,0.60\n"Syrup, sweet",-,\n', "utf-8"
    )
    code, out, _err = tillbridge("modifiers", "main", cwd=shop)
    assert code == 0
    assert "Nothing was written" in out


def test_a_store_without_the_option_is_told_to_set_it(shop: Path) -> None:
    configure(shop)
    code, out, _err = tillbridge("modifiers", "main", cwd=shop)
    assert code == 0
    assert 'modifiers = "modifiers.csv"' in out
    assert (shop / "modifiers.csv").exists()


def test_an_adapter_that_has_no_such_file_says_so(shop: Path) -> None:
    configure(shop, adapter="folder")
    code, _out, err = tillbridge("modifiers", "main", cwd=shop)
    assert code == 2
    assert "folder reads no file of modifiers" in " ".join(err.split())


def test_trying_an_adapter_ends_with_a_summary(shop: Path) -> None:
    code, out, err = tillbridge("try", "loyverse", "--store", "main", "--once", cwd=shop)
    assert code == 0 or "offers.csv" in out, err
    (shop / "offers.csv").write_text("modifier,option,price\nMilk,Oat,0.60\n", "utf-8")
    code, out, err = tillbridge("try", "loyverse", "--store", "main", "--once", cwd=shop)
    assert code == 0, err
    said = " ".join(out.split())
    assert "1 item, 0 sizes, 1 category; 1 choice with 1 option" in said
    assert "Cheapest: Latte 3.60 EUR. Most expensive: Latte 3.60 EUR." in said
    assert "does not say what these choices offer: Syrup, sweet" in said
    assert '"Latte" offers the modifier "Syrup, sweet"' in said
    code, out, err = tillbridge("try", "loyverse", "--store", "main", "--once", "--json", cwd=shop)
    summary = json.loads(out)["summary"]
    assert (summary["items"], summary["options"]) == (1, 1)
    assert summary["not_offered"] == ["Syrup, sweet"]
