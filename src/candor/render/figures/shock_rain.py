"""Shock activity against rain: the correlation over lags with the band of shifted rain, and the test beside it."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from candor.core.files import atomic_file, write_json
from candor.core.versions import versions
from candor.render.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    SMALL,
    VERMILION,
    Drawing,
    add_legend,
    dress,
    new_figure,
)
from candor.research.shock_rain_runs import NAME, SHIFTS_NAME, RunsAgainstRain, ShockRainPicture

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY)
_BINS = 40
_DAY = 24  # hours


def write_comparison(found: RunsAgainstRain, folder: Path) -> list[Path]:
    """Writes the figure, its numbers, those of every shift, and all of it as JSON; returns the files."""
    files = write_picture(found.picture(), folder)
    made = datetime.now(UTC).replace(microsecond=0).isoformat()
    write_json(folder / f"{NAME}.json", found.to_json() | {"made": made, "versions": versions()})
    return [*files, folder / f"{NAME}.json"]


def write_picture(picture: ShockRainPicture, folder: Path) -> list[Path]:
    """Writes the figure with the numbers of both its sides, and returns the files."""
    files = draw_shock_rain(picture).write(folder, NAME)
    with atomic_file(folder / SHIFTS_NAME) as temporary:
        pd.DataFrame({"largest_correlation": picture.null}).to_csv(temporary, index=False)
    return [*files, folder / SHIFTS_NAME]


def draw_shock_rain(picture: ShockRainPicture) -> Drawing:
    """Returns the figure: correlation over lags on the left, the statistic of all shifts on the right."""
    models = "1 model" if picture.checkpoints == 1 else f"{picture.checkpoints} models"
    note = (
        f"Spearman's correlation, mean over {picture.stations} stations, {models}. "
        f"Right: {len(picture.null):,} circular shifts of the rain."
    )
    figure = new_figure(f"Shock activity and rain: {picture.data}", note)
    lags, test = figure.subplots(1, 2, width_ratios=(4, 3))
    _draw_lags(lags, picture)
    _draw_test(test, picture)
    return Drawing(figure, _table(picture))


def _draw_lags(axes: Axes, picture: ShockRainPicture) -> None:
    dress(axes, "lag [h]: activity after rain is positive", "correlation")
    axes.fill_between(
        picture.lags,
        picture.band[0],
        picture.band[1],
        color=GREY,
        alpha=0.3,
        linewidth=0,
        label="95 % of shifts, mean over horizons" if len(picture.curves) > 1 else "95 % of shifts",
    )
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(picture.curves))]
    for (horizon, curve), colour in zip(picture.curves.items(), colours, strict=True):
        axes.plot(picture.lags, curve, color=colour, linewidth=1.6, label=f"{horizon} steps ahead")
        top = float(np.nanmax(curve))
        axes.plot([picture.selected[horizon]], [top], "o", color=colour, markersize=6, zorder=4)
    if (reach := float(np.max(picture.lags))) >= 2 * _DAY:
        days = _DAY * max(1, round(reach / _DAY / 3))
        axes.set_xticks(np.arange(-int(reach // days) * days, reach + 1, days))
    room = 0.0 if len(picture.lags) > 1 else 1.0  # a single lag is a point, and an axis needs a width
    axes.set_xlim(float(np.min(picture.lags)) - room, float(np.max(picture.lags)) + room)
    add_legend(axes, 2)


def _draw_test(axes: Axes, picture: ShockRainPicture) -> None:
    dress(axes, "largest correlation over lags", "shifts")
    axes.hist(picture.null, bins=_BINS, color=GREY, alpha=0.45)
    axes.axvline(float(picture.null.mean()), color=GREY, linewidth=1.4, linestyle="--", label="mean of shifts")
    axes.axvline(picture.rho, color=VERMILION, linewidth=2.0, label=f"what happened, p = {picture.p:.2g}")
    axes.grid(visible=False, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(labelsize=SMALL)
    add_legend(axes, 1)


def _table(picture: ShockRainPicture) -> pd.DataFrame:
    curves = {f"correlation, {horizon} steps ahead": curve for horizon, curve in picture.curves.items()}
    lower, upper = picture.band
    return pd.DataFrame({"lag_hours": picture.lags, **curves, "shifts_lower_2.5": lower, "shifts_upper_97.5": upper})
