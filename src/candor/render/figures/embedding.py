"""The states of the four components in the plane in which they spread most, and how far apart they are."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from candor.explain.pictures import EmbeddingPicture
from candor.render.figures.style import (
    BLACK,
    COMPONENTS,
    GREY,
    LABEL,
    Drawing,
    add_legend,
    dress,
    name_rows,
    new_figure,
)


def draw_embedding(picture: EmbeddingPicture) -> Drawing:
    """Returns the figure: the states on the left, their separation before and after training on the right."""
    figure = new_figure("The four components in one space", picture.note, height=4.8)
    plane, scores = figure.subplots(1, 2, width_ratios=(3, 2))
    across, up = (f"{100 * share:.0f} % of the variance" for share in picture.shares)
    dress(plane, f"first axis ({across})", f"second axis ({up})")
    for name, points in picture.points.items():
        look: dict[str, Any] = {"color": COMPONENTS[name].colour, "marker": COMPONENTS[name].mark}
        plane.scatter(points[:, 0], points[:, 1], s=11, alpha=0.5, linewidths=0, label=name, **look)
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
        colour = COMPONENTS[name].colour if name in COMPONENTS else BLACK
        ends = picture.before[name], picture.after[name]
        axes.plot(ends, [place, place], color=colour, linewidth=1.6, alpha=0.6)
        axes.plot(ends[:1], [place], "o", color="white", markeredgecolor=GREY, markersize=8)
        axes.plot(ends[1:], [place], "o", color=colour, markersize=8)
    axes.plot([], [], "o", color="white", markeredgecolor=GREY, markersize=8, label="before training")
    axes.plot([], [], "o", color=BLACK, markersize=8, label="after")
    name_rows(axes, names, LABEL, has_lines=True)
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
