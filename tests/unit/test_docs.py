"""What stands in docs/ and config/ is what the program does."""

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tillbridge.cli.app import app
from tillbridge.config.bridge import AssumptionSettings, Settings, json_schema
from tillbridge.config.loading import load
from tillbridge.config.translate import TABLES, toml_value
from tillbridge.core.problems import PROBLEMS

CommandLike = Any  # a command of typer, whose classes are not public

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "config/bridge.toml"
OPTIONAL = re.compile(r"^# ([a-z_]+ = .+|\[[a-z.]+\])$", re.MULTILINE)


def doc(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def named(value: object) -> str:
    return value if isinstance(value, str) else ""


def settings() -> Iterator[tuple[str, str, FieldInfo]]:
    """Each setting as (table, key, field); the tables within a table are tables of their own."""
    for table, model in TABLES.items():
        for key, field in model.model_fields.items():
            kinds = get_args(field.annotation)
            kinds = kinds if type(None) in kinds else (field.annotation,)
            nested = any(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)
            if table and not nested:
                yield table, key, field


def written(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {toml_value(part)}" for key, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return toml_value(value)


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    return "none" if value is None else f"`{written(value)}`"


def sample_with_options() -> dict[str, Any]:
    return tomllib.loads(OPTIONAL.sub(r"\1", SAMPLE.read_text("utf-8")))


def sections(text: str) -> dict[str, str]:
    """The second-level sections of a page by their heading."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize(("table", "key", "field"), list(settings()), ids=named)
def test_every_setting_is_documented_with_its_default(
    table: str, key: str, field: FieldInfo
) -> None:
    page = doc("configuration.md").split(f"### [{table}]", 1)[1].split("\n### ", 1)[0]
    assert f"| `{key}` | {default_of(field)} | {field.description} |" in page


def test_the_reference_documents_no_setting_that_is_gone() -> None:
    page = doc("configuration.md").split("## All settings", 1)[1]
    documented = re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    assert sorted(documented) == sorted(key for _table, key, _field in settings())


def test_the_sample_holds_every_setting() -> None:
    sample = sample_with_options()
    for table, key, _field in settings():
        section: Any = sample
        for part in table.replace("NAME", "main").split("."):
            section = section[part]
        assert key in section, f"{table}.{key}"


def test_the_sample_shows_the_defaults() -> None:
    sample = tomllib.loads(SAMPLE.read_text("utf-8"))
    for table, key, field in settings():
        section: Any = sample
        for part in table.replace("NAME", "main").split("."):
            section = section.get(part, {})
        default = field.get_default(call_default_factory=True)
        if key in section and not field.is_required():
            assert section[key] == (str(default) if isinstance(default, Path) else default), (
                f"{table}.{key}"
            )


def test_the_sample_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILLBRIDGE_DATA_DIR", raising=False)
    loaded = load(SAMPLE)
    assert list(loaded.settings.stores) == ["main"]


@pytest.mark.parametrize("without", ["backup_at", "url"])  # one has no effect with the other
def test_the_sample_loads_with_its_optional_settings(tmp_path: Path, without: str) -> None:
    path = tmp_path / "bridge.toml"
    text = OPTIONAL.sub(r"\1", SAMPLE.read_text("utf-8"))
    path.write_text(re.sub(rf"^{without} = .+$", "", text, count=1, flags=re.MULTILINE), "utf-8")
    assert load(path).settings.stores["main"].store_id == "st_main"


def test_the_schema_file_is_current() -> None:
    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    assert (ROOT / "config/bridge.schema.json").read_text("utf-8") == text, (
        "run: tillbridge config schema > config/bridge.schema.json"
    )


def test_the_sample_fits_the_schema() -> None:
    schema = json.loads((ROOT / "config/bridge.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(sample_with_options(), schema)


def test_the_schema_refuses_an_unknown_key() -> None:
    sample = sample_with_options()
    sample["receiver"]["listn"] = "127.0.0.1:1"
    with pytest.raises(jsonschema.ValidationError, match="listn"):
        jsonschema.validate(sample, json_schema())


def test_every_setting_says_what_it_means() -> None:
    assert not [f"{table}.{key}" for table, key, field in settings() if not field.description]


def test_every_assumption_is_explained() -> None:
    page = doc("assumptions.md")
    documented = re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE)
    assert documented == list(AssumptionSettings.model_fields)
    for key, field in AssumptionSettings.model_fields.items():
        assert f"| `{key}` | {default_of(field)} | " in page


def test_every_problem_is_explained_and_no_other() -> None:
    explained = sections(doc("problems.md"))
    assert sorted(explained) == sorted(PROBLEMS)
    for code, kind in PROBLEMS.items():
        assert f"**{kind.severity}** · {kind.text}" in explained[code]
        assert f"What to do: {kind.fix}" in explained[code]


def commands() -> Iterator[tuple[str, CommandLike]]:
    def walk(command: CommandLike, path: list[str]) -> Iterator[tuple[str, CommandLike]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield " ".join(path), command
        else:
            for name, each in inner.items():
                yield from walk(each, [*path, name])

    yield from walk(typer.main.get_command(app), ["tillbridge"])


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=named)
def test_every_command_is_documented_with_its_options(name: str, command: CommandLike) -> None:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    heading = " ".join([name, *(each.metavar for each in arguments)])
    section = sections(doc("commands.md"))[heading]
    assert inspect.cleandoc(command.help) in section
    for each in command.params:
        if each.name != "help":
            shown = each.metavar if each in arguments else each.opts[0]
            value = "" if each in arguments or each.is_flag else f" {each.metavar}"
            assert f"| `{shown}{value}` | {each.help} |" in section


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=named)
def test_every_command_shows_an_example(name: str, command: CommandLike) -> None:
    example = command.help.rsplit("Example: ", 1)[1].split()
    assert example[0] == "tillbridge"
    assert set(name.split()) <= set(example)


def test_no_documented_command_is_gone() -> None:
    documented = set(sections(doc("commands.md")))
    names = [name for name, _command in commands()]
    assert all(any(heading.startswith(name) for name in names) for heading in documented)
    assert len(documented) == len(names)


def anchors(page: Path) -> set[str]:
    """Return what may be linked to in a page, as GitHub names its headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        linked = (page.parent / target) if target else page
        assert linked.exists(), target
        assert not anchor or linked.suffix != ".md" or anchor in anchors(linked), (target, anchor)


def test_the_index_leads_to_every_page() -> None:
    index = doc("README.md")
    missing = [each.name for each in (ROOT / "docs").glob("*.md") if f"]({each.name}" not in index]
    assert missing == ["README.md"]


def test_settings_are_one_model() -> None:
    assert set(Settings.model_fields) == {table.split(".")[0] for table in TABLES if table}
