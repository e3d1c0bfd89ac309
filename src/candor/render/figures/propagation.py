"""Residuals and the contributions they become: one window patch by patch, and all windows by lag."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

from candor.core.arrays import Floats
from candor.core.text import shared_time_format
from candor.explain.pictures import PropagationPicture
from candor.render.figures.style import (
    BLUE,
    GREY,
    LABEL,
    ORANGE,
    SMALL,
    Drawing,
    at_tick,
    cut,
    dress,
    name_rows,
    new_figure,
)

_MOST_NAMES, _MOST_PATCHES = 26, 6
_LONGEST_ID = 15
_LARGEST = 2.5  # end of the colours: so many times as unusual as states mostly are
_LINE = 0.17  # inches of height for a sensor


def draw_propagation(picture: PropagationPicture) -> Drawing:
    """Returns the figure: two maps of one window above, likeness and influence over all windows below."""
    note = (
        "Above: one window; 1 is as far from the usual as states mostly are, and what arrives stands at the patch it "
        f"helps to predict.\nBelow: over {picture.windows:,} windows; shaded are the lags whose residuals are used."
    )
    shown = min(len(picture.sensors), _MOST_NAMES)
    tall = max(1.8, _LINE * shown)
    figure = new_figure("From residuals to what arrives", note, height=4.3 + tall)
    parts = figure.subplot_mosaic([["residual", "arriving"], ["likeness", "influence"]], height_ratios=(tall, 2.1))
    _draw_map(parts["residual"], picture, picture.residual, 0, "Residual E: how unusual")
    colours = _draw_map(parts["arriving"], picture, picture.contribution, 1, "What arrives, o: how unusual")
    parts["arriving"].set_yticks([])
    bar = figure.colorbar(colours, ax=[parts["residual"], parts["arriving"]], shrink=0.9, pad=0.02, extend="max")
    bar.ax.tick_params(labelsize=SMALL)
    _draw_likeness(parts["likeness"], picture)
    _draw_influence(parts["influence"], picture)
    return Drawing(figure, _table(picture))


def _draw_map(axes: Axes, picture: PropagationPicture, values: Floats, first: int, title: str) -> Any:
    """Draws sensors down and patches across, the patch numbered `first` on the left."""
    dress(axes, "patch beginning", "", title)
    axes.grid(visible=False)
    patches, sensors = values.shape[1], values.shape[0]
    colours = LinearSegmentedColormap.from_list("unusual", ["#ffffff", BLUE, "#001a33"])
    edges = np.arange(patches + 1) + first - 0.5
    drawn = axes.pcolormesh(
        edges, np.arange(sensors + 1) - 0.5, values, cmap=colours, vmin=0, vmax=_LARGEST, rasterized=True
    )
    axes.set_ylim(sensors - 0.5, -0.5)
    axes.set_xlim(-0.5, patches + 0.5)  # both maps share their patches
    starts = picture.starts
    form = f"%d %b\n{shared_time_format(starts)}"
    shown = range(0, len(starts), -(-len(starts) // _MOST_PATCHES))
    texts = [at_tick(starts[place], form) for place in shown]
    axes.set_xticks(list(shown), texts, fontsize=SMALL)
    if sensors <= _MOST_NAMES:
        name_rows(axes, [cut(name, _LONGEST_ID) for name in picture.sensors], SMALL - 1)
    else:
        axes.set_ylabel(f"{sensors:,} sensors", fontsize=LABEL)
        axes.set_yticks([])
    return drawn


def _draw_likeness(axes: Axes, picture: PropagationPicture) -> None:
    dress(axes, "patches before the one predicted", "likeness", "Along the edges, and what arrives")
    if np.isnan(picture.likeness).all():
        axes.text(0.5, 0.5, "no edges between sensors", transform=axes.transAxes, ha="center", fontsize=LABEL)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    axes.axvspan(0.5, len(picture.own) + 0.5, color=GREY, alpha=0.2, linewidth=0)
    axes.plot(picture.lags, picture.likeness, "o-", color=BLUE, linewidth=1.8, markersize=5)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.invert_xaxis()  # time runs to the right


def _draw_influence(axes: Axes, picture: PropagationPicture) -> None:
    dress(axes, "patches before the one predicted", "change of what arrives", "If a residual were as usual")
    lags = np.arange(1, len(picture.own) + 1)
    axes.bar(lags + 0.2, picture.own, width=0.38, color=ORANGE, label="the sensor's own")
    axes.bar(lags - 0.2, picture.others, width=0.38, color=BLUE, label="of all others")
    axes.set_xticks(lags, [str(lag) for lag in lags])
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 1.35 * max(0.05, float(np.max([picture.own, picture.others]))))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.invert_xaxis()
    axes.legend(loc="upper left", ncols=2, fontsize=SMALL, frameon=False)


def _table(picture: PropagationPicture) -> pd.DataFrame:
    """Returns one row per number: what it is, of which sensor and patch, at which lag."""
    rows: list[dict[str, Any]] = []
    for name, values, first in (("residual", picture.residual, 0), ("contribution", picture.contribution, 1)):
        rows += [
            {"what": f"{name}, how unusual", "sensor": picture.sensors[sensor], "value": values[sensor, patch]}
            | {"patch_begins": picture.starts[patch + first].isoformat()}
            for sensor in range(values.shape[0])
            for patch in range(values.shape[1])
        ]
    rows += [
        {"what": "likeness", "lag": int(lag), "value": value}
        for lag, value in zip(picture.lags, picture.likeness, strict=True)
    ]
    for name, influence in (("own", picture.own), ("others", picture.others)):
        rows += [
            {"what": f"influence of {name}", "lag": lag, "value": value} for lag, value in enumerate(influence, start=1)
        ]
    return pd.DataFrame(rows, columns=["what", "sensor", "patch_begins", "lag", "value"])
