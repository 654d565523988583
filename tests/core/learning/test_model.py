"""What a learning group's next job asks for, sentence by sentence of what the queue promises."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.learning.figures import with_margin
from rota.core.learning.learned_view import describe, histogram
from rota.core.learning.model import FAILURE_COUNTS_FOR, KEPT_FAILURES, Model
from rota.core.learning.next_attempt_size import Decision, Override, after_failure, decide, round_mem, round_time
from rota.core.learning.observation import RESOURCES, Observation, Resource, at_most
from rota.core.learning.percentile import ERA, KEPT
from rota.plan.size import Floor, Size
from rota.units import MAX_SECONDS

M = 1 << 20
G = 1 << 30
MB = 10**6
HOUR = 3600.0


def success(
    mem: int = 0, *, at: float = 0.0, disk: int = 0, time_s: float = 10.0, size: int | None = None
) -> Observation:
    return Observation(at, mem, disk, time_s, input_bytes=size)


def lacked_memory(peak: int, asked: int = 0, *, size: int | None = None) -> Observation:
    return Observation(0.0, peak, 0, 10.0, "memory", size, asked)


def model_of(*seen: Observation) -> Model:
    model = Model()
    for one in seen:
        model.observe(one)
    return model


def mem(model: Model, *, asked: int = 0, size: int | None = None) -> float:
    recommended = model.recommend("mem", asked=asked, input_bytes=size)
    assert recommended is not None
    return recommended


# Upper bounds: peaks of memory that are not known, but were no more than this


def bounded(most: int, *, size: int | None = None) -> Observation:
    return Observation(0.0, at_most(most), 0, 10.0, input_bytes=size)


def test_an_upper_bound_of_memory_makes_a_job_ask_for_less_but_never_for_more() -> None:
    model = model_of(*[bounded(27 * MB)] * 5)
    assert mem(model, asked=G) == 127 * MB
    assert mem(model, asked=10 * MB) == 10 * MB, "nothing says that it needs more"
    assert model_of(*[bounded(27 * MB)] * 2).recommend("mem", asked=10 * MB) is None


def test_an_upper_bound_is_no_value_of_the_histogram_and_no_point_of_the_line() -> None:
    model = model_of(*(bounded(27 * MB, size=n * MB) for n in range(1, 40)))
    assert histogram(model, "mem") == []
    assert model.line("mem") is None
    assert describe(model).mem == 128 * M


@given(
    st.lists(st.tuples(st.integers(1, 1 << 34), st.booleans()), min_size=3, max_size=60), st.integers(0, 1 << 34)
)
def test_a_recommendation_from_bounds_lies_between_those_of_the_best_and_the_worst_case(
    seen: list[tuple[int, bool]], asked: int
) -> None:
    model = model_of(*(success(size) if known else bounded(size) for size, known in seen))
    worst = model_of(*(success(size) for size, _ in seen))
    found = mem(model, asked=asked)
    assert min(asked, mem(worst)) <= found <= mem(worst)
    best = model_of(*(success(size if known else 1) for size, known in seen))
    if mem(best) > 101 * MB:  # else not even that much is proven to be needed
        assert found >= mem(best)
    again = Model.from_rows(model.rows())
    assert again.recommend("mem", asked=asked) == found


# The percentile and its margin


def test_it_recommends_the_95th_percentile_of_successes_plus_ten_percent() -> None:
    model = model_of(*(success(n * G, at=n) for n in random.Random(1).sample(range(1, 60), 59)))
    assert mem(model) == pytest.approx(57 * G * 1.1)  # two of the next sixty may be above it: 3 of 60 is 5 %


def test_the_margin_is_at_least_100_megabytes_of_memory() -> None:
    assert mem(model_of(*[success(50 * MB)] * 5)) == 150 * MB


def test_the_margin_of_time_is_a_quarter_and_at_least_a_minute() -> None:
    assert model_of(*[success(time_s=7200.0)] * 5).recommend("time", asked=HOUR) == 9000
    assert model_of(*[success(time_s=10.0)] * 5).recommend("time", asked=HOUR) == 70


def test_the_margin_of_disk_is_ten_percent() -> None:
    assert model_of(*[success(disk=50 * MB)] * 5).recommend("disk", asked=0) == pytest.approx(55 * MB)


def test_one_outlier_among_many_does_not_count() -> None:
    model = model_of(*[success(G)] * 20, success(64 * G), *[success(G)] * 20)
    assert mem(model) == pytest.approx(1.1 * G)


def test_the_second_mode_counts_when_one_in_ten_jobs_is_of_it() -> None:
    model = model_of(*(success(8 * G if n % 10 == 0 else G) for n in range(200)))
    assert mem(model) == pytest.approx(8.8 * G)


# Age


def test_a_program_that_needs_less_now_is_learned_anew() -> None:
    model = model_of(*[success(8 * G)] * 400)
    for _ in range(5 * ERA):
        model.observe(success(G))
    assert mem(model) == pytest.approx(1.1 * G)


def test_a_program_that_needs_more_now_is_learned_within_a_dozen_jobs() -> None:
    model = model_of(*[success(G)] * 400)
    for _ in range(12):
        model.observe(success(8 * G))
    assert mem(model) == pytest.approx(8.8 * G)


def test_a_program_that_runs_once_a_year_keeps_what_it_knows() -> None:
    year = 365 * 86400.0
    model = model_of(*(success((8 if n == 0 else 1) * G, at=n * year) for n in range(15)))
    assert mem(model) == pytest.approx(8.8 * G)


def test_only_the_newest_are_kept() -> None:
    model = model_of(*(success(G, at=n) for n in range(5000)))
    rows = list(model.rows())
    assert KEPT - ERA <= len(rows) <= KEPT
    assert rows[-1].place == 4999
    assert model.forgotten == rows[0].place


# Failures


def test_it_is_never_below_what_the_last_failures_proved_too_small() -> None:
    model = model_of(*[success(G)] * 50, lacked_memory(3 * G, 2 * G), lacked_memory(2 * G, 4 * G))
    assert mem(model) == 4 * G


def test_a_failure_stops_counting_after_some_successes() -> None:
    model = model_of(*[success(G)] * 50, lacked_memory(3 * G))
    for _ in range(FAILURE_COUNTS_FOR - 1):
        model.observe(success(G))
    assert mem(model) == 3 * G
    model.observe(success(G))
    assert mem(model) == pytest.approx(1.1 * G)


def test_the_time_that_was_asked_is_an_estimate_and_proves_nothing() -> None:
    model = model_of(Observation(0.0, G, 0, 600.0, "walltime", None, 0, 0, 50 * HOUR))
    assert model.recommend("time", asked=60.0) == 750


def test_other_failures_teach_nothing_and_push_nothing_out() -> None:
    model = model_of(*[success(G)] * 5)
    before = mem(model)
    for _ in range(5000):
        model.observe(Observation(0.0, 90 * G, 90 * G, 9e6, "exit"))
    assert mem(model) == before
    assert model.recommend("disk", asked=0) is None
    assert describe(model).observations == 5 + KEPT_FAILURES


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), -1.0])
def test_times_that_cannot_be_are_left_out(strange: float) -> None:
    good = [success(G, time_s=30.0, size=n) for n in range(20)]
    model = model_of(*good, success(G, time_s=strange, size=50), Observation(0.0, G, 0, strange, "walltime"))
    assert everything(model, 0, None) == everything(model_of(*good, success(G)), 0, None)
    assert model.recommend("time", asked=0, input_bytes=9) == 90
    floor = after_failure("walltime", peak_mem=0, elapsed_s=strange, peak_disk=0, size=Size())
    assert 0 <= decide(Size(), floor=floor).used.time_s <= MAX_SECONDS


# Few successes


def test_nothing_is_recommended_when_nothing_is_known() -> None:
    assert all(Model().recommend(resource, asked=1) is None for resource in RESOURCES)


def test_with_fewer_than_three_successes_the_users_value_is_used() -> None:
    assert mem(model_of(success(G), success(G)), asked=4 * G) == 4 * G
    assert mem(model_of(success(G), success(G), success(G)), asked=4 * G) == pytest.approx(1.1 * G)


def test_with_fewer_than_three_successes_the_maximum_seen_is_used_when_it_is_more() -> None:
    assert mem(model_of(success(4 * G), success(G)), asked=G) == pytest.approx(4.4 * G)


def test_a_job_over_its_request_that_succeeds_makes_the_next_ask_more() -> None:
    decision = decide(Size(mem=G), given=frozenset({"mem"}), model=model_of(success(2 * G)))
    assert decision.used.mem == round_mem(2.2 * G)


def test_with_failures_only_more_is_asked_than_what_failed() -> None:
    assert mem(model_of(lacked_memory(2 * G, 2 * G)), asked=2 * G) == pytest.approx(2.2 * G)
    assert mem(model_of(lacked_memory(2 * G, 2 * G)), asked=8 * G) == 8 * G


def test_disk_is_learned_only_where_it_was_measured() -> None:
    assert model_of(*[success(G, disk=0)] * 50).recommend("disk", asked=G) is None
    assert decide(Size(disk=G), model=model_of(*[success(G)] * 50)).disk is None


# Input sizes


def line_model(count: int = 40, *, off: int = 0) -> Model:
    """Memory is 1 G and twice the input; `off` of them are far from it."""
    sizes = random.Random(2).sample(range(1, 200), count)
    return model_of(
        *(success((90 if n < off else 1) * G + 2 * size * M, size=size * M) for n, size in enumerate(sizes))
    )


def test_with_input_sizes_the_margin_is_added_to_a_line() -> None:
    assert mem(line_model(), size=100 * M) == pytest.approx(1.1 * (G + 200 * M))
    assert mem(line_model(), size=20 * M) == pytest.approx(1.1 * (G + 40 * M))


def test_the_line_goes_on_to_larger_inputs_than_were_seen() -> None:
    assert mem(line_model(), size=1000 * M) == pytest.approx(1.1 * (G + 2000 * M))


def test_the_line_is_robust() -> None:
    line = line_model(off=8).line("mem")
    assert line is not None
    assert line.slope == pytest.approx(2, rel=0.01)
    assert line.intercept == pytest.approx(G, rel=0.05)


def test_the_line_never_leads_to_less_than_was_ever_seen() -> None:
    falling = model_of(*(success((100 - n) * G, size=n * G) for n in range(40)))
    assert mem(falling, size=500 * G) >= 61 * G
    rising = model_of(*(success((5 + 3 * n) * M, size=(100 + n) * M) for n in range(40)))
    assert mem(rising, size=0) >= 5 * M


def test_a_job_without_an_input_size_gets_the_percentile() -> None:
    assert mem(line_model()) > mem(line_model(), size=20 * M)


def test_equal_inputs_make_no_line() -> None:
    model = model_of(*[success(G, size=5)] * 50)
    assert model.line("mem") is None
    assert mem(model, size=10**12) == pytest.approx(1.1 * G)


def test_a_failure_with_a_larger_input_says_nothing_about_a_smaller_one() -> None:
    model = line_model()
    before = mem(model, size=20 * M)
    model.observe(lacked_memory(30 * G, size=150 * M))
    assert mem(model, size=20 * M) == before
    assert mem(model, size=150 * M) == 30 * G


# Overrides


LEARNED = model_of(*[success(2 * G, disk=4 * G, time_s=HOUR)] * 50)
LESS, MORE = Size(mem=G, disk=G, time_s=60.0), Size(mem=50 * G + 1, disk=50 * G + 1, time_s=90001.0)
GIVEN = frozenset({"mem", "disk", "time"})
USED = Size(mem=round_mem(2.2 * G), disk=round_mem(4.4 * G), time_s=2 * HOUR)


@pytest.mark.parametrize(
    ("override", "given_", "asked", "used"),
    [
        ("no", GIVEN, LESS, USED),
        ("no", GIVEN, MORE, USED),
        ("higher", GIVEN, LESS, USED),
        ("higher", GIVEN, MORE, MORE),
        ("always", GIVEN, LESS, LESS),
        ("always", GIVEN, MORE, MORE),
        ("always", frozenset(), MORE, USED),
        ("always", frozenset(), LESS, USED),
        ("always", frozenset({"mem"}), LESS, Size(mem=LESS.mem, disk=USED.disk, time_s=USED.time_s)),
        ("always", frozenset({"disk", "time"}), MORE, Size(mem=USED.mem, disk=MORE.disk, time_s=MORE.time_s)),
        ("", GIVEN, LESS, USED),
        ("", GIVEN, MORE, MORE),
        ("", frozenset(), LESS, USED),
        ("", frozenset(), MORE, USED),
        ("", frozenset({"mem"}), MORE, Size(mem=MORE.mem, disk=USED.disk, time_s=USED.time_s)),
    ],
)
def test_the_override_says_which_value_is_used(
    override: Override, given_: frozenset[str], asked: Size, used: Size
) -> None:
    decision = decide(asked, given=given_, override=override, model=LEARNED)
    assert decision == Decision(used, USED.mem, USED.disk, USED.time_s)


def test_only_memory_disk_and_time_are_learned() -> None:
    used = decide(Size(cpus=350, gpus=2), model=LEARNED).used
    assert (used.cpus, used.gpus) == (350, 2)


def test_without_a_model_what_was_asked_is_used() -> None:
    assert decide(MORE) == Decision(MORE)
    assert decide(MORE, model=Model()) == Decision(MORE)


def test_a_users_value_is_not_rounded() -> None:
    few = model_of(success(G))
    assert decide(MORE, model=few) == Decision(MORE)


def test_nothing_learned_goes_beyond_the_largest_host() -> None:
    host = Size(mem=2 * G + 5, disk=3 * G)
    decision = decide(LESS, model=LEARNED, largest=host)
    assert (decision.used.mem, decision.used.disk, decision.used.time_s) == (2 * G + 5, 3 * G, 2 * HOUR)
    assert decision.mem == USED.mem
    assert decide(LESS, floor=Floor(mem=64 * G), largest=host).used.mem == host.mem


def test_a_new_observation_changes_the_next_decision() -> None:
    model = model_of(*[success(G)] * 3)
    before = decide(LESS, model=model)
    assert decide(LESS, model=model) is before
    model.observe(lacked_memory(9 * G))
    assert decide(LESS, model=model).used.mem == 10 * G


# Rounding


@pytest.mark.parametrize(
    ("size", "rounded"),
    [
        (0, 0),
        (1, 128 * M),
        (128 * M, 128 * M),
        (128 * M + 0.5, 256 * M),
        (1000 * M, G),
        (G, G),
        (G + 1, G + 512 * M),
        (7.6 * G, 8 * G),
        (8 * G, 8 * G),
        (8 * G + 1, 10 * G),
        (99 * G, 100 * G),
    ],
)
def test_memory_is_rounded_up_to_128m_below_1g_512m_below_8g_and_2g_above(size: float, rounded: int) -> None:
    assert round_mem(size) == rounded


@pytest.mark.parametrize(
    ("seconds", "rounded"),
    [(0, 60), (60, 60), (60.1, 300), (301, 900), (901, 1800), (1801, 3600), (3600, 3600), (3601, 7200)],
)
def test_time_is_rounded_up_to_1_5_15_30_minutes_and_then_hours(seconds: float, rounded: float) -> None:
    assert round_time(seconds) == rounded


@given(st.floats(0, MAX_SECONDS) | st.floats(0, 10 * G), st.floats(0, MAX_SECONDS) | st.floats(0, 10 * G))
def test_rounding_never_shrinks_and_keeps_the_order(one: float, other: float) -> None:
    for rounded in (round_mem, round_time):
        assert rounded(one) >= one
        assert rounded(rounded(one)) == rounded(one)
        if one <= other:
            assert rounded(one) <= rounded(other)


# After a failure


def failed(reason: str, *, peak: int = 0, had: int = 0, floor: Floor | None = None) -> Floor | None:
    return after_failure(
        reason, peak_mem=peak, elapsed_s=600.0, peak_disk=peak, size=Size(mem=had, disk=had), floor=floor
    )


@pytest.mark.parametrize(
    ("peak", "following"), [(300 * M, 300 * M + G), (G, 2 * G), (3 * G, 6 * G), (8 * G, 16 * G), (10 * G, 13 * G)]
)
def test_after_lack_of_memory_the_next_attempt_asks_for_more(peak: int, following: int) -> None:
    assert failed("memory", peak=peak, had=peak) == Floor(mem=following)


def test_after_lack_of_memory_never_as_little_as_before_is_asked() -> None:
    assert failed("memory", peak=0, had=4 * G) == Floor(mem=8 * G)


def test_after_lack_of_time_the_next_attempt_asks_for_an_hour_more() -> None:
    assert failed("walltime") == failed("time") == Floor(time_s=4200.0)


def test_after_lack_of_disk_the_next_attempt_asks_for_1_3_times_as_much() -> None:
    assert failed("disk", peak=10 * G, had=10 * G) == Floor(disk=13 * G)


def test_after_other_failures_the_next_attempt_asks_for_the_same() -> None:
    assert failed("exit") is None
    assert failed("exit", floor=Floor(mem=5)) == Floor(mem=5)


def test_what_earlier_failures_showed_stays() -> None:
    first = failed("memory", peak=4 * G)
    assert failed("disk", peak=10 * G, floor=first) == Floor(mem=8 * G, disk=13 * G)
    assert failed("memory", peak=G, floor=first) == Floor(mem=8 * G)


@pytest.mark.parametrize("override", ["", "no", "higher", "always"])
def test_the_next_attempt_asks_at_least_that_rounded(override: Override) -> None:
    used = decide(LESS, given=GIVEN, override=override, floor=failed("memory", peak=300 * M)).used
    assert used == Size(mem=G + 512 * M, disk=LESS.disk, time_s=LESS.time_s)


# What people see


def test_a_group_is_described() -> None:
    model = line_model()
    model.observe(Observation(7.0, 0, 0, 1.0, "exit"))
    model.observe(lacked_memory(30 * G))
    known = describe(model)
    assert (known.observations, known.successes, known.lacking) == (42, 40, 1)
    assert (known.mem, known.disk, known.time_s) == (30 * G, None, 300)
    assert known.counting == [lacked_memory(30 * G)]
    assert known.lines["mem"] == pytest.approx((2, G))
    assert (known.oldest, known.newest) == (0, 7)


def test_an_empty_group_is_described() -> None:
    known = describe(Model())
    assert (known.observations, known.mem, known.oldest, known.lines) == (0, None, None, {})
    assert histogram(Model(), "mem") == []


@given(st.lists(st.integers(1, 1 << 50), min_size=1, max_size=50), st.integers(1, 20))
def test_a_histogram_counts_every_success_once(sizes: list[int], buckets: int) -> None:
    bars = histogram(model_of(*map(success, sizes)), "mem", buckets)
    assert sum(bar.count for bar in bars) == len(sizes)
    assert len(bars) <= buckets
    assert (bars[0].low, bars[-1].high) == (min(sizes), max(sizes))


# Properties

amounts = st.integers(0, 1 << 50)
times = st.floats(0, 1e8)
observations = st.builds(
    Observation,
    at=times,
    mem=amounts,
    disk=amounts,
    time_s=times,
    outcome=st.sampled_from(["complete"] * 6 + ["memory", "disk", "walltime", "time", "exit"]),
    input_bytes=st.none() | amounts,
    given_mem=amounts,
    given_disk=amounts,
    given_time_s=times,
)
resources = st.sampled_from(RESOURCES)


def everything(model: Model, asked: float, size: int | None) -> list[float | None]:
    return [model.recommend(resource, asked=asked, input_bytes=size) for resource in RESOURCES]


@given(st.lists(observations, max_size=60), resources, amounts, st.none() | amounts)
def test_no_recommendation_is_below_a_failure_that_counts(
    seen: list[Observation], resource: Resource, asked: int, size: int | None
) -> None:
    model = model_of(*seen)
    recommended = model.recommend(resource, asked=asked, input_bytes=size)
    line = model.line(resource) if size is not None else None
    proofs = [one.too_small() for one in model.counting(resource, size if line is not None else None)]
    if any(proofs):
        assert recommended is not None
        assert recommended >= max(proofs)
    assert recommended is None or recommended >= 0


@given(st.lists(observations, max_size=ERA), st.randoms(use_true_random=False), amounts, st.none() | amounts)
def test_the_order_of_what_ended_at_the_same_time_does_not_matter(
    seen: list[Observation], rng: random.Random, asked: int, size: int | None
) -> None:
    """Successes and failures each in any order, while they are of one age."""
    successes = [one for one in seen if one.outcome == "complete"]
    failures = [one for one in seen if one.outcome != "complete"]
    before = everything(model_of(*successes, *failures), asked, None)
    line = model_of(*successes[: len(successes) // 4 * 4]).recommend("mem", asked=asked, input_bytes=size)
    whole = successes[: len(successes) // 4 * 4]
    for some in (successes, failures, whole):
        rng.shuffle(some)
    assert everything(model_of(*successes, *failures), asked, None) == before
    assert model_of(*whole).recommend("mem", asked=asked, input_bytes=size) == line


@given(st.lists(observations, max_size=60), st.integers(0, 3 * KEPT), amounts, st.none() | amounts)
def test_a_model_made_of_its_rows_recommends_the_same(
    seen: list[Observation], before: int, asked: int, size: int | None
) -> None:
    model = model_of(*(success(G + n * M, disk=n % 3 * n, time_s=n, size=n * M) for n in range(before)), *seen)
    again = Model.from_rows(model.rows())
    assert everything(again, asked, size) == everything(model, asked, size)
    assert everything(again, asked, None) == everything(model, asked, None)
    assert sorted(map(repr, again.rows())) == sorted(map(repr, model.rows()))  # those of one moment in any order
    model.observe(success(5 * G))
    again.observe(success(5 * G))
    assert everything(again, asked, size) == everything(model, asked, size)


@given(st.lists(observations, max_size=60), amounts, st.none() | amounts)
def test_asking_in_between_changes_nothing(seen: list[Observation], asked: int, size: int | None) -> None:
    asked_often = Model()
    for one in seen:
        asked_often.observe(one)
        everything(asked_often, asked, size)
    assert everything(asked_often, asked, size) == everything(model_of(*seen), asked, size)


@given(st.lists(observations, max_size=40), st.sampled_from(["", "no", "higher", "always"]), amounts, amounts)
def test_a_decision_never_raises_and_fits_the_largest_host(
    seen: list[Observation], override: Override, asked: int, top: int
) -> None:
    host = Size(mem=top, disk=top)
    size = Size(mem=min(asked, top), disk=min(asked, top))
    used = decide(size, override=override, model=model_of(*seen), largest=host, floor=Floor(mem=asked)).used
    assert 0 <= used.mem <= top
    assert 0 <= used.disk <= top


@given(resources, st.floats(0, 1e15))
def test_a_margin_always_adds(resource: Resource, value: float) -> None:
    assert with_margin(resource, value) >= value
