"""One forecast of one sensor with all that a network of CANDOR computed for it."""

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import torch
from numpy.typing import NDArray

from candor.core.arrays import Floats
from candor.core.text import date_time, sensor_label
from candor.data.panel import Panel
from candor.explain.analyses.states import WindowStates, window_states
from candor.explain.pictures import ComponentPicture, ForecastPicture
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import ForecastExplanation, Span, network_states
from candor.forecasting.forecaster import Forecaster

COVERAGE = 0.9
PAST_HORIZONS = 3  # readings shown before a forecast, in horizons
_MOST_KNOWN = 7  # digits of a reading in single precision


@dataclass(frozen=True, eq=False)
class OneForecast:
    """One forecast of one sensor with all that is known of it.

    Args:
        panel: the readings.
        column: of the sensor.
        origin: row of the first forecast step.
        found: what the network did.
        forecast: the forecast with its intervals, what was read before, and what happened.
        following: the same of the forecast after the last reading, if that is another one.
        states: of its window.
        alone: what each branch by itself would forecast, by step, in the sensor's unit.
    """

    panel: Panel
    column: int
    origin: int
    found: ForecastExplanation
    forecast: ForecastPicture
    following: ForecastPicture | None
    states: WindowStates
    alone: dict[str, NDArray[np.float32]]

    @property
    def name(self) -> str:
        """What people call the sensor."""
        return self.forecast.sensor

    def label(self, sensor: str, longest: int = 200) -> str:
        """Returns what people call a sensor."""
        return sensor_label(sensor, self.panel.sensors[self.panel.sensor_ids.index(sensor)].name, longest)

    @property
    def digits(self) -> int:
        """How many significant digits readings are given: so many that the ends of the narrowest interval differ."""
        values, lower, upper = self.forecast.forecast, self.forecast.lower, self.forecast.upper
        apart = np.ptp(values) if lower is None or upper is None else np.min(upper - lower)
        return digits_for(values, float(apart))

    def when(self, moment: datetime) -> str:
        """Returns a time in words, with the clock where readings are not daily."""
        return date_time(moment, self.panel.times.interval)

    def span(self, span: Span) -> str:
        """Returns a stretch of time in words."""
        return f"{self.when(span.start)} to {self.when(span.end)}"


def digits_for(values: Floats, apart: float) -> int:
    """Returns how many digits numbers need of which some lie only so far apart: three, or more if that is little.

    Levels above the sea differ by a ten-thousandth of what they are: three digits would make them all the same.
    """
    largest = float(np.abs(values).max())
    if not 0 < apart < largest:
        return 3
    needed = math.floor(math.log10(largest)) - math.floor(math.log10(apart)) + 2
    return min(max(needed, 3), _MOST_KNOWN)


@torch.no_grad()
def look_into(candor: Candor, panel: Panel, column: int, origin: int) -> OneForecast:
    """Returns all that is known of the forecast of one sensor from a row on."""
    trainable, windows = candor.trained(), candor.windows(panel, np.array([origin]))
    batch = windows.batch(np.array([0])).tensors()
    states, _ = network_states(trainable, batch)
    _, anchor = trainable.anchored(batch)
    scaler, length = trainable.scaler, panel.times.length
    return OneForecast(
        panel=panel,
        column=column,
        origin=origin,
        found=candor.explain(panel, panel.sensor_ids[column], panel.times.start + origin * panel.times.interval),
        forecast=picture_forecast(candor, panel, column, origin),
        following=None if origin == length else picture_forecast(candor, panel, column, length),
        states=window_states(trainable, windows),
        alone={
            branch: ((forecast + anchor) * scaler.deviation + scaler.mean)[0, :, column].numpy()
            for branch, forecast in states.branch_forecasts().items()
        },
    )


def picture_forecast(forecaster: Forecaster, panel: Panel, column: int, origin: int) -> ForecastPicture:
    """Returns the forecast of one sensor from a row on, with intervals if the forecaster knows its errors."""
    horizon, rows = forecaster.horizon, np.array([origin])
    begin = max(0, origin - max(forecaster.history, PAST_HORIZONS * horizon))
    times = panel.times.slice(begin, origin + horizon).local.to_pydatetime()
    happened = np.full(horizon, np.nan, np.float32)
    known = panel.values[origin : origin + horizon, column]
    happened[: len(known)] = known
    lower = upper = None
    if forecaster.calibration_ is None:
        forecast = forecaster.predict(panel, rows)
    else:
        made = forecaster.predict_interval(panel, rows, coverage=COVERAGE)
        forecast, lower, upper = made.forecast, made.lower[0, :, column], made.upper[0, :, column]
    return ForecastPicture(
        sensor=sensor_label(panel.sensors[column].id, panel.sensors[column].name),
        unit=panel.sensors[column].unit,
        past_times=list(times[: origin - begin]),
        past=panel.values[begin:origin, column],
        times=list(times[origin - begin :]),
        forecast=forecast[0, :, column],
        lower=lower,
        upper=upper,
        coverage=COVERAGE,
        happened=happened,
    )


def picture_components(found: ForecastExplanation, sensor: str) -> ComponentPicture | None:
    """Returns what the history before a forecast was split into; None if the network does not decompose."""
    if found.gates is None:
        return None
    return ComponentPicture(
        sensor=sensor,
        starts=[patch.start for patch in found.patches],
        ends=[patch.end for patch in found.patches],
        strengths={name: component.raw_strength for name, component in found.components.items()},
        gates=found.gates.by_name(),
    )
