"""Small fitted models, and runs of them, for tests of exports."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_runs import make_run
from tiny import tiny_recipe

from candor.data.panel import Edges, Panel
from candor.data.preprocessing import Scaler
from candor.data.times import calendar_of
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.network import _frame_state
from candor.runs.run import Run, load_run

ROWS = 120


@pytest.fixture(scope="session")
def panel() -> Panel:
    """Five hourly sensors in a row: one with gaps, one dead, one that falls silent at the end."""
    whole = sample_panel()
    values = whole.values[:ROWS].copy()
    values[ROWS - 20 :, 2] = np.nan
    return replace(whole, values=values, times=whole.times.slice(0, ROWS))


@pytest.fixture(scope="session")
def make_candor(panel: Panel) -> Callable[..., Candor]:
    """Makes a small CANDOR with random weights, which exports as well as a trained one, and is there at once."""

    @cache
    def make(has_edges: bool = True, fill: Any = "last", anchor: bool = True, **sizes: Any) -> Candor:
        recipe = tiny_recipe() | {"anchor": anchor}
        recipe["model"] = recipe["model"] | sizes
        made, scaler = Candor(history=12, horizon=4, fill=fill, recipe=recipe), Scaler(10.0, 0.7)
        given = panel if has_edges else replace(panel, edges=Edges.none())
        state = _frame_state(given) | {
            "means": np.array([10.5, 9, 11, 10, 9.5], np.float32),
            "scaler": np.array([10.0, 0.7]),
        }
        torch.manual_seed(0)
        weights = made._trainable(state, scaler, len(panel.sensors)).network.state_dict()
        for name, tensor in weights.items():  # some begin at zero, and would hide a difference
            state[f"weights/{name}"] = (tensor + 0.1 * torch.randn_like(tensor)).numpy()
        made.state_, made.calibration_ = state, None
        made._remember(given, made._own_split(given))
        return made

    return make


@pytest.fixture(scope="session")
def windows_of(panel: Panel) -> Callable[..., tuple[dict[str, Any], np.ndarray]]:
    """Returns inputs of a graph by name for windows that end at some rows, and candor's own forecasts from them."""

    def make(forecaster: Forecaster, origins: list[int], names: list[str]) -> tuple[dict[str, Any], np.ndarray]:
        windows = [panel.slice(origin - forecaster.history, origin) for origin in origins]
        calendars = [calendar_of(window.times.slice(0, forecaster.history + forecaster.horizon)) for window in windows]
        inputs: dict[str, Any] = {"readings": np.stack([window.values for window in windows])}
        for name in names[1:]:
            inputs[name] = np.stack([getattr(calendar, name) for calendar in calendars]).astype(np.int64)
        return inputs, np.concatenate([forecaster.predict(window) for window in windows])

    return make


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of a simple model, which needs no training to speak of."""
    return load_run(make_run(tmp_path / "run"))
