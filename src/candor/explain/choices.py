"""Defaults of explanations: which sensor, which forecast, and which windows."""

from datetime import datetime

import numpy as np

from candor.data.panel import Panel
from candor.data.protocol import Origins, Split, Task
from candor.forecasting.explanation import find_origin, find_sensor
from candor.forecasting.forecaster import Forecaster
from candor.training.batches import spread_evenly

MOST_WINDOWS = 200


def best_observed_sensor(task: Task) -> int:
    """Return the column of the sensor with most readings in the test part, or in all of a record without one."""
    begin = task.split.test[0] if len(task.split.test) else 0
    return int(task.panel.mask[begin:].sum(axis=0).argmax())


def last_known_origin(panel: Panel, forecaster: Forecaster) -> int:
    """Return the row of the first step of the last forecast whose whole outcome is known."""
    return max(forecaster.history, panel.times.length - forecaster.horizon)


def choose_forecast(
    task: Task, forecaster: Forecaster, sensor: str | None, time: datetime | str | None
) -> tuple[int, int]:
    """Return the column of a sensor and the row of the first step of a forecast; None takes the defaults above."""
    column = best_observed_sensor(task) if sensor is None else find_sensor(task.panel, sensor)
    if time is None:
        return column, last_known_origin(task.panel, forecaster)
    return column, find_origin(task.panel, time, forecaster.history)


def choose_windows(split: Split, length: int, most: int = MOST_WINDOWS) -> tuple[str, Origins]:
    """Return the name of the last part that has windows, and at most so many of them, spread evenly over it.

    Without any part it is the forecast after the last of the `length` rows.
    """
    parts = {"test part": split.test, "validation part": split.validation, "training part": split.train}
    for name, origins in parts.items():
        if len(origins):
            return name, origins[spread_evenly(len(origins), most)]
    return "end of the record", np.array([length], np.int64)
