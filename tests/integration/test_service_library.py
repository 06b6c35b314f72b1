"""The client as another program uses it: by its page, without the rest of the bridge."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

import tillbridge.service
from tests.support.service_reference import PAGE, renewed
from tillbridge.core import errors
from tillbridge.sandbox import SandboxSettings, start
from tillbridge.service.answers import Kind, failure_of

ROOT = Path(__file__).resolve().parents[2]
CODES = re.findall(
    r"^\| `([a-z_]+\.[a-z_]+)` \| `(\w+)` \|",
    (ROOT / "docs/specification.md").read_text("utf-8"),
    re.MULTILINE,
)
STATUS_OF = {
    "request.validation": 400,
    "request.unknown_field": 400,
    "auth.invalid_client": 401,
    "auth.token_expired": 401,
    "auth.invalid_token": 401,
    "auth.invalid_grant": 400,
    "auth.consent_revoked": 403,
    "store.not_found": 404,
    "store.not_integrated": 404,
    "onboarding.merchant_exists": 409,
    "integration.already_exists": 409,
    "menu.push_not_allowed": 403,
    "menu.forward_failed": 502,
    "menu.job_not_found": 404,
    "menu.item_not_found": 404,
    "order.not_found": 404,
    "order.invalid_transition": 409,
    "rate.limited": 429,
    "internal.error": 500,
}


def test_the_program_of_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)
    path = tmp_path / "program.py"
    path.write_text(program, "utf-8")
    out = asyncio.run(run_against_a_sandbox(path))
    assert out.splitlines() == ["st_main Main Street not_integrated", "order.not_found 404"]


async def run_against_a_sandbox(program: Path) -> str:
    sandbox = await start(SandboxSettings(auto_consent=True))
    try:
        query = {
            "client_id": "app_123",
            "redirect_uri": "http://127.0.0.1:8089/oauth/callback",
            "email": "owner@example.net",
            "state": "s",
        }
        url = URL(f"{sandbox.base_url}/oauth2/authorize").with_query(query)
        async with (
            aiohttp.ClientSession() as http,
            http.get(url, allow_redirects=False) as answer,
        ):
            code = URL(answer.headers["Location"]).query["code"]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(program),
            sandbox.base_url,
            code,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0, err.decode()
        return out.decode()
    finally:
        await sandbox.stop()


def test_it_loads_neither_the_daemon_nor_the_ledger() -> None:
    code = (
        "import sys; from tillbridge import service\n"
        "[getattr(service, name) for name in service.__all__]\n"
        "rooms = {name.split('.')[1] for name in sys.modules if name.startswith('tillbridge.')}\n"
        "print(sorted(rooms), 'sqlalchemy' in sys.modules, 'sqlmodel' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    rooms, *heavy = re.fullmatch(r"\[(.*)\] (\w+) (\w+)\n", done.stdout).groups()  # type: ignore[union-attr]  # the pattern is the test
    loaded = set(re.findall(r"\w+", rooms))
    assert heavy == ["False", "False"]
    assert loaded <= {"core", "model", "service"}


def test_every_name_is_there() -> None:
    for name in tillbridge.service.__all__:
        assert getattr(tillbridge.service, name) is not None


def test_the_reference_is_as_the_code() -> None:
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python -m tests.support.service_reference"
    assert not re.search(r"^\| `(?!rotate)\w+\([^)]*\)` \|  \|", page, re.MULTILINE)


@pytest.mark.parametrize(("code", "kind"), CODES)
def test_each_code_of_the_specification_is_the_type_that_the_page_says(
    code: str, kind: str
) -> None:
    failure = failure_of(
        STATUS_OF[code],
        {"error": {"code": code, "message": "m"}},
        {},
        operation="test",
        kind=Kind.WRITE,
        now_ms=0,
    )
    assert type(failure) is getattr(errors, kind)
    assert failure.code == code


def test_all_codes_are_walked_through() -> None:
    assert {code for code, _kind in CODES} == STATUS_OF.keys()
