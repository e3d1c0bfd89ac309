"""Many windows, one call of the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.data.windows import Batch
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.network import NetworkForecaster
from candor.training.batches import micro_batches

Forecast = NDArray[np.float32]
_WINDOWS_AT_A_TIME = 16  # as the networks do it themselves: more do not fit into the cache


@dataclass(frozen=True, eq=False)
class Window:
    """What a forecast is made from.

    Args:
        panel: the forecast is for the steps after its last row.
        batch: the window as a network reads it; None for forecasters that are none.
    """

    panel: Panel
    batch: Batch | None


def open_window(forecaster: Forecaster, panel: Panel) -> Window:
    """Returns the window at the end of a panel that fits the forecaster, read and scaled."""
    if not isinstance(forecaster, NetworkForecaster):
        return Window(panel, None)
    origins = np.array([panel.times.length], np.int64)
    return Window(panel, forecaster.windows(panel, origins).batch(np.array([0])))


def forecast_windows(forecaster: Forecaster, windows: Sequence[Window]) -> list[Forecast]:
    """Returns the forecasts of windows of one forecaster, each step x sensor, in the sensors' units."""
    if not isinstance(forecaster, NetworkForecaster):
        return [forecaster.predict(window.panel)[0] for window in windows]
    trainable, forecasts = forecaster.trained(), list[Forecast]()
    for places in micro_batches(np.arange(len(windows)), _WINDOWS_AT_A_TIME):
        batches = [windows[place].batch for place in places]
        stacked = _stack([batch for batch in batches if batch is not None])
        with torch.no_grad():
            forecasts.extend(trainable.forecast(stacked.tensors()).numpy())
    return forecasts


def _stack(batches: Sequence[Batch]) -> Batch:
    arrays = {
        name: None if first is None else np.concatenate([getattr(batch, name) for batch in batches])
        for name, first in vars(batches[0]).items()
    }
    return Batch(**arrays)  # type: ignore[arg-type]
