"""Secrets are read where the configuration says, and never shown."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from tillbridge.cli.commands import load_file
from tillbridge.config.secrets import SecretSource, resolve_secret
from tillbridge.core.errors import ConfigError


def resolved(source: SecretStr | SecretSource, folder: Path) -> str:
    secret = resolve_secret(source, key="service.client_secret", base_dir=folder)
    return secret.get_secret_value()


def test_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\xef\xbb\xbfhush-hush\r\n")
    assert resolved(SecretSource(file=Path("secret")), tmp_path) == "hush-hush"


def test_an_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSH", "hush-hush")
    assert resolved(SecretSource(env="HUSH"), tmp_path) == "hush-hush"


def test_a_systemd_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "client_secret").write_text("hush-hush")
    assert resolved(SecretSource(credential="client_secret"), tmp_path) == "hush-hush"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SecretSource(file=Path("none")), "does not exist"),
        (SecretSource(file=Path("empty")), "is empty"),
        (SecretSource(file=Path("two")), "more than one word"),
        (SecretSource(file=Path("binary")), "not a text file"),
        (SecretSource(file=Path()), "cannot be read"),
        (SecretSource(env="NOT_SET_HERE"), "environment variable NOT_SET_HERE"),
        (SecretSource(credential="client_secret"), "no systemd credential"),
    ],
)
def test_a_secret_that_cannot_be_had_is_told_with_its_key_and_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: SecretSource, words: str
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "two").write_text("hush hush")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=words) as caught:
        resolved(source, tmp_path)
    assert caught.value.text.startswith("service.client_secret: ")
    assert caught.value.fix
    assert "hush" not in str(caught.value)


def test_an_empty_credential_is_told_with_the_place_that_systemd_takes_it_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit gives an empty one where the file is missing, so that the bridge can say this."""
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "client_secret").write_text("\n")
    with pytest.raises(ConfigError, match="is empty") as caught:
        resolved(SecretSource(credential="client_secret"), tmp_path)
    assert "LoadCredential=" in caught.value.fix


def test_a_command_reads_the_credentials_that_the_service_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "")  # so that it is put back after the test
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    sample = Path(__file__).resolve().parents[2] / "config" / "bridge.toml"
    text = sample.read_text("utf-8").replace(
        'client_secret = { file = "client_secret" }',
        'client_secret = { credential = "client_secret" }',
    )
    (tmp_path / "bridge.toml").write_text(text, "utf-8")
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "client_secret").write_text("hush-hush\n")
    loaded = load_file(tmp_path / "bridge.toml")
    assert loaded.client_secret().get_secret_value() == "hush-hush"
