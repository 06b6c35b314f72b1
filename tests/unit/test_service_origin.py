"""A token never leaves the service's origin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tillbridge.core.errors import Refused
from tillbridge.service.transport import Origin

ORIGIN = Origin("https://api.example.com/v2")
JOB = "https://api.example.com/v2/pos/stores/st_1/menus/jobs/job_1"


@pytest.mark.parametrize(
    "told",
    [
        "/pos/stores/st_1/menus/jobs/job_1",
        "/v2/pos/stores/st_1/menus/jobs/job_1",
        "https://api.example.com/v2/pos/stores/st_1/menus/jobs/job_1",
        "https://api.example.com:443/v2/pos/stores/st_1/menus/jobs/job_1",
        "https://API.example.com/v2/pos/stores/st_1/menus/jobs/job_1#top",
    ],
)
def test_a_poll_url_of_the_service_is_taken(told: str) -> None:
    assert ORIGIN.poll_url(told) == JOB


def test_a_poll_url_keeps_its_query() -> None:
    assert ORIGIN.poll_url("/pos/x?a=b%20c") == "https://api.example.com/v2/pos/x?a=b%20c"


@pytest.mark.parametrize(
    "told",
    [
        "",
        "pos/stores/x",
        "//evil.example/pos/stores/x",
        "///evil.example/pos/x",
        "/\\evil.example/pos/x",
        "\\\\evil.example\\pos",
        "https://evil.example/v2/pos/stores/x",
        "http://api.example.com/v2/pos/stores/x",
        "https://api.example.com:8443/v2/pos/stores/x",
        "https://api.example.com@evil.example/v2/pos/x",
        "https://user@api.example.com/v2/pos/x",
        "https://user:word@api.example.com/v2/pos/x",
        "https://api.example.com.evil.example/v2/pos/x",
        "https:/v2/pos/x",
        "https:evil.example/pos/x",
        "javascript:alert(1)",
        "/pos/../../oauth2/token",
        "/pos/%2e%2e/%2E%2E/admin",
        "/pos/%252e%252e/admin",
        "/pos/x%2f..%2f..%2fadmin",
        "/pos/%5c..%5cadmin",
        "/pos//evil",
        "/oauth2/authorize",
        "/v2/oauth2/authorize",
        "/posh/x",
        "/pos/x y",
        "/pos/x\r\nHost: evil",
        "/pos/\u2028",
        "https://[::1/pos",
        "https://api.example.com:99999/v2/pos/x",
        "/pos/" + "x" * 5000,
    ],
)
def test_a_poll_url_that_leaves_the_service_is_refused(told: str) -> None:
    with pytest.raises(Refused) as refused:
        ORIGIN.poll_url(told)
    assert refused.value.code == "answer.foreign_url"
    assert "evil" not in str(refused.value)


@given(st.text() | st.from_regex(r"(https?:)?/{0,3}[\w.@:\\%-]{0,20}/pos/[\w./%\\-]{0,20}"))
def test_whatever_is_told_the_origin_stays(told: str) -> None:
    try:
        url = ORIGIN.poll_url(told)
    except Refused:
        return
    assert url.startswith("https://api.example.com/v2/pos/")
    assert url.startswith(f"{ORIGIN.root}/")


def test_ids_in_a_path_are_quoted() -> None:
    url = ORIGIN.url("pos/stores/{}/items/{}", "a/b?c#d", "é %")
    assert url == "https://api.example.com/v2/pos/stores/a%2Fb%3Fc%23d/items/%C3%A9%20%25"


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_an_id_that_would_climb_is_refused(segment: str) -> None:
    with pytest.raises(Refused):
        ORIGIN.url("pos/stores/{}", segment)


def test_more_ids_than_a_path_takes_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="takes 1 ids, not 2"):
        ORIGIN.url("pos/stores/{}/menus", "st_1", "item_1")
