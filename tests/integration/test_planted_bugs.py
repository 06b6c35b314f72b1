"""Bugs that a vendor could write, planted one by one: each is found, and named with its line."""

import importlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.support.adapter_command import tillbridge
from tillbridge.adapter.conformance import Outcome, Rig, run_suite
from tillbridge.adapter.conformance.reading import time_zone_of_kathmandu
from tillbridge.core.errors import ConfigError
from tillbridge.pos.kit import find_kit
from tillbridge.pos.scaffold import make_package
from tillbridge.pos.verdict import check_kit

_NAME = "planted"
_PRICE = 'to_minor(row["price"], self._currency)'
_PRICED = "            *self._priced(row),\n            description"
_VARIANT = "api.Variant(*self._priced(each))"
_PRODUCTS = 'read("GET /menu, products", menu["products"], self._item)'
_FOUND = "return api.written_once(partial(self.find_ticket, key), partial(self._send, order, key))"
_POSTED = 'made = self._till.post("/tickets", self._ticket(order, key))'
_UNTIL = "until=from_iso(until) if until else None"


@dataclass(frozen=True, slots=True)
class Bug:
    """`old` of the right adapter is replaced by `new`; `check` must fail at the line with `at`."""

    name: str
    old: str
    new: str
    check: str
    at: str
    says: str


def _items_price(new: str) -> str:
    made = f'str(row["id"]),\n            row["name"],\n            {new}'
    return _PRICED.replace("*self._priced(row)", made)


BUGS = (
    Bug(
        "menu price in major units",
        _PRICED,
        _items_price('int(row["price"])'),
        "reads",
        "def read_catalogue",
        "The till sells sku-1 'Dish 1' at 525; the adapter reads sku-1 'Dish 1' at 5.",
    ),
    Bug(
        "menu price x100",
        _PRICED,
        _items_price('to_minor(row["price"], "EUR")'),
        "no_decimals",
        "def read_catalogue",
        "'Dish 2' at 1; the adapter reads sku-2 'Dish 2' at 100",
    ),
    Bug(
        "price by binary fractions",
        _PRICED,
        _items_price('int(float(row["price"]) * 100)'),
        "rounding",
        "def read_catalogue",
        "'Dish 8' at 113; the adapter reads sku-8 'Dish 8' at 112",
    ),
    Bug(
        "price of the type float",
        _PRICED,
        _items_price('float(to_minor(row["price"], self._currency))'),
        "reads",
        "def read_catalogue",
        "at 525.0 (a float)",
    ),
    Bug(
        "variant price in major units",
        _VARIANT,
        'api.Variant(str(each["id"]), each["name"], int(each["price"]))',
        "variants",
        "def read_catalogue",
        "sku-pizza-s 'Small' at 950, sku-pizza-l 'Large' at 1235); the adapter reads",
    ),
    Bug(
        "wrong encoding",
        f'row["name"], {_PRICE}',
        f'row["name"].encode().decode("latin-1"), {_PRICE}',
        "unicode",
        "def read_catalogue",
        "CrÃ¨me",
    ),
    Bug(
        "row number as id",
        f"{_PRODUCTS},",
        '[__import__("dataclasses").replace(each, external_id=str(number))'
        f" for number, each in enumerate({_PRODUCTS}, 1)],",
        "identity",
        "def read_catalogue",
        "Exported again in another order, the id 1 is another item: Dish 1, then Dish 6.",
    ),
    Bug(
        "sold-out items left out of the menu",
        f"{_PRODUCTS},",
        f"[each for each in {_PRODUCTS}"
        " if each.external_id not in self.read_availability().items],",
        "sold_out",
        "def read_catalogue",
        "The item sku-2 is sold out, and is missing from the menu",
    ),
    Bug(
        "until without a zone",
        _UNTIL,
        "until=None if not until else"
        " int(__import__('datetime').datetime.fromisoformat(until[:19]).timestamp() * 1000)",
        "sold_out_until",
        "def read_availability",
        "A time without a zone was taken for this machine's.",
    ),
    Bug(
        "until in seconds",
        _UNTIL,
        "until=from_iso(until) // 1000 if until else None",
        "sold_out_until",
        "def read_availability",
        "It is in seconds.",
    ),
    Bug(
        "total x100",
        "**{name: major(order.payload.get(name), self._currency) for name in _AMOUNTS},",
        "**{name: order.payload.get(name) for name in _AMOUNTS},",
        "content",
        "def write_ticket",
        "total: ordered",
    ),
    Bug(
        "quantity always 1",
        '"quantity": thing.quantity,',
        '"quantity": 1,',
        "content",
        "def write_ticket",
        "line 2 ('Борщ 寿司', sku-soup): quantity: ordered 3, on the ticket 1",
    ),
    Bug(
        "variant ignored",
        '"size": line.variant_external_id,',
        '"size": None,',
        "content",
        "def write_ticket",
        "variant: ordered sku-pizza-l, on the ticket sku-pizza",
    ),
    Bug(
        "add-ons dropped",
        '"extras": [self._ordered(each) for each in line.options],',
        '"extras": [],',
        "content",
        "def write_ticket",
        "options: ordered 1 x add-cheese, 2 x add-olives, on the ticket none",
    ),
    Bug(
        "note dropped",
        '"note": order.special_instructions,',
        '"note": "",',
        "content",
        "def write_ticket",
        "note: ordered 'Ring twice: 2nd floor, «Müller», no onions, allergy!', on the ticket ''",
    ),
    Bug(
        "order type always delivery",
        '"type": order.order_type,',
        '"type": "delivery",',
        "content",
        "def write_ticket",
        "order_type: ordered 'pickup', on the ticket 'delivery'",
    ),
    Bug(
        "tax dropped",
        "for name in _AMOUNTS},",
        'for name in _AMOUNTS},\n            "tax": None,',
        "content",
        "def write_ticket",
        "The tickets lack: tax.",
    ),
    Bug(
        "API key in the state of the till",
        'name="Planted"',
        'name=f"The till with {key}"',
        "offline",
        "def health",
        "says in Health.detail the secret in the option api_key",
    ),
    Bug(
        "API key printed",
        "        self._currency = context.currency\n",
        '        self._currency = context.currency\n        print("connecting with", key)\n',
        "reads",
        "print(",
        "prints the secret in the option api_key",
    ),
    Bug(
        "reference made up each time",
        '"reference": key,',
        '"reference": __import__("uuid").uuid4().hex,',
        "same_order_twice",
        "def write_ticket",
        "After writing it twice the till has no tickets under ord_twice_1 and 1 under ",
    ),
    Bug(
        "written without looking",
        _FOUND,
        'key += "" if self.find_ticket(key) is None else "-2"\n'
        "        return self._send(order, key)",
        "same_order_twice",
        "def write_ticket",
        "has 1 ticket under ord_twice_1 and 1 under ord_twice_1-2.",
    ),
    Bug(
        "key cut",
        '"reference": key,',
        '"reference": key[:8],',
        "same_order_twice",
        _POSTED,
        "raised HttpRefused while the till was there",
    ),
    Bug(
        "find_ticket is blind",
        'return api.Ticket(str(found[0]["number"])) if found else None',
        "return None",
        "same_order_twice",
        _POSTED,
        "raised HttpRefused while the till was there",
    ),
    Bug(
        "time-out as offline",
        "        " + _POSTED,
        "        try:\n            " + _POSTED + "\n"
        "        except api.TicketOutcomeUnknown as lost:\n"
        '            raise api.PosOffline("no answer") from lost',
        "lost_answer",
        'raise api.PosOffline("no answer")',
        "The till has the order, and the adapter says that it was offline",
    ),
    Bug(
        "time-out as success",
        "        " + _POSTED,
        "        try:\n            " + _POSTED + "\n"
        "        except api.TicketOutcomeUnknown:\n"
        '            return api.Ticket("sent")',
        "slow",
        "def write_ticket",
        "The till has not taken the order, and write_ticket gives Ticket(reference='sent').",
    ),
    Bug(
        "cancels again and again",
        'self._till.post(f"/tickets/{quote(found.reference)}/cancel", {"reason": reason})',
        'self._till.post(f"/tickets/{quote(found.reference)}/cancel", {"reason": reason})\n'
        '            if getattr(self, "_off", None) == key:\n'
        '                raise ValueError("cancelled already")\n'
        "            self._off = key",
        "cancel",
        "raise ValueError",
        "in cancel_ticket: ValueError: cancelled already",
    ),
    Bug(
        "blocks for ever",
        'return self._till.health("/status")',
        'return __import__("time").sleep(7) or self._till.health("/status")',
        "probe",
        "def health",
        "health had not come back after 5 seconds.",
    ),
    Bug(
        "health raises",
        'return self._till.health("/status")',
        'self._till.get("/status")\n        return api.Health(online=True)',
        "offline",
        'self._till.get("/status")',
        "The till is away, and health raises PosOffline",
    ),
    Bug(
        "update_handled does nothing",
        'self._till.delete(f"/events/{quote(update.key)}")',
        "pass",
        "news",
        "def update_handled",
        "News that was handled is told again",
    ),
    Bug(
        "a field by a wrong name",
        f'row["name"], {_PRICE}',
        f'row["nmae"], {_PRICE}',
        "identity",
        'row["nmae"]',
        "in _priced: A good row is called bad: GET /menu, products 1: It has no 'nmae'.",
    ),
    Bug(
        "the first page of a list alone",
        f"{_PRODUCTS},",
        f"{_PRODUCTS}[:500],",
        "large_menu",
        "def read_catalogue",
        "The till sells 5000 items, the adapter reads 500.",
    ),
    Bug(
        "423 not known",
        "        " + _POSTED,
        "        try:\n            " + _POSTED + "\n"
        "        except api.StoreClosed as refused:\n"
        "            raise api.PosFailure(refused.message) from refused",
        "closed",
        "raise api.PosFailure(refused.message)",
        "It is refused with PosFailure",
    ),
)


@pytest.fixture
def plant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], type[Rig]]]:
    """Return what makes the adapter with a text replaced, and imports its rig."""
    package = make_package(_NAME, tmp_path, kind="http").folder
    monkeypatch.syspath_prepend(package / "src")
    code = package / f"src/tillbridge_{_NAME}/adapter.py"

    def planted(old: str, new: str) -> type[Rig]:
        source = code.read_text("utf-8")
        assert source.count(old) == 1, f"the template has changed: {old}"
        code.write_text(source.replace(old, new), "utf-8")
        rig: type[Rig] = importlib.import_module(f"tillbridge_{_NAME}.rig").RIG
        rig.patience_s = 5.0
        return rig

    yield planted
    for name in [each for each in sys.modules if each.startswith(f"tillbridge_{_NAME}")]:
        del sys.modules[name]


def line_with(rig: type[Rig], text: str) -> str:
    """Return the place of a text in the adapter, as the kit names it."""
    source = Path(sys.modules[rig.adapter.open.__module__].__file__ or "")
    lines = source.read_text("utf-8").splitlines()
    return f"adapter.py:{next(n for n, line in enumerate(lines, 1) if text in line)}"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_and_named(bug: Bug, plant: Callable[[str, str], type[Rig]]) -> None:
    rig = plant(bug.old, bug.new)
    (result,) = run_suite(rig, only=[bug.check]).results
    assert result.outcome is Outcome.FAILED, result.text
    assert bug.says in result.text
    assert ("pages" in result.fix) is ("a list" in bug.name)
    place = line_with(rig, bug.at)
    assert place in result.text
    assert "key-of-the-till" not in result.text + result.fix


def test_a_plain_bug_is_named_with_its_line_and_its_way(
    plant: Callable[[str, str], type[Rig]],
) -> None:
    rig = plant('menu = self._till.get("/menu")', 'menu = self._till.get("/menu")["titel"]')
    (result,) = run_suite(rig, only=["reads"]).results
    place = line_with(rig, '["titel"]')
    assert result.text == f"{place} in read_catalogue: KeyError: 'titel'"
    assert result.fix.startswith(f"Mend adapter.py, line {place.partition(':')[2]}.")
    assert (result.place, "KeyError: 'titel'" in result.traceback) == (place, True)


def test_a_bug_of_the_rig_is_said_to_be_the_rigs(
    plant: Callable[[str, str], type[Rig]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = plant("X-Api-Key", "X-API-KEY")
    monkeypatch.setattr(rig, "reorder", lambda self: self._menu["no such thing"])
    monkeypatch.setattr(rig, "sell_out", lambda self, key: self._product(key))
    results = run_suite(rig, only=["sold_out"]).results
    assert "rig.py:" in results[0].text
    assert results[0].fix.startswith("This is the rig's fault, not the adapter's: mend rig.py")


def test_an_error_in_what_the_till_answers_is_the_rigs(
    plant: Callable[[str, str], type[Rig]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = plant("X-Api-Key", "X-API-KEY")
    monkeypatch.setattr(rig, "_take", lambda self, _ticket: self._menu["no such thing"])
    for result in run_suite(rig, only=["same_order_twice", "unknown_item", "slow"]).results:
        assert (result.outcome, result.place[:7]) == (Outcome.FAILED, "rig.py:"), result.text
        assert "in answer: KeyError: 'no such thing'" in result.text
        assert result.fix.startswith("This is the rig's fault, not the adapter's: mend rig.py")


def test_options_that_the_rig_does_not_know_are_named_once_and_show_no_value(
    plant: Callable[[str, str], type[Rig]], tmp_path: Path
) -> None:
    rig = plant("    api_key: Secret", "    token: Secret")
    code, out, err = tillbridge(
        "check", ".", "--only", "reads", "--only", "unicode", cwd=tmp_path / _NAME
    )
    assert (code, err) == (1, "")
    line = rig.options.__code__.co_firstlineno
    first, fix, second = out.splitlines()
    assert first.startswith(
        f"x reads what is sold: rig.py:{line} options: These are not the adapter's options: token:"
    )
    assert fix == "    Return in `options` of the rig what PlantedOptions has, by the same names."
    assert second == "x keeps names as they are: the same as under “reads what is sold”"
    assert "key-of-the-till" not in out


def test_what_the_adapter_may_raise_is_wrong_at_the_wrong_moment(
    plant: Callable[[str, str], type[Rig]],
) -> None:
    rig = plant('        off = self._till.get("/sold-out")', '        raise api.PosOffline("gone")')
    (result,) = run_suite(rig, only=["sold_out"]).results
    place = line_with(rig, "raise api.PosOffline")
    assert result.text == (
        f"{place} in read_availability: raised PosOffline while the till was there and could do"
        " it: gone"
    )


def test_what_cannot_be_loaded_is_named_with_its_line(
    plant: Callable[[str, str], type[Rig]],
) -> None:
    with pytest.raises(SyntaxError):
        plant("def health(self)", "def health(self")
    with pytest.raises(ConfigError, match=r"Correct line 4\d of .*adapter\.py\.") as caught:
        find_kit(f"tillbridge_{_NAME}:ADAPTER")
    assert "Reinstall it" not in caught.value.fix


def test_a_crash_while_trying_it_is_the_vendors(
    plant: Callable[[str, str], type[Rig]], tmp_path: Path
) -> None:
    plant("        return self._till.health", '        return {}["no"] or self._till.health')
    sample = 'url = "http://127.0.0.1:9"\napi_key = "key-of-the-till"\n'
    (tmp_path / "sample.toml").write_text(sample, "utf-8")
    code, _out, err = tillbridge("try", _NAME, "--sample", "sample.toml", "--once", cwd=tmp_path)
    assert (code, "report it" in err) == (1, False), err
    assert "adapter.py:45 in health: KeyError: 'no'" in err
    rig = plant('menu = self._till.get("/menu")', 'menu = {}["menu"]')
    code, _out, err = tillbridge(
        *("record", _NAME, "--sample", "sample.toml", "--out", "case"), cwd=tmp_path
    )
    assert (code, "report it" in err) == (1, False), err
    place = line_with(rig, '{}["menu"]')
    assert f"{place} in read_catalogue: KeyError: 'menu'" in err


def test_a_crash_in_a_process_of_its_own_is_told(plant: Callable[[str, str], type[Rig]]) -> None:
    rig = plant(_FOUND, '{}["no"]\n        ' + _FOUND)
    (result,) = run_suite(rig, only=["killed"]).results
    line = line_with(rig, '{}["no"]').replace(":", ", line ")
    assert (
        result.text == f"The adapter's code fails in a process of its own: KeyError: 'no' ({line})"
    )


def test_a_crash_while_replaying_a_case_is_the_vendors(
    plant: Callable[[str, str], type[Rig]], tmp_path: Path
) -> None:
    rig = plant('menu = self._till.get("/menu")', 'menu = {}["menu"]')
    for more in ((), ("--accept",)):
        code, _out, err = tillbridge("replay", f"{_NAME}/tests/cases/plain", *more, cwd=tmp_path)
        assert (code, "report it" in err) == (1, False), err
        place = line_with(rig, '{}["menu"]')
        assert f"{place} in read_catalogue: KeyError: 'menu'" in err


@pytest.mark.parametrize(
    ("old", "new", "at", "way"),
    [
        (
            f'row["name"], {_PRICE}',
            f'row["nmae"], {_PRICE}',
            "nmae",
            "in _priced",
        ),
        (
            '        off = self._till.get("/sold-out")',
            '        off = self._till.get("/soldout")',
            "/soldout",
            "in read_availability",
        ),
        (
            "api.Availability(available=False, until=",
            "api.Availability(available=True, until=",
            "def read_availability",
            "read_availability",
        ),
    ],
)
def test_what_a_case_is_read_differently_by_is_named_with_its_line(
    old: str, new: str, at: str, way: str, plant: Callable[[str, str], type[Rig]], tmp_path: Path
) -> None:
    rig = plant(old, new)
    place = f"{line_with(rig, at)} {way}"
    code, out, err = tillbridge("replay", f"{_NAME}/tests/cases/plain", cwd=tmp_path)
    assert (code, err, out.splitlines()[-1]) == (1, "", f"Where: {place}")
    code, out, _err = tillbridge("check", ".", "--only", "cases", cwd=tmp_path / _NAME)
    assert f"{place}: plain is read differently:" in out


def test_an_error_of_the_adapter_is_not_taken_for_one_of_the_case(
    plant: Callable[[str, str], type[Rig]], tmp_path: Path
) -> None:
    rig = plant('off = self._till.get("/sold-out")', 'off = [int("no number")]')
    place = f"{line_with(rig, 'no number')} in read_availability: ValueError: invalid literal"
    code, out, _err = tillbridge("check", ".", "--only", "cases", cwd=tmp_path / _NAME)
    assert code == 1
    assert place in out
    assert "Correct the case" not in out


def test_a_crash_of_a_program_while_replaying_a_case_is_named_with_its_line(tmp_path: Path) -> None:
    folder = make_package("mytill", tmp_path, kind="process").folder
    program, case = folder / "mytill.py", folder / "tests/cases/plain"
    right = program.read_text("utf-8")
    text = right.replace('self.json("tables.json", [])', 'self.jsn("tables.json", [])')
    program.write_text(text, "utf-8")
    at = next(n for n, line in enumerate(text.splitlines(), 1) if "self.jsn(" in line)
    before = (case / "expected.json").read_bytes()
    code, out, _err = tillbridge("replay", str(case), cwd=tmp_path)
    assert code == 1
    assert f"\nWhere: mytill.py:{at}\nThe program wrote last:\n" in out
    assert "AttributeError: 'Mytill' object has no attribute 'jsn'" in out
    code, _out, err = tillbridge("replay", str(case), "--accept", cwd=tmp_path)
    assert code == 1
    assert f"Correct mytill.py, line {at}" in err
    assert (case / "expected.json").read_bytes() == before, "a crash was accepted"
    (result,) = check_kit(find_kit(str(folder)), only=["cases"]).report.results
    assert (result.outcome, result.place) == (Outcome.FAILED, f"mytill.py:{at}")


def test_a_program_knows_the_time_zone_in_which_times_are_checked() -> None:
    with time_zone_of_kathmandu():  # by a name: Node and Java know no rules such as NPT-5:45
        assert datetime(2026, 1, 1, tzinfo=ZoneInfo(os.environ["TZ"])).utcoffset() == timedelta(
            hours=5, minutes=45
        )
        assert time.timezone == -(5 * 60 + 45) * 60


def test_a_case_is_not_read_as_expected_with_a_time_that_is_none(
    plant: Callable[[str, str], type[Rig]], tmp_path: Path
) -> None:
    plant(_UNTIL, "until=__import__('datetime').datetime(2026, 1, 2)")
    code, out, _err = tillbridge("check", ".", "--only", "cases", cwd=tmp_path / _NAME)
    assert code == 1
    assert "reads datetime.datetime(2026, 1, 2, 0, 0), a datetime: times are whole milli" in out


def test_a_secret_that_a_program_writes_is_found_and_not_shown(tmp_path: Path) -> None:
    folder = make_package("mytill", tmp_path, kind="process").folder
    rig = folder / "rig.py"
    kept = '"api_key": "key-of-the-till", "folder": str(self.folder)'
    rig.write_text(rig.read_text("utf-8").replace('"folder": str(self.folder)', kept), "utf-8")
    only = ["declares", "reads"]
    assert check_kit(find_kit(str(folder)), only=only).passed
    program = folder / "mytill.py"
    told = '    till = Mytill(Path(hello["base_dir"])'
    shown = '    sys.stderr.write(hello["options"].get("api_key", "") + "\\n")'
    program.write_text(program.read_text("utf-8").replace(told, f"{shown}\n{told}"), "utf-8")
    results = check_kit(find_kit(str(folder)), only=["reads", "content"]).report.results
    assert [each.outcome for each in results] == [Outcome.FAILED] * 2
    for each in results:
        assert "the adapter writes to stderr the secret in the option api_key" in each.text
        at = next(n for n, line in enumerate(program.read_text().splitlines(), 1) if shown in line)
        assert re.search(rf"it writes there in .*mytill\.py:{at}\b", each.text)


def test_a_case_whose_options_do_not_fit_is_told_in_words(tmp_path: Path) -> None:
    kit = find_kit(str(make_package("no_case", tmp_path, kind="http").folder))
    case = tmp_path / "no_case/tests/cases/plain/case.toml"
    case.write_text(case.read_text("utf-8").replace("api_key", "apikey"), "utf-8")
    (result,) = check_kit(kit, only=["cases"]).report.results
    assert "The options in case.toml do not fit the adapter: api_key: Field required" in result.text
    assert "errors.pydantic.dev" not in result.text


def test_the_right_adapter_passes(tmp_path: Path) -> None:
    verdict = check_kit(find_kit(str(make_package("right_till", tmp_path, kind="http").folder)))
    assert [each.text for each in verdict.failures] == []
    assert (verdict.broken, verdict.level) == ((), verdict.quality and verdict.quality.level)


@pytest.mark.parametrize(
    ("name", "new", "says"),
    [
        ("crashing", "no = [][1]", "IndexError: list index out of range"),
        ("telling", 'print("key-of-the-till-for-tests")', "prints the secret in the option"),
    ],
)
def test_no_exemption_excuses_a_crash_or_a_secret_shown(
    name: str, new: str, says: str, tmp_path: Path
) -> None:
    folder = make_package(name, tmp_path, kind="http").folder
    code = folder / f"src/tillbridge_{name}/adapter.py"
    source = code.read_text("utf-8")
    opened = "    def read_updates(self)"
    assert source.count(opened) == 1, "the template has changed"
    head, _, rest = source.partition(opened)
    signature, _, body = rest.partition("\n")
    planted = f"{head}{opened}{signature}\n        {new}\n{body}"
    code.write_text(planted, "utf-8")
    quality = folder / f"src/tillbridge_{name}/quality.toml"
    rules = quality.read_text("utf-8")
    exempt = re.sub(r"(?m)^(news +=) .*$", r'\1 { exempt = "our till keeps no list of it" }', rules)
    quality.write_text(exempt, "utf-8")
    verdict = check_kit(find_kit(str(folder)), only=["news"])
    assert [each.check for each in verdict.failures] == ["news"]
    (result,) = verdict.report.results
    assert says in result.text
    assert (verdict.passed, verdict.shown_outcome(result)) == (False, "failed")
    assert "that covers no crash and no secret shown" in verdict.broken[0]


@dataclass(frozen=True, slots=True)
class Damage:
    """`old` in `file` is replaced by `new`; `check` must say `says`, at the line with `new`."""

    file: str
    old: str
    new: str
    check: str
    says: str
    place: str = ""


@pytest.mark.parametrize(
    "damage",
    [
        Damage(
            "mytill.py", "self.put(self.path(key),", "self.putt(self.path(key),", "cancel", "Att"
        ),
        Damage("mytill.py", "def health(self)", "def health(self", "probe", "SyntaxError"),
        Damage(
            "mytill.py",
            "self.put(self.path(key),",
            "os._exit(3); (",
            "cancel",
            "exit code 3",
            "mytill.py:1",
        ),
        Damage(
            "rig.py", 'news = {"order_id"', 'news = nothing or {"order_id"', "news", "NameError"
        ),
        Damage("rig.py", "def tickets(self)", "def tickets(self", "content", "SyntaxError"),
        Damage("process.toml", "rig.py", "rigg.py", "reads", "rigg.py", "process.toml"),
        Damage("process.toml", "mytill.py", "mytil.py", "reads", "mytil.py", "process.toml"),
        Damage(
            "process.toml", '"python3", "m', '"pythonn", "m', "reads", "pythonn", "process.toml"
        ),
    ],
    ids=lambda damage: f"{damage.file}: {damage.new}",
)
def test_a_bug_of_a_program_or_of_its_rig_is_named_with_its_line(
    damage: Damage, tmp_path: Path
) -> None:
    folder = make_package("mytill", tmp_path, kind="process").folder
    path = folder / damage.file
    text = path.read_text("utf-8").replace(damage.old, damage.new)
    path.write_text(text, "utf-8")
    (result,) = check_kit(find_kit(str(folder)), only=[damage.check]).report.results
    line = next(n for n, each in enumerate(text.splitlines(), 1) if damage.new in each)
    assert result.outcome is Outcome.FAILED
    assert damage.says in result.text
    assert result.text.startswith(f"{damage.place or f'{damage.file}:{line}'}"), result.text
