"""Many windows, one call of the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candor.data.panel import Panel
from candor.data.windows import Batch
from candor.forecasting.forecaster import Forecaster
from candor.forecasting.inference import infer
from candor.forecasting.network import NetworkForecaster
from candor.training.batches import Indices

Forecast = NDArray[np.float32]


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
    stacked = _Stacked([window.batch for window in windows if window.batch is not None])
    # One thread: several requests may be here at once, and the threads PyTorch uses are set for the whole process.
    found = infer(forecaster.trained(), stacked, lambda net, batch: net.forecast(batch), threads=1)
    return [forecast for forecasts in found for forecast in forecasts.numpy()]


class _Stacked:
    """Windows of several panels, to be asked for by index."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def batch(self, indices: Indices) -> Batch:
        """Returns the windows at indices as one batch."""
        chosen = [self._batches[index] for index in indices]
        arrays = {
            name: None if first is None else np.concatenate([getattr(batch, name) for batch in chosen])
            for name, first in vars(chosen[0]).items()
        }
        return Batch(**arrays)  # type: ignore[arg-type]
