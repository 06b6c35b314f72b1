"""The image's steps, done by hand: where no engine is, they are a script and a few instructions."""

import asyncio
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.bridge_process import free_port, until

ROOT = Path(__file__).resolve().parents[2]
CONTAINER = ROOT / "packaging/container"
CONFIG = """
[service]
base_url = "http://127.0.0.1:{port}/v2"
client_id = "app"
client_secret = {{ file = "client_secret" }}
redirect_uri = "http://127.0.0.1:{callback}/oauth/callback"
[receiver]
listen = "127.0.0.1:{receiver}"
public_url = "https://store.example"
[status_page]
listen = "127.0.0.1:0"
[stores.main]
location_id = "loc-1"
currency = "USD"
[stores.main.pos]
adapter = "folder"
menu = "/data/pos/menu.csv"
orders_dir = "/data/pos/orders"
"""


def instructions() -> list[tuple[str, str]]:
    """The instructions of the last stage, each with what follows it."""
    text = re.sub(r"\\\n\s*", "", (CONTAINER / "Containerfile").read_text("utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    last = max(place for place, line in enumerate(lines) if line.startswith("FROM "))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines[last:])]


def instruction(name: str) -> str:
    (found,) = (rest for given, rest in instructions() if given == name)
    return found


def environment() -> dict[str, str]:
    return dict(each.split("=", 1) for each in shlex.split(instruction("ENV")))


def system_python() -> str:
    """The system's Python, as the image has one: others may lie where only their owner may look."""
    for path in ("/usr/local/bin/python3", "/usr/bin/python3"):
        asked = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
        if shutil.which(path) and not subprocess.run([path, "-c", asked], check=False).returncode:
            return path
    return "python3"


def build(target: Path) -> None:
    command = ["sh", str(CONTAINER / "build.sh"), str(ROOT), str(target)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "315532800", "PYTHON": system_python()}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("libraries cannot be fetched here")
    assert done.returncode == 0, done.stderr


def fingerprints(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = stat.S_IFMT(path.lstat().st_mode)
        content = path.readlink().as_posix().encode() if path.is_symlink() else b""
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        found[str(path.relative_to(folder))] = f"{kind:o} {digest}"
    return found


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """What the first stage makes, at a path that whoever runs it can reach.

    pytest's own folders are closed to others, and closed again by each pytest that starts.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        target = Path(folder) / "opt"
        build(target)
        yield target


BUILDS = pytest.mark.slow(
    reason="builds the image, and runs it; in short its instructions are compared with the sources"
)


@BUILDS
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("container")
def test_nothing_in_the_image_tells_when_or_where_it_was_made(image: Path) -> None:
    assert (image / "bin/tillbridge").exists()
    files = [path for path in image.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in files if "pip" in path.parts], "what runs cannot install"
    for path in files:
        content = path.read_bytes()
        assert b"/wheels/" not in content or path.suffix in {".py", ".pyc"}, path
        if path.suffix == ".pyc":
            assert int.from_bytes(content[4:8], "little") == 1, f"{path} holds a time"


@pytest.mark.slow(reason="builds a second image; what differs is looked for in the first above")
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("container")
def test_the_same_sources_give_the_same_image(image: Path) -> None:
    first = fingerprints(image)
    aside = image.rename(image.with_name("first"))
    try:
        build(image)
        assert fingerprints(image) == first
    finally:
        shutil.rmtree(aside)


@BUILDS
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("container")
async def test_it_runs_as_nobody_on_a_root_that_is_read_only(image: Path, tmp_path: Path) -> None:
    """With the image's own user, variables, entry point, health check and signal."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs root and mount namespaces")
    if (image / "bin/python").resolve().is_relative_to(Path.home()):
        pytest.skip("needs a Python that every user may run")
    data = tmp_path / "data"
    (data / "pos/orders").mkdir(parents=True)
    (data / "pos/menu.csv").write_text("external_id,name,price\nb,Burger,9.50\n")
    etc = tmp_path / "etc"
    etc.mkdir()
    receiver = free_port()  # the network is this machine's: there 8088 may be taken
    ports = {"port": free_port(), "callback": free_port(), "receiver": receiver}
    (etc / "bridge.toml").write_text(CONFIG.format(**ports))
    (etc / "client_secret").write_text("planted")
    user, _, group = instruction("USER").partition(":")
    for path in [data, *data.rglob("*"), etc, *etc.rglob("*")]:
        os.chown(path, int(user), int(group))
    async with container(image, data, etc) as run:
        started = await run(*json.loads(instruction("ENTRYPOINT")), *json.loads(instruction("CMD")))
        check = json.loads(
            instruction("HEALTHCHECK").partition("CMD ")[2].replace(":8088/", f":{receiver}/")
        )

        async def healthy() -> bool:
            return await (await run(*check)).wait() == 0

        await until("it is healthy", healthy, within_s=60)
        touched = await run("sh", "-c", "touch /opt/tillbridge/x || touch /etc/x || touch /x")
        assert await touched.wait() != 0
        owner = (data / "ledger.db").stat()
        assert (owner.st_uid, owner.st_gid) == (int(user), int(group))
        started.terminate()
        assert await asyncio.wait_for(started.wait(), 15) == 0
        assert not await healthy()


@asynccontextmanager
async def container(image: Path, data: Path, etc: Path) -> AsyncIterator:
    """Give a function that starts a program where the image would have it."""
    mounts = [
        "mount --make-rprivate /",
        "mount -t tmpfs none /opt && mkdir /opt/tillbridge",
        f"mount --bind {shlex.quote(str(image))} /opt/tillbridge",
        # /data and /etc/tillbridge are no folders of this machine: others stand for them.
        f"mount --bind {shlex.quote(str(etc))} /media",
        f"mount --bind {shlex.quote(str(data))} /srv",
        "mount -o remount,bind,ro /",
        "mount -o remount,ro /opt",
    ]
    user, _, group = instruction("USER").partition(":")
    become = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups", "--no-new-privs"]
    env = {**environment(), "TILLBRIDGE_DATA_DIR": "/srv"}
    config = etc / "bridge.toml"
    config.write_text(config.read_text().replace("/data/", "/srv/"))
    running: list[asyncio.subprocess.Process] = []
    log = etc.parent / "container.log"

    async def run(*command: str) -> asyncio.subprocess.Process:
        placed = [each.replace("/etc/tillbridge", "/media") for each in command]
        told = " && ".join([*mounts, "exec " + shlex.join([*become, *placed])])
        # The first is the bridge; those after it are looks at it, and fail until it is up.
        with (Path(os.devnull) if running else log).open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                "unshare", "-m", "sh", "-c", told, env=env, stderr=output
            )
        running.append(process)
        return process

    try:
        yield run
    except BaseException as failure:
        failure.add_note(log.read_text(errors="replace")[-3000:])
        raise
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
                await process.wait()


def test_the_instructions_name_what_there_is() -> None:
    text = (CONTAINER / "Containerfile").read_text("utf-8")
    kept = (ROOT / ".containerignore").read_text("utf-8")
    for path in re.findall(r"/source/([\w./-]+)", text):
        assert (ROOT / path).exists()
    for line in kept.splitlines():
        if line.startswith("!"):
            assert (ROOT / line[1:]).exists(), line
    assert "ADD " not in text
    assert instruction("USER") == "10001:10001"
    assert environment()["TILLBRIDGE_DATA_DIR"] == json.loads(instruction("VOLUME"))[0]
