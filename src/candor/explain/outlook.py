"""Two forecasts of every sensor: the last one whose outcome is known, and the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from candor.core.arrays import Floats
from candor.data.panel import Panel
from candor.explain.choices import last_known_origin
from candor.explain.one_forecast import COVERAGE, PAST_HORIZONS
from candor.forecasting.forecaster import Forecaster

_MOST_READINGS = 400_000  # over all sensors: 2 MB of a report


@dataclass(frozen=True, eq=False)
class Forecasts:
    """One forecast of all sensors, in their units.

    Args:
        times: of the steps, on the local clock.
        forecast: step x sensor.
        lower: lower ends of the intervals, step x sensor; None if the forecaster does not know its errors.
        upper: upper ends.
    """

    times: Sequence[datetime]
    forecast: Floats
    lower: Floats | None
    upper: Floats | None


@dataclass(frozen=True, eq=False)
class Outlook:
    """Recent readings with the forecast that was made a horizon ago, and the one that can be made now.

    Args:
        times: of the readings, on the local clock.
        readings: time x sensor, NaN where there is none.
        known: the last forecast whose outcome is known.
        ahead: the forecast of the steps after the last reading.
        coverage: probability that an interval contains the reading.
    """

    times: Sequence[datetime]
    readings: Floats
    known: Forecasts
    ahead: Forecasts
    coverage: float = COVERAGE


def look_ahead(forecaster: Forecaster, panel: Panel, measured: Floats) -> Outlook:
    """Returns the outlook at the end of a panel, of which only some readings may have been measured: time x sensor."""
    length, horizon = panel.times.length, forecaster.horizon
    origin = last_known_origin(panel, forecaster)
    shown = max(forecaster.history, PAST_HORIZONS * horizon) + length - origin
    begin = max(0, length - min(shown, max(horizon, _MOST_READINGS // len(panel.sensors))))
    return Outlook(
        times=_times(panel, begin, length),
        readings=measured[begin:],
        known=_forecast(forecaster, panel, origin),
        ahead=_forecast(forecaster, panel, length),
    )


def _forecast(forecaster: Forecaster, panel: Panel, origin: int) -> Forecasts:
    times, rows = _times(panel, origin, origin + forecaster.horizon), np.array([origin])
    if forecaster.calibration_ is None:
        return Forecasts(times, forecaster.predict(panel, rows)[0], None, None)
    made = forecaster.predict_interval(panel, rows, COVERAGE)
    return Forecasts(times, made.forecast[0], made.lower[0], made.upper[0])


def _times(panel: Panel, begin: int, end: int) -> list[datetime]:
    return list(panel.times.slice(begin, end).local.to_pydatetime())
