"""Exploring data finds the delays, twins and shocks that a synthetic network is known to have."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pictures import without_paint

from candor.cli import run as candor
from candor.core.errors import InputError
from candor.data.panel import Edges, Panel, Sensor
from candor.data.synthetic import Truth, generate_river, generate_road
from candor.data.times import TimeAxis
from candor.render.figures.explore import draw_explore, write_exploration
from candor.research.explore import LagPicture, choose_stretch, distant_pairs, edge_lags, explore, find_dynamics
from candor.research.patterns import deviations_of, lagged_correlations, pair_correlations, profiles_of

HOURLY = TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 24 * 28)


@pytest.fixture(scope="module")
def road() -> tuple[Panel, Truth]:
    return generate_road(sensors=24, steps=28 * 288, seed=3, missing_share=0.05)


def test_the_peak_lag_of_an_edge_is_its_delay(road: tuple[Panel, Truth]) -> None:
    panel, truth = road
    found = edge_lags(panel)
    assert np.mean(found.lag == truth.delays) > 0.95 and found.is_clear.mean() > 0.95


def test_unrelated_series_have_no_clear_peak_and_neither_have_slow_ones_that_share_a_season() -> None:
    generator, days = np.random.default_rng(4), 365
    times = TimeAxis(datetime(2023, 1, 1, tzinfo=UTC), timedelta(hours=24), days)
    sensors = tuple(Sensor(f"s{i}") for i in range(60))
    edges = Edges(np.arange(59, dtype=np.int32), np.arange(1, 60, dtype=np.int32))
    noise = generator.standard_normal((days, 60)).astype(np.float32)
    walks = np.cumsum(generator.standard_normal((days, 60)), axis=0).astype(np.float32)
    for values in (noise, walks):
        assert edge_lags(Panel(values, times, sensors, edges)).is_clear.mean() < 0.05
    hours = np.arange(24 * 28)[:, None]
    shared = np.sin(2 * np.pi * hours / (24 * 56)) + 0.02 * generator.standard_normal((24 * 28, 60))
    season = Panel(shared.astype(np.float32), HOURLY, sensors, edges)
    assert edge_lags(season).is_clear.mean() < 0.05


def test_turned_edges_have_turned_lags(road: tuple[Panel, Truth]) -> None:
    panel, _ = road
    turned = replace(panel, edges=Edges(panel.edges.target, panel.edges.source))
    np.testing.assert_array_equal(edge_lags(turned).lag, -edge_lags(panel).lag)


def test_lagged_correlations_are_those_of_the_plain_overlap_without_gaps() -> None:
    generator = np.random.default_rng(0)
    series = generator.standard_normal((101, 3))
    series[generator.random(series.shape) < 0.1] = np.nan
    found = lagged_correlations(series, np.array([0, 2]), np.array([1, 0]), longest=5)
    for edge, (source, target) in enumerate(((0, 1), (2, 0))):
        for lag in range(-5, 6):
            pairs = pd.DataFrame({"source": pd.Series(series[:, source]).shift(lag), "target": series[:, target]})
            assert found[edge, lag + 5] == pytest.approx(pairs.corr().iloc[0, 1], abs=1e-12)


def test_pair_correlations_are_those_of_pandas() -> None:
    generator = np.random.default_rng(1)
    series = generator.standard_normal((80, 5)).cumsum(axis=0)
    series[generator.random(series.shape) < 0.2] = np.nan
    series[:, 3] = 4.2  # flat
    expected = pd.DataFrame(series).corr().to_numpy()
    np.testing.assert_allclose(pair_correlations(series), expected, atol=1e-10)


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_twins_are_the_most_alike_of_all_distant_pairs(seed: int) -> None:
    panel, truth = generate_river(sensors=24, steps=24 * 7 * 26, seed=seed)
    pairs = distant_pairs(panel)
    assert pairs.has_no_path
    likest = {frozenset(pair) for pair in pairs.table[["first", "second"]].to_numpy()[:4].tolist()}
    assert sum(frozenset(twins) in likest for twins in truth.twins) >= len(truth.twins) - 1
    assert pairs.table["profile_correlation"].is_monotonic_decreasing


def small(values: np.ndarray, edges: list[tuple[int, int]], places: list[float] | None = None) -> Panel:
    """Returns hourly readings of a few sensors on the equator."""
    where = places or [float(place) for place in range(values.shape[1])]
    sensors = [Sensor(f"s{i}", latitude=0.0, longitude=place, unit="m") for i, place in enumerate(where)]
    ends = np.array(edges, np.int32).reshape(-1, 2)
    return Panel(values.astype(np.float32), HOURLY, tuple(sensors), Edges(ends[:, 0], ends[:, 1]), name="small")


def waves(phases: list[float]) -> np.ndarray:
    hours = np.arange(HOURLY.length)
    noise = np.random.default_rng(0).standard_normal((HOURLY.length, len(phases)))
    return np.stack([np.sin(2 * np.pi * (hours / 24 - phase)) for phase in phases], axis=1) + 0.05 * noise


def test_neither_connected_nor_neighbouring_sensors_are_distant() -> None:
    # A chain 0 -> 1 -> 2, a stranger 3 far off, and 4 at the place of 0.
    panel = small(waves([0.0, 0.1, 0.2, 0.5, 0.0]), [(0, 1), (1, 2)], [0.0, 1.0, 2.0, 9.0, 0.0])
    pairs = distant_pairs(panel)
    found = [frozenset(pair) for pair in pairs.table[["first", "second"]].to_numpy().tolist()]
    assert set(found) == {frozenset(pair) for pair in ((0, 3), (1, 3), (2, 3), (3, 4), (2, 4))}
    assert pairs.table["profile_correlation"].iloc[-1] < -0.95 and found[-1] in ({0, 3}, {3, 4})


def test_where_all_are_connected_the_farthest_pairs_are_distant() -> None:
    panel = small(waves([0.0, 0.1, 0.2, 0.3]), [(0, 1), (1, 2), (2, 3)])
    pairs = distant_pairs(panel)
    assert not pairs.has_no_path and pairs.table[["first", "second"]].to_numpy().tolist() == [[0, 3]]


def test_profiles_and_deviations_sum_to_the_readings() -> None:
    panel = small(waves([0.0, 0.3]), [])
    profiles, place = profiles_of(panel)
    np.testing.assert_allclose(profiles[place] + deviations_of(panel), panel.values, atol=1e-6)
    assert len(profiles) == 168 and np.abs(np.nanmean(deviations_of(panel), axis=0)).max() < 1e-6


def test_injected_shocks_are_marked_and_little_else(road: tuple[Panel, Truth]) -> None:
    panel, truth = road
    marked, injected = 0, 0
    for column in range(len(panel.sensors)):
        shocks = find_dynamics(panel.values[:, column], panel.times).is_shock
        assert shocks.mean() < 0.02
        large = (truth.shocks.sensor == column) & (truth.shocks.size < -10)
        times = [time for time in truth.shocks.time[large] if time and panel.mask[time - 1 : time + 1, column].all()]
        marked, injected = marked + int(shocks[times].sum()), injected + len(times)
    assert injected > 10 and marked / injected > 0.9


def test_a_ramp_up_is_a_rise_and_a_ramp_down_a_fall() -> None:
    readings = np.full(HOURLY.length, 5.0)
    readings[100:105], readings[105:110] = np.linspace(5, 9, 5), np.linspace(9, 5, 5)
    found = find_dynamics(readings + 0.01 * np.random.default_rng(0).standard_normal(len(readings)), HOURLY)
    assert found.is_rise[101:104].all() and not found.is_fall[101:104].any()
    assert found.is_fall[106:109].all() and not found.is_rise[106:109].any()
    np.testing.assert_allclose(found.background[90:130], 5.0, atol=0.1)
    rows = choose_stretch(found, HOURLY)
    assert rows.stop - rows.start == 240


def test_the_command_draws_and_writes_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with without_paint(but=("explore.png",)):
        assert candor(["data", "explore", "klamath-daily", "--out", str(tmp_path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    lags, pairs = (pd.read_csv(tmp_path / f"explore-{name}.csv") for name in ("lags", "pairs"))
    assert facts["edges"] == len(lags) == 41 and facts["distant_pairs"] == len(pairs)
    assert pairs.profile_correlation.iloc[0] == pytest.approx(facts["most_alike"])
    shown = pd.read_csv(tmp_path / "explore.csv")
    assert len(shown) == 365 and shown[["is_rise", "is_fall", "is_shock"]].any().all()
    assert (tmp_path / "explore.png").stat().st_size > 10_000 and (tmp_path / "explore.svg").exists()


@pytest.mark.usefixtures("no_pictures")
def test_profiles_that_are_drawn_are_written_and_correlate_as_said(tmp_path: Path) -> None:
    picture = explore(small(waves([0.0, 0.1, 3.0]), []))
    write_exploration(picture, tmp_path)
    table = pd.read_csv(tmp_path / "explore-profiles.csv")
    for name, pair in (("most alike", picture.similar), ("least alike", picture.opposite)):
        own = table[table["pair"] == name]
        assert len(own) == 168 and own["first"].unique().tolist() == [pair.first]
        assert np.corrcoef(own["first_usual"], own["second_usual"])[0, 1] == pytest.approx(pair.correlation, abs=1e-4)


@pytest.mark.parametrize("unit", ["km", None])
def test_clear_and_unclear_lags_are_told_apart(unit: str | None) -> None:
    lags = np.arange(5)
    table = pd.DataFrame({"distance": np.arange(5.0) if unit else np.nan, "lag_steps": lags, "is_clear": lags > 2})
    peaks = LagPicture(table, unit, HOURLY.interval)
    figure = draw_explore(replace(explore(small(waves([0.0]), [])), lags=peaks)).figure
    key = figure.axes[1].get_legend()
    assert key is not None and {text.get_text() for text in key.get_texts()} == {"unclear (3)", "clear peak (2)"}


@pytest.mark.parametrize("distances", [[1.0], None])
def test_a_record_too_short_for_lags_says_so(tmp_path: Path, distances: list[float] | None) -> None:
    panel = small(waves([0.0, 0.1]), [(0, 1)])
    values = np.where(np.arange(HOURLY.length)[:, None] < 2, panel.values, np.nan)
    edges = replace(panel.edges, distance=None if distances is None else np.array(distances))
    picture = explore(replace(panel, values=values, edges=edges))
    assert picture.lags is not None and picture.lags.table.empty
    with without_paint(but=("explore.svg",)):
        write_exploration(picture, tmp_path)  # a legend without entries would warn
    assert "too few readings" in (tmp_path / "explore.svg").read_text()


@pytest.mark.usefixtures("unpainted")
def test_without_edges_or_a_second_sensor_there_is_still_a_figure(tmp_path: Path) -> None:
    picture = explore(small(waves([0.0]), []))
    assert picture.lags is None and picture.similar is None and picture.opposite is None
    assert {path.name for path in write_exploration(picture, tmp_path)} == {
        "explore.png", "explore.svg", "explore.csv", "explore-pairs.csv",
    }  # fmt: skip


def test_a_panel_without_readings_is_refused() -> None:
    with pytest.raises(InputError, match="no readings"):
        explore(small(np.full((HOURLY.length, 2), np.nan), []))
