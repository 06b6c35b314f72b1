"""Two versions share a database for a minute: docs/hosting.md, Upgrades."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tillbridge import ledger

VERSIONS = Path(ledger.__file__).parent / "migrations" / "versions"
FIRST = 7  # with 0006 several bridges began to share a database
ADDS = {"create_table", "create_index", "batch_alter_table"}
_COLUMN_ADDED = {"add_column"}


def hindrances(source: str) -> list[str]:
    """Return what the version before cannot bear of a migration; nothing of one that says so."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node) == "STOP_ALL_BRIDGES = True":
            return []
    (upgrade,) = [each for each in tree.body if getattr(each, "name", "") == "upgrade"]
    return list(_of_calls(upgrade))


def _of_calls(upgrade: ast.AST) -> Iterator[str]:
    for call in ast.walk(upgrade):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if ast.unparse(call.func.value) not in {"op", "batch"}:
            continue
        if call.func.attr in _COLUMN_ADDED:
            column = next(each for each in call.args if isinstance(each, ast.Call))
            given = {each.arg: ast.unparse(each.value) for each in column.keywords}
            if given.get("nullable") == "False" and "server_default" not in given:
                yield f"line {call.lineno}: a column that the version before does not fill in"
        elif call.func.attr == "create_index":
            if any(each.arg == "unique" for each in call.keywords):
                yield f"line {call.lineno}: uniqueness that the version before does not know"
        elif call.func.attr not in ADDS:
            yield f"line {call.lineno}: {call.func.attr}"


def test_each_migration_since_bridges_share_a_database_only_adds() -> None:
    later = [each for each in sorted(VERSIONS.glob("0*.py")) if int(each.name[:4]) >= FIRST]
    found = {each.name: hindrances(each.read_text("utf-8")) for each in later}
    assert not any(found.values()), (
        f"{found}: the version before runs on meanwhile. If all bridges have to be stopped for it, "
        "set STOP_ALL_BRIDGES = True in the migration, and say so in CHANGELOG.md."
    )


@pytest.mark.parametrize(
    ("step", "is_borne"),
    [
        ('op.create_table("new", sa.Column("a", sa.Text(), nullable=False))', True),
        ('op.add_column("orders", sa.Column("a", sa.Text(), nullable=True))', True),
        (
            'op.add_column("orders", sa.Column("a", sa.Text(), nullable=False, server_default=""))',
            True,
        ),
        ('op.add_column("orders", sa.Column("a", sa.Text(), nullable=False))', False),
        ('op.create_index("ix", "orders", ["a"])', True),
        ('op.create_index("ix", "orders", ["a"], unique=True)', False),
        ('op.drop_column("orders", "a")', False),
        ('op.execute("UPDATE orders SET a = 1")', False),
        ('op.alter_column("orders", "a", type_=sa.Text())', False),
        ('batch.drop_column("a")', False),
    ],
)
def test_what_the_version_before_bears(step: str, is_borne: bool) -> None:
    source = f"def upgrade():\n    {step}\n"
    assert (not hindrances(source)) is is_borne
    assert not hindrances(f"STOP_ALL_BRIDGES = True\n{source}")
