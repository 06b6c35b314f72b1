"""Keys are found on the lines they stand on, however TOML writes them."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.config.toml import dotted, key_lines

TEXT = '''\
# a comment with [brackets] = and "quotes"
top = 1

[a."quoted key".b]   # header
x = """
many
lines = here
"""
y = { one = 1, two = { three = [1, 2] } }
'literal' . dotted = 'it = [is]'
list = [
  "first",  # note ]
  { deep = true },
  [
    3,
  ],
]

[[stores]]
name = "one"
[stores.inner]
key = 1
[[stores]]
name = \'\'\'two
lines\'\'\'
after = 1979-05-27T07:32:00Z
'''


def test_every_key_is_found_on_its_line() -> None:
    lines = key_lines(TEXT)
    base = ("a", "quoted key", "b")
    expected = {
        ("top",): 2,
        ("a",): 4,
        base: 4,
        (*base, "x"): 5,
        (*base, "y", "two", "three", 1): 9,
        (*base, "literal", "dotted"): 10,
        (*base, "list"): 11,
        (*base, "list", 0): 12,
        (*base, "list", 1, "deep"): 13,
        (*base, "list", 2, 0): 15,
        ("stores", 0, "name"): 20,
        ("stores", 0, "inner", "key"): 22,
        ("stores", 1): 23,
        ("stores", 1, "name"): 24,
        ("stores", 1, "after"): 26,
    }
    assert {path: lines.get(path) for path in expected} == expected


def test_a_path_is_written_as_in_the_file() -> None:
    assert dotted(("stores", "main", "list", 2, "quoted key")) == 'stores.main.list[2]."quoted key"'


KEYS = st.text("abcdefgh_-0123456789", min_size=1, max_size=6)
VALUES = st.sampled_from(["1", '"x = [ # ]"', "'''\n\n'''", "[\n1,\n2]", "{ k = 1 }", "true"])


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_every_key_of_a_valid_file_has_a_line_on_which_it_stands(tables: dict[str, Any]) -> None:
    text = "".join(
        f"[{table}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
        for table, keys in tables.items()
    )
    tomllib.loads(text)
    lines, found = text.splitlines(), key_lines(text)
    for table, keys in tables.items():
        assert lines[found[table,] - 1] == f"[{table}]"
        for key in keys:
            assert lines[found[table, key] - 1].startswith(f"{key} = ")
