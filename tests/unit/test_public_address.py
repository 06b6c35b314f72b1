"""What is said of the public address, for each kind of evidence."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.diagnostics.checks.public import RECENT_S, Evidence, judge
from tillbridge.diagnostics.network import Exchange, is_local_name, is_public, tunnel_of

HOST = "store-17.example.net"
PUBLIC = ("93.184.215.14",)
PROOF = "ok\nproof: " + "a" * 64


def answered(status: int, body: str = "", **headers: str) -> Exchange:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Exchange(PUBLIC, status=status, body=body, headers=named)


def silent(trouble: str, addresses: tuple[str, ...] = PUBLIC) -> Exchange:
    return Exchange(addresses, trouble=trouble, detail="so it was")  # type: ignore[arg-type]  # by name


# What is known, and what it means: cause, and whether the address is reachable.
TABLE = {
    "the proof came back": (Evidence(HOST, answered(200), proven=True), "reached", True),
    "a full ledger still proves the way": (
        Evidence(HOST, answered(503), proven=True),
        "reached",
        True,
    ),
    "loopback, and the service too": (
        Evidence("127.0.0.1", answered(200), proven=True, service_is_local=True),
        "reached",
        True,
    ),
    "loopback, and the service is outside": (
        Evidence("127.0.0.1", answered(200), proven=True),
        "this_machine_only",
        False,
    ),
    "an address of this network": (
        Evidence("192.168.1.9", answered(200), proven=True),
        "local_address",
        False,
    ),
    "a name of this network that is silent": (
        Evidence("till.local", silent("timeout", ("192.168.1.9",))),
        "local_address",
        False,
    ),
    "no such name": (Evidence(HOST, silent("no_name", ())), "name_unknown", False),
    "no DNS": (Evidence(HOST, silent("dns_timeout", ())), "dns_trouble", False),
    "a bad certificate": (Evidence(HOST, silent("tls")), "certificate", False),
    "Cloudflare without its tunnel": (
        Evidence(HOST, answered(530, "error code: 1033", cf_ray="8a", server="cloudflare")),
        "tunnel_down",
        False,
    ),
    "a quick tunnel that is gone": (
        Evidence("x.trycloudflare.com", silent("no_name", ())),
        "tunnel_down",
        False,
    ),
    "Tailscale without its funnel": (
        Evidence("till.tail1.ts.net", silent("reset")),
        "tunnel_down",
        False,
    ),
    "ngrok offline": (
        Evidence("a.ngrok-free.app", answered(404, "ERR_NGROK_3200", ngrok_error_code="x")),
        "tunnel_down",
        False,
    ),
    "the tunnel leads to a wrong port": (
        Evidence(HOST, answered(502, "Bad gateway", cf_ray="8a")),
        "bridge_behind_proxy",
        False,
    ),
    "Caddy without a bridge behind": (
        Evidence(HOST, answered(502, server="Caddy")),
        "bridge_behind_proxy",
        False,
    ),
    "the proxy does not get through": (
        Evidence(HOST, answered(522, cf_ray="8a")),
        "proxy_timeout",
        False,
    ),
    "another bridge": (
        Evidence(HOST, answered(200, PROOF, server="tillbridge")),
        "other_bridge",
        False,
    ),
    "this machine has the address itself": (
        Evidence(HOST, silent("refused"), own=frozenset(PUBLIC)),
        "refused",
        False,
    ),
    # The router may only not lead its own network back: what else is known?
    "silence, and nothing else known": (Evidence(HOST, silent("timeout")), "unclear", None),
    "refused, and nothing else known": (Evidence(HOST, silent("refused")), "unclear", None),
    "the router's own page": (
        Evidence(HOST, answered(401, "<title>Router</title>")),
        "unclear",
        None,
    ),
    "silence, but a delivery came lately": (
        Evidence(HOST, silent("timeout"), delivery_s=600),
        "hairpin",
        True,
    ),
    "silence, and the last delivery is old": (
        Evidence(HOST, silent("timeout"), delivery_s=RECENT_S + 1),
        "unclear",
        None,
    ),
    "silence here, reached from outside": (
        Evidence(HOST, silent("timeout"), outside=True),
        "reached_outside",
        True,
    ),
    "silence here, and outside": (
        Evidence(HOST, silent("timeout"), outside=False, delivery_s=60),
        "silent",
        False,
    ),
    "a web server of somebody else behind a tunnel": (
        Evidence(HOST, answered(404, "nginx", cf_ray="8a", server="nginx")),
        "wrong_target",
        False,
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_cause_is_found(case: str) -> None:
    evidence, cause, reachable = TABLE[case]
    judgement = judge(evidence)
    assert (judgement.cause, judgement.reachable) == (cause, reachable), judgement
    if reachable is not True:
        assert judgement.fix
    assert "{" not in judgement.text + judgement.fix


def test_a_tunnel_is_never_taken_for_a_missing_hairpin() -> None:
    evidence, _cause, _reachable = TABLE["Tailscale without its funnel"]
    assert judge(replace(evidence, delivery_s=60)).reachable is False


@given(
    host=st.sampled_from([HOST, "127.0.0.1", "till.local", "a.ts.net", "10.0.0.1"]),
    trouble=st.sampled_from(
        ["", "no_name", "dns_timeout", "refused", "timeout", "no_route", "reset", "tls", "no_http"]
    ),
    status=st.integers(100, 599),
    body=st.sampled_from(["", PROOF, "error code: 1033", "<html>"]),
    proven=st.booleans(),
    outside=st.sampled_from([None, True, False]),
    delivery_s=st.none() | st.floats(0, 1e6),
    running=st.booleans(),
)
def test_there_is_always_a_sentence_and_only_a_proof_or_evidence_says_reachable(
    host: str,
    trouble: str,
    status: int,
    body: str,
    proven: bool,
    outside: bool | None,
    delivery_s: float | None,
    running: bool,
) -> None:
    seen = replace(silent(trouble), status=status, body=body)
    judgement = judge(
        Evidence(host, seen, proven=proven, outside=outside, delivery_s=delivery_s, running=running)
    )
    assert judgement.text.endswith(".")
    if judgement.reachable:
        assert proven or outside or (delivery_s is not None and delivery_s < RECENT_S)
    else:
        assert judgement.fix


def test_addresses_and_names_are_told_apart() -> None:
    assert is_public("93.184.215.14")
    assert not any(map(is_public, ("10.0.0.1", "192.168.0.1", "100.64.0.1", "fe80::1%eth0", "x")))
    assert is_local_name("till")
    assert is_local_name("till.lan")
    assert is_local_name("192.168.0.1")
    assert not is_local_name("93.184.215.14")
    assert tunnel_of("A.B.TS.NET.") == "Tailscale Funnel"
    assert tunnel_of("ts.net.example.org") == ""
