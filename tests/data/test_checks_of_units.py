"""Changes of unit: those that are planted are named with their moment, other changes are not taken for them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from candor.data.checks import check_panel
from candor.data.findings import Finding, Level
from candor.data.panel import Panel, Sensor
from candor.data.times import TimeAxis

Values = NDArray[np.float32]


def good_readings(rows: int = 2_400) -> Values:
    """A hundred days by the hour: between 8 and 25, with a day, a season and noise."""
    hours = np.arange(rows)
    wave = 15 + 2 * np.sin(2 * np.pi * hours / 24) + 2 * np.sin(2 * np.pi * hours / 8760)
    return np.asarray(wave + lfilter([0.4], [1, -0.9], np.random.default_rng(1).normal(size=rows)), np.float32)


def findings_in(readings: Values) -> list[Finding]:
    """What is found in the readings of a single sensor that begins in March."""
    times = TimeAxis(datetime(2021, 3, 1, tzinfo=UTC), timedelta(hours=1), len(readings))
    return check_panel(Panel(readings[:, None], times, (Sensor("south"),))).findings


def test_nothing_is_found_where_nothing_changes() -> None:
    assert findings_in(good_readings()) == []


@pytest.mark.parametrize(
    ("convert", "words"),
    [
        (lambda x: x * 1.609344, "times 1.609, as from mph to km/h"),
        (lambda x: x / 1.609344, "divided by 1.609, as from km/h to mph"),
        (lambda x: x * 3.28084, "times 3.281,"),
        (lambda x: x / 3.28084, "divided by 3.281,"),
        (lambda x: x * 35.3147, "times 35.31,"),
        (lambda x: x * 10, "times 10,"),
        (lambda x: x / 10, "divided by 10,"),
        (lambda x: x * 100, "times 100,"),
        (lambda x: x / 100, "divided by 100,"),
        (lambda x: x * 1000, "times 1000,"),
        (lambda x: x / 1000, "divided by 1000,"),
        (lambda x: 1.8 * x + 32, "deg C to deg F"),
        (lambda x: (x - 32) / 1.8, "deg F to deg C"),
    ],
)
def test_a_change_of_unit_is_named_with_its_moment(convert: Callable[[Values], Values], words: str) -> None:
    readings = good_readings()
    if words == "deg F to deg C":
        readings = 1.8 * readings + 32
    readings[1_300:] = convert(readings[1_300:])
    (finding,) = findings_in(readings)
    assert finding.level is Level.WARNING
    assert "unit" in finding.what
    assert finding.where.startswith("south at 2021-04-24 04:00 (")
    assert words in finding.where


def there_and_back(values: Values) -> Values:
    """Ten times as much for two weeks."""
    return np.concatenate([values[:1_000], 10 * values[1_000:1_400], values[1_400:]])


def staircase(values: Values) -> Values:
    """Three sudden, lasting jumps of the same size: whatever that is, a unit changes once."""
    return values * np.float32(1.609) ** (np.arange(len(values)) // 600)


def rise_within_hours(values: Values) -> Values:
    """Ten times as much, but not at once."""
    return values * 10 ** np.clip((np.arange(len(values)) - 1_300) / 12, 0, 1).astype(np.float32)


def flood_that_is_let_off(values: Values) -> Values:
    """A slow rise to 1.609 times as much, which ends at once."""
    rise = np.clip((np.arange(len(values)) - 500) / 800, 0, 1) * (np.arange(len(values)) < 1_300)
    return values * (1 + 0.609 * rise).astype(np.float32)


def doubling(values: Values) -> Values:
    """A lasting jump by a factor that no units are known for."""
    return values * np.where(np.arange(len(values)) < 1_300, 1, 2).astype(np.float32)


def season_in_a_gap(values: Values) -> Values:
    """A rise by a known factor while the sensor is silent for two days."""
    grown = values * np.where(np.arange(len(values)) < 1_300, 1, 3.281).astype(np.float32)
    grown[1_250:1_300] = np.nan
    return grown


@pytest.mark.parametrize(
    "change", [there_and_back, staircase, rise_within_hours, flood_that_is_let_off, doubling, season_in_a_gap]
)
def test_other_changes_of_the_level_are_not_taken_for_a_change_of_unit(change: Callable[[Values], Values]) -> None:
    assert findings_in(change(good_readings())) == []
