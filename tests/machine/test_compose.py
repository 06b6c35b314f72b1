"""deploy/compose.yaml with Podman, as deploy/README.md has it: a bridge killed, one made anew, the
database stopped; HAProxy answers for whichever bridge is ready."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bridge_process import free_port
from tests.support.machine import ROOT, needs, wait_for

pytestmark = pytest.mark.timeout(1800)

DEPLOY = ROOT / "deploy"
IMAGE = ROOT / "packaging/container/Containerfile"
ASK = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8088/healthz', timeout=4)"


def run(*command: str, ok: bool = True, given: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=given)
    assert not ok or done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done


def build_images() -> None:
    """Make the images; skips the test where those that they are made of cannot be fetched."""
    named = re.findall(r"^ARG BASE=(\S+)", IMAGE.read_text("utf-8"), re.MULTILINE)
    named += re.findall(r"image: (\S+:\S+)", (DEPLOY / "compose.yaml").read_text("utf-8"))
    for image in named:
        there = run("podman", "image", "exists", image, ok=False)
        if there.returncode and run("podman", "pull", "-q", image, ok=False).returncode:
            pytest.skip(f"{image} cannot be fetched here")
    run("podman", "build", "-f", str(IMAGE), "-t", "tillbridge", str(ROOT))
    of_deploy = str(DEPLOY / "Containerfile"), "-t", "tillbridge-postgresql", str(DEPLOY)
    run("podman", "build", "-f", *of_deploy)


class Project:
    """deploy/ with a name, ports and secrets of its own."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(DEPLOY, folder, dirs_exist_ok=True)
        self.file = folder / "compose.yaml"
        self.name = f"tillbridge-{secrets.token_hex(4)}"
        self.orders, self.pages = free_port(), free_port()
        text = self.file.read_text("utf-8")
        for old, new in (
            ("name: tillbridge\n", f"name: {self.name}\n"),
            (":8080:8080", f":{self.orders}:8080"),
            (":8089:8081", f":{self.pages}:8081"),
        ):
            assert old in text
            text = text.replace(old, new)
        self.file.write_text(text, "utf-8")
        password = secrets.token_hex(16)
        asked = run(
            "podman", "run", "--rm", "-i", "tillbridge", "password", "admin", given="3 wishes"
        )
        (folder / "secrets").mkdir(exist_ok=True)
        for name, secret in {
            "ledger_key": run("openssl", "rand", "-base64", "32").stdout,
            "database_password": password,
            "database_url": f"postgresql://tillbridge:{password}@database/tillbridge",
            "client_secret": "planted",
            "page_password": asked.stdout.partition('password = "')[2].partition('"')[0],
        }.items():
            (folder / "secrets" / name).write_text(secret)

    def __call__(self, *arguments: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
        return run("podman-compose", "-f", str(self.file), *arguments, ok=ok)

    def answers(self, status: int, port: int) -> bool:
        """Wait until HAProxy answers so for the bridges at this port."""
        url = f"http://127.0.0.1:{port}/healthz"
        request = urllib.request.Request(url, headers={"Host": "localhost"})

        def given() -> int:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as refused:
                return refused.code
            except OSError:
                return 0

        return wait_for(lambda: given() == status, within_s=120)

    def is_ready(self, bridge: str) -> bool:
        """Wait until a bridge itself says that it can store deliveries."""
        asking = "exec", "-T", bridge, "python3", "-c", ASK
        return wait_for(lambda: self(*asking, ok=False).returncode == 0, within_s=120)

    def state(self, service: str) -> dict[str, int]:
        (found,) = json.loads(run("podman", "inspect", f"{self.name}_{service}_1").stdout)
        state: dict[str, int] = found["State"]
        return state


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    needs("podman", "podman-compose", "openssl")
    build_images()
    project = Project(tmp_path)
    try:
        project("up", "-d")
        yield project
    finally:
        project("down", "-v", ok=False)


def test_deliveries_find_a_bridge_whatever_becomes_of_the_others(project: Project) -> None:
    assert project.answers(200, project.orders)
    for bridge in ("bridge-a", "bridge-b", "bridge-c"):
        assert project.is_ready(bridge)

    killed = project.state("bridge-a")["Pid"]
    os.kill(killed, signal.SIGKILL)
    assert wait_for(lambda: project.state("bridge-a")["Pid"] not in {0, killed}, within_s=60)
    assert project.is_ready("bridge-a")

    # Made anew it has another address, and is the only one that answers.
    project("up", "-d", "--no-deps", "--force-recreate", "bridge-a")
    assert project.is_ready("bridge-a")
    project("stop", "bridge-b", "bridge-c")
    assert project.state("bridge-b")["ExitCode"] == project.state("bridge-c")["ExitCode"] == 0
    assert project.answers(200, project.orders)

    project("stop", "database")
    assert project.answers(503, project.orders)
    assert project.answers(200, project.pages)
    lives = project.state("bridge-a")["Pid"]
    project("start", "database")
    assert project.answers(200, project.orders)
    assert project.state("bridge-a")["Pid"] == lives
