"""`tillbridge support-bundle` beside a real bridge and without one."""

import json
import zipfile

from tests.support.world import SECRET, World
from tillbridge.ledger.vault import Vault


def contents(world: World, name: str) -> dict[str, str]:
    with zipfile.ZipFile(world.folder / name) as archive:
        return {each.split("/")[1]: archive.read(each).decode() for each in archive.namelist()}


async def bundle(world: World, *options: str) -> tuple[int, str, str]:
    return await world.bridge.run("support-bundle", *options)


async def test_a_bundle_of_a_running_bridge_tells_all_but_secrets(shop: World) -> None:
    path = shop.folder / "help.zip"
    code, out, err = await bundle(shop, "--output", str(path))
    assert code == 0, err
    assert path.stat().st_mode & 0o077 == 0
    for name in ("configuration.json", "status.json", "doctor.json", "log.jsonl"):
        assert name in out  # seen before it was written
    assert "Nothing was sent." in out

    told = contents(shop, "help.zip")
    assert json.loads(told["status.json"])["bridge"]["running"] is True
    assert {each["name"] for each in json.loads(told["doctor.json"])["results"]} >= {
        "till",
        "clock",
    }
    assert '"bridge.ready"' in told["log.jsonl"]
    assert json.loads(told["ledger.json"])["rows"]["menu_items"] == 12

    control = json.loads((shop.folder / "data" / "control.json").read_text())
    vault = Vault(shop.folder / "data")
    tokens = json.loads(vault.get("main/tokens") or "")
    for secret in (SECRET, control["token"], tokens["access_token"], tokens["refresh_token"]):
        assert not [name for name, text in told.items() if secret in text]
    assert "owner@example.net" not in told["configuration.json"]

    # What is there already is not written over.
    code, _out, err = await bundle(shop, "--output", str(path))
    assert code == 2
    assert "exists already" in err


async def test_a_preview_writes_nothing_and_a_bridge_that_is_down_is_told_of_too(
    shop: World,
) -> None:
    await shop.bridge.kill()
    path = shop.folder / "seen.zip"
    code, out, err = await bundle(shop, "--preview", "--json", "--output", str(path))
    assert code == 0, err
    told = json.loads(out)
    assert (told["file"], path.exists()) == (None, False)
    assert {each["name"] for each in told["files"]} >= {"README.txt", "log.jsonl"}

    code, out, err = await bundle(shop, "--output", str(path))
    assert code == 0, err
    files = contents(shop, "seen.zip")
    assert json.loads(files["status.json"])["bridge"]["running"] is False
    assert '"bridge.ready"' in files["log.jsonl"]
