"""What strangers send has a documented answer: what was found, and a few hundred new inputs."""

from random import Random

import pytest

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import CORPUS, TARGETS, Target

_CHANGES = 200
_CHANGES_OF_SLOW = 12
_SEED = 15


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_any_input_has_a_documented_answer(target: Target) -> None:
    inputs, random = target.inputs(), Random(_SEED)
    for data in inputs:
        target.play(data)
    for _change in range(_CHANGES_OF_SLOW if target.slow else _CHANGES):
        data = mutated(random.choice(inputs), inputs, random)
        try:
            target.play(data)
        except BaseException as failure:
            failure.add_note(f"target {target}, input {data!r}")
            raise


def test_every_input_that_is_kept_belongs_to_a_target() -> None:
    assert {each.name for each in CORPUS.iterdir()} <= TARGETS.keys()


def test_what_is_no_json_and_what_has_no_lines_is_changed_too() -> None:
    random = Random(_SEED)
    for data in (b"", b"x", b"[]", b'{"a": 1'):
        assert len({mutated(data, [b"other"], random) for _each in range(50)}) > 10
