"""What is answered on the page Set-up, and what it changes in the file."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tillbridge.config.writing import changed
from tillbridge.setup.draft import Draft, changes_of, draft_of, steps_changed, unwritten_of

DOCUMENT: dict[str, Any] = {
    "service": {"base_url": "https://a.example/v2", "client_id": "app_1", "timeout_s": 9},
    "receiver": {"listen": "127.0.0.1:1", "public_url": "https://b.example"},
    "stores": {
        "bar": {
            "location_id": "1",
            "currency": "EUR",
            "pos": {"adapter": "square", "export": "x.csv", "poll_s": 4},
            "orders": {"adapter": "folder", "orders_dir": "o", "retry_s": 1},
        }
    },
}


def test_a_draft_begins_with_what_the_file_says_and_then_changes_nothing() -> None:
    draft = draft_of(DOCUMENT)
    assert (draft.store, draft.base_url, draft.currency) == ("bar", "https://a.example/v2", "EUR")
    assert draft.pos == {"adapter": "square", "export": "x.csv"}
    assert draft.orders == {"adapter": "folder", "orders_dir": "o"}
    assert changes_of(draft, DOCUMENT) == {}


def test_another_adapter_takes_the_options_of_the_one_before_along() -> None:
    draft = draft_of(DOCUMENT).passed(
        "adapter", "ok", pos={"adapter": "folder", "menu": "m.csv"}, orders={}
    )
    new = changed(DOCUMENT, changes_of(draft, DOCUMENT))["stores"]["bar"]
    assert new["pos"] == {"adapter": "folder", "menu": "m.csv", "poll_s": 4}


def test_a_secret_that_was_given_is_in_the_vault_and_not_in_the_file() -> None:
    draft = draft_of({}).passed("app", "ok", client_id="app_2", client_secret={"vault": True})
    changes = changes_of(draft, {})
    assert changes["service", "client_secret"] == {"vault": True}
    stored = unwritten_of(draft, {"service": {"client_secret": "hush"}})
    assert "hush" not in str(stored)


@pytest.mark.parametrize(
    ("taken", "open_again"),
    [
        ("service", {"app", "sign_in", "store"}),
        ("app", {"sign_in", "store"}),
        ("sign_in", {"store"}),
        ("store", set()),
        ("menu", {"adapter"}),
        ("address", set()),
    ],
)
def test_what_depends_on_a_step_that_is_taken_anew_is_open_again(
    taken: str, open_again: set[str]
) -> None:
    steps = ("service", "app", "sign_in", "store", "menu", "adapter", "address")
    draft = Draft(found=dict.fromkeys(steps, "well"))
    again = draft.passed(taken, "anew")
    assert set(steps) - set(again.found) == open_again
    assert again.found[taken] == "anew"


def test_a_test_that_fails_leaves_what_was_typed_and_opens_the_step() -> None:
    draft = draft_of(DOCUMENT).passed("service", "well").passed("store", "well")
    again = draft.failed("service", base_url="https://other.example/v2")
    assert again.base_url == "https://other.example/v2"
    assert again.found == {}


def test_answers_are_stored_and_found_again_beside_the_same_file() -> None:
    draft = draft_of(DOCUMENT).passed("service", "It answers.", base_url="https://c.example/v2")
    stored = unwritten_of(draft, DOCUMENT)
    assert stored["answers"] == {"base_url": "https://c.example/v2"}
    assert draft_of(DOCUMENT, stored) == draft
    assert steps_changed(draft, DOCUMENT) == {"service"}


def test_what_somebody_edits_in_the_file_counts_and_the_rest_of_the_answers_stay() -> None:
    draft = draft_of({}).passed("service", "well", base_url="https://c.example/v2")
    draft = draft.passed("store", "well", store_id="st_1", location_id="1", currency="DOL")
    stored = unwritten_of(draft, {})
    edited = {"stores": {"main": {"currency": "USD"}}}
    again = draft_of(edited, stored)
    assert (again.currency, again.store_id) == ("USD", "st_1")
    assert ("stores", "main", "currency") not in changes_of(again, edited)
    assert changes_of(again, edited)["service", "base_url"] == "https://c.example/v2"
    assert set(again.found) == {"service"}  # the store is not tested as it is now


@pytest.mark.parametrize("kept", [None, [], "x", {"base_url": 3}, {"found": "yes"}])
def test_what_another_version_kept_is_forgotten(kept: object) -> None:
    assert draft_of(DOCUMENT, kept) == draft_of(DOCUMENT)


def test_the_sample_configuration_is_a_draft_too() -> None:
    sample = Path(__file__).parents[2] / "config/bridge.toml"
    document = tomllib.loads(sample.read_text("utf-8"))
    assert changes_of(draft_of(document), document) == {}


def test_the_first_menu_of_a_new_till_waits_for_a_person() -> None:
    draft = draft_of({}).passed("adapter", "ok", pos={"adapter": "folder", "menu": "m.csv"})
    new = changed({}, changes_of(draft, {}))
    assert new["stores"]["main"]["menu"] == {"approve_first": True}
    again = draft_of(new).passed("adapter", "ok", pos={"adapter": "folder", "menu": "n.csv"})
    assert not any("menu" in path[:3] for path in changes_of(again, new))
