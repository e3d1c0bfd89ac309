"""The states of the four components in the plane in which they spread most, and how far apart they are."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from candor.render.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LABEL,
    ORANGE,
    VERMILION,
    Drawing,
    add_legend,
    dress,
    new_figure,
)

_LOOKS = {"background": (BLUE, "o"), "accumulation": (ORANGE, "^"), "release": (GREEN, "s"), "shock": (VERMILION, "D")}


@dataclass(frozen=True, eq=False)
class EmbeddingPicture:
    """States of components in two dimensions.

    Args:
        points: by component, state x 2.
        shares: of the variance along the two axes.
        before: separation by component, and under `all` of all of them, before training: -1 to 1.
        after: the same after training.
        note: what the states are.
    """

    points: Mapping[str, NDArray[np.floating]]
    shares: tuple[float, float]
    before: Mapping[str, float]
    after: Mapping[str, float]
    note: str = ""


def draw_embedding(picture: EmbeddingPicture) -> Drawing:
    """Returns the figure: the states on the left, their separation before and after training on the right."""
    figure = new_figure("The four components in one space", picture.note, height=4.8)
    plane, scores = figure.subplots(1, 2, width_ratios=(3, 2))
    across, up = (f"{100 * share:.0f} % of the variance" for share in picture.shares)
    dress(plane, f"first axis ({across})", f"second axis ({up})")
    for name, points in picture.points.items():
        colour, mark = _LOOKS[name]
        plane.scatter(points[:, 0], points[:, 1], s=11, color=colour, marker=mark, alpha=0.5, linewidths=0, label=name)
    add_legend(plane, 2)
    for handle in plane.get_legend().legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)
    _draw_scores(scores, picture)
    return Drawing(figure, _table(picture))


def _draw_scores(axes: Axes, picture: EmbeddingPicture) -> None:
    """Draws a line from the separation before training to that after it, for each component."""
    dress(axes, "separation (silhouette)")
    names = list(picture.after)
    for place, name in enumerate(names):
        colour = _LOOKS[name][0] if name in _LOOKS else BLACK
        ends = picture.before[name], picture.after[name]
        axes.plot(ends, [place, place], color=colour, linewidth=1.6, alpha=0.6)
        axes.plot(ends[:1], [place], "o", color="white", markeredgecolor=GREY, markersize=8)
        axes.plot(ends[1:], [place], "o", color=colour, markersize=8)
    axes.plot([], [], "o", color="white", markeredgecolor=GREY, markersize=8, label="before training")
    axes.plot([], [], "o", color=BLACK, markersize=8, label="after")
    axes.set_yticks(range(len(names)), names, fontsize=LABEL)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-1, 1)
    axes.axvline(0, color=GREY, linewidth=0.8)
    add_legend(axes, 2)


def _table(picture: EmbeddingPicture) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "component": name,
                "first_axis": points[:, 0],
                "second_axis": points[:, 1],
                "separation_before": picture.before[name],
                "separation_after": picture.after[name],
            }
        )
        for name, points in picture.points.items()
    ]
    return pd.concat(parts, ignore_index=True)
