"""The files in deploy/ agree with the program and with each other."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tillbridge.config.loading import load

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY.parent / "systemd/tillbridge.service"
HASHED = "scrypt$16384$8$1$c2FsdHNhbHRzYWx0c2FsdA==$" + "A" * 43 + "="
HAPROXY = (DEPLOY / "haproxy.cfg").read_text("utf-8")


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def manifests() -> dict[tuple[str, str], Any]:
    """Each object of Kubernetes by kind and name."""
    found = [each for path in DEPLOY.glob("kubernetes/*.yaml") for each in documents(path)]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def compose() -> Any:  # noqa: ANN401 -- any YAML value
    return documents(DEPLOY / "compose.yaml")[0]


def pod() -> Any:  # noqa: ANN401 -- any YAML value
    return manifests()["StatefulSet", "tillbridge"]["spec"]["template"]["spec"]


def secrets_in_bridge_toml() -> set[str]:
    return set(re.findall(r'"/run/secrets/(\w+)"', (DEPLOY / "bridge.toml").read_text("utf-8")))


def test_the_program_takes_the_configuration(tmp_path: Path) -> None:
    text = (DEPLOY / "bridge.toml").read_text("utf-8")
    for name in secrets_in_bridge_toml():
        (tmp_path / name).write_text("postgresql://tillbridge:secret@database/tillbridge")
    (tmp_path / "page_password").write_text(HASHED)
    (tmp_path / "bridge.toml").write_text(text.replace("/run/secrets", str(tmp_path)))

    loaded = load(tmp_path / "bridge.toml")

    assert loaded.is_set_up
    assert loaded.settings.ledger.url is not None
    assert list(loaded.settings.stores) == ["harbour"]


def test_the_program_takes_what_the_steps_for_systemd_make_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (DEPLOY / "README.md").read_text("utf-8")
    (command,) = re.findall(r"^    (sed .*) > bridge\.toml", readme, re.MULTILINE)
    done = subprocess.run(
        ["sh", "-c", command], cwd=DEPLOY.parent, capture_output=True, text=True, check=True
    )
    (tmp_path / "bridge.toml").write_text(done.stdout)
    given = set(
        re.findall(r"LoadCredential=(\w+):/etc/tillbridge/credentials/\1$", readme, re.MULTILINE)
    )
    given |= set(re.findall(r"LoadCredential=(\w+):", UNIT.read_text("utf-8")))
    for name in given:
        (tmp_path / name).write_text("postgresql://tillbridge:secret@database/tillbridge")
    (tmp_path / "page_password").write_text(HASHED)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))

    assert given == secrets_in_bridge_toml()
    assert load(tmp_path / "bridge.toml").is_set_up


def test_every_secret_of_the_configuration_is_given_to_the_bridges() -> None:
    wanted, described = secrets_in_bridge_toml(), compose()
    for name, service in described["services"].items():
        if name.startswith("bridge-"):
            assert set(service["secrets"]) == wanted
    assert wanted < set(described["secrets"])
    readme = (DEPLOY / "README.md").read_text("utf-8")
    assert all(f"secrets/{name}" in readme for name in described["secrets"])
    sources = next(each for each in pod()["volumes"] if each["name"] == "secrets")["projected"]
    from_database = sources["sources"][1]["secret"]
    assert [each["path"] for each in from_database["items"]] == ["database_url"]
    assert (
        from_database["name"]
        == manifests()["Cluster", "tillbridge-database"]["metadata"]["name"] + "-app"
    )
    in_kubectl = set(re.findall(r"--from-(?:literal|file)=(\w+)", readme.split("generic")[1]))
    assert wanted == {*in_kubectl, "database_url"}


def test_the_balancer_knows_each_bridge_at_the_ports_of_the_configuration() -> None:
    bridges = [name for name in compose()["services"] if name.startswith("bridge-")]
    for port in (8088, 8089):
        assert re.findall(rf"server (\S+) \1:{port}\b", HAPROXY) == bridges
        assert f'listen = "0.0.0.0:{port}"' in (DEPLOY / "bridge.toml").read_text("utf-8")


def test_haproxy_takes_its_configuration(tmp_path: Path) -> None:
    if (program := shutil.which("haproxy", path="/usr/sbin:/usr/bin")) is None:
        pytest.skip("haproxy is not installed")
    # Its names are those of containers, which this machine does not know.
    file = tmp_path / "haproxy.cfg"
    file.write_text(re.sub(r"bridge-[abc]:", "127.0.0.1:", HAPROXY))

    done = subprocess.run([program, "-c", "-f", file], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr


def test_probes_ask_for_what_they_decide() -> None:
    (container,) = pod()["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"receiver": 8088, "page": 8089}
    ready, alive = container["readinessProbe"]["httpGet"], container["livenessProbe"]["httpGet"]
    # A bridge without its database gets no deliveries, and is not restarted.
    assert (ready["path"], ready["port"]) == ("/healthz", "receiver")
    assert (alive["path"], alive["port"]) == ("/healthz", "page")
    assert pod()["terminationGracePeriodSeconds"] > 10


def test_what_the_manifests_name_is_there() -> None:
    found = manifests()
    mounted = {each["name"] for each in pod()["containers"][0]["volumeMounts"]}
    (claim,) = found["StatefulSet", "tillbridge"]["spec"]["volumeClaimTemplates"]
    assert mounted == {each["name"] for each in pod()["volumes"]} | {claim["metadata"]["name"]}
    labels = found["StatefulSet", "tillbridge"]["spec"]["template"]["metadata"]["labels"]
    for (kind, _name), each in found.items():
        if kind == "Service":
            assert each["spec"]["selector"] == labels
            assert {port["targetPort"] for port in each["spec"]["ports"]} <= {"receiver", "page"}
    claims = [each for each in pod()["volumes"] if "persistentVolumeClaim" in each]
    for each in claims:
        assert ("PersistentVolumeClaim", each["persistentVolumeClaim"]["claimName"]) in found
