"""Three views of a panel before any model: coexisting dynamics, peak lags of edges, distant sensors alike or not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from candor.core.text import time_unit
from candor.data.times import BINS_PER_DAY
from candor.render.figures import style
from candor.render.figures.style import (
    Drawing,
    add_legend,
    dress,
    in_unit,
    new_figure,
    on_axis,
    plain,
    use_local_times,
    write_table,
)
from candor.research.explore import DynamicsPicture, ExplorePicture, LagPicture, PairPicture

NAME = "explore"
_HEIGHT = 8.2  # inches
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Apr", "Jul", "Oct")
_COLUMNS = ["time", "reading", "background", "is_rise", "is_fall", "is_shock"]
_FAINT = 300  # edges from which on dots are small and pale


def write_exploration(picture: ExplorePicture, folder: Path) -> list[Path]:
    """Write explore.png, .svg and .csv (the readings shown), and explore-*.csv of lags, pairs and profiles."""
    written = draw_explore(picture).write(folder, NAME)
    tables = {} if picture.lags is None else {"lags": picture.lags.table}
    tables["pairs"] = picture.pairs.table
    drawn = {"most alike": picture.similar, "least alike": picture.opposite}
    if profiles := [_profile_table(name, pair) for name, pair in drawn.items() if pair is not None]:
        tables["profiles"] = pd.concat(profiles)
    return written + [write_table(table, folder / f"{NAME}-{name}.csv") for name, table in tables.items()]


def draw_explore(picture: ExplorePicture) -> Drawing:
    """Return the figure; its table holds the readings shown."""
    distant = (
        "no path joins them" if picture.pairs.has_no_path else "the farthest tenth of pairs, by edges between them"
    )
    distant += ", and they are not close on the map" if picture.pairs.are_apart else ""
    note = (
        "Deviations are readings minus what is usual at their time of the week (daily readings: week of the year)."
        f"\nDistant: {distant}."
    )
    figure = new_figure(f"Before any model: {picture.name}", note, height=_HEIGHT)
    parts = figure.subplot_mosaic(
        [["dynamics", "dynamics"], ["lags", "similar"], ["lags", "opposite"]], height_ratios=(2.6, 1.6, 1.6)
    )
    _draw_dynamics(parts["dynamics"], picture.dynamics)
    if picture.lags is None:
        _say(parts["lags"], "(b) Peak lags of edges", "there are no edges")
    elif picture.lags.table.empty:
        _say(parts["lags"], "(b) Peak lags of edges", "too few readings to compare the ends of any edge")
    else:
        _draw_lags(parts["lags"], picture.lags)
    _draw_pair(parts["similar"], "(c) Distant and alike", picture.similar)
    opposite = picture.opposite
    word = "opposite" if opposite is not None and opposite.correlation < 0 else "least alike"
    _draw_pair(parts["opposite"], f"Distant and {word}", opposite)
    shown = picture.dynamics
    return Drawing(figure, shown.series.assign(time=[moment.isoformat() for moment in shown.times])[_COLUMNS])


def _draw_dynamics(axes: Axes, picture: DynamicsPicture) -> None:
    dress(axes, "", in_unit("reading", picture.unit))
    at, shown = on_axis(picture.times), {name: column.to_numpy() for name, column in picture.series.items()}
    readings = shown["reading"]
    axes.plot(at, readings, color=style.GREY, linewidth=0.9, zorder=2)
    axes.plot(at, shown["background"], color=style.BLUE, linewidth=2.0, label="background", zorder=3)
    for chosen, colour, label in ((shown["is_rise"], style.ORANGE, "rise"), (shown["is_fall"], style.GREEN, "fall")):
        axes.plot(at, np.where(chosen, readings, np.nan), color=colour, linewidth=2.4, label=label, zorder=4)
    shocks = shown["is_shock"] & ~np.isnan(readings)
    axes.plot(at[shocks], readings[shocks], "v", color=style.VERMILION, markersize=5, label="shock", zorder=5)
    use_local_times(axes, picture.times)
    add_legend(axes, 4)
    # Above the legend, whatever the length of the name.
    axes.set_title(
        plain(f"(a) Coexisting dynamics: {picture.sensor}"), fontsize=style.LABEL, loc="left", color=style.BLACK, pad=24
    )


def _draw_lags(axes: Axes, picture: LagPicture) -> None:
    word, size = time_unit(picture.interval)
    distance, steps, is_clear = (picture.table[name].to_numpy() for name in ("distance", "lag_steps", "is_clear"))
    lag = steps * (picture.interval / size)
    title = "(b) Peak lags of edges"
    kinds = [
        (chosen, colour, f"{label} ({chosen.sum():,})")
        for chosen, colour, label in ((~is_clear, style.GREY, "unclear"), (is_clear, style.BLUE, "clear peak"))
        if chosen.any()
    ]
    is_crowded = len(lag) > _FAINT
    if picture.distance_unit is None:
        dress(axes, f"lag [{word}]: positive where the target follows", "edges", title)
        step = picture.interval / size
        bins = np.arange(lag.min() - step / 2, lag.max() + step, step)
        colours, names = [colour for _, colour, _ in kinds], [name for _, _, name in kinds]
        axes.hist([lag[chosen] for chosen, _, _ in kinds], bins=list(bins), stacked=True, color=colours, label=names)
    else:
        across = in_unit("distance", picture.distance_unit)
        dress(axes, across, f"lag [{word}]: positive where the target follows", title)
        area, alpha = (7, 0.35) if is_crowded else (28, 0.75)
        axes.axhline(0, color=style.GREY, linewidth=0.8)
        for chosen, colour, name in kinds:
            face = "none" if colour == style.GREY else colour
            look: dict[str, Any] = {"facecolors": face, "edgecolors": colour, "label": name}
            axes.scatter(distance[chosen], lag[chosen], s=area, alpha=alpha, **look)
    scale = 2 if is_crowded else 1
    axes.legend(fontsize=style.SMALL, loc="upper right", edgecolor="white", framealpha=0.9, markerscale=scale)


def _draw_pair(axes: Axes, title: str, picture: PairPicture | None) -> None:
    if picture is None:
        _say(axes, title, "there is no such pair")
        return
    dress(axes, "", "usual reading\n[deviations]", f"{title}: correlation {picture.correlation:+.2f}")
    ends = zip((picture.first, picture.second), (style.BLUE, style.VERMILION), picture.profiles.T, strict=True)
    for name, colour, profile in ends:
        axes.plot(picture.slots, profile, color=colour, linewidth=1.3, alpha=0.85, label=plain(name))
    if picture.is_of_the_year:
        axes.set_xticks([0, 13, 26, 39], _MONTHS)
    else:
        axes.set_xticks([BINS_PER_DAY * day for day in range(7)], _WEEKDAYS)
    low, high = float(np.nanmin(picture.profiles)), float(np.nanmax(picture.profiles))
    axes.set_ylim(low - 0.1 * (high - low), high + 0.55 * (high - low))  # room for the names
    axes.legend(fontsize=style.SMALL - 1, frameon=False, loc="upper left", borderaxespad=0.1, labelspacing=0.2)


def _say(axes: Axes, title: str, text: str) -> None:
    dress(axes, title=title)
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=style.LABEL, color=style.GREY
    )


def _profile_table(name: str, picture: PairPicture) -> pd.DataFrame:
    """Return what is usual at both sensors of a pair, in deviations, by slot of the calendar."""
    slot = "week_of_year" if picture.is_of_the_year else "bin_of_week"
    names = {"pair": name, "first": picture.first, "second": picture.second}
    first, second = picture.profiles.T
    return pd.DataFrame({**names, slot: picture.slots, "first_usual": first, "second_usual": second})
