"""Shock activity against rain: the correlation over lags with the band of shifted rain, and the test beside it."""

from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from candor.core.files import write_json
from candor.core.text import counted
from candor.core.versions import versions
from candor.render.figures import style
from candor.render.figures.style import Drawing, add_legend, dress, new_figure, write_table
from candor.research.shock_rain_runs import NAME, SHIFTS_NAME, RainComparison

_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY)
_BINS = 40
_DAY = 24  # hours


def write_comparison(found: RainComparison, folder: Path) -> list[Path]:
    """Write the figure, its numbers, those of every shift, and all of it as JSON; return the files."""
    files = write_picture(found, folder)
    made = datetime.now(UTC).replace(microsecond=0).isoformat()
    write_json(folder / f"{NAME}.json", found.content | {"made": made, "versions": versions()})
    return [*files, folder / f"{NAME}.json"]


def write_picture(found: RainComparison, folder: Path) -> list[Path]:
    """Write the figure with the numbers of both its sides, and return the files."""
    return [*draw_shock_rain(found).write(folder, NAME), write_table(found.null, folder / SHIFTS_NAME)]


def draw_shock_rain(found: RainComparison) -> Drawing:
    """Return the figure: correlation over lags on the left, the statistic of all shifts on the right."""
    content, models = found.content, counted(len(found.content["checkpoints"]), "model")
    note = (
        f"Spearman's correlation, mean over {found.stations} stations, {models}. "
        f"Right: {content['shifts']:,} circular shifts of the rain."
    )
    figure = new_figure(f"Shock activity and rain: {found.data}", note)
    lags, test = figure.subplots(1, 2, width_ratios=(4, 3))
    _draw_lags(lags, found)
    _draw_test(test, found)
    return Drawing(figure, found.curves)


def _draw_lags(axes: Axes, found: RainComparison) -> None:
    dress(axes, "lag [h]: activity after rain is positive", "correlation")
    lags, horizons = found.curves["lag_hours"].to_numpy(), found.content["horizons"]
    low, high = (found.curves[name].to_numpy() for name in ("shifts_lower_2.5", "shifts_upper_97.5"))
    label = "95 % of shifts, mean over horizons" if len(horizons) > 1 else "95 % of shifts"
    axes.fill_between(lags, low, high, color=style.GREY, alpha=0.3, linewidth=0, label=label)
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    axes.axvline(0, color=style.GREY, linewidth=0.8, linestyle=":")
    for row, colour in zip(horizons, cycle(_COLOURS), strict=False):
        ahead = f"{row['horizon']} steps ahead"
        curve = found.curves[f"correlation, {ahead}"].to_numpy()
        axes.plot(lags, curve, color=colour, linewidth=1.6, label=ahead)
        axes.plot(row["lag_hours"], np.nanmax(curve), "o", color=colour, markersize=6, zorder=4)
    if (reach := float(np.max(lags))) >= 2 * _DAY:
        days = _DAY * max(1, round(reach / _DAY / 3))
        axes.set_xticks(np.arange(-int(reach // days) * days, reach + 1, days))
    room = 0.0 if len(lags) > 1 else 1.0  # a single lag is a point, and an axis needs a width
    axes.set_xlim(float(np.min(lags)) - room, float(np.max(lags)) + room)
    add_legend(axes, 2)


def _draw_test(axes: Axes, found: RainComparison) -> None:
    dress(axes, "largest correlation over lags", "shifts")
    null = found.null["largest_correlation"].to_numpy()
    axes.hist(null, bins=_BINS, color=style.GREY, alpha=0.45)
    axes.axvline(float(null.mean()), color=style.GREY, linewidth=1.4, linestyle="--", label="mean of shifts")
    axes.axvline(
        found.content["rho"], color=style.VERMILION, linewidth=2.0, label=f"what happened, p = {found.content['p']:.2g}"
    )
    axes.grid(visible=False, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(labelsize=style.SMALL)
    add_legend(axes, 1)
