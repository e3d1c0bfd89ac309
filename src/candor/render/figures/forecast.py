"""The forecast of one sensor: what was read before, what is forecast, how sure that is, and what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.render.figures.style import (
    BLACK,
    BLUE,
    GREY,
    VERMILION,
    Drawing,
    add_legend,
    dress,
    in_unit,
    new_figure,
    on_axis,
    use_local_times,
)


@dataclass(frozen=True, eq=False)
class ForecastPicture:
    """One forecast of one sensor, in its unit.

    Args:
        sensor: what people call it.
        unit: of all numbers.
        past_times: local times of the readings before the forecast.
        past: those readings, NaN where there is none.
        times: local times of the forecast steps.
        forecast: by step.
        lower: lower ends of the intervals by step; None if there are none.
        upper: upper ends.
        coverage: chance that an interval holds the reading.
        happened: readings of the forecast steps, NaN where there is none; None if they are not known yet.
    """

    sensor: str
    unit: str
    past_times: Sequence[datetime]
    past: NDArray[np.floating]
    times: Sequence[datetime]
    forecast: NDArray[np.floating]
    lower: NDArray[np.floating] | None = None
    upper: NDArray[np.floating] | None = None
    coverage: float = 0.9
    happened: NDArray[np.floating] | None = None


def draw_forecast(picture: ForecastPicture) -> Drawing:
    """Returns the figure of a forecast."""
    figure = new_figure(f"Forecast for {picture.sensor}")
    axes = figure.subplots()
    dress(axes, "", in_unit("reading", picture.unit))
    before, ahead = on_axis(picture.past_times), on_axis(picture.times)
    axes.plot(before, picture.past, "o-", color=BLACK, linewidth=1.6, markersize=3, label="readings")
    if picture.lower is not None and picture.upper is not None:
        band = f"{100 * picture.coverage:g} % interval"
        axes.fill_between(ahead, picture.lower, picture.upper, color=BLUE, alpha=0.18, linewidth=0, label=band)
    axes.plot(ahead, picture.forecast, "o-", color=BLUE, linewidth=2.0, markersize=3, label="forecast")
    if picture.happened is not None and not np.isnan(picture.happened).all():
        axes.plot(ahead, picture.happened, "o--", color=VERMILION, linewidth=1.2, markersize=3, label="what happened")
    axes.axvline(ahead[0], color=GREY, linewidth=0.8, linestyle=":")
    use_local_times(axes, [*picture.past_times, *picture.times])
    add_legend(axes, 4)
    return Drawing(figure, _table(picture))


def _table(picture: ForecastPicture) -> pd.DataFrame:
    past, ahead = len(picture.past_times), len(picture.times)

    def after(values: NDArray[np.floating] | None) -> NDArray[np.floating]:
        return np.concatenate([np.full(past, np.nan), np.full(ahead, np.nan) if values is None else values])

    happened = np.full(ahead, np.nan) if picture.happened is None else picture.happened
    return pd.DataFrame(
        {
            "time": [moment.isoformat() for moment in (*picture.past_times, *picture.times)],
            "reading": np.concatenate([picture.past, happened]),
            "forecast": after(picture.forecast),
            "lower": after(picture.lower),
            "upper": after(picture.upper),
        }
    )
