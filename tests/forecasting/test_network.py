"""Further quantities that networks read: scaled by what training saw, usual where unknown."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.panel import Covariate, Panel
from candor.forecasting.contract import sample_panel
from candor.forecasting.network import learn_covariates, read_covariates

PANEL, TRAIN_END = sample_panel(), 100
SHAPE = PANEL.values.shape


def with_rain(values: np.ndarray) -> Panel:
    return replace(PANEL, covariates={"rain": Covariate(values.astype(np.float32), "mm")})


def scores_of(values: np.ndarray) -> np.ndarray:
    panel = with_rain(values)
    found = read_covariates(panel, ["rain"], learn_covariates(panel, ["rain"], TRAIN_END))
    assert found is not None
    return found[..., 0]


def some_rain() -> np.ndarray:
    values = np.random.default_rng(0).gamma(0.5, 4.0, SHAPE)
    values[30:40, 0] = np.nan
    return values


def test_what_training_saw_has_mean_zero_and_deviation_one_and_what_is_unknown_counts_as_usual() -> None:
    rain = some_rain()
    scores, known = scores_of(rain)[:TRAIN_END], ~np.isnan(rain[:TRAIN_END])
    assert scores[known].mean() == pytest.approx(0.0, abs=1e-5)
    assert scores[known].std() == pytest.approx(1.0, abs=1e-5)
    assert not scores[~known].any()


@given(factor=st.floats(0.01, 100.0), row=st.integers(TRAIN_END, SHAPE[0] - 1), value=st.floats(0.0, 1e6))
def test_neither_the_unit_nor_what_came_after_training_changes_what_is_read(factor, row, value) -> None:
    rain = some_rain()
    before = scores_of(rain)
    np.testing.assert_allclose(scores_of(rain * factor), before, atol=1e-4)
    rain[row] = value
    np.testing.assert_array_equal(np.delete(scores_of(rain), row, axis=0), np.delete(before, row, axis=0))


def test_a_quantity_that_never_changed_in_training_is_read_without_being_blown_up() -> None:
    rain = np.zeros(SHAPE)
    rain[TRAIN_END:] = 3.0
    np.testing.assert_array_equal(scores_of(rain), rain)


def test_a_quantity_of_which_training_knows_nothing_is_refused_however_much_is_known_later() -> None:
    rain = some_rain()
    rain[:TRAIN_END] = np.nan
    with pytest.raises(InputError, match="nothing is known of 'rain' in the training part"):
        scores_of(rain)


def test_a_quantity_that_the_panel_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InputError, match="no covariate called 'snow'") as refused:
        learn_covariates(with_rain(some_rain()), ["snow"], TRAIN_END)
    assert "rain" in refused.value.hint
