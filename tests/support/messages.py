"""The texts that people read; `python -m tests.support.messages` prints a gettext template.

They stand in calls of `_`, `N_` and `ngettext` in the code, in the templates of the page, and in
the tables of problems and of their help.
"""

import ast
import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from jinja2.ext import extract_from_ast

from tillbridge.core.problem_help import HELP_FILE, help_texts
from tillbridge.core.problems import PROBLEMS_FILE, TEXTS

SOURCE = Path(__file__).parents[2] / "src/tillbridge"

Message = tuple[str, ...]
"""A text, or the forms of one for one and for many."""


@dataclass
class Entry:
    """Where a text stands (`core/log.py:17`), and the form of it for more than one."""

    places: list[str] = field(default_factory=list)
    plural: str = ""


@cache
def messages() -> dict[str, Entry]:
    """Return every text."""
    found: dict[str, Entry] = {}
    for place, message in (*_of_code(), *_of_templates(), *_of_problems()):
        entry = found.setdefault(message[0], Entry())
        entry.places.append(place)
        entry.plural = entry.plural or "".join(message[1:])
    return found


def pot() -> str:
    """Return them as a gettext template."""
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    return "\n".join([head, *(_lines(*each) for each in messages().items())])


def _of_code() -> Iterator[tuple[str, Message]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                count = {"_": 1, "N_": 1, "ngettext": 2}.get(node.func.id, 0)
                texts = [each.value for each in node.args[:count] if isinstance(each, ast.Constant)]
                if count and len(texts) == count:
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}", tuple(map(str, texts))


def _of_templates() -> Iterator[tuple[str, Message]]:
    folder = SOURCE / "web/templates"
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            tree = environment.parse(path.read_text("utf-8"))
            for line, function, texts in extract_from_ast(tree):
                given = texts if isinstance(texts, tuple) else (texts,)
                said = tuple(each for each in given if each is not None)
                if len(said) == (2 if function == "ngettext" else 1):
                    yield f"{path.relative_to(SOURCE)}:{line}", said


def _of_problems() -> Iterator[tuple[str, Message]]:
    for code, entry in tomllib.loads(PROBLEMS_FILE.read_text("utf-8")).items():
        texts = [entry[name] for name in TEXTS if name in entry]
        for text in filter(None, (*texts, *entry.get("defaults", {}).values())):
            yield f"{PROBLEMS_FILE.relative_to(SOURCE)}:{code}", (text,)
    for code, text in help_texts():
        yield f"{HELP_FILE.relative_to(SOURCE)}:{code}", (text,)


def _lines(text: str, entry: Entry) -> str:
    lines = [f"#: {place}" for place in entry.places]
    lines.append(f"msgid {json.dumps(text, ensure_ascii=False)}")
    if entry.plural:
        lines.append(f"msgid_plural {json.dumps(entry.plural, ensure_ascii=False)}")
        lines += ['msgstr[0] ""', 'msgstr[1] ""']
    else:
        lines.append('msgstr ""')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(pot())
