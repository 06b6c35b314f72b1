"""What holds for every command: help, an example, JSON, completion of names, known exit codes."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tillbridge.adapter import failures
from tillbridge.cli.app import app
from tillbridge.cli.exits import Exit, exit_code_of, exit_code_of_name, next_step
from tillbridge.core import errors
from tillbridge.core.errors import BridgeError

ROOT = Path(__file__).resolve().parents[2]
Command = Any  # a command of typer, whose classes are not public

# Commands without --json, and why.
WITHOUT_JSON = {
    "tillbridge run": "a daemon; its log is JSON (log_format)",
    "tillbridge sandbox": "a service; its state is JSON at /_control/state",
    "tillbridge demo": "a show, told while it plays",
    "tillbridge config show": "is JSON always",
    "tillbridge config schema": "is JSON always",
}
# Arguments that name something the shell can know.
COMPLETED = {"STORE", "ORDER", "ID", "EXTERNAL_ID", "COMMUNITY", "ITEM", "CODE"}
NOT_COMPLETED = {
    ("tillbridge connect", "--store-id"): "is known to the service only",
    ("tillbridge signup", "--zip"): "is a postal code",
    ("tillbridge adapter try", "--currency"): "any currency",
    ("tillbridge adapter record", "--currency"): "any currency",
    ("tillbridge orders cancel", "--reason"): "a choice, which is completed by itself",
}


def commands() -> Iterator[tuple[str, Command]]:
    def walk(command: Command, path: list[str]) -> Iterator[tuple[str, Command]]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield " ".join(path), command
        else:
            for name, each in inner.items():
                yield from walk(each, [*path, name])

    yield from walk(typer.main.get_command(app), ["tillbridge"])


EVERY = list(commands())
NAMES = [name for name, _command in EVERY]


@pytest.mark.parametrize(("name", "command"), EVERY, ids=NAMES)
def test_it_answers_as_json_or_there_is_a_reason_why_not(name: str, command: Command) -> None:
    offered = any("--json" in each.opts for each in command.params)
    assert offered is (name not in WITHOUT_JSON)


def test_no_exception_is_left_that_is_none() -> None:
    assert set(WITHOUT_JSON) <= set(NAMES)
    assert {name for name, _option in NOT_COMPLETED} <= set(NAMES)


@pytest.mark.parametrize(("name", "command"), EVERY, ids=NAMES)
def test_its_help_begins_with_a_sentence_and_ends_with_an_example(
    name: str, command: Command
) -> None:
    text = inspect.cleandoc(command.help)
    first = text.split("\n\n", 1)[0]
    assert first[0].isupper()
    assert first.endswith(".")
    assert text.splitlines()[-1].startswith("Example: tillbridge ")
    for each in command.params:
        assert each.help, f"{name} {each.name}"
        assert each.help[0].isupper() or "," in each.help or each.help.islower(), each.help


@pytest.mark.parametrize(("name", "command"), EVERY, ids=NAMES)
def test_names_are_completed(name: str, command: Command) -> None:
    for each in command.params:
        option = each.opts[0]
        if each.metavar in COMPLETED and (name, option) not in NOT_COMPLETED:
            assert each._custom_shell_complete is not None, f"{name} {option}"


def every_failure() -> list[BridgeError]:
    made: list[BridgeError] = []
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, BridgeError):
            if issubclass(kind, errors.RateLimited):
                made.append(kind("It went wrong.", retry_after_s=1.0))
            else:
                made.append(kind("It went wrong."))
    return made


@pytest.mark.parametrize("failure", every_failure(), ids=lambda each: type(each).__name__)
def test_every_failure_ends_with_what_to_do_and_a_code_of_the_contract(
    failure: BridgeError,
) -> None:
    assert next_step(failure)
    code = exit_code_of(failure)
    assert code in {Exit.FAILED, Exit.USAGE, Exit.UNREACHABLE}
    # The running bridge tells the kind by its name, and the command ends the same.
    assert exit_code_of_name(type(failure).__name__) is code


def test_what_is_out_of_reach_ends_with_3_and_a_wrong_configuration_with_2() -> None:
    ends = {type(each).__name__: exit_code_of(each) for each in every_failure()}
    assert {name for name, code in ends.items() if code is Exit.USAGE} == {"ConfigError"}
    assert {name for name, code in ends.items() if code is Exit.UNREACHABLE} == {
        "Unreachable",
        "LedgerUnreachable",
        "ServiceDown",
        "OutcomeUnknown",
        "RateLimited",
    }
    assert exit_code_of_name(failures.PosOffline.__name__) is Exit.UNREACHABLE


def raised_without_remedy() -> Iterator[str]:
    """Failures that commands themselves raise without saying what to do."""
    kinds = {"BridgeError", "CommandFailed", "ConfigError"}
    for path in sorted((ROOT / "src/tillbridge/cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = getattr(node.exc.func, "id", "")
                if name in kinds and not any(each.arg == "fix" for each in node.exc.keywords):
                    yield f"{path.name}:{node.lineno}"


def test_commands_say_themselves_what_to_do() -> None:
    # config check tells several faults, each with its remedy.
    assert [each.partition(":")[0] for each in raised_without_remedy()] == ["config.py"]
