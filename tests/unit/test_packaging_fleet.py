"""What is packaged for those who look after many bridges names only what there is."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from tests.unit.test_metrics import full
from tillbridge.cli.app import app
from tillbridge.config.loading import load
from tillbridge.core.problems import PROBLEMS

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
RULES = PACKAGING / "prometheus/tillbridge.rules.yml"
DASHBOARD = PACKAGING / "grafana/tillbridge.json"
ROLE = PACKAGING / "ansible/tillbridge"
COPY, COMMAND = "ansible.builtin.copy", "ansible.builtin.command"
CONFIGURATION = "/etc/tillbridge/bridge.toml"
OTHERS = {"up"}  # of Prometheus itself
LABEL = re.compile(r'(\w+)(?:=~|!~|!=|=)"')
BY = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")


def series() -> dict[str, set[str]]:
    """Every series that the bridge exports, with the labels it has."""
    known: dict[str, set[str]] = {}
    for line in full().splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition("{")
            labels = {key for key, _value in re.findall(r'(\w+)="([^"]*)"', rest)}
            known.setdefault(name.split()[0], set()).update(labels)
    return known


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def queries() -> Iterator[str]:
    """Every query of the rules and of the dashboard."""
    for rule in rules():
        yield rule["expr"]
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["definition"]


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_query_names_series_and_labels_that_exist(query: str) -> None:
    known = series()
    named = set(re.findall(r"\b(?:tillbridge|process)_\w+|\bup\b", re.sub(r'"[^"]*"', '""', query)))
    assert named
    assert named <= known.keys() | OTHERS
    labels = set().union(*(known.get(name, {"job"}) for name in named)) | {"instance", "job"}
    used = set(LABEL.findall(query))
    for group in BY.findall(query):
        used |= {each.strip() for each in group.split(",")}
    if "label_values" in query:
        used.add(query.rstrip(")").rpartition(",")[2].strip())
    assert used <= labels


def test_a_query_of_what_is_not_there_would_be_found() -> None:
    """The test above sees the names, also those that histograms are made of."""
    known = series()
    assert "tillbridge_order_time_to_ticket_seconds_bucket" in known
    assert "tillbridge_orders_wating" not in known


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"warning", "down"}
    assert set(rule["annotations"]) == {"summary", "action"}
    known = set(app_commands())
    for words in re.findall(r"tillbridge ((?:[a-z]+ ?)+)", rule["annotations"]["action"]):
        assert any(words.strip().startswith(command) for command in known), words


def app_commands() -> Iterator[str]:
    import typer.main

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[str]:  # noqa: ANN401 -- typer's own classes
        inner = getattr(command, "commands", None)
        if inner is None:
            yield " ".join(path)
        else:
            for name, each in inner.items():
                yield from walk(each, (*path, name))

    return walk(typer.main.get_command(app), ())


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool")
def test_prometheus_takes_the_rules_and_they_fire_when_they_should() -> None:
    subprocess.run(["promtool", "check", "rules", RULES], check=True)
    trial = "tillbridge.rules.test.yml"
    subprocess.run(["promtool", "test", "rules", trial], check=True, cwd=RULES.parent)


def test_the_trial_of_the_rules_names_codes_and_alerts_that_exist() -> None:
    trial = (RULES.with_name("tillbridge.rules.test.yml")).read_text("utf-8")
    alerts = {rule["alert"] for rule in rules()}
    assert set(re.findall(r"alertname: (\w+)", trial)) <= alerts
    assert set(re.findall(r'code="([\w.]+)"', trial)) <= PROBLEMS.keys()


def test_the_role_writes_a_configuration_without_fault(tmp_path: Path) -> None:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROLE / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        autoescape=False,
    )
    environment.filters["to_json"] = json.dumps
    values = {
        **yaml.safe_load((ROLE / "defaults/main.yml").read_text("utf-8")),
        "ansible_managed": "Ansible",
        "inventory_hostname": "corner",
        "tillbridge_service_url": "https://ordering.example.com/v2",
        "tillbridge_client_id": 'app "1"',
        "tillbridge_location_id": "loc-1",
        "tillbridge_public_url": "https://corner.example.com",
        "tillbridge_fleet_url": "https://reports.example.com/bridges",
    }
    written = tmp_path / "bridge.toml"
    written.write_text(environment.get_template("bridge.toml.j2").render(values), encoding="utf-8")
    told = tomllib.loads(written.read_text(encoding="utf-8"))
    assert told["service"]["client_id"] == 'app "1"'
    settings = load(written).settings
    assert settings.fleet.called == "corner"
    folders = environment.get_template("folders.conf.j2").render(values)
    assert "ReadWritePaths=-/srv/pos\n" in folders


def test_the_role_uses_what_is_built_in_and_hides_the_secret() -> None:
    tasks = yaml.safe_load((ROLE / "tasks/main.yml").read_text("utf-8"))
    handlers = yaml.safe_load((ROLE / "handlers/main.yml").read_text("utf-8"))
    known = {handler["name"] for handler in handlers}
    for task in tasks:
        modules = [key for key in task if key.startswith("ansible.builtin.")]
        assert len(modules) == 1, task["name"]
        assert task.get("notify") in known | {None}
        if "tillbridge_client_secret }}" in str(task):
            assert task["no_log"] is True


def test_the_role_checks_a_configuration_where_its_secrets_are_found() -> None:
    """In a temporary folder there are no credentials and no files of hours: it was never right."""
    tasks = yaml.safe_load((ROLE / "tasks/main.yml").read_text("utf-8"))
    assert not [task["name"] for task in tasks if "validate" in str(task)]
    (checked,) = [
        place for place, task in enumerate(tasks) if "config check" in str(task.get(COMMAND))
    ]
    (put,) = [place for place, task in enumerate(tasks) if _dest(task) == CONFIGURATION]
    assert checked < put
    assert tasks[put][COPY]["src"] in tasks[checked][COMMAND]
    assert Path(tasks[put][COPY]["src"]).parent == Path(CONFIGURATION).parent


def test_the_role_can_be_run_again_after_a_run_that_failed() -> None:
    """What the package manager is asked for hangs on no earlier step of the same run."""
    tasks = yaml.safe_load((ROLE / "tasks/main.yml").read_text("utf-8"))
    (installs,) = [task for task in tasks if "ansible.builtin.apt" in task]
    assert "when" not in installs
    made = [
        task["ansible.builtin.file"]["path"] for task in tasks if "ansible.builtin.file" in task
    ]
    here = [_dest(task) for task in tasks if task.get("delegate_to") and COPY in task]
    assert [str(Path(dest).parent) for dest in here] == made[-1:], "copy makes no folder"


def _dest(task: dict[str, Any]) -> str:
    return str(task.get(COPY, {}).get("dest", ""))
