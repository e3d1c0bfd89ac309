"""How components align with the states of the physical branch, before training, after it, and with other windows."""

from collections.abc import Sequence
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes

from candor.explain.pictures import RolePicture
from candor.render.figures.style import BLUE, GREY, LABEL, ORANGE, Drawing, add_key, dress, name_rows, new_figure

_LOOKS = {
    "before": ("before training", GREY, "s"),
    "after": ("after training", BLUE, "o"),
    "after_apart": ("after, with another window's state", ORANGE, "^"),
    "deviations_before": ("before training", GREY, "s"),
    "deviations_after": ("after training", BLUE, "o"),
}
_STATES, _DEVIATIONS = ("before", "after", "after_apart"), ("deviations_before", "deviations_after")
_LETTERS = 20  # in a line beside the axis


def draw_roles(picture: RolePicture) -> Drawing:
    """Returns the figure: alignments of states on the left, of their deviations from the usual on the right."""
    note = (
        f"Cosines over {picture.windows:,} windows, all sensors and patches: 1 same direction, 0 unrelated, -1 opposite"
        ".\nMarks: means. Lines: from 10 % to 90 %. Deviations: from what is usual at the sensor, patch and hour."
    )
    rows = len(picture.alignments)
    figure = new_figure("Components and their parts in propagation", note, height=2.4 + 0.95 * rows)
    parts = figure.subplot_mosaic([["key", "key"], ["states", "deviations"]], height_ratios=(0.3, 0.95 * rows))
    states = parts["states"]
    _draw_side(states, picture, _STATES, "Of states")
    _draw_side(parts["deviations"], picture, _DEVIATIONS, "Of deviations from the usual")
    parts["deviations"].set_yticks([])
    add_key(parts["key"], states.get_legend_handles_labels()[0], len(_STATES))
    return Drawing(figure, _table(picture))


def _draw_side(axes: Axes, picture: RolePicture, kinds: Sequence[str], title: str) -> None:
    dress(axes, "cosine", "", title)
    for row, found in enumerate(picture.alignments.values()):
        for place, kind in enumerate(kinds):
            label, colour, mark = _LOOKS[kind]
            height, one = row + 0.24 * (place - 1), found[kind]
            axes.plot([one.low, one.high], [height, height], color=colour, linewidth=2.4, alpha=0.5)
            axes.plot([one.mean], [height], mark, color=colour, markersize=8, label=None if row else label)
    axes.set_xlim(-1.05, 1.05)
    name_rows(axes, [fill(name, _LETTERS) for name in picture.alignments], LABEL)
    axes.axvline(0, color=GREY, linewidth=0.8)


def _table(picture: RolePicture) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"compared": name, "what": kind, "mean": one.mean, "low_10": one.low, "high_90": one.high}
            for name, found in picture.alignments.items()
            for kind, one in found.items()
        ]
    )
