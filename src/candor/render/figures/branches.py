"""What each branch alone would have forecast for one sensor, and how much it counted in the forecast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.render.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    Drawing,
    add_legend,
    dress,
    in_unit,
    new_figure,
    on_axis,
    use_local_times,
)

_LOOKS = {"functional": (BLUE, "o-"), "forward": (ORANGE, "s-"), "reverse": (GREEN, "^--")}
_MOST_MARKS = 60


@dataclass(frozen=True, eq=False)
class BranchPicture:
    """Branches of one forecast.

    Args:
        sensor: what people call it.
        unit: of the forecasts.
        times: local times of the forecast steps, at least two.
        forecast: of all branches together, by step.
        alone: of each branch by itself, by step.
        weights: of each branch, by step: mean over the target patches that cover it.
        happened: readings of the steps, NaN where there is none.
    """

    sensor: str
    unit: str
    times: Sequence[datetime]
    forecast: NDArray[np.floating]
    alone: Mapping[str, NDArray[np.floating]]
    weights: Mapping[str, NDArray[np.floating]]
    happened: NDArray[np.floating]


def draw_branches(picture: BranchPicture) -> Drawing:
    """Returns the figure: forecasts of single branches above, their weights below."""
    note = (
        "What is decoded is the weighted sum of their states, so that the forecast of all need not lie between theirs."
    )
    figure = new_figure(f"Branches for {picture.sensor}", note, height=5.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = on_axis(picture.times)
    size = 4 if len(places) <= _MOST_MARKS else 0
    dress(above, "", in_unit("forecast", picture.unit))
    for name, values in picture.alone.items():
        colour, line = _LOOKS[name]
        above.plot(places, values, line, color=colour, linewidth=1.4, markersize=size, label=f"{name} alone")
    above.plot(places, picture.forecast, color=BLACK, linewidth=2.4, label="together")
    if not np.isnan(picture.happened).all():
        above.plot(places, picture.happened, "o:", color=VERMILION, linewidth=1.2, markersize=3, label="what happened")
    add_legend(above, 5)
    dress(below, "", "weight, stacked")
    colours = [_LOOKS[name][0] for name in picture.weights]
    stacked = np.stack([np.asarray(weights) for weights in picture.weights.values()])
    below.stackplot(places, stacked, colors=colours, labels=list(picture.weights), alpha=0.8)
    below.set_ylim(0, 1)
    add_legend(below, 3)
    use_local_times(below, picture.times)
    return Drawing(figure, _table(picture))


def _table(picture: BranchPicture) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "time": [moment.isoformat() for moment in picture.times],
            "forecast": picture.forecast,
            "reading": picture.happened,
            **{f"{name} alone": values for name, values in picture.alone.items()},
            **{f"{name} weight": values for name, values in picture.weights.items()},
        }
    )
