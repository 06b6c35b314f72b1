"""Each package in adapters/ is what a vendor would make: on its own, on the adapter API alone."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tillbridge.pos.kit import find_kit

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(path.parent for path in ROOT.glob("adapters/*/pyproject.toml"))
ALLOWED = re.compile(r"tillbridge\.(adapter|model)(\.|$)")

every_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)


def project(package: Path) -> dict[str, Any]:
    return tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@every_package
def test_a_package_imports_the_adapter_api_and_the_model_at_most(package: Path) -> None:
    own = f"tillbridge_{package.name}"
    for path in sorted((package / "src").rglob("*.py")):
        for module in imported(path):
            if module.split(".")[0] == "tillbridge":
                assert ALLOWED.match(module), f"{path.name} imports {module}"
            assert not module.startswith("tillbridge_") or module.split(".")[0] == own


@every_package
def test_a_package_registers_the_adapter_of_its_folders_name(package: Path) -> None:
    said = project(package)
    assert said["name"] == f"tillbridge-{package.name.replace('_', '-')}"
    (name,) = said["entry-points"]["tillbridge.adapters"]
    assert name == package.name == find_kit(name).adapter.name


@every_package
def test_a_package_has_all_a_vendor_gives(package: Path) -> None:
    kit = find_kit(package.name)
    assert kit.rig is not None
    assert kit.quality is not None
    assert kit.root == package
    assert list((package / "tests/cases").glob("*/expected.json"))
    assert (package / "src" / f"tillbridge_{package.name}" / "py.typed").exists()


@every_package
def test_what_a_package_needs_is_in_the_locks(package: Path) -> None:
    lock = (ROOT / "requirements/dev.txt").read_text("utf-8")
    pinned = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)}
    needs = {canonicalize_name(Requirement(each).name) for each in project(package)["dependencies"]}
    assert needs - {"tillbridge"} <= pinned
    assert "tillbridge" in needs


@every_package
def test_the_list_of_adapters_names_it(package: Path) -> None:
    page = (ROOT / "docs/adapters/README.md").read_text("utf-8")
    assert f"(../../adapters/{package.name}/README.md)" in page
