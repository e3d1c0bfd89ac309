"""What is usual repeats, does not depend on who else is there, and gives way to what was really measured."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.account.usual import Cycle, Season, fit_usual, seasons_of, spread_of
from candor.data.times import TimeAxis, calendar_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ROWS = 24 * 7 * 20


def axis(rows: int = ROWS, interval: timedelta = HOUR) -> TimeAxis:
    return TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), interval, rows)


def weekly(sensors: int = 3) -> np.ndarray:
    """Returns hourly readings that repeat every week, other ones at every sensor."""
    hours = np.arange(ROWS)[:, None]
    day = np.sin(2 * np.pi * (hours / 24 + np.arange(sensors) / 5))
    return (10 + 3 * day + (hours // 24 % 7 >= 5) * 2.0).astype(np.float32)


@pytest.mark.parametrize("cycle", ["none", "day", "week"])
def test_what_is_usual_repeats_with_its_cycle(cycle: Cycle) -> None:
    calendar = calendar_of(axis())
    found = fit_usual(weekly(), calendar, HOUR, Season(cycle)).at(calendar)
    period = {"none": 1, "day": 24, "week": 168}[cycle]
    np.testing.assert_array_equal(found[period:], found[:-period])
    assert np.isfinite(found).all() and found.dtype == np.float32


def test_a_weekly_rhythm_is_found_but_for_smoothing() -> None:
    calendar = calendar_of(axis())
    found = fit_usual(weekly(), calendar, HOUR, Season("week")).at(calendar)
    assert np.abs(found - weekly()).mean() < 0.5 < np.abs(weekly() - weekly().mean(axis=0)).mean()


def test_a_few_impossible_readings_leave_the_usual_where_it_was() -> None:
    calendar = calendar_of(axis())
    values = weekly() + 0.1 * np.random.default_rng(0).standard_normal((ROWS, 3)).astype(np.float32)
    clean = fit_usual(values, calendar, HOUR, Season("week")).at(calendar)
    values[5::500, 0] = 1e6
    spoilt = fit_usual(values, calendar, HOUR, Season("week")).at(calendar)
    assert np.abs(spoilt - clean).mean() < 1  # a mean would move by thousands


def test_a_wave_over_the_year_is_found_in_daily_readings() -> None:
    days = axis(3 * 365, DAY)
    season = 5 * np.sin(2 * np.pi * np.arange(days.length) / 365.25)[:, None]
    values = (20 + season).astype(np.float32)
    found = fit_usual(values, calendar_of(days), DAY, Season("none", year=True)).at(calendar_of(days))
    assert np.abs(found - values).mean() < 0.5


@given(st.permutations(range(4)), st.integers(0, 9))
def test_the_order_of_sensors_does_not_matter(order: list[int], seed: int) -> None:
    values = weekly(4) + np.random.default_rng(seed).standard_normal((ROWS, 4)).astype(np.float32)
    calendar = calendar_of(axis())
    one = fit_usual(values, calendar, HOUR, Season("day")).at(calendar)[:, order]
    other = fit_usual(values[:, order], calendar, HOUR, Season("day")).at(calendar)
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_sensor_without_a_reading_has_the_mean_of_all() -> None:
    values = weekly()
    values[:, 1] = np.nan
    calendar = calendar_of(axis())
    found = fit_usual(values, calendar, HOUR, Season("week")).at(calendar)
    np.testing.assert_allclose(found[:, 1], np.nanmean(values), rtol=1e-4)


@pytest.mark.parametrize(
    ("interval", "rows", "cycles"),
    [
        (HOUR, 24, {"none"}),
        (HOUR, 24 * 3, {"none", "day"}),
        (HOUR, ROWS, {"none", "day", "week"}),
        (DAY, 100, {"none", "week"}),
        (7 * DAY, 60, {"none"}),
    ],
)
def test_no_cycle_is_told_from_less_than_two_of_it(interval: timedelta, rows: int, cycles: set[str]) -> None:
    assert {season.cycle for season in seasons_of(interval, rows)} == cycles
    assert not any(season.year for season in seasons_of(interval, rows))


def test_years_are_told_apart_from_two_of_them_on() -> None:
    assert any(season.year for season in seasons_of(DAY, 731))


@given(st.integers(0, 99), st.floats(0.1, 100))
def test_the_spread_is_that_of_normal_numbers_whatever_a_few_outliers(seed: int, scale: float) -> None:
    values = scale * np.random.default_rng(seed).standard_normal((2000, 2)).astype(np.float32)
    values[::50] *= 1000
    np.testing.assert_allclose(spread_of(values, values), scale, rtol=0.15)


def test_the_spread_is_positive_for_sensors_that_stand_still_or_are_silent() -> None:
    values = np.zeros((100, 3), np.float32)
    values[:, 1], values[::10, 2] = np.nan, 5.0
    found = spread_of(values, values)
    assert (found > 0).all() and found[0] == found[1] == 1.0 and found[2] > 1


def usual_week(values: np.ndarray) -> np.ndarray:
    """Returns what is usual in a week of hourly readings, a Monday first, at each of them."""
    calendar = calendar_of(axis(len(values)))
    return fit_usual(values.astype(np.float32), calendar, HOUR, Season("week")).at(calendar)


def test_a_week_that_repeats_is_found_exactly() -> None:
    week = np.random.default_rng(0).standard_normal((168, 3)) + 60
    values = np.tile(week, (4, 1))
    np.testing.assert_allclose(usual_week(values), values, atol=1e-4)


def test_days_that_are_alike_lend_each_other_their_readings() -> None:
    generator = np.random.default_rng(1)
    day = 5 * np.sin(2 * np.pi * np.arange(24) / 24)
    usual = np.tile(np.concatenate([np.tile(day, 5), np.tile(-day, 2)]), 4)[:, None]
    values = usual + generator.standard_normal((4 * 168, 1))
    error = np.sqrt(np.mean((usual_week(values) - usual) ** 2))
    assert error < 0.35  # the mean of each slot alone errs by 0.5


def test_another_level_moves_the_usual_by_as_much() -> None:
    values = np.random.default_rng(2).standard_normal((3 * 168, 2))
    np.testing.assert_allclose(usual_week(values + 1_000), usual_week(values) + 1_000, atol=2e-3)


@pytest.mark.parametrize("rows", [1, 30, 200])
def test_short_records_and_gaps_are_answered(rows: int) -> None:
    values = np.random.default_rng(3).standard_normal((rows, 3)) + 7
    values[:, 1] = np.nan
    values[: rows // 2, 2] = np.nan
    assert np.isfinite(usual_week(values)).all()
