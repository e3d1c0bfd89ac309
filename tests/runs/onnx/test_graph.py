"""From readings with gaps to forecasts in the sensors' unit: the graph answers as candor does from the same rows."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from candor.core.errors import InputError, NotFittedError
from candor.data.panel import Panel
from candor.data.preprocessing import fill
from candor.forecasting import LastValue, forecasters
from candor.forecasting.candor import Candor
from candor.nets.candor import ops
from candor.runs.onnx.graph import CLOCK, ForecastGraph, check_exportable

Make = Callable[..., Candor]
RULES = ("zero", "last", "forward-backward")


def asked(graph: ForecastGraph, inputs: dict[str, np.ndarray]) -> np.ndarray:
    with torch.no_grad():
        return graph(*(torch.from_numpy(array) for array in inputs.values())).numpy()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("is_plain", [True, False])
def test_it_forecasts_what_candor_forecasts_from_the_same_rows(
    make_candor: Make, windows_of, rule: str, is_plain: bool
) -> None:
    forecaster = make_candor(fill=rule, season=True)
    inputs, wanted = windows_of(forecaster, [12, 55, 108, 120], ["readings", *CLOCK])
    assert np.isnan(inputs["readings"]).all(axis=1).any()  # a silent sensor
    with ops.plain() if is_plain else nullcontext():
        forecast = asked(ForecastGraph(forecaster).eval(), inputs)
    np.testing.assert_allclose(forecast, wanted, rtol=0, atol=1e-4)


def test_without_anchor_and_season_it_asks_for_no_week(make_candor: Make, windows_of) -> None:
    forecaster = make_candor(anchor=False)
    inputs, wanted = windows_of(forecaster, [40, 120], ["readings", *CLOCK[:2]])
    graph = ForecastGraph(forecaster).eval()
    assert graph.clock == ("time_of_day", "day_of_week")
    np.testing.assert_allclose(asked(graph, inputs), wanted, rtol=0, atol=1e-4)


readings = arrays.arrays(
    np.float32, (12, 5), elements=st.one_of(st.just(float("nan")), st.floats(-100, 100, width=32)), fill=st.nothing()
)


@pytest.fixture(scope="module")
def graphs(make_candor: Make) -> dict[str, ForecastGraph]:
    return {rule: ForecastGraph(make_candor(fill=rule, season=True)) for rule in RULES}


@given(readings, st.sampled_from(RULES))
def test_gaps_are_filled_by_the_rule_of_the_model(
    graphs: dict[str, ForecastGraph], values: np.ndarray, rule: str
) -> None:
    window, graph = torch.from_numpy(values)[None], graphs[rule]
    filled = graph._filled(window, ~window.isnan())[0].numpy()
    np.testing.assert_array_equal(filled, fill(values, rule, graph.means.numpy()))


def test_a_simple_rule_has_no_onnx_form(panel: Panel) -> None:
    with pytest.raises(InputError, match="last-value is not a network"):
        check_exportable(LastValue(12, 4).fit(panel))


def test_a_network_that_reads_covariates_has_no_onnx_form() -> None:
    kind = forecasters.get("timexer")
    with pytest.raises(InputError, match="rain"):
        check_exportable(kind(12, 4, sizes=kind.tiny, covariates=("rain",)))


def test_a_network_that_has_learned_nothing_is_not_exported() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        check_exportable(Candor(12, 4))
