"""What goes into the Debian package; that it installs and updates is `make deb-test`."""

import importlib.util
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tillbridge.config.loading import load

ROOT = Path(__file__).resolve().parents[2]
DEB = ROOT / "packaging" / "deb"
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DEB / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


wheels = module("wheels")
build = module("build")
libraries = wheels.libraries


def wheel(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_py", ".py"), content)
    return path


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_maintainer_scripts_are_sound(script: str) -> None:
    shell = shutil.which("sh")
    if shell is None:
        pytest.skip("there is no sh")
    text = (DEB / "debian" / script).read_text("utf-8")
    assert text.startswith("#!/bin/sh\n")
    assert "\nset -e\n" in text
    subprocess.run([shell, "-n", str(DEB / "debian" / script)], check=True)


def test_the_configuration_in_the_package_takes_the_secret_as_a_credential(tmp_path: Path) -> None:
    config = tmp_path / "bridge.toml"
    config.write_text(build._configuration(), "utf-8")
    secret = load(config).settings.service.client_secret
    assert getattr(secret, "credential", "") == "client_secret"


def test_what_the_adapters_need_is_taken_from_the_lock_with_its_hashes() -> None:
    names = libraries.of_adapters(ROOT)
    assert not {"dbfread", "python-calamine"} & set(names)  # for tests; with the program
    assert {"psycopg", "pymysql"} <= set(names)  # extras
    assert "psycopg-binary" not in names  # Debian has libpq
    text = libraries.locked(ROOT / "requirements" / "dev.txt", names)
    found = re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)
    assert sorted(libraries.normalised(each) for each in found) == names
    assert text.count("--hash=sha256:") >= len(names)


def test_wheels_of_one_release_for_several_pythons_are_laid_together(tmp_path: Path) -> None:
    first = wheel(tmp_path / "a-1-cp311.whl", a__init_py=b"same", a__x311=b"1")
    second = wheel(tmp_path / "a-1-cp312.whl", a__init_py=b"same", a__x312=b"2")
    wheels.unpack([second, first], tmp_path / "site")
    assert sorted(each.name for each in (tmp_path / "site" / "a").iterdir()) == [
        "init.py",
        "x311",
        "x312",
    ]


def test_wheels_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    first = wheel(tmp_path / "a-1-cp311.whl", a__init_py=b"one")
    second = wheel(tmp_path / "a-1-cp312.whl", a__init_py=b"another")
    with pytest.raises(ValueError, match="another"):
        wheels.unpack([first, second], tmp_path / "site")


def test_the_package_fits_the_pythons_it_brings_modules_for() -> None:
    control = (DEB / "debian" / "control").read_text("utf-8")
    assert f"python3 (>= {wheels.PYTHONS[0]})" in control
    assert "python3 (<< @NEXT_PYTHON@)" in control


def test_the_launcher_takes_the_version_from_before_while_an_update_is_not_finished() -> None:
    text = (DEB / "tillbridge").read_text("utf-8")
    assert text.startswith("#!/usr/bin/python3 -I\n")
    postinst = (DEB / "debian" / "postinst").read_text("utf-8")
    for name in ("rolled-back", "previous"):
        assert name in text
        assert name in postinst
