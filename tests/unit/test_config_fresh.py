"""What `tillbridge run` does with a file in which nothing is set up yet."""

from pathlib import Path

import pytest

from tillbridge.config.loading import load_to_run
from tillbridge.core.errors import ConfigError


def _written(folder: Path, text: str) -> Path:
    path = folder / "bridge.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[bridge]\ndata_dir = "data"\n',
        "[stores]\n",
        '[service]\nbase_url = "https://x.example/v2"\n[receiver]\nlisten = "127.0.0.1:0"\n',
    ],
)
def test_a_file_without_stores_is_enough_for_the_page(tmp_path: Path, text: str) -> None:
    fresh = load_to_run(_written(tmp_path, text))
    assert not fresh.is_set_up
    assert fresh.data_dir.is_absolute()
    assert fresh.settings.status_page.listen == "127.0.0.1:8089"
    assert fresh.base_dir == tmp_path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[bridge]\ndata_dri = "data"\n', 'Did you mean "data_dir"'),
        ('[service]\nbase_url = "ftp://x"\n', "service.base_url"),
        ('[service]\nbase_urll = "https://x.example"\n', 'Did you mean "base_url"'),
        ('[status_page]\nlisten = "0.0.0.0:8089"\n', "has no password"),
        ("stores = 3\n", "must be a table"),
        ('[stores.main]\nlocation_id = "1"\n', "stores.main.currency is missing"),
        ('[communities.hall]\ncommunity_id = "com_1"\n', "service is missing"),
    ],
)
def test_what_is_wrong_in_it_is_told_all_the_same(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"bridge\.toml") as refused:
        load_to_run(_written(tmp_path, text))
    assert words in str(refused.value)


def test_a_whole_file_is_loaded_whole(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "config/bridge.toml"
    assert load_to_run(_written(tmp_path, sample.read_text())).is_set_up
