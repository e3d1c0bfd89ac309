"""The usual week: exact where weeks repeat, pooled over days that are alike where they hold chance, silent on gaps."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from candor.account.weeks import fit_week
from candor.data.times import TimeAxis, calendar_of

HOUR, WEEK = timedelta(hours=1), 168
START = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday


def fitted(values: np.ndarray) -> np.ndarray:
    calendar = calendar_of(TimeAxis(START, HOUR, len(values), "UTC"))
    return fit_week(values.astype(np.float32), calendar, HOUR).at(calendar)


def test_a_week_that_repeats_is_found_exactly() -> None:
    week = np.random.default_rng(0).standard_normal((WEEK, 3)) + 60
    values = np.tile(week, (4, 1))
    np.testing.assert_allclose(fitted(values), values, atol=1e-4)


def test_days_that_are_alike_lend_each_other_their_readings() -> None:
    generator = np.random.default_rng(1)
    day = 5 * np.sin(2 * np.pi * np.arange(24) / 24)
    usual = np.tile(np.concatenate([np.tile(day, 5), np.tile(-day, 2)]), 4)[:, None]
    values = usual + generator.standard_normal((4 * WEEK, 1))
    error = np.sqrt(np.mean((fitted(values) - usual) ** 2))
    assert error < 0.35  # the mean of each slot alone errs by 0.5


def test_another_level_moves_the_usual_by_as_much() -> None:
    values = np.random.default_rng(2).standard_normal((3 * WEEK, 2))
    np.testing.assert_allclose(fitted(values + 1_000), fitted(values) + 1_000, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 30, 200])
def test_short_records_and_gaps_are_answered(rows: int) -> None:
    values = np.random.default_rng(3).standard_normal((rows, 3)) + 7
    values[:, 1] = np.nan
    values[: rows // 2, 2] = np.nan
    found = fitted(values)
    assert np.isfinite(found).all() and not found[:, 1].any()
