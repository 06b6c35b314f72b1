"""The texts that people read, and the catalogues of their translations.

`python -m tests.support.messages` writes the template `dist/tillbridge.pot` and brings every
catalogue in `src/tillbridge/locale` up to date; a language behind it begins a new one.

Texts stand in calls of `_`, `N_` and `ngettext` in the code and in the templates of pages, in the
tables of settings and of problems, in the docstrings of commands, which are their help, and in the
adapters of this repository, with the titles of their options.
"""

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import Formatter
from typing import IO, Any

import typer
from babel.messages import Catalog, Message
from babel.messages.extract import extract_from_dir, extract_from_file
from babel.messages.pofile import read_po, write_po

from tillbridge.cli.app import app, paragraphs
from tillbridge.core.i18n import LOCALES
from tillbridge.core.problems import HELP_FILE, PROBLEMS_FILE, TEXTS
from tillbridge.setup.sections import SettingsSection

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/tillbridge"
_AMOUNTS = ("BadAmount", "DoubtfulAmount", "ForeignAmount")  # of the model, which imports nothing
_KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2)} | dict.fromkeys(_AMOUNTS)
_NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)  # or each run would change each catalogue
_HEADER = """\
# The texts of tillbridge.
# This file is distributed under the same license as tillbridge.
#"""

Text = str | tuple[str, ...]
"""A text, or the forms of one for one and for many."""


def _of_settings(
    file: IO[bytes], *_given: object, **_options: object
) -> Iterator[tuple[int, str, Text, list[str]]]:
    """Yield what babel wants of each text of `sections.toml`."""
    for name, declared in tomllib.load(file).items():
        section = SettingsSection(name=name, **declared)
        texts = [section.title, section.intro]
        for group in section.groups:
            texts.append(group.title)
            for each in group.fields:
                texts += [each.label, each.help, each.unit, *each.labels.values()]
        yield from ((1, "_", text, list[str]()) for text in texts if text)


def _of_page(
    file: IO[bytes], *_given: object, **_options: object
) -> Iterator[tuple[int, str, Text, list[str]]]:
    """Yield what babel wants of each text of `texts.toml`; addresses are none."""
    for table in tomllib.load(file).values():
        for entry in table.values():
            for text in [entry] if isinstance(entry, str) else entry:
                if not text.startswith("/"):
                    yield 1, "_", text, []


_METHODS: Any = [
    ("**.py", "python"),
    ("**/templates/**.html", "jinja2"),
    ("setup/sections.toml", _of_settings),
    ("web/site/texts.toml", _of_page),
]


@cache
def template() -> Catalog:
    """Return every text, with the files that it stands in."""
    found = Catalog(project="tillbridge", header_comment=_HEADER, creation_date=_NO_DATE)
    for place, text in (*_of_files(), *_of_adapters(), *_of_problems(), *_of_commands()):
        found.add(text, locations=[(place, 1)])
    return found


def _of_files() -> Iterator[tuple[str, Text]]:
    for folder in (SOURCE, *sorted(ROOT.glob("adapters/*/src"))):
        base = SOURCE if folder is SOURCE else ROOT
        found = extract_from_dir(folder, _METHODS, keywords=_KEYWORDS, strip_comment_tags=False)
        for file, _line, text, _comments, _context in found:
            yield (folder / file).relative_to(base).as_posix(), text
    library = Path(sys.modules["typer.core"].__file__ or "")  # the headings of its help
    for _line, text, _comments, _context in extract_from_file("python", library):
        yield "typer", text


def _of_adapters() -> Iterator[tuple[str, Text]]:
    """Yield what the adapters of this repository say of themselves and of their options."""
    said = {"Field": {"title", "description"}, "Adapter": {"summary"}}
    for file in sorted(ROOT.glob("adapters/*/src/*/*.py")):
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                for given in call.keywords:
                    if given.arg in said.get(call.func.id, ()):
                        yield file.relative_to(ROOT).as_posix(), ast.literal_eval(given.value)


def _of_problems() -> Iterator[tuple[str, Text]]:
    for entry in tomllib.loads(PROBLEMS_FILE.read_text("utf-8")).values():
        texts = [entry[name] for name in TEXTS if name in entry]
        for text in filter(None, (*texts, *entry.get("defaults", {}).values())):
            yield PROBLEMS_FILE.relative_to(SOURCE).as_posix(), text
    for entry in tomllib.loads(HELP_FILE.read_text("utf-8")).values():
        for name in ("title", "means", "restaurant", "technician", "why"):
            texts = [entry[name]] if isinstance(entry[name], str) else entry[name]
            yield from ((HELP_FILE.relative_to(SOURCE).as_posix(), each) for each in texts)


def _of_commands() -> Iterator[tuple[str, Text]]:
    commands = [typer.main.get_command(app)]
    while commands:
        command = commands.pop(0)
        for text, _command in paragraphs(command.help or ""):
            if text:
                yield "cli", text
        commands += getattr(command, "commands", {}).values()


# -- catalogues


def path_of(language: str) -> Path:
    """Return where the catalogue of a language is."""
    return LOCALES / language / "LC_MESSAGES/tillbridge.po"


def catalogues() -> dict[str, Catalog]:
    """Return those that there are, by language."""
    return {path.parents[1].name: _read(path) for path in LOCALES.glob("*/LC_MESSAGES/*.po")}


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parents[1].name)


def draft_path(language: str) -> Path:
    """Return where a language waits until it is whole; the program does not offer it."""
    return LOCALES / f"drafts/{language}.po"


def drafts() -> dict[str, Catalog]:
    """Return the catalogues that are not whole yet, by language."""
    found = {}
    for path in LOCALES.glob("drafts/*.po"):
        with path.open("rb") as file:
            found[path.stem] = read_po(file, locale=path.stem)
    return found


def update(language: str, known: Catalog | None, path: Path) -> None:
    """Write the catalogue of a language with all texts, and no others; nothing is guessed."""
    made = known or Catalog(locale=language, header_comment=_HEADER)
    made.update(template(), no_fuzzy_matching=True)
    made.obsolete.clear()
    made.project, made.creation_date, made.revision_date = "tillbridge", _NO_DATE, _NO_DATE
    _write(path, made)


def _write(path: Path, catalogue: Catalog) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, width=100, include_lineno=False)


def faults(catalogue: Catalog, whole: Catalog) -> list[str]:
    """Return what is wrong with a catalogue, each fault with its text; `whole` has all texts."""
    found = [f"obsolete: {text}" for text in catalogue.obsolete]
    for message in _texts(whole):
        translated = catalogue.get(message.id)
        found += [f"{fault}: {_one(message)}" for fault in _faults(message, translated, catalogue)]
    known = {_one(message) for message in _texts(whole)}
    found += [f"unknown: {_one(each)}" for each in _texts(catalogue) if _one(each) not in known]
    return found


def _faults(message: Message, translated: Message | None, catalogue: Catalog) -> Iterator[str]:
    if translated is None:
        yield "missing"
        return
    if translated.fuzzy:
        yield "fuzzy"
    forms = _forms(translated.string or "")
    wanted = catalogue.num_plurals if isinstance(message.id, tuple) else 1
    if len(forms) != wanted or not all(forms):
        yield "missing" if not any(forms) else f"not all of its {wanted} forms"
        return
    *few, many = (_places(form) for form in forms)
    places = _places(_forms(message.id)[-1])
    # A form for one need not say the number.
    if many != places or any(set(each) - set(places) for each in few):
        yield f"other places in braces than {', '.join(places) or 'none'}"
    if any(form != form.strip() for form in forms) and _one(message) == _one(message).strip():
        yield "blanks at an end"


def _texts(catalogue: Catalog) -> Iterable[Message]:
    return (each for each in catalogue if each.id)


def _one(message: Message) -> str:
    return _forms(message.id)[0]


def _forms(text: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def _places(text: str) -> list[str]:
    try:
        found = sorted(
            {name for _text, name, _how, _as in Formatter().parse(text) if name is not None}
        )
    except ValueError:
        return ["unreadable"]
    return found


def main() -> None:
    """Write the template, every catalogue, and the drafts: one that is whole is one no more."""
    (ROOT / "dist").mkdir(exist_ok=True)
    _write(ROOT / "dist/tillbridge.pot", template())
    for language, known in catalogues().items():
        update(language, known, path_of(language))
    unfinished = drafts()
    for language in {*unfinished, *sys.argv[1:]} - catalogues().keys():
        update(language, unfinished.get(language), draft_path(language))
        if not faults(drafts()[language], template()):
            path_of(language).parent.mkdir(parents=True, exist_ok=True)
            draft_path(language).rename(path_of(language))


if __name__ == "__main__":
    main()
