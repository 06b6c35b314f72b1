"""The guide for a restaurant is typed as printed: an ordinary user, an empty home, usual ports."""

import json
import subprocess

import pytest

from tests.support.guide_commands import ROOT
from tests.support.ordinary_user import ordinary_user

_OWN_NETWORK = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


@pytest.mark.timeout(300)
def test_the_guide_for_a_restaurant_works_as_it_is_printed() -> None:
    try:
        subprocess.run([*_OWN_NETWORK, "true"], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs unshare and the right to a network of its own, for the usual ports")
    with ordinary_user() as user:
        done = user.run_module("tests.support.guide_as_printed", folder=ROOT, inside=_OWN_NETWORK)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["version"][0], said["version"][1].split()[0]) == (0, "tillbridge")
    assert said["demo"][0] == 0, said["demo"][1]
    assert "Every step worked." in said["demo"][1]
    assert (said["page"], said["storefront"]) == (True, True), said
    assert "base_url:   http://127.0.0.1:9000/v2" in said["sandbox"]
    assert "The bridge is not set up yet" in said["status"][1]
    assert "bridge.stopped" in said["run"]
    assert said["left"] == [
        "my-restaurant",
        "my-restaurant/bridge.toml",
        "my-restaurant/data",
        "sandbox.json",
    ]
