"""The bundle for Windows: all that the lock asks for, and scripts that Windows can read."""

import importlib.util
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_powershell

ROOT = Path(__file__).resolve().parents[2]
WINDOWS = ROOT / "packaging/windows"
SCRIPTS = sorted(WINDOWS.glob("*.ps1"))


def bundle_program() -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("windows_bundle", WINDOWS / "bundle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILDS = pytest.mark.slow(
    reason="fetches and packs every library; in short the scripts and the pins are looked at"
)


@pytest.fixture(scope="module")
def program() -> types.ModuleType:
    return bundle_program()


@pytest.fixture(scope="module")
def bundle(program: types.ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle for one Python, or a skip where the libraries cannot be fetched."""
    try:
        built: Path = program.build(tmp_path_factory.mktemp("bundle"), ["3.12"])
    except subprocess.CalledProcessError as failure:
        if _can_fetch(tmp_path_factory.mktemp("probe")):
            raise
        pytest.skip(f"libraries cannot be fetched here: {failure}")
    return built


def _can_fetch(folder: Path) -> bool:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), "idna"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@BUILDS
@pytest.mark.xdist_group("windows bundle")
def test_every_requirement_of_the_lock_is_in_the_bundle(
    program: types.ModuleType, bundle: Path
) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = [name.partition("/")[2] for name in archive.namelist()]
    wheels = {
        tuple(name.removeprefix("wheelhouse/").split("-")[:2])
        for name in names
        if name.startswith("wheelhouse/")
    }
    found = {(program.canonicalize_name(name), version) for name, version in wheels}
    wanted = {
        (pin.name, next(iter(pin.requirement.specifier)).version)
        for pin in program.needed()
        if pin.is_for("3.12")
    }
    assert found == wanted
    assert {"pywin32", "tzdata", "colorama"} <= {name for name, _version in found}
    assert {"pymysql", "psycopg", "psycopg-binary"} <= {name for name, _version in found}
    assert not any("linux" in name or "macos" in name for name in names)
    ours = {name.split("-")[0] for name in names if name.startswith("program/")}
    tills = {path.parent.name for path in ROOT.glob("adapters/*/pyproject.toml")}
    assert ours == {"program/tillbridge"} | {f"program/tillbridge_{till}" for till in tills}


@BUILDS
@pytest.mark.xdist_group("windows bundle")
def test_the_bundle_holds_what_its_scripts_and_its_readme_name(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        names = {name.partition("/")[2]: name for name in archive.namelist()}
        assert {"install.ps1", "uninstall.ps1", "README.md", "LICENSE", "bridge.toml"} <= set(names)
        script = archive.read(names["install.ps1"])
        lock = archive.read(names["requirements.txt"]).decode()
        sample = archive.read(names["bridge.toml"]).decode()
    assert script.startswith(b"\xef\xbb\xbf"), "without the mark PowerShell 5 reads it as ANSI"
    assert b"\r\n" in script
    assert "--hash=sha256:" in lock
    assert 'data_dir = "data"' in sample
    assert "://" not in re.sub(r"--hash=\S+", "", lock), "a lock names no index"
    readme = (WINDOWS / "README.md").read_text("utf-8")
    for page in re.findall(r"docs\\(\w+\.md)", readme):
        assert f"docs/{page}" in names


def test_a_requirement_for_windows_alone_is_known_by_its_marker(program: types.ModuleType) -> None:
    pins = {pin.name: pin for pin in program.pins(ROOT / "requirements/run.txt")}
    assert str(pins["pywin32"].requirement.marker) == 'sys_platform == "win32"'
    assert all(pins["pywin32"].is_for(python) for python in program.PYTHONS)
    assert pins["pywin32"].hashes.count("--hash=") >= len(program.PYTHONS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_scripts_are_sound(script: Path) -> None:
    content = script.read_bytes()
    content.decode("ascii")  # whatever code page a Windows reads it with
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    tree = parser.parse(content)
    assert not tree.root_node.has_error, _faults(tree.root_node, content)
    text = content.decode()
    assert "Set-StrictMode -Version Latest" in text
    assert "$ErrorActionPreference = 'Stop'" in text
    assert "Invoke-Expression" not in text
    # Paths with brackets are taken as they are.
    assert not re.search(r"(Test-Path|\w+-Item|Get-ItemProperty) (?!-LiteralPath|-ItemType)", text)
    for parameter in re.findall(r"^    \[[\w\[\]]+\] \$(\w+)", text, re.MULTILINE):
        assert len(re.findall(rf"\${{?{parameter}\b", text)) > 1, f"{parameter} is never used"


def test_a_script_that_is_not_sound_would_be_found() -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
    content = SCRIPTS[0].read_bytes().replace(b"if ($isNew) {", b"if ($isNew {", 1)
    assert parser.parse(content).root_node.has_error


def _faults(node: tree_sitter.Node, content: bytes) -> list[str]:
    if node.type == "ERROR" or node.is_missing:
        line = node.start_point[0] + 1
        return [f"line {line}: {content.splitlines()[line - 1].decode()}"]
    return [fault for child in node.children for fault in _faults(child, content)]


def test_install_takes_the_pythons_that_are_bundled(program: types.ModuleType) -> None:
    text = (WINDOWS / "install.ps1").read_text("utf-8")
    (line,) = re.findall(r"^\$Versions = (.+)$", text, re.MULTILINE)
    assert sorted(re.findall(r"'([\d.]+)'", line)) == sorted(program.PYTHONS)


def test_an_update_stops_the_bridge_once_the_new_program_is_there() -> None:
    """Libraries that cannot be installed must not leave a restaurant without its bridge."""
    text = (WINDOWS / "install.ps1").read_text("utf-8")
    stops = text.index("Stop-Service")
    assert text.index("'Installing the libraries'") < text.index("'Installing the program'") < stops
    assert stops < text.index("Move-Item -LiteralPath $fresh")


def test_the_event_log_is_given_the_words_of_the_service() -> None:
    """Without a message file it says of each entry that its description cannot be found."""
    texts = {path.name: path.read_text("utf-8") for path in SCRIPTS}
    source = r"SYSTEM\CurrentControlSet\Services\EventLog\Application\$ServiceName"
    assert rf"HKLM\{source}" in texts["install.ps1"]
    assert r"Lib\site-packages\win32\servicemanager.pyd" in texts["install.ps1"]
    assert rf"HKLM:\{source}" in texts["uninstall.ps1"]
