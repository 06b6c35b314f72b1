"""`python -m tests.mutants [part...]`: changes the parts that decide, and asks their unit tests.

Each mutant is one change of one expression. A part's tests run in a process that has imported all
that they need; it forks for each mutant, so that one costs what its tests take. Those that survive
and are not in `survivors.toml`, with the reason, are printed.
"""

import argparse
import ast
import copy
import io
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SURVIVORS = Path(__file__).with_name("survivors.toml")
_WANTED = 95  # percent killed
_LIMIT_S = 30  # an endless loop is killed, too


@dataclass(frozen=True, slots=True)
class Part:
    """A module, the names in it that are changed (none: all), and the tests that must notice."""

    module: str
    tests: Sequence[str]
    names: frozenset[str] = frozenset()


PARTS = {
    "money": Part(
        "tillbridge.model.money",
        (
            "test_money_limits.py",
            "test_money.py",
            "test_prices_as_written.py",
            "test_currencies.py",
        ),
    ),
    "signature": Part(
        "tillbridge.receiver.deliveries",
        ("test_receiver_checks.py",),
        frozenset({"signer_of", "read_envelope", "_leniently", "_refuse", "_looks_real"}),
    ),
    "guard": Part(
        "tillbridge.menu.guard",
        ("test_guard_limits.py", "test_guard_rules.py", "test_catalogue_guard.py"),
    ),
    "dedupe": Part(
        "tillbridge.ledger.orders",
        ("test_dedupe.py",),
        frozenset({"which_are_new", "insert_order", "has_delivery"}),
    ),
    "record": Part(
        "tillbridge.ledger.backend", ("test_dedupe.py",), frozenset({"record", "_insert_sql"})
    ),
    "reasons": Part("tillbridge.orders.reasons", ("test_reasons.py",)),
    "plan": Part(
        "tillbridge.menu.plan",
        (
            *("test_plan_calls.py", "test_catalogue_plan.py", "test_last_word.py"),
            "test_catalogue_narrowing.py",
        ),
    ),
    "orders": Part(
        "tillbridge.orders.state",
        (
            *("test_order_events.py", "test_order_waiting.py", "test_order_deadlines.py"),
            *("test_order_state.py", "test_lifecycle.py"),
        ),
    ),
    "problems": Part("tillbridge.core.problems", ("test_problem_kinds.py", "test_problem_help.py")),
}

# -- one change of one expression

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


def changes_of(node: ast.AST) -> Iterator[Callable[[], str]]:  # noqa: C901, PLR0912 -- a table
    """Yield what can be changed in the node itself; each says what it did."""
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                if (other := _COMPARISONS.get(type(operator))) is not None:
                    yield _setting(node.ops, at, other())
        case ast.BinOp() if type(node.op) in _OPERATORS:
            yield _replacing(node, "op", _OPERATORS[type(node.op)]())
        case ast.BoolOp():
            yield _replacing(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield _replacing(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
        case ast.Constant(value=bool(value)):
            yield _replacing(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield _replacing(node, "value", value + 1)
        case ast.Constant(value=str(value)) if value:
            yield _replacing(node, "value", f"{value}X")
        case ast.If() | ast.IfExp() | ast.While():
            test = node.test
            yield _replacing(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Return() if node.value is not None and not _is_none(node.value):
            yield _replacing(node, "value", ast.Constant(None))
        case ast.Break():
            yield _becoming(node, ast.Continue)
        case ast.Continue():
            yield _becoming(node, ast.Break)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _setting(where: list[Any], at: int, new: Any) -> Callable[[], str]:  # noqa: ANN401 -- any node
    def change() -> str:
        told = f"{type(where[at]).__name__} -> {type(new).__name__}"
        where[at] = new
        return told

    return change


def _replacing(node: Any, name: str, new: Any) -> Callable[[], str]:  # noqa: ANN401 -- any node
    def change() -> str:
        old = getattr(node, name)
        setattr(node, name, new)
        if name == "test":
            return "test -> not test"
        if name == "value" and isinstance(node, ast.Constant):
            return f"{old!r} -> {new!r}"
        if name == "value":
            return "returns None"
        return f"{type(old).__name__} -> {type(new).__name__}"

    return change


def _becoming(node: Any, kind: type[ast.stmt]) -> Callable[[], str]:  # noqa: ANN401 -- any node
    def change() -> str:
        told = f"{type(node).__name__} -> {kind.__name__}"
        node.__class__ = kind
        return told

    return change


def nodes_of(tree: ast.Module, names: frozenset[str]) -> list[ast.AST]:
    """Return what is changed: no docstring, no annotation, no type and no name of a module."""
    found: list[ast.AST] = []
    for statement in tree.body:
        named = getattr(statement, "name", "")
        if (not names and not isinstance(statement, ast.Expr)) or named in names:
            found += _inside(statement)
    return found


_TYPES = ("annotation", "returns", "type_params", "decorator_list")


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert():
            return
        case ast.Expr(value=ast.Constant()):  # a docstring
            return
        case ast.JoinedStr():  # words for people: the tests of words have them
            return
        case ast.Assign(targets=[ast.Name(id="msg")]):  # (as above)
            return
        case ast.Call(func=ast.Name(id="_" | "N_" | "ngettext")):  # (as above)
            return
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.keyword(arg="total"):
            return
        case ast.Call(func=ast.Name(id="TypeVar")):
            return
    yield node
    for name, value in ast.iter_fields(node):
        if name in _TYPES:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _inside(each)


@dataclass(frozen=True, slots=True)
class Mutant:
    """The module's tree with one change, and how a person finds it."""

    name: str
    tree: ast.Module


def code_of(line: str) -> str:
    """Return the line without its comment, which others may put into other words."""
    return line.partition("  # ")[0].strip()


def mutants(source: str, names: frozenset[str]) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    whole = ast.parse(source)
    lines = source.splitlines()
    for at, node in enumerate(nodes_of(whole, names)):
        for which, _change in enumerate(list(changes_of(node))):
            tree = copy.deepcopy(whole)
            changed = nodes_of(tree, names)[at]
            told = list(changes_of(changed))[which]()
            line = code_of(lines[getattr(node, "lineno", 1) - 1])
            yield Mutant(f"{line}  # {told}", ast.fix_missing_locations(tree))


# -- playing them


_QUIETLY = ("-q", "-x", "-n0", "-pno:cacheprovider", "--tb=no")


def _is_killed(module: ModuleType, tree: ast.Module, tests: Sequence[str]) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(_LIMIT_S)
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                _install(module, tree)
                code = int(pytest.main([*_QUIETLY, *tests]))
        finally:
            os._exit(0 if code == 0 else 1)
    _pid, status = os.waitpid(child, 0)
    return status != 0


def _install(module: ModuleType, tree: ast.Module) -> None:
    """Let the module's functions do what the tree says, whoever has imported them already."""
    assert module.__file__ is not None
    changed: dict[str, Any] = {"__name__": module.__name__, "__file__": module.__file__}
    exec(compile(tree, module.__file__, "exec"), changed)
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name):
                _put(getattr(module, name), changed[name])
            case ast.ClassDef(name=name):
                _put_class(getattr(module, name), changed[name])
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                was = getattr(module, name)
                for each in list(sys.modules.values()):  # whoever has imported it
                    if getattr(each, "__dict__", {}).get(name) is was:
                        setattr(each, name, changed[name])


def _put_class(was: type, is_now: type) -> None:
    for key, each in vars(is_now).items():
        before, after = _function_of(vars(was).get(key)), _function_of(each)
        if before is not None and after is not None:
            _put(before, after)
    if issubclass(was, Enum) and issubclass(is_now, Enum):
        members = was.__members__
        for key, member in is_now.__members__.items():
            members[key]._value_ = member.value
        was._value2member_map_.clear()
        was._value2member_map_.update({each.value: each for each in members.values()})


def _function_of(each: object) -> FunctionType | None:
    """Return the function that does the work of a method or a property; None for a field."""
    for name in ("fget", "__func__", "func"):
        each = getattr(each, name, None) or each
    return each if isinstance(each, FunctionType) else None


def _put(was: Any, is_now: Any) -> None:  # noqa: ANN401 -- a function, or what is wrapped around one
    if hasattr(was, "cache_clear"):
        was.cache_clear()
    was, is_now = unwrap(was), unwrap(is_now)
    if was.__code__.co_freevars == is_now.__code__.co_freevars:
        was.__code__ = is_now.__code__
        was.__defaults__, was.__kwdefaults__ = is_now.__defaults__, is_now.__kwdefaults__


def play(name: str, part: Part, known: dict[str, str]) -> tuple[int, int, list[str]]:
    """Return how many mutants there are, how many were killed, and who survived unexplained."""
    module = import_module(part.module)
    assert module.__file__ is not None
    tests = [str(ROOT / "tests/unit" / each) for each in part.tests]
    source = Path(module.__file__).read_text("utf-8")
    with redirect_stdout(io.StringIO()):
        pytest.main([*_QUIETLY, "--collect-only", *tests])  # imports all that they need
    if _is_killed(module, ast.parse(source), tests):
        raise SystemExit(f"{name}: the tests fail without a change, or not as the tool runs them")
    total, killed, alive = 0, 0, []
    for mutant in mutants(source, part.names):
        total += 1
        if _is_killed(module, mutant.tree, tests):
            killed += 1
        elif mutant.name not in known:
            alive.append(mutant.name)
            print(f"{name}: survives: {mutant.name}", flush=True)
    return total, killed, alive


def main() -> int:
    """Play the parts named, or all. Returns 1 where less than 95 % are killed."""
    parser = argparse.ArgumentParser("make mutants", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all if none is named")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ["HYPOTHESIS_PROFILE"] = "default"
    explained: dict[str, dict[str, str]] = tomllib.loads(SURVIVORS.read_text("utf-8"))
    few = False
    for name in asked.parts or PARTS:
        begun = time.monotonic()
        known = explained.get(name, {})
        total, killed, alive = play(name, PARTS[name], known)
        percent = 100 * killed / max(1, killed + len(alive))
        few = few or percent < _WANTED
        print(
            f"{name}: {killed} of {total} killed, {total - killed - len(alive)} survive with a"
            f" reason, {len(alive)} without: {percent:.1f} %, {time.monotonic() - begun:.0f} s",
            flush=True,
        )
    return few


if __name__ == "__main__":
    sys.exit(main())
