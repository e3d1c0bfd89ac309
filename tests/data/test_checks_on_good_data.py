"""Good data of many kinds, made and real: the data check stays silent, or says what is known of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from candor.data.checks import CheckReport, check_panel
from candor.data.findings import Finding, Level
from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis


def noise(rows: int, seed: int, memory: float = 0.9) -> NDArray[np.float64]:
    """Noise of unit spread that remembers the reading before."""
    shocks = np.random.default_rng(seed).normal(0, np.sqrt(1 - memory**2), rows)
    return np.asarray(lfilter([1], [1, -memory], shocks))


def panel_of(kind: Callable[[int, int], NDArray[np.float64]], rows: int) -> Panel:
    """Six sensors in a chain that report by the hour."""
    values = np.stack([kind(rows, 10 * seed) for seed in range(6)], axis=1).astype(np.float32)
    along = np.arange(6, dtype=np.int32)
    times = TimeAxis(datetime(2021, 3, 1, tzinfo=UTC), timedelta(hours=1), rows)
    return Panel(values, times, tuple(Sensor(f"sensor-{i}") for i in along), Edges(along[:-1], along[1:]))


def warnings_of(report: CheckReport) -> list[Finding]:
    """All findings worse than notes."""
    return [finding for finding in report.findings if finding.level is not Level.NOTE]


def rain(rows: int, seed: int) -> NDArray[np.float64]:
    """Dry spells and showers in a tipping bucket of 0.2 mm."""
    return np.round(np.maximum(noise(rows, seed, 0.8) - 1.4, 0) ** 2 * 8 / 0.2) * 0.2


def wet_month(rows: int, seed: int) -> NDArray[np.float64]:
    """Drizzle more often than not, and a few cloudbursts."""
    return np.round(np.maximum(noise(rows, seed, 0.5) + 0.3, 0) ** 6, 2)


def oxygen_that_runs_out(rows: int, seed: int) -> NDArray[np.float64]:
    """Falls to exactly zero now and then, slowly."""
    return np.maximum(4 + 2.5 * noise(rows, seed, 0.99), 0)


def sunny_spells(rows: int, seed: int) -> NDArray[np.float64]:
    """Any amount, or nothing, whatever came before."""
    return np.maximum(noise(rows, seed, 0) + 0.3, 0)


def seldom_used_pump(rows: int, seed: int) -> NDArray[np.float64]:
    """Nothing on nineteen hours of twenty, else about 55 kW."""
    return (55 + noise(rows, seed)) * (np.random.default_rng(seed).random(rows) < 0.05)


def few_vehicles(rows: int, seed: int) -> NDArray[np.float64]:
    """Counts of a lonely road: zero is one step away from one."""
    return np.random.default_rng(seed).poisson(2.5, rows).astype(np.float64)


def snow_depth(rows: int, seed: int) -> NDArray[np.float64]:
    """Lies for a third of the record and is exactly zero for the rest."""
    return np.maximum(60 * np.cos(2 * np.pi * np.arange(rows) / rows) - 30 + 3 * noise(rows, seed, 0.99), 0)


def river_flow(rows: int, seed: int) -> NDArray[np.float64]:
    """Floods that rise in an hour and fall for days, over a base flow that follows the season."""
    generator = np.random.default_rng(seed)
    flow = generator.exponential(40, rows) * (generator.random(rows) < 0.004)
    for row in range(1, rows):
        flow[row] += 0.97 * flow[row - 1]
    return 5 + 3 * np.sin(2 * np.pi * np.arange(rows) / 8760) + flow + 0.05 * noise(rows, seed + 1)


def strong_seasons(rows: int, seed: int) -> NDArray[np.float64]:
    """Ten times as much in summer as in winter, three times as much by day as by night, half on weekends."""
    hours = np.arange(rows)
    season = np.exp(1.15 * np.sin(2 * np.pi * hours / 8760)) * np.exp(0.55 * np.sin(2 * np.pi * hours / 24))
    return season * np.where(hours // 24 % 7 >= 5, 0.5, 1) * np.exp(0.2 * noise(rows, seed))


def capped_speed(rows: int, seed: int) -> NDArray[np.float64]:
    """Speeds that never exceed 70 and stay there on quiet nights."""
    by_day = 14 * np.sin(2 * np.pi * np.arange(rows) / 24)
    return np.minimum(65 + by_day + 6 * noise(rows, seed, 0.97), 70)


def coarse_level(rows: int, seed: int) -> NDArray[np.float64]:
    """A slow water level in whole centimetres."""
    return np.asarray(np.round(120 + 8 * noise(rows, seed, 0.9995)))


def mild_winter(rows: int, seed: int) -> NDArray[np.float64]:
    """A temperature that falls a little below zero on a few nights."""
    hours = np.arange(rows)
    wave = 5 * np.cos(2 * np.pi * hours / 24) - 7 * np.cos(2 * np.pi * hours / rows) + noise(rows, seed, 0.98)
    return np.asarray(wave - np.quantile(wave, 0.005))


@pytest.mark.parametrize("rows", [2_400, 8_760])
@pytest.mark.parametrize(
    "kind",
    [
        rain,
        wet_month,
        oxygen_that_runs_out,
        sunny_spells,
        seldom_used_pump,
        few_vehicles,
        snow_depth,
        river_flow,
        strong_seasons,
        capped_speed,
        coarse_level,
    ],
)
def test_nothing_is_found_in_good_data_of_any_kind(kind: Callable[[int, int], NDArray[np.float64]], rows: int) -> None:
    assert check_panel(panel_of(kind, rows)).findings == []


def test_temperatures_below_zero_on_few_nights_are_a_note() -> None:
    panel = panel_of(mild_winter, 2_400)
    (finding,) = check_panel(panel).findings
    assert (finding.level, finding.count) == (Level.NOTE, int((panel.values < 0).sum()))
    assert "--minimum 0" in finding.hint


def read(path: Path) -> Panel:
    """A panel of a table with a row per moment, which must lack none."""
    table = pd.read_parquet(path)
    interval = table.index[1] - table.index[0]
    assert (np.diff(table.index) == interval).all()
    values = table.to_numpy(np.float32, copy=True)
    times = TimeAxis(table.index[0].to_pydatetime().replace(tzinfo=UTC), interval.to_pytimedelta(), len(values))
    return Panel(values, times, tuple(Sensor(str(column)) for column in table.columns))


@pytest.fixture(scope="module")
def speeds(real_data: Path) -> Panel:
    """METR-LA as its file is, where zero may be missing."""
    return read(real_data / "metr-la.parquet")


@pytest.mark.parametrize("statistic", ["mean", "minimum", "maximum"])
def test_the_klamath_has_one_thin_station_and_nothing_worse(statistic: str) -> None:
    with as_file(files("candor.data") / "bundled" / "klamath-daily" / f"{statistic}.parquet") as path:
        panel = read(path)
    (finding,) = warnings_of(check_panel(panel))
    assert "more than half" in finding.what
    assert finding.where == "420448121503100 (61.1 %)" if statistic == "mean" else "420448121503100" in finding.where


def test_oxygen_in_four_rivers_raises_no_alarm(real_data: Path) -> None:
    report = check_panel(read(real_data / "water/KOREA4_DO.parquet"))
    assert warnings_of(report) == []
    assert round(report.missing_share or 0, 4) == 0.1815


def test_highway_speeds_hold_three_stuck_detectors_and_no_change_of_unit(speeds: Panel) -> None:
    report = check_panel(replace(speeds, values=np.where(speeds.values == 0, np.float32(np.nan), speeds.values)))
    (finding,) = warnings_of(report)
    assert "stick" in finding.what
    # Found in the table by hand: 82 times 64.0, 66 times 46.0, 39 times 65.0.
    assert [place.split()[0] for place in finding.where.split(", ")] == ["718076", "717804", "718496"]


def test_zeros_of_highway_detectors_are_taken_for_missing(speeds: Panel) -> None:
    panel = speeds.select(speeds.sensor_ids[::5])
    zeros = next(f for f in warnings_of(check_panel(panel)) if "zero" in f.what)
    assert "--missing 0" in zeros.hint
    assert zeros.count > 0.98 * np.count_nonzero(panel.values == 0)
