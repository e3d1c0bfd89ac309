"""Each moving part of a synthetic network obeys its law, in one piece or in many."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.data.panel import Edges
from candor.data.synthetic import SyntheticRecipe
from candor.data.synthetic.generate import settle
from candor.data.synthetic.series import DecayingSum, Incidents, Rain, RandomGaps, Storage, Transport

Advance = Callable[[int], np.ndarray]


def cut(total: int, lengths: list[int]) -> list[slice]:
    """Returns the pieces of the given lengths, over and over, that cover `total` steps."""
    pieces, start, turn = [], 0, 0
    while start < total:
        stop = min(start + lengths[turn % len(lengths)], total)
        pieces.append(slice(start, stop))
        start, turn = stop, turn + 1
    return pieces


@st.composite
def transports(draw: st.DrawFn) -> tuple[Callable[[], Transport], Edges, np.ndarray, np.ndarray]:
    """Draws random networks, circles included, and how to make their transport anew."""
    ends = st.integers(0, 4)
    pairs = draw(st.lists(st.tuples(ends, ends), unique=True, max_size=8))
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T
    edges = Edges(source, target)
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    delays = generator.integers(1, 6, len(pairs))
    attenuation = generator.uniform(0.05, 0.19, len(pairs))
    return lambda: Transport(edges, delays, attenuation, 5), edges, delays, attenuation


@given(transports(), st.integers(0, 99))
def test_what_arrives_is_the_delayed_total_upstream(case: tuple, seed: int) -> None:
    build, edges, delays, attenuation = case
    own = np.random.default_rng(seed).normal(size=(25, 5))
    arrived = build().advance(own)
    expected = np.zeros((25, 5))
    for step in range(25):
        for edge in range(len(edges)):
            before = step - delays[edge]
            if before >= 0:
                upstream = edges.source[edge]
                total = own[before, upstream] + expected[before, upstream]
                expected[step, edges.target[edge]] += attenuation[edge] * total
    np.testing.assert_allclose(arrived, expected, atol=1e-12)


@given(transports(), st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_transport_in_pieces_is_transport_at_once(case: tuple, lengths: list[int]) -> None:
    own = np.random.default_rng(0).normal(size=(40, 5))
    whole, in_pieces = case[0](), case[0]()
    pieces = [in_pieces.advance(own[rows]) for rows in cut(40, lengths)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole.advance(own))


def test_a_pulse_arrives_after_the_delay_times_the_attenuation() -> None:
    edges = Edges([0, 1], [1, 2])
    own = np.zeros((20, 3))
    own[4, 0] = 8.0
    arrived = Transport(edges, np.array([3, 2]), np.array([0.5, 0.25]), 3).advance(own)
    expected = np.zeros((20, 3))
    expected[4 + 3, 1] = 8.0 * 0.5
    expected[4 + 3 + 2, 2] = 8.0 * 0.5 * 0.25
    np.testing.assert_array_equal(arrived, expected)


def test_deviations_stay_bounded_in_a_circle() -> None:
    circle = Edges([0, 1, 2], [1, 2, 0])
    transport = Transport(circle, np.array([1, 1, 1]), np.full(3, 0.8), 3)
    arrived = transport.advance(np.ones((2000, 3)))
    assert arrived.max() <= 0.8 / (1 - 0.8) + 1e-9
    np.testing.assert_allclose(arrived[-1], 4.0)


@given(
    st.lists(st.sampled_from([0.0, 0.5, 0.9, 0.99]), min_size=1, max_size=6),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_a_decaying_sum_keeps_its_share(retention: list[float], lengths: list[int]) -> None:
    inputs = np.random.default_rng(0).normal(size=(40, len(retention)))
    whole = DecayingSum(np.array(retention)).advance(inputs)
    levels = [np.zeros(len(retention))]
    for row in inputs:
        levels.append(np.array(retention) * levels[-1] + row)
    np.testing.assert_allclose(whole, levels[1:], atol=1e-12)
    in_pieces = DecayingSum(np.array(retention))
    pieces = [in_pieces.advance(inputs[rows]) for rows in cut(40, lengths)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)


def new_sources(kind: str) -> dict[str, Advance]:
    """Returns all ingredients that draw random numbers, at their first step."""
    recipe = SyntheticRecipe(kind, 16, 1, missing_share=0.3)
    world = settle(recipe)
    shocks = Rain(recipe, world.network) if kind == "river" else Incidents(recipe)

    def jumps_and_covariates(steps: int) -> np.ndarray:
        jumps, measured = shocks.advance(steps)
        return np.concatenate([jumps, *measured.values()], axis=1)

    return {
        "storage": Storage(recipe, world.storage_retention).advance,
        "gaps": RandomGaps(recipe.stream("gaps"), 16, 0.3, recipe.physics.gap_length).advance,
        "shocks": jumps_and_covariates,
    }


@pytest.mark.parametrize("kind", ["river", "road"])
@pytest.mark.parametrize("lengths", [[1], [3, 40], [599, 1]])
def test_random_ingredients_do_not_notice_the_pieces(kind: str, lengths: list[int]) -> None:
    in_pieces = new_sources(kind)
    for name, whole in new_sources(kind).items():
        pieces = [in_pieces[name](rows.stop - rows.start) for rows in cut(600, lengths)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole(600), err_msg=name)


def test_gaps_have_the_asked_share_and_length() -> None:
    for length in (12, 24):
        for share in (0.05, 0.5, 0.9):
            missing = RandomGaps(np.random.default_rng(0), 400, share, length).advance(2000)
            assert missing.mean() == pytest.approx(share, rel=0.1)
            starts = (missing[1:] & ~missing[:-1]).sum()
            assert missing.sum() / starts == pytest.approx(length, rel=0.1)


def test_rain_falls_before_the_jump_and_decides_its_size() -> None:
    recipe = SyntheticRecipe("river", 24, 1)
    rain_over = Rain(recipe, settle(recipe).network)
    jumps, measured = rain_over.advance(4000)
    rain = measured["rain"]
    time, sensor = np.nonzero(jumps)
    inside = time >= Rain.RUNOFF_LAG
    cause = rain[time[inside] - Rain.RUNOFF_LAG, sensor[inside]]
    effect = jumps[time[inside], sensor[inside]] / cause
    # Where a heavier spell goes on, more rain falls than the jump accounts for.
    assert (cause > 0).all()
    response = rain_over.response[sensor[inside]]
    assert np.isclose(effect, response).mean() > 0.95
    assert (abs(effect) <= abs(response) * (1 + 1e-9)).all()
    # Every spell that breaks a dry hour is followed by a jump.
    begins = (rain[1:-2] > 0) & (rain[:-3] == 0)
    assert (jumps[3:][begins] != 0).all()


def test_rain_is_regional_and_rare() -> None:
    recipe = SyntheticRecipe("river", 40, 1)
    rain_over = Rain(recipe, settle(recipe).network)
    _, measured = rain_over.advance(4000)
    falls = measured["rain"] > 0
    assert measured["rain"].min() == 0
    assert 0.005 < falls.mean() < 0.05
    for region in np.unique(rain_over.region):
        together = falls[:, rain_over.region == region]
        assert (together.all(axis=1) == together.any(axis=1)).all()
    assert len(np.unique(falls, axis=1).T) == len(np.unique(rain_over.region)) == 5
