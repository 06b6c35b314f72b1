"""Whatever an adapter says to people is in the catalogues, and is still a text where it arrives."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest

from tests.support.messages import ROOT, SOURCE, template
from tillbridge.adapter.texts import _
from tillbridge.core import i18n, log
from tillbridge.core.i18n import Reader, from_plain, reading, to_plain
from tillbridge.core.problems import OpenProblem
from tillbridge.pos.loader import find_adapters
from tillbridge_odoo.failures import nothing_written
from tillbridge_odoo.odoo import LoginRefused
from tillbridge_printer.states import PrinterState
from tillbridge_sql.cells import CellError, flag_of

# Rigs and tills that are emulated are for tests; only vendors read a mapping (decision 213).
_CODE = sorted(
    path
    for path in (
        *ROOT.glob("adapters/*/src/*/*.py"),
        *SOURCE.glob("adapter/*.py"),
        *SOURCE.glob("pos/folder/*.py"),
        *SOURCE.glob("pos/process/*.py"),
    )
    if not path.name.startswith(("rig", "mapping.", "vendor.", "wire."))
)
_TRANSLATED = {"_", "N_", "ngettext", "BadAmount", "DoubtfulAmount", "ForeignAmount"}
_LOOKED_UP = {"Field": {"title", "description"}, "Adapter": {"summary"}}  # by who shows them
_FAILURES = {
    *("PosFailure", "ItemUnavailable", "StoreClosed", "PosOffline", "AtCapacity", "PriceMismatch"),
    *("TicketOutcomeUnknown", "ExportUnreadable", "BadRow", "RowError", "Health", "Advice"),
    *("ExportWarning", "NotForSale", "BadPrice", "BadCell", "CellError", "Unsellable"),
}
_SAYS = {"text", "fix", "detail", "closed", "message"}
_THREE_WORDS = re.compile(r"[A-Za-z]{2,}\S* [A-Za-z]{2,}\S* [a-z]{2,}")
_SENTENCE = re.compile(r"\w+ .*\w[.?]$", re.DOTALL)

# What reads like a sentence and is for a program, or for a kitchen in its till's language.
_FOR_NO_READER = re.compile(
    r"""
      modifier\ group\ (id|name) | items\ in\ category | item\ sort\ order | default\ tax\ rates
    | tax\ rate\ id | square\ online\ item\ visibility                        # columns of exports
    | .*(_id|_quantity|_price|_key|_select)\b.* | group_id.* | order_number.* # columns of queries
    | true\ t\ yes.* | false\ f\ no.* | out\ of\ stock | rupture\ de\ stock  # words that tills use
    | .*\b(SELECT|INSERT|PRAGMA|SET\ SESSION|EXECUTE)\b.* | .*<.* | .*\(\?.*   # SQL, XML, patterns
    | Expecting\ .* | unexpected\ end\ of\ data | memory\ allocation.*        # what libraries say
    | import\ pickle.* | .*end\ of\ file.* | names\ of\ values | sequence,\ name,\ id
    | the\ till\ may\ have\ it.* | delivery,\ tip,\ discount                  # on the ticket
    | orders\ are\ not\ switched\ on | .*is\ not\ a\ number | .*is\ no\ number | does\ not\ exist
    | .*(is\ no\ part|has\ no\ form|has\ no\ place|nested\ too\ deeply).*     # for programmers
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def _strays(code: str) -> Iterator[tuple[int, str]]:
    """Yield what reads like English for people and is no text, with its line."""
    tree = ast.parse(code)
    fine = {each for node in ast.walk(tree) for each in _let_be(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in fine and (said := _said(node)):
            fine |= _all_of(node)  # the parts of an f-string
            if _reads_as_english(said):
                yield node.lineno, said
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _FAILURES:
            for argument in _for_people(node):
                if isinstance(argument, ast.JoinedStr) and " " in _said(argument):
                    yield argument.lineno, f"put together as English: {_said(argument)}"


def _let_be(node: ast.AST) -> set[int]:
    """Return the parts of a node that are texts, or no words for people."""
    match node:
        case ast.Expr(value=ast.Constant() as docstring):
            return {id(docstring)}
        case ast.Call(func=ast.Name(id=name), args=args) if name in _TRANSLATED:
            return _all_of(*args)
        case ast.Call(func=ast.Name(id=name), keywords=given) if name in _LOOKED_UP:
            return _all_of(*(each.value for each in given if each.arg in _LOOKED_UP[name]))
        case ast.AnnAssign(annotation=hint) | ast.arg(annotation=ast.expr() as hint):
            return _all_of(hint)
        case ast.FunctionDef(returns=ast.expr() as hint):
            return _all_of(hint)
        case _:
            return set()


def _all_of(*nodes: ast.AST) -> set[int]:
    return {id(part) for node in nodes for part in ast.walk(node)}


def _for_people(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords if each.arg in _SAYS)]


def _said(node: ast.AST) -> str:
    """Return a literal text, with {} where an f-string has a value."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_said(part) or "{}" for part in parts)
        case _:
            return ""


def _reads_as_english(said: str) -> bool:
    prose = _THREE_WORDS.search(said) or _SENTENCE.search(said)
    return prose is not None and _FOR_NO_READER.fullmatch(said.strip()) is None


@pytest.mark.parametrize("path", _CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_adapter_says_nothing_to_people_outside_the_catalogues(path: Path) -> None:
    found = [f"line {line}: {said}" for line, said in _strays(path.read_text("utf-8"))]
    assert found == []


@pytest.mark.xdist_group("messages")  # every text is read once, not by each worker
@pytest.mark.parametrize("name", sorted(find_adapters()))
def test_each_option_has_a_title_and_a_description_in_the_catalogues(name: str) -> None:
    fields = find_adapters()[name].options.model_fields
    lacking = [
        f"{option}: {said}"
        for option, info in fields.items()
        for said in (info.title, info.description)
        if not said or template().get(said) is None
    ]
    assert lacking == []


# -- what the test before would find


@pytest.mark.parametrize(
    "code",
    [
        'raise PosOffline("The printer is out of paper: put in a new roll.")',
        'raise PosOffline(f"{name} does not answer.")',
        'why = "it cannot be sold"',
        'return BadRow(place, _("It has no name."), fix="Give it a name.")',
        'raise PosFailure(f"{first} {second}")',
        'fixes = {"closed": "Open a session in the till."}',
    ],
)
def test_english_outside_the_catalogues_is_found(code: str) -> None:
    assert len(list(_strays(code.replace("return ", "x = ")))) >= 1


@pytest.mark.parametrize(
    "code",
    [
        'raise PosOffline(_("The printer is out of paper: put in a new roll."))',
        'raise PosOffline(_("{name} does not answer.").format(name=name))',
        'url: str = Field(title="Where the till answers to us")',
        'found = connection.execute("SELECT name FROM items ORDER BY name")',
        '"""What this module is about, in a sentence."""',
        'def f(key: "a of the b") -> "a of the b": ...',
    ],
)
def test_a_text_and_what_is_for_programs_are_let_be(code: str) -> None:
    assert list(_strays(code)) == []


# -- what people then read


def _of_odoo() -> str:
    return nothing_written(LoginRefused()).message


def _of_the_printer() -> str:
    return PrinterState(error=_("a paper jam")).text


def _of_a_database() -> str:
    with pytest.raises(CellError) as raised:
        flag_of({"available": "perhaps"}, "available", default=True)
    return raised.value.text


@pytest.mark.parametrize(
    ("failed", "german"),
    [
        (
            _of_odoo,
            "Odoo lehnt die Anmeldung ab: Benutzer, API-Schlüssel oder Datenbank stimmt nicht.",
        ),
        (
            _of_the_printer,
            "Der Drucker meldet einen Papierstau.",
        ),
        (_of_a_database, "available ist weder Ja noch Nein."),
    ],
)
def test_what_a_till_lacks_is_told_in_the_readers_language_after_it_was_stored(
    failed: Callable[[], str], german: str
) -> None:
    stored = json.loads(json.dumps(to_plain({"text": failed()})), object_hook=from_plain)
    with reading(Reader("de")):
        assert f"{stored['text']}" == german


_CATALOGUE = """
msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "The drawer {number} is open."
msgstr "Die Schublade {number} ist offen."

msgid "The lid {number} is open."
msgstr "Der Deckel {nummer} ist offen."

msgid "Sign in first."
msgstr "Etwas anderes."
"""


@pytest.fixture
def package_of_a_vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package with an adapter and texts of its own; return its catalogue."""
    catalogue = tmp_path / "tillbridge_drawer/locale/de/LC_MESSAGES/tillbridge.po"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text(_CATALOGUE, "utf-8")
    (tmp_path / "tillbridge_drawer/__init__.py").write_text("raise RuntimeError('imported')\n")
    about = tmp_path / "tillbridge_drawer-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: tillbridge-drawer\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        f"[{i18n.ADAPTERS}]\ndrawer = tillbridge_drawer:ADAPTER\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    i18n.catalogue.cache_clear()
    yield catalogue
    i18n.catalogue.cache_clear()


def test_a_package_brings_a_catalogue_of_its_own(package_of_a_vendor: Path) -> None:
    with reading(Reader("de")):
        assert f"{_('The drawer {number} is open.').format(number=2)}" == (
            "Die Schublade 2 ist offen."
        )
        assert f"{_('Sign in first.')}" == "Melden Sie sich zuerst an."  # the bridge's own
    with reading(Reader("fr")):
        assert f"{_('The drawer {number} is open.').format(number=2)}" == "The drawer 2 is open."


def test_a_translation_with_a_place_of_its_own_is_english(package_of_a_vendor: Path) -> None:
    with reading(Reader("de")):
        assert f"{_('The lid {number} is open.').format(number=2)}" == "The lid 2 is open."


def test_a_catalogue_of_a_package_that_is_no_text_harms_nobody(package_of_a_vendor: Path) -> None:
    package_of_a_vendor.write_bytes(b'msgid "\xff\xfe"\nmsgstr "\xff"\n')
    with reading(Reader("de")):
        assert f"{_('Sign in first.')}" == "Melden Sie sich zuerst an."


def test_the_log_is_english_whoever_reads() -> None:
    lines: list[str] = []
    output = log._Output(StringIO(), console=False, on_line=lines.append, headline_first=False)
    with reading(Reader("de")):
        output.write(level="warning", event="pos.offline", detail=_of_odoo(), more=[_of_odoo()])
    [line] = map(json.loads, lines)
    assert line["detail"] == line["more"][0] == i18n.english(_of_odoo())


def test_a_problem_names_an_export_in_the_readers_language() -> None:
    problem = OpenProblem("export.unreadable", "main", "menu", 0, {"detail": "Y", "remedy": ""})
    with reading(Reader("de")):
        assert f"{problem.text}" == "Der Export der Kasse ist nicht lesbar (Speisekarte): Y"
