"""Every model learns a small synthetic network well below the last reading."""

import numpy as np
import pytest

from candor.data.protocol import Protocol, make_task
from candor.forecasting import LastValue, forecasters
from candor.forecasting.contract import sample_panel
from candor.runs import evaluate

NETWORKS = [name for name in forecasters.names() if hasattr(forecasters.get(name), "tiny")]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_rhythm_is_learned_well_below_the_last_reading(name: str) -> None:
    kind = forecasters.get(name)
    task = make_task(sample_panel(), Protocol(history=24, horizon=6))
    training = {"epochs": 40, "batch": 32, "learning_rate": 5e-3, "weight_decay": 0.0}
    recipe = {"recipe": {"training": training}} if hasattr(kind, "trained") else {}
    ours = kind(history=24, horizon=6, sizes=kind.tiny, **recipe).fit(task.panel, task.split)
    simple = LastValue(history=24, horizon=6).fit(task.panel, task.split)
    error = evaluate(ours, task).overall()["mae"]
    assert np.isfinite(error) and error < 0.7 * evaluate(simple, task).overall()["mae"]
