"""What `tillbridge service` would do, as steps."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tillbridge.cli import service
from tillbridge.cli.service import (
    MARK,
    SYSTEM,
    Found,
    Key,
    Remove,
    Run,
    Step,
    Write,
    folders_drop_in,
    plan_install,
    plan_uninstall,
)
from tillbridge.core.errors import BridgeError, ConfigError

UNITS = {
    path.name: path.read_text("utf-8")
    for path in (Path(__file__).resolve().parents[2] / "systemd").iterdir()
}
FOUND = Found(
    program=Path("/opt/tillbridge/bin/tillbridge"),
    config=Path("/etc/tillbridge/bridge.toml"),
    data_dir=Path("/var/lib/tillbridge"),
    units=UNITS,
    writable=(Path("/srv/pos/orders"), Path("/srv/pos/updates")),
    readable=(Path("/srv/pos/export"),),
)


def written(steps: list[Step]) -> dict[Path, str]:
    return {step.path: step.text for step in steps if isinstance(step, Write)}


def commands(steps: list[Step]) -> list[str]:
    return [" ".join(step.command) for step in steps if isinstance(step, Run)]


def test_a_service_runs_the_program_that_installs_it() -> None:
    files = written(plan_install(FOUND, start=True))
    unit = files[SYSTEM / "tillbridge.service"]
    assert unit.startswith(MARK)
    assert (
        "ExecStart=/opt/tillbridge/bin/tillbridge --config /etc/tillbridge/bridge.toml run" in unit
    )
    assert SYSTEM / "tillbridge-backup.timer" in files
    assert not any("@" in path.name for path in files)


def test_the_folders_of_the_tills_are_opened_and_no_others() -> None:
    files = written(plan_install(FOUND, start=True))
    assert files[SYSTEM / "tillbridge.service.d" / "folders.conf"] == MARK + (
        "[Service]\nReadWritePaths=-/srv/pos/orders\nReadWritePaths=-/srv/pos/updates\n"
    )


def test_a_tills_folder_in_a_home_is_bound_into_homes_that_are_empty_else() -> None:
    found = replace(
        FOUND,
        writable=(Path("/home/pos/my orders"),),
        readable=(Path("/home/pos/100% export"),),
    )
    assert folders_drop_in(found).splitlines() == [
        "[Service]",
        "ProtectHome=tmpfs",
        r"BindPaths=-/home/pos/my\x20orders",
        r"BindReadOnlyPaths=-/home/pos/100%%\x20export",
    ]


def test_another_data_folder_is_opened_and_given_to_the_user() -> None:
    steps = plan_install(replace(FOUND, data_dir=Path("/srv/bridge")), start=True)
    assert "ReadWritePaths=-/srv/bridge" in folders_drop_in(
        replace(FOUND, data_dir=Path("/srv/bridge"))
    )
    assert "chown -R tillbridge:tillbridge /srv/bridge" in commands(steps)


def test_a_package_keeps_its_units_and_gets_the_drop_in_alone() -> None:
    found = replace(FOUND, packaged=True, has_user=True, program=Path("/usr/bin/tillbridge"))
    assert list(written(plan_install(found, start=True))) == [
        SYSTEM / "tillbridge.service.d" / "folders.conf"
    ]


def test_it_is_enabled_and_started_unless_it_shall_wait() -> None:
    assert commands(plan_install(FOUND, start=True))[-3:] == [
        "systemctl enable tillbridge.service",
        "systemctl restart tillbridge.service",
        "systemctl enable --now tillbridge-backup.timer",
    ]
    assert "systemctl enable tillbridge.service" in commands(plan_install(FOUND, start=False))


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, Key(Path("/etc/tillbridge/credentials/ledger_key"), None)),
        (
            {"key_beside": True, "has_vault": True},
            Key(
                Path("/etc/tillbridge/credentials/ledger_key"),
                Path("/var/lib/tillbridge/ledger.key"),
            ),
        ),
        ({"has_key": True, "has_vault": True}, None),
        ({"has_vault": True}, None),  # a new key would not open it
    ],
)
def test_the_ledgers_key_is_moved_and_never_replaced(
    state: dict[str, bool], expected: Key | None
) -> None:
    steps = plan_install(replace(FOUND, **state), start=True)  # type: ignore[arg-type]  # flags by name
    assert next((step for step in steps if isinstance(step, Key)), None) == expected


@pytest.mark.parametrize(
    "hidden",
    [
        {"program": Path("/home/anna/venv/bin/tillbridge")},
        {"config": Path("/root/bridge.toml")},
        {"data_dir": Path("/home/anna/data")},
        {"name": "second"},
    ],
)
def test_what_the_service_could_not_see_is_told_beforehand(hidden: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_install(replace(FOUND, **hidden), start=True)  # type: ignore[arg-type]  # as above
    assert caught.value.fix


def test_one_of_several_bridges_has_the_template() -> None:
    config = Path("/etc/tillbridge/bridges/second/bridge.toml")
    data = Path("/var/lib/tillbridge/bridges/second")
    steps = plan_install(replace(FOUND, name="second", config=config, data_dir=data), start=True)
    files = written(steps)
    assert SYSTEM / "tillbridge@.service" in files
    assert SYSTEM / "tillbridge@second.service.d" / "folders.conf" in files
    assert "systemctl restart tillbridge@second.service" in commands(steps)


def test_removing_stops_first_and_takes_what_was_written() -> None:
    ours = [SYSTEM / "tillbridge.service"]
    assert plan_uninstall("", ours) == [
        Run(("systemctl", "disable", "--now", "tillbridge.service", "tillbridge-backup.timer")),
        Remove(ours[0]),
        Run(("systemctl", "daemon-reload")),
    ]


def test_no_step_shows_a_key() -> None:
    steps = plan_install(replace(FOUND, key_beside=True), start=True)
    told = "\n".join(line for step in steps for line in service.lines_of(step))
    assert "move the database's key from /var/lib/tillbridge/ledger.key" in told
    assert "ExecStart=/opt/tillbridge/bin/tillbridge" in told


def test_a_key_is_moved_whole_and_an_existing_one_stays(tmp_path: Path) -> None:
    beside, path = tmp_path / "ledger.key", tmp_path / "ledger_key"
    beside.write_bytes(b"hush\n")
    service.do(Key(path, beside))
    assert path.read_bytes() == b"hush\n"
    assert not beside.exists()
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BridgeError, match="failed"):
        service.do(Key(path, None))
    assert path.read_bytes() == b"hush\n"


def test_files_are_written_and_taken_away_with_their_empty_folder(tmp_path: Path) -> None:
    path = tmp_path / "tillbridge.service.d" / "folders.conf"
    service.do(Write(path, MARK + "[Service]\n"))
    assert service._is_ours(path)
    service.do(Remove(path))
    assert not path.parent.exists()


def test_a_command_that_fails_is_told_with_what_it_said() -> None:
    with pytest.raises(BridgeError, match="No such file"):
        service.do(Run(("ls", "/there/is/no/such/folder")))
