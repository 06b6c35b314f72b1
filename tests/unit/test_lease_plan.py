"""Which stores bridges take and give back, and for how long one may act."""

from hypothesis import given
from hypothesis import strategies as st

from tillbridge.daemon.leases import (
    DEAD_AFTER_MS,
    MAY_ACT_S,
    Member,
    Plan,
    Right,
    plan,
)
from tillbridge.ledger.models import Lease

KEYS = [f"s{number:02}" for number in range(12)]
keys = st.frozensets(st.sampled_from(KEYS))
names = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5, unique=True)


def lease(store: str, holder: str, pinned: str = "") -> Lease:
    return Lease(store=store, holder=holder, since=0, pinned=pinned)


def members_of(names: list[str], serves: frozenset[str] = frozenset(KEYS)) -> list[Member]:
    return [Member(name, f"run-{name}", serves) for name in names]


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Member], list[Lease]]:
    """Bridges that can serve some of the stores, and leases of theirs, of the dead, of nobody."""
    members = [Member(name, f"run-{name}", draw(keys)) for name in draw(names)]
    holders = st.sampled_from(["", "gone", *(each.holder for each in members)])
    pins = st.sampled_from(["", "", *(each.name for each in members)])
    return members, [lease(key, draw(holders), draw(pins)) for key in sorted(draw(keys))]


def apply(leases: list[Lease], holder: str, planned: Plan, alive: set[str]) -> list[Lease]:
    """What the database makes of a plan: only what nobody has can be taken."""
    after = []
    for each in leases:
        if each.store in planned.give and each.holder == holder:
            after.append(lease(each.store, "", each.pinned))
        elif each.store in planned.take and each.holder not in alive:
            after.append(lease(each.store, holder, each.pinned))
        else:
            after.append(each)
    return after


def settled(members: list[Member], leases: list[Lease]) -> list[Lease]:
    """Let the bridges plan in turn until none of them changes anything; each has its turn."""
    alive = {each.holder for each in members}
    for _turn in range(20 * len(KEYS)):
        before = leases
        for me in members:
            leases = apply(leases, me.holder, plan(me, members, leases), alive)
        if leases == before:
            return leases
    raise AssertionError("they never come to rest")


@given(situations())
def test_no_bridge_takes_what_another_one_has_or_what_it_may_not_serve(
    situation: tuple[list[Member], list[Lease]],
) -> None:
    members, leases = situation
    alive = {each.holder for each in members}
    known = {each.store: each for each in leases}
    taken: list[str] = []
    for me in members:
        planned = plan(me, members, leases)
        for key in planned.take:
            assert known[key].holder not in alive
            assert key in me.serves
            assert known[key].pinned in {"", me.name}
        assert all(known[key].holder == me.holder for key in planned.give)
        taken += planned.take
    assert len(taken) == len(set(taken)), "from one state no two of them take the same"


@given(situations())
def test_in_the_end_every_store_that_can_be_served_is(
    situation: tuple[list[Member], list[Lease]],
) -> None:
    members, leases = situation
    alive = {each.holder: each for each in members}
    for each in settled(members, leases):
        able = [m for m in members if each.store in m.serves and each.pinned in {"", m.name}]
        if able:
            assert alive[each.holder] in able
        else:
            assert each.holder not in alive


@given(names, st.lists(st.sampled_from(["", "gone", "run-a", "run-b"]), min_size=12, max_size=12))
def test_bridges_that_can_serve_everything_share_evenly(
    names: list[str], holders: list[str]
) -> None:
    members = members_of(names)
    leases = [lease(key, holder) for key, holder in zip(KEYS, holders, strict=True)]
    after = settled(members, leases)
    loads = [sum(each.holder == m.holder for each in after) for m in members]
    assert sum(loads) == len(KEYS)
    assert max(loads) - min(loads) <= 1


@given(names, st.integers(0, 11))
def test_a_pinned_store_goes_to_its_bridge_or_to_nobody(names: list[str], number: int) -> None:
    members = members_of(names)
    leases = [lease(key, "gone", "a" if key == KEYS[number] else "") for key in KEYS]
    after = {each.store: each.holder for each in settled(members, leases)}
    assert after[KEYS[number]] == ("run-a" if "a" in names else "gone")


def test_what_is_evenly_spread_stays_where_it_is() -> None:
    members = members_of(["a", "b"])
    leases = [lease("s00", "run-a"), lease("s01", "run-b"), lease("s02", "run-a")]
    assert [plan(me, members, leases) for me in members] == [Plan(), Plan()]


def test_surplus_is_given_back_one_at_a_time() -> None:
    members = members_of(["a", "b"])
    leases = [lease(key, "run-a") for key in KEYS]
    assert plan(members[0], members, leases) == Plan(give=(KEYS[0],))
    assert plan(members[1], members, leases) == Plan()


times = st.floats(-1e6, 1e6)


@given(renewed_at=times, now=times, key=st.sampled_from(KEYS), held=keys)
def test_a_bridge_acts_only_for_what_it_has_and_only_for_a_while(
    renewed_at: float, now: float, key: str, held: frozenset[str]
) -> None:
    right = Right(held, renewed_at)
    assert right.allows(key, now) is (key in held and 0 <= now - renewed_at < MAY_ACT_S)


def test_nobody_is_declared_dead_while_it_may_still_act() -> None:
    assert DEAD_AFTER_MS > MAY_ACT_S * 1000
    assert not Right().allows("s00", 0.0)
