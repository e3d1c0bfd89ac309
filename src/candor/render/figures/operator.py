"""The weights of edges by position of the window: as given, as learned for all windows, and as windows vary."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from candor.core.arrays import Integers
from candor.explain.pictures import OperatorPicture, OperatorWeights
from candor.render.figures.style import (
    BLACK,
    DIRECTIONS,
    GREY,
    POSITION_COLOURS,
    SMALL,
    Drawing,
    add_key,
    cut,
    dress,
    name_rows,
    new_figure,
)

_MOST_EDGES = 12
_LONGEST_ID = 15
_ROW = 0.3  # inches of height for an edge


def draw_operator(picture: OperatorPicture) -> Drawing:
    """Returns the figure of the edges that learning changed most, one direction above the other."""
    chosen = {direction: _most_changed(edges) for direction, edges in picture.directions.items()}
    chosen = {direction: edges for direction, edges in chosen.items() if len(edges)}
    note = (
        f"Lines: 10 % to 90 % of {picture.windows:,} windows. Up to {_MOST_EDGES} edges that learning changed most; "
        "the table has all.\nAn edge that is the only one into its sensor weighs 1 and is not shown."
    )
    heights = [_ROW * max(len(edges), 2) + 0.5 for edges in chosen.values()] or [0.6]
    figure = new_figure("Weights of edges: given, learned, and by window", note, height=1.9 + sum(heights))
    key, *panels = figure.subplots(1 + len(heights), 1, height_ratios=(0.45, *heights))
    for axes, (direction, edges) in zip(panels, chosen.items(), strict=False):
        _draw_direction(axes, picture, direction, edges)
    if not chosen:
        panels[0].set_axis_off()
        panels[0].text(0, 0.5, "Every sensor hears from one other at most: all weights are 1.", fontsize=SMALL)
    _draw_key(key, positions=next(iter(picture.directions.values())).mean.shape[0])
    return Drawing(figure, _table(picture))


def _most_changed(edges: OperatorWeights) -> Integers:
    """Returns the edges with a choice whose weights differ most from those that were given, by receiver."""
    change = np.abs(np.stack([edges.low, edges.mean, edges.high]) - edges.support).max(axis=(0, 1))
    candidates = np.flatnonzero(edges.has_choice & (edges.sender != edges.receiver))
    most = candidates[np.argsort(-change[candidates], kind="stable")[:_MOST_EDGES]]
    return most[np.lexsort((edges.sender[most], edges.receiver[most]))]


def _draw_direction(axes: Axes, picture: OperatorPicture, direction: str, chosen: Integers) -> None:
    edges = picture.directions[direction]
    dress(axes, "weight: share of what the sensor hears", "", DIRECTIONS[direction])
    positions = edges.mean.shape[0]
    for row, edge in enumerate(chosen.tolist()):
        for position in range(positions):
            height = row + 0.6 * ((position + 0.5) / positions - 0.5)
            colour = POSITION_COLOURS[position]
            axes.plot([edges.low[position, edge], edges.high[position, edge]], [height, height], color=colour,
                      linewidth=2.2, alpha=0.5)  # fmt: skip
            axes.plot(
                edges.with_shared[position, edge], height, "D", color="white", markeredgecolor=colour, markersize=5
            )
            axes.plot(edges.mean[position, edge], height, "o", color=colour, markersize=5)
        axes.plot([edges.support[0, edge]] * 2, [row - 0.36, row + 0.36], color=BLACK, linewidth=2)
    names = [
        f"{cut(picture.sensors[edges.sender[e]], _LONGEST_ID)} → {cut(picture.sensors[edges.receiver[e]], _LONGEST_ID)}"
        for e in chosen
    ]
    name_rows(axes, names, SMALL - 1, has_lines=True)
    axes.set_xlim(-0.01, 1.01)


def _draw_key(axes: Axes, positions: int) -> None:
    words = ["newest patch", *(f"{back} before" for back in range(1, positions))][::-1]
    handles = [
        Line2D([], [], color=BLACK, linestyle="none", marker="|", markersize=9, markeredgewidth=2, label="as given"),
        Line2D([], [], color="white", marker="D", markeredgecolor=GREY, markersize=5, linestyle="none",
               label="for all windows"),
        Line2D([], [], color=GREY, marker="o", markersize=5, linestyle="none", label="mean over windows"),
        *(Line2D([], [], color=POSITION_COLOURS[place], linewidth=3, label=word) for place, word in enumerate(words)),
    ]  # fmt: skip
    columns = len(handles) if positions <= 2 else 4
    add_key(axes, handles, columns, fontsize=SMALL - 0.5, columnspacing=1.0, handletextpad=0.5)


def _table(picture: OperatorPicture) -> pd.DataFrame:
    parts = []
    for direction, edges in picture.directions.items():
        positions, count = edges.mean.shape
        columns: dict[str, object] = {
            "direction": direction,
            "from": np.tile([picture.sensors[place] for place in edges.sender], positions),
            "to": np.tile([picture.sensors[place] for place in edges.receiver], positions),
            "patches_before_newest": np.repeat(np.arange(positions)[::-1], count),
            "weight_as_given": edges.support.ravel(),
            "weight_for_all_windows": edges.with_shared.ravel(),
            "weight_mean": edges.mean.ravel(),
            "weight_10": edges.low.ravel(),
            "weight_90": edges.high.ravel(),
        }
        if edges.shared_scores is not None and edges.sample_mean is not None and edges.sample_deviation is not None:
            columns |= {
                "shared_score": edges.shared_scores.ravel(),
                "window_score_mean": np.tile(edges.sample_mean, positions),
                "window_score_deviation": np.tile(edges.sample_deviation, positions),
            }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)
