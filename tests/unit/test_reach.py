"""How the internet may reach the receiver: files that work as they stand, with one path open."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.config.loading import load
from tillbridge.diagnostics.reach import (
    WAYS,
    Place,
    Seen,
    fitting,
    guidance,
    look,
    place_of,
    running_names,
)

SAMPLE = Path(__file__).resolve().parents[2] / "config/bridge.toml"
PLACE = Place(
    host="store-17.example.net",
    port=443,
    prefix="",
    https=True,
    named=True,
    listens_on="127.0.0.1",
    at_host="127.0.0.1",
    at_port=8088,
    tls=False,
    certificate="",
    key="",
    max_body_bytes=1_048_576,
    config=Path("/etc/tillbridge/bridge.toml"),
    store="main",
)
NOTHING_SEEN = dict.fromkeys(WAYS, Seen())


def told(place: Place = PLACE) -> dict[str, Any]:
    return guidance(place, look_for=lambda name: Seen())


def way(name: str, place: Place = PLACE) -> dict[str, Any]:
    (found,) = (each for each in told(place)["ways"] if each["name"] == name)
    return dict(found)


def file_of(name: str, place: Place = PLACE) -> str:
    return [str(step["content"]) for step in way(name, place)["steps"] if step["file"]][-1]


def commands(name: str, place: Place = PLACE) -> list[str]:
    return [command for step in way(name, place)["steps"] for command in step["commands"]]


def blocks(text: str) -> Iterator[tuple[list[str], str]]:
    """Each directive of a Caddyfile with the blocks it stands in. ValueError where it is none."""
    around: list[str] = []
    for line in text.splitlines():
        row = line.strip()
        if row == "}":
            around.pop()
        elif row.endswith(" {"):
            around.append(row[:-2])
            yield around[:-1], row[:-2]
        elif "{" in row or "}" in row:
            raise ValueError(row)
        elif row:
            yield list(around), row
    if around:
        raise ValueError(around)


def test_the_tunnel_lets_deliveries_in_and_nothing_else() -> None:
    assert file_of("cloudflared") == (
        "tunnel: tillbridge\n"
        "credentials-file: /etc/cloudflared/tillbridge.json\n"
        "ingress:\n"
        "  - hostname: store-17.example.net\n"
        "    path: ^/webhooks/\n"
        "    service: http://127.0.0.1:8088\n"
        "  - service: http_status:404\n"
    )
    rules = yaml.safe_load(file_of("cloudflared"))["ingress"]
    assert [rule["service"] for rule in rules] == ["http://127.0.0.1:8088", "http_status:404"]
    pattern = rules[0]["path"]
    let_in = ["/webhooks/main", "/webhooks/communities/hall", "/webhooks/healthz"]
    assert all(re.search(pattern, path) for path in let_in)
    assert not [path for path in ("/", "/webhooksx", "/a/webhooks/") if re.search(pattern, path)]
    assert "rule https://store-17.example.net/webhooks/main" in "\n".join(commands("cloudflared"))


def test_a_tunnel_to_a_receiver_with_tls_checks_its_certificate() -> None:
    (rule, _rest) = yaml.safe_load(file_of("cloudflared", replace(PLACE, tls=True)))["ingress"]
    assert rule["service"] == "https://127.0.0.1:8088"
    assert rule["originRequest"] == {"originServerName": "store-17.example.net"}


def test_the_funnel_opens_one_path() -> None:
    place = replace(PLACE, host="till.fish-tuna.ts.net")
    assert (
        "sudo tailscale funnel --bg --https=443 --set-path=/webhooks http://127.0.0.1:8088/webhooks"
    ) in commands("tailscale", place)
    assert way("tailscale", place)["cautions"] == []
    assert "MACHINE.TAILNET.ts.net" in way("tailscale")["cautions"][0]


@pytest.mark.parametrize("port", [8443, 9999])
def test_a_funnel_has_three_ports(port: int) -> None:
    place = replace(PLACE, host="till.fish-tuna.ts.net", port=port)
    opened = port if port == 8443 else 443
    assert f"--https={opened} " in "\n".join(commands("tailscale", place))
    assert bool(way("tailscale", place)["cautions"]) is (port == 9999)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("prefix", ["", "/bridge"])
def test_the_web_server_passes_deliveries_on_and_nothing_else(tls: bool, prefix: str) -> None:
    place = replace(PLACE, tls=tls, prefix=prefix)
    rows = list(blocks(file_of("caddy", place)))
    site, let_in = "store-17.example.net", f"handle {prefix}/webhooks/*"
    assert ([], site) in rows
    passing = [(around, row) for around, row in rows if row.startswith("reverse_proxy")]
    target = "https://127.0.0.1:8088" if tls else "127.0.0.1:8088"
    assert passing == [([site, let_in], f"reverse_proxy {target}")]
    assert ([site, "handle"], "respond 404") in rows
    assert (([site, let_in], "uri strip_prefix /bridge") in rows) is bool(prefix)


def test_the_straight_way_is_configuration_the_bridge_takes(tmp_path: Path) -> None:
    lines = tomllib.loads(file_of("direct"))["receiver"]
    assert lines == {
        "listen": "0.0.0.0:8088",
        "public_url": "https://store-17.example.net",
        "tls_cert": "/etc/tillbridge/tls/fullchain.pem",
        "tls_key": "/etc/tillbridge/tls/privkey.pem",
    }
    text = SAMPLE.read_text("utf-8")
    (old,) = re.findall(r"^\[receiver\]\n(?:.+\n)+", text, re.MULTILINE)
    path = tmp_path / "bridge.toml"
    path.write_text(text.replace(old, file_of("direct")), encoding="utf-8")
    (tmp_path / "client_secret").write_text("s3cret")
    again = place_of(load(path).settings, path, windows=False)
    assert (again.tls, again.at_port, again.listens_on) == (True, 8088, "0.0.0.0")
    assert tomllib.loads(file_of("direct", again))["receiver"] == lines


def test_certificates_of_ones_own_keep_their_place() -> None:
    place = replace(PLACE, tls=True, certificate="/srv/c.pem", key="/srv/k.pem")
    hook = next(step["content"] for step in way("direct", place)["steps"] if step["file"])
    assert '"/srv/c.pem"' in hook
    assert '"/srv/k.pem"' in hook


@pytest.mark.parametrize(
    ("public_url", "listen", "words"),
    [
        (
            "http://127.0.0.1:8088",
            "127.0.0.1:8088",
            "public_url in [receiver] can be reached from this machine",
        ),
        (
            "https://till.lan",
            "127.0.0.1:8088",
            "public_url in [receiver] can be reached from this machine",
        ),
        (
            "https://192.168.1.5",
            "127.0.0.1:8088",
            "public_url in [receiver] can be reached from this machine",
        ),
        ("http://store.example.net", "127.0.0.1:8088", "must be encrypted"),
        ("https://store.example.net", "127.0.0.1:0", "has port 0"),
    ],
)
def test_what_has_to_be_put_right_first_is_said(public_url: str, listen: str, words: str) -> None:
    settings = load(SAMPLE).settings
    receiver = settings.receiver.model_copy(update={"public_url": public_url, "listen": listen})
    place = place_of(settings.model_copy(update={"receiver": receiver}), SAMPLE)
    assert words in "\n".join(guidance(place, look_for=lambda name: Seen())["cautions"])


def test_a_sound_address_needs_no_words() -> None:
    assert place_of(load(SAMPLE).settings, SAMPLE).cautions() == []


def test_a_path_is_taken_off_or_warned_of() -> None:
    place = replace(PLACE, prefix="/bridge")
    assert "--set-path=/bridge/webhooks http://127.0.0.1:8088/webhooks" in "\n".join(
        commands("tailscale", place)
    )
    for name in ("cloudflared", "direct"):
        assert "Use https://store-17.example.net alone." in way(name, place)["cautions"][0]
    assert told(place)["path"] == "/bridge/webhooks/"


@given(
    port=st.integers(1, 65535),
    at_port=st.integers(1, 65535),
    at_host=st.sampled_from(["127.0.0.1", "::1", "192.168.1.5"]),
    prefix=st.sampled_from(["", "/bridge", "/a/b"]),
    tls=st.booleans(),
    windows=st.booleans(),
)
def test_every_way_leads_to_the_receiver_and_only_to_its_deliveries(
    port: int, at_port: int, at_host: str, prefix: str, tls: bool, windows: bool
) -> None:
    place = replace(
        PLACE,
        port=port,
        at_port=at_port,
        at_host=at_host,
        listens_on=at_host,
        prefix=prefix,
        tls=tls,
        windows=windows,
    )
    list(blocks(file_of("caddy", place)))
    for name in ("cloudflared", "caddy", "tailscale"):
        files = [step["content"] for step in way(name, place)["steps"]]
        shown = "\n".join([*commands(name, place), *files])
        assert place.at in shown
        assert "/webhooks" in shown
        assert windows is not ("sudo " in shown)
    assert f":{at_port}" in tomllib.loads(file_of("direct", place))["receiver"]["listen"]


def test_what_fits_is_what_stands_in_the_configuration_or_runs_already() -> None:
    assert fitting(replace(PLACE, host="till.fish-tuna.ts.net"), NOTHING_SEEN) == "tailscale"
    assert fitting(replace(PLACE, tls=True), NOTHING_SEEN) == "direct"
    assert fitting(PLACE, {**NOTHING_SEEN, "caddy": Seen("/usr/bin/caddy", True)}) == "caddy"
    assert fitting(PLACE, {**NOTHING_SEEN, "caddy": Seen("/usr/bin/caddy", False)}) == "caddy"
    assert fitting(PLACE, NOTHING_SEEN) == "cloudflared"


def test_programs_are_seen_installed_and_running(tmp_path: Path) -> None:
    assert running_names(tmp_path) is None
    (tmp_path / "self").mkdir()
    (tmp_path / "17").mkdir()
    (tmp_path / "17/comm").write_text("tailscaled\n")
    (tmp_path / "18").mkdir()
    names = running_names(tmp_path)
    assert names == frozenset({"tailscaled"})
    found = look("tailscale", which=lambda name: f"/usr/bin/{name}", processes=lambda: names)
    assert found == Seen("/usr/bin/tailscale", running=True)
    missing = partial(look, "caddy", which=lambda name: None)
    assert missing(processes=lambda: names) == Seen("", running=False)
    assert missing(processes=lambda: None) == Seen("", running=None)
    assert look("direct") == Seen()


@pytest.mark.parametrize("url", ["http://127.0.0.1:8088", "http://shop.example.net:8080"])
def test_an_address_that_will_not_do_is_shown_as_it_has_to_be(url: str) -> None:
    settings = load(SAMPLE).settings
    receiver = settings.receiver.model_copy(update={"public_url": url})
    place = place_of(settings.model_copy(update={"receiver": receiver}), SAMPLE)
    host = "store.example.com" if "127" in url else "shop.example.net"
    assert place.public == f"https://{host}"
    assert file_of("caddy", place).startswith(f"{host} {{\n")
    assert any("http://" in each for each in place.cautions())
