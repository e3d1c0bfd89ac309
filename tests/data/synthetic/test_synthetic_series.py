"""The readings of a synthetic network are the sum of known parts that obey known laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.data.synthetic import (
    COMPONENTS,
    SyntheticRecipe,
    Truth,
    generate,
    generate_river,
    generate_road,
)

KINDS = ("river", "road")
GENERATORS = {"river": generate_river, "road": generate_road}
Case = tuple[Panel, Truth]


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> Case:
    """A calm network: no reading is missing or clipped."""
    return GENERATORS[request.param](sensors=16, steps=3000, seed=3)


def summed(truth: Truth) -> np.ndarray:
    parts = [truth.components[name].astype(np.float64) for name in COMPONENTS]
    return np.sum(parts, axis=0)


def test_the_components_sum_to_the_readings(case: Case) -> None:
    panel, truth = case
    assert not truth.clipped.any()
    np.testing.assert_allclose(panel.values, summed(truth), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_beyond_the_bounds_is_clipped_and_known(kind: str) -> None:
    panel, truth = GENERATORS[kind](sensors=8, steps=500, noise=2.0, missing_share=0.2)
    low, high = truth.bounds
    there = panel.mask
    assert there.mean() == pytest.approx(0.8, abs=0.1)
    assert 0.1 < truth.clipped.mean() < 0.9
    kept = there & ~truth.clipped
    np.testing.assert_allclose(panel.values[kept], summed(truth)[kept], rtol=1e-5, atol=1e-5)
    at_bound = np.isin(panel.values[there & truth.clipped], [low, high])
    assert at_bound.all()
    assert np.isclose(panel.values[kept], low).mean() < 0.01


def test_transport_carries_storage_shock_and_what_arrived(case: Case) -> None:
    panel, truth = case
    storage, shock = truth.components["storage"], truth.components["shock"]
    total = storage.astype(np.float64) + shock + truth.components["transported"]
    expected = np.zeros(total.shape)
    edges = panel.edges
    for edge in range(len(edges)):
        source, target, delay = edges.source[edge], edges.target[edge], truth.delays[edge]
        for step in range(delay, len(total)):
            expected[step, target] += truth.attenuation[edge] * total[step - delay, source]
    np.testing.assert_allclose(truth.components["transported"], expected, atol=1e-5)
    assert abs(expected).max() > 0.5


def test_the_shock_component_is_the_listed_jumps_fading(case: Case) -> None:
    panel, truth = case
    jumps = np.zeros(panel.values.shape)
    np.add.at(jumps, (truth.shocks.time, truth.shocks.sensor), truth.shocks.size)
    level, expected = np.zeros(len(panel.sensors)), np.empty(jumps.shape)
    for step in range(len(jumps)):
        expected[step] = level = truth.shock_retention * level + jumps[step]
    np.testing.assert_allclose(truth.components["shock"], expected, atol=1e-5)
    assert len(truth.shocks) > 10
    assert (np.diff(truth.shocks.time) >= 0).all()


def test_the_store_loses_a_fixed_share_and_gains_in_bursts(case: Case) -> None:
    panel, truth = case
    storage = truth.components["storage"].astype(np.float64)
    inflow = np.diff(storage, axis=0) - (truth.storage_retention - 1) * storage[:-1]
    sign = {"mg/L": 1, "mph": -1}[panel.unit]
    assert (sign * inflow > -1e-5).all()
    assert 0.7 < (abs(inflow) < 1e-5).mean() < 0.95
    assert (storage[-1] - storage[0] != 0).any()


def test_accumulation_less_release_is_the_change_of_storage(case: Case) -> None:
    _, truth = case
    gained, lost = truth.accumulation, truth.release
    assert (gained >= 0).all() and (lost >= 0).all()
    assert not (gained * lost).any()
    assert gained.max() > 0 and lost.max() > 0
    balance = np.cumsum(gained.astype(np.float64) - lost, axis=0)
    np.testing.assert_allclose(balance, truth.components["storage"], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_shocks_show_as_jumps_of_the_readings(kind: str) -> None:
    panel, truth = GENERATORS[kind](sensors=16, steps=6000, noise=0.0)
    change = np.diff(panel.values, axis=0)
    inside = truth.shocks.time > 0
    where = truth.shocks.time[inside] - 1, truth.shocks.sensor[inside]
    at_shocks, sizes = change[where], truth.shocks.size[inside]
    is_shock = np.zeros(change.shape, bool)
    is_shock[where] = True
    assert (np.sign(at_shocks) == np.sign(sizes)).mean() > 0.9
    assert np.corrcoef(at_shocks, sizes)[0, 1] > 0.9
    # Every second shock is a larger change than 99 in 100 of the others.
    assert np.quantile(abs(change[~is_shock]), 0.99) < np.median(abs(at_shocks))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_readings_are_plausible(kind: str, seed: int) -> None:
    panel, truth = GENERATORS[kind](sensors=30, steps=3000, seed=seed)
    low, high = {"river": (0, 20), "road": (3, 75)}[kind]
    centre, spread = {"river": (9, 1), "road": (60, 5)}[kind]
    assert panel.values.min() >= low and panel.values.max() <= high
    assert truth.clipped.mean() < 0.01
    assert np.median(panel.values) == pytest.approx(centre, abs=spread)
    assert panel.mask.all()
    assert np.isfinite(summed(truth)).all()


def test_noise_is_one_percent_of_the_level(case: Case) -> None:
    _, truth = case
    noise = truth.components["noise"]
    level = float(truth.components["background"].mean())
    assert noise.std() == pytest.approx(0.01 * level, rel=0.1)
    assert noise.mean() == pytest.approx(0, abs=0.001 * level)


def test_the_panel_says_what_it_is(case: Case) -> None:
    panel, truth = case
    kind, minutes, covariates = {
        "mg/L": ("river", 60, {"rain": "mm/h"}),
        "mph": ("road", 5, {}),
    }[panel.unit]
    assert panel.name == f"synthetic {kind}"
    assert panel.times.interval.total_seconds() == 60 * minutes
    assert panel.times.local[0].isoformat() == "2020-01-01T00:00:00-08:00"
    assert {name: part.unit for name, part in panel.covariates.items()} == covariates
    assert len(truth.delays) == len(truth.attenuation) == len(panel.edges) > 0
    assert list(truth.components) == list(COMPONENTS)
    again, _ = generate(SyntheticRecipe(**panel.provenance["recipe"]))
    assert again.fingerprint == panel.fingerprint


@given(
    st.sampled_from(KINDS),
    st.integers(1, 12),
    st.integers(1, 300),
    st.integers(1, 310),
    st.integers(0, 50),
)
def test_numbers_do_not_depend_on_the_chunks(
    kind: str,
    sensors: int,
    steps: int,
    chunk: int,
    seed: int,
) -> None:
    recipe = SyntheticRecipe(kind, sensors, steps, seed, missing_share=0.1)
    panel, truth = generate(recipe)
    in_chunks, truth_in_chunks = generate(recipe, chunk_steps=chunk)
    assert in_chunks.fingerprint == panel.fingerprint
    for name in COMPONENTS:
        np.testing.assert_array_equal(truth_in_chunks.components[name], truth.components[name])
    for part in ("time", "sensor", "size"):
        listed = getattr(truth_in_chunks.shocks, part)
        np.testing.assert_array_equal(listed, getattr(truth.shocks, part))


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_settles_everything(kind: str) -> None:
    first, again, other = (GENERATORS[kind](10, 200, seed)[0] for seed in (1, 1, 2))
    assert first.fingerprint == again.fingerprint
    assert not np.allclose(first.values, other.values)
    assert first.sensors != other.sensors


@pytest.mark.parametrize("kind", KINDS)
def test_a_longer_record_begins_like_a_shorter_one(kind: str) -> None:
    recipe = SyntheticRecipe(kind, 10, 400, missing_share=0.1)
    short, _ = generate(recipe)
    long, _ = generate(replace(recipe, steps=900))
    assert long.slice(0, 400).fingerprint == short.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_noise_and_gaps_change_nothing_else(kind: str) -> None:
    _, calm = GENERATORS[kind](10, 400, noise=0.0)
    panel, rough = GENERATORS[kind](10, 400, noise=0.05, missing_share=0.3)
    assert not calm.components["noise"].any()
    assert np.isnan(panel.values).mean() == pytest.approx(0.3, abs=0.1)
    for name in COMPONENTS[:-1]:
        np.testing.assert_array_equal(rough.components[name], calm.components[name])


@pytest.mark.parametrize("kind", KINDS)
def test_one_sensor_is_a_network(kind: str) -> None:
    panel, truth = GENERATORS[kind](sensors=1, steps=300)
    assert panel.values.shape == (300, 1)
    assert len(panel.edges) == 0 and truth.twins == ()
    assert not truth.components["transported"].any()
    np.testing.assert_allclose(panel.values, summed(truth), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_a_record(kind: str) -> None:
    panel, truth = GENERATORS[kind](sensors=3, steps=1)
    assert panel.values.shape == (1, 3)
    np.testing.assert_allclose(panel.values, summed(truth), rtol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "rivr"},
        {"sensors": 0},
        {"steps": 0},
        {"seed": -1},
        {"noise": -0.1},
        {"noise": float("nan")},
        {"noise": float("inf")},
        {"missing_share": 0.95},
        {"missing_share": -0.1},
        {"missing_share": float("nan")},
        {"twin_pairs": -1},
    ],
    ids=str,
)
def test_a_recipe_that_cannot_be_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError, match="river" if "kind" in wrong else next(iter(wrong))):
        SyntheticRecipe(**({"kind": "river", "sensors": 3, "steps": 10} | wrong))


def test_a_chunk_needs_a_step() -> None:
    for chunk in (0, -5):
        with pytest.raises(InputError, match="chunk"):
            generate(SyntheticRecipe("river", 3, 10), chunk_steps=chunk)
