"""Parts of a forecast sum to it, and those of the last reading to the last reading."""

from functools import cache

import numpy as np
import pytest
from tiny import PROTOCOL, TINY_STAGES

from candor.core.errors import InputError
from candor.data.panel import Panel
from candor.data.protocol import Protocol, make_task
from candor.data.synthetic import generate_river
from candor.forecasting.account import AccountForecaster
from candor.forecasting.candor import Candor

HISTORY, HORIZON = PROTOCOL.history, PROTOCOL.horizon


@cache
def fitted(kind: type[AccountForecaster | Candor]) -> tuple[AccountForecaster | Candor, Panel]:
    panel, _ = generate_river(sensors=6, steps=900, seed=1, missing_share=0.1)
    task = make_task(panel, Protocol(history=HISTORY, horizon=HORIZON))
    more = {"shared": TINY_STAGES} if kind is Candor else {}
    return kind(history=HISTORY, horizon=HORIZON, **more).fit(task.panel, task.split), panel


@pytest.mark.parametrize("kind", [AccountForecaster, Candor])
@pytest.mark.parametrize("sensor", range(6))
def test_parts_sum_to_the_forecast(kind: type[AccountForecaster | Candor], sensor: int) -> None:
    forecaster, panel = fitted(kind)
    found = forecaster.break_down(panel, panel.sensor_ids[sensor])
    forecast = forecaster.predict(panel)[0, :, sensor]
    np.testing.assert_allclose(found.forecast, forecast, rtol=1e-6)
    np.testing.assert_allclose(sum(part.values for part in found.parts), forecast, rtol=1e-5)
    assert sum(found.stages.values()) == pytest.approx(1.0)
    assert {part.kind for part in found.parts} >= {"usual", "storage"}


@pytest.mark.parametrize("kind", [AccountForecaster, Candor])
def test_changes_are_counted_from_the_last_reading(kind: type[AccountForecaster | Candor]) -> None:
    forecaster, panel = fitted(kind)
    for sensor, name in enumerate(panel.sensor_ids):
        values = panel.values[:, sensor]
        found = forecaster.break_down(panel, name)
        if not np.isnan(values[-1]):
            assert found.last == pytest.approx(float(values[-1]), rel=1e-4)


def test_what_arrives_names_sensors_that_edges_lead_from_or_to() -> None:
    forecaster, panel = fitted(Candor)
    ends = {(int(a), int(b)) for a, b in zip(panel.edges.source, panel.edges.target, strict=True)}
    for sensor, name in enumerate(panel.sensor_ids):
        for part in forecaster.break_down(panel, name).parts:
            if part.kind == "arrivals":
                other = panel.sensor_ids.index(part.sender)
                assert ((sensor, other) if part.is_reverse else (other, sensor)) in ends
                assert part.delay >= 0 and (part.delay == 0 or not part.is_reverse)


def test_the_published_network_has_states_and_stages_have_parts() -> None:
    forecaster, panel = fitted(Candor)
    assert isinstance(forecaster, Candor)
    with pytest.raises(InputError, match="break_down"):
        forecaster.explain(panel, panel.sensor_ids[0])
    with pytest.raises(InputError, match="no sensor"):
        forecaster.break_down(panel, "nowhere")
