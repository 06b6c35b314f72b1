"""An adapter's options as a form, and what it reads as a preview."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from tillbridge.adapter import AdapterContext, AdapterOptions
from tillbridge.adapter.secrets import Secret
from tillbridge.config.secrets import SecretSource, resolve_secret
from tillbridge.config.toml import read_file
from tillbridge.core.errors import ConfigError
from tillbridge.core.files import claim_folder
from tillbridge.pos.folder.adapter import ADAPTER
from tillbridge.pos.loader import find_adapters
from tillbridge.setup.options import fields_of, file_only, options_in
from tillbridge.setup.pos import (
    answers_of,
    columns_in,
    finding_of,
    preview_of,
    refuse_own_places,
    sample_till,
    shown,
)


class Options(AdapterOptions):
    """One option of each kind."""

    export: Path = Field(description="The export.")
    name: Annotated[str | None, Field(min_length=1)] = None
    way: Literal["new", "old"] = "new"
    count: int = 3
    within_s: float = 1.5
    quick: bool = True
    columns: dict[str, str] = Field(default_factory=dict)
    folders: list[str] = Field(default_factory=list)
    token: Secret | None = None


def test_every_option_becomes_a_field_and_what_must_be_said_comes_first() -> None:
    fields = fields_of(Options, {"count": 7, "columns": {"name": "Wort"}})
    assert [(field.name, field.kind) for field in fields] == [
        ("export", "path"),
        ("name", "text"),
        ("way", "choice"),
        ("count", "number"),
        ("within_s", "number"),
        ("quick", "flag"),
        ("columns", "pairs"),
        ("folders", "lines"),
        ("token", "secret"),
    ]
    by_name = {field.name: field for field in fields}
    assert by_name["export"].required
    assert by_name["export"].hint == "The export."
    assert by_name["way"].choices == ("new", "old")
    assert by_name["count"].value == "7"
    assert by_name["quick"].usual == "true"
    assert by_name["columns"].value == "name = Wort"


def test_what_is_typed_becomes_what_the_model_wants() -> None:
    form = {
        "export": " menu.csv ",
        "name": "",
        "way": "old",
        "count": "12",
        "within_s": "0,5",
        "quick": "false",
        "columns": "name = Wort\n\nprice=Preis",
        "folders": "a\n b \n",
        "nonsense": "is left out",
    }
    said = options_in(Options, form)
    assert said == {
        "export": "menu.csv",
        "way": "old",
        "count": 12,
        "within_s": 0.5,
        "quick": False,
        "columns": {"name": "Wort", "price": "Preis"},
        "folders": ["a", "b"],
    }
    assert Options.model_validate(said).count == 12


@pytest.mark.parametrize(("name", "text"), [("count", "many"), ("columns", "name")])
def test_what_cannot_be_meant_is_told_with_its_field(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        options_in(Options, {name: text})
    assert refused.value.field == name


COLUMNS = {"external_id": "PLU", "name": "Item Name, long", "price": "Preis"}


@pytest.mark.parametrize(
    "typed",
    [
        'columns = { external_id = "PLU", name = "Item Name, long", price = "Preis" }',
        "{ external_id = 'PLU', name = \"Item Name, long\",\n price = Preis }",
        'external_id = "PLU", name = "Item Name, long", price = "Preis"',
        "external_id = PLU\nname = Item Name, long\nprice=Preis,",
        '[columns]\nexternal_id = "PLU"\nname = "Item Name, long"\nprice = "Preis"',
        'stores.main.pos.columns = {external_id="PLU",name="Item Name, long",price="Preis"}',
    ],
)
def test_columns_are_typed_in_any_form_of_the_file(typed: str) -> None:
    assert options_in(Options, {"columns": typed}) == {"columns": COLUMNS}
    assert options_in(ADAPTER.options, {"columns": typed}) == {"columns": COLUMNS}


def test_a_column_may_be_a_position() -> None:
    form = {"columns": 'price = 3, name = "4"'}
    assert options_in(ADAPTER.options, form) == {"columns": {"price": 3, "name": "4"}}


def test_what_the_menu_needs_stands_first_and_the_rest_under_more_options() -> None:
    fields = fields_of(ADAPTER.options, {})
    assert [(each.name, each.required) for each in fields if each.first] == [
        ("menu", True),
        ("orders_dir", False),
    ]
    assert fields[0].label == "Menu file"
    (first, *_more) = fields_of(ADAPTER.options, {}, for_menu=False)
    assert (first.name, first.required) == ("orders_dir", False)


@pytest.mark.parametrize(
    ("header", "guessed"),
    [
        ("PLU;Item Name;Sales price;Dept", ["PLU", "Item Name", "Sales price", "Dept"]),
        ("Artikelnr,Bezeichnung,Preis,Gruppe", ["Artikelnr", "Bezeichnung", "Preis", "Gruppe"]),
        ("Category\tCode\tDish\tPrice", ["Code", "Dish", "Price", "Category"]),
        ("external_id,name,price", ["external_id", "name", "price", ""]),
        ("Menu export\n26.11.2026\n\nPLU;Item;Price", ["PLU", "Item", "Price", ""]),
        ("SKU,Cost Price,Retail Price,Product", ["SKU", "Product", "Retail Price", ""]),
        ("Код;Наименование;Цена;Группа", ["Код", "Наименование", "Цена", "Группа"]),
        ("Nombre,Precio,Referencia,Familia", ["Referencia", "Nombre", "Precio", "Familia"]),
    ],
)
def test_a_guess_says_which_column_is_which(
    header: str, guessed: list[str], tmp_path: Path
) -> None:
    delimiter = next(each for each in ";\t," if each in header)
    price = "3.50" if delimiter == "," else "3,50"
    rows = f"{delimiter.join(('1', 'Soup', price, 'Hot'))}\n" * 2
    (tmp_path / "menu.csv").write_text(f"{header}\n{rows}", "utf-8")
    found = columns_in({"adapter": "folder", "menu": "menu.csv"}, tmp_path)
    assert found is not None
    assert [each.chosen for each in found.choices[:4]] == guessed
    assert found.missing is not header.startswith("external_id")


def test_a_column_of_modifiers_is_no_choice_unless_a_file_says_what_it_offers(
    tmp_path: Path,
) -> None:
    (tmp_path / "menu.csv").write_text("SKU,Name,Price,Modifier - Milk\n1,Tea,3.50,N\n", "utf-8")
    menu = {"adapter": "folder", "menu": "menu.csv"}
    for answers, guessed in ((menu, ""), (menu | {"addons": "a.csv"}, "Modifier - Milk")):
        found = columns_in(answers, tmp_path)
        assert found is not None
        (choices,) = [each for each in found.choices if each.name == "addon_groups"]
        assert choices.chosen == guessed


def test_the_columns_that_are_chosen_become_the_option() -> None:
    chosen = {"external_id": "PLU", "name": "name", "price": "Preis", "category": ""}
    form = {f"columns.{ours}": theirs for ours, theirs in chosen.items()}
    assert options_in(ADAPTER.options, form) == {
        "columns": {"external_id": "PLU", "price": "Preis"}
    }
    form["columns.external_id"] = ""
    assert options_in(ADAPTER.options, form)["ids"] == "derived"


def test_a_sample_till_is_made_once_and_its_menu_is_read(tmp_path: Path) -> None:
    answers = sample_till(tmp_path)
    menu = tmp_path / answers["menu"]
    menu.write_text(menu.read_text("utf-8").replace("Margherita", "Regina"), "utf-8")
    assert sample_till(tmp_path) == answers
    assert "Regina" in menu.read_text("utf-8")
    options = ADAPTER.options.model_validate({k: v for k, v in answers.items() if k != "adapter"})
    pos = ADAPTER.open(options, AdapterContext("main", "USD", "1", tmp_path))
    assert finding_of(preview_of(pos, "USD")).text.startswith("Found 25 items")


@pytest.mark.parametrize("name", sorted(find_adapters()))
def test_every_installed_adapter_has_a_form(name: str) -> None:
    adapter = find_adapters()[name]
    fields = fields_of(adapter.options, {})
    assert {field.name for field in fields} | set(file_only(adapter.options)) == {
        info.alias or key for key, info in adapter.options.model_fields.items()
    }
    options_in(adapter.options, {field.name: field.usual for field in fields})


def test_what_the_form_of_the_folder_says_of_its_defaults_is_accepted() -> None:
    fields = fields_of(ADAPTER.options, {})
    said = options_in(ADAPTER.options, {field.name: field.usual for field in fields})
    assert ADAPTER.options.model_validate(said) == ADAPTER.options.model_validate({})


UNREADABLE = {"place": "m.csv, row 2", "text": "PLU is empty.", "fix": "Fill in PLU."}
ITEMS = [
    {"external_id": f"p{number}", "name": f"Dish {number}", "price": 950, "available": number != 2}
    for number in range(1, 31)
]


def preview(**read: object) -> dict[str, Any]:
    readings: dict[str, Any] = {
        "health": {"online": True, "detail": ""},
        "catalogue": {"items": ITEMS},
        **read,
    }
    return shown(readings, "EUR", reads_menu=True, takes_orders=True)


def test_a_preview_shows_how_much_there_is_and_the_first_of_it() -> None:
    seen = preview(
        availability={"items": {"p1": {"available": False}}},
        tables={"tables": [{"name": "T1"}, {"name": "T2"}]},
    )
    assert seen["items"] == 30
    assert len(seen["rows"]) == 8
    assert seen["rows"][0] == {
        "external_id": "p1",
        "name": "Dish 1",
        "price": "9.50",
        "on_sale": False,
    }
    assert (seen["sold_out"], seen["tables"]) == (2, 2)
    found = finding_of(seen)
    assert found.done
    assert found.text == (
        "Found 30 items in the till's menu: Dish 1 9.50, Dish 2 9.50, Dish 3 9.50, ..."
    )


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (preview(catalogue={"error": "There is no file m.csv.", "fix": "Look."}), "no file m.csv"),
        (preview(catalogue={}), "has no items"),
        (preview(catalogue={"bad_rows": [UNREADABLE]}), "m.csv, row 2 PLU is empty. Fill in PLU."),
        (preview(health={"online": False, "detail": "no heartbeat"}), "no heartbeat"),
        ({**preview(), "reads_menu": False}, "cannot read a menu"),
    ],
)
def test_what_cannot_serve_a_storefront_is_told_with_what_to_do(
    seen: dict[str, Any], words: str
) -> None:
    found = finding_of(seen)
    assert not found.done
    assert words in found.text
    assert found.fix


def test_an_adapters_secret_goes_into_a_file_that_only_this_user_reads(tmp_path: Path) -> None:
    adapter = next(
        name
        for name, each in sorted(find_adapters().items())
        if any(field.kind == "secret" for field in fields_of(each.options, {}))
    )
    (field, *_more) = [
        each for each in fields_of(find_adapters()[adapter].options, {}) if each.kind == "secret"
    ]
    said = answers_of(adapter, {field.name: "hush-hush-hush"}, {}, tmp_path / "secrets")
    path = Path(said[field.name]["file"])
    assert path.read_text() == "hush-hush-hush"
    assert path.stat().st_mode & 0o077 == 0
    assert "hush" not in str(said)
    assert answers_of(adapter, {}, said, tmp_path)[field.name] == said[field.name]
    shown_again = fields_of(find_adapters()[adapter].options, said)
    assert next(each.value for each in shown_again if each.kind == "secret") == ""


def test_no_page_says_which_program_is_started(tmp_path: Path) -> None:
    shown = {field.name for field in fields_of(find_adapters()["process"].options, {})}
    assert shown.isdisjoint({"command", "cwd", "env"})
    with pytest.raises(ConfigError, match="program") as refused:
        answers_of("process", {"command": "/usr/bin/touch\n/tmp/x"}, {}, tmp_path)
    assert "bridge.toml" in refused.value.fix
    kept = {"adapter": "process", "command": ["till"], "env": ["KEY"]}
    said = answers_of("process", {"command": "/usr/bin/touch", "answer_s": "5"}, kept, tmp_path)
    assert said == {"adapter": "process", "command": ["till"], "env": ["KEY"], "answer_s": 5}


@pytest.mark.parametrize("adapter", ["antigravity:ADAPTER", "tests.support.x:ADAPTER", "nothing"])
def test_no_page_says_which_module_is_imported(adapter: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        answers_of(adapter, {}, {"adapter": "folder"}, tmp_path)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("export/menu.csv", False),
        ("/srv/till/menu.csv", False),
        ("data/ledger.key", True),
        ("./export/../data/ledger.vault", True),
        ("link.csv", True),
        ("/proc/self/environ", True),
        ("sqlite:///data/ledger.db", True),
        ("sqlite:////proc/self/maps", True),
        ("sqlite:///till.db", False),
        ("bridge.toml", True),
        ("sqlite:///bridge.toml", True),
        ("secret.txt", True),
    ],
)
def test_no_page_makes_the_bridge_read_what_is_its_own(
    path: str, refused: bool, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "link.csv").symlink_to(data / "ledger.key")
    for name, text in (("bridge.toml", ""), ("secret.txt", "x")):
        (tmp_path / name).write_text(text)
    read_file(tmp_path / "bridge.toml")
    resolve_secret(SecretSource(file="secret.txt"), key="client_secret", base_dir=tmp_path)
    claim_folder(data)
    said = {"adapter": "folder", "menu": path}
    with pytest.raises(ConfigError) if refused else contextlib.nullcontext():
        refuse_own_places(said, {"menu": path}, base_dir=tmp_path)
