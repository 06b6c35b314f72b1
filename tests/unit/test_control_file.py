"""`control.json` where the disk or the folder refuses it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tillbridge.core.errors import BridgeError
from tillbridge.core.started import CONTROL_FILE
from tillbridge.web.listener import announced

REFUSALS = (errno.EACCES, errno.EIO, errno.ENOSPC, errno.EROFS)


def refusing(number: int) -> Callable[..., NoReturn]:
    def refuse(*_arguments: object, **_named: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize("call", ["open", "replace"])
def test_a_start_that_cannot_write_it_names_the_file_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    # What a system call of `os` refuses, `Path.replace` refuses as well: it is the same call.
    monkeypatch.setattr(f"tillbridge.web.listener.os.{call}", refusing(number))
    with (
        pytest.raises(BridgeError) as caught,
        announced(tmp_path, url="http://localhost:1", token="t"),
    ):
        pytest.fail("it has begun")
    assert str(tmp_path / CONTROL_FILE) in caught.value.text
    assert os.strerror(number) in caught.value.text
    assert str(tmp_path) in caught.value.fix


@pytest.mark.parametrize("number", REFUSALS)
def test_an_end_that_cannot_remove_it_is_an_end_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with announced(tmp_path, url="http://localhost:1", token="t"):
        monkeypatch.setattr("tillbridge.web.listener.os.unlink", refusing(number))
    assert (tmp_path / CONTROL_FILE).exists()
