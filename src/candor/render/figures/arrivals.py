"""What arrived at one sensor along edges: from whom, and at which position of the window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from candor.render.figures.style import BLUE, GREEN, ORANGE, PURPLE, SMALL, Drawing, dress, new_figure, plain

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
_TITLES = {"forward": "Along the edges, from", "reverse": "Against the edges, from"}
_ROW = 0.42  # inches of height for a sender


@dataclass(frozen=True, eq=False)
class Senders:
    """What came along the edges of one direction, the most first.

    Args:
        names: of the senders.
        shares: sender x position: parts of all that arrived in this direction; they sum to one over all senders.
    """

    names: Sequence[str]
    shares: NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ArrivalPicture:
    """What arrived at one sensor.

    Args:
        sensor: what people call it.
        patches: what the positions speak of, in words, the oldest first.
        directions: forward and reverse, those that anything came along.
        most: senders that are drawn of each direction.
    """

    sensor: str
    patches: Sequence[str]
    directions: Mapping[str, Senders]
    most: int = 6


def draw_arrivals(picture: ArrivalPicture) -> Drawing:
    """Returns the figure: a bar for every sender and patch, one direction above the other."""
    drawn = {direction: min(len(found.names), picture.most) for direction, found in picture.directions.items()}
    heights = [_ROW * rows + 0.55 for rows in drawn.values()]
    note = (
        "Shares of all that arrived in one direction, by the size of states; longer ways than one edge are left out.\n"
        "Positions mix the patches that they are named after: no delay can be read from them."
    )
    if any(rows < len(picture.directions[direction].names) for direction, rows in drawn.items()):
        note += f"\nOf each direction the {picture.most} largest senders are shown."
    words = 0.25 * -(-len(picture.patches) // 2)
    figure = new_figure(f"What arrived at {picture.sensor}", note, height=1.6 + words + sum(heights))
    key, *panels = figure.subplots(1 + len(heights), 1, height_ratios=(words, *heights))
    for axes, (direction, rows) in zip(panels, drawn.items(), strict=True):
        _draw_direction(axes, picture, direction, rows)
    key.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    key.legend(handles, labels, loc="center right", ncols=2, fontsize=SMALL, frameon=False)  # names are on the left
    return Drawing(figure, _table(picture))


def _draw_direction(axes: Axes, picture: ArrivalPicture, direction: str, rows: int) -> None:
    found = picture.directions[direction]
    dress(axes, f"{_TITLES[direction].lower()} these: share of what arrived [%]")
    positions = found.shares.shape[1]
    width = 0.8 / positions
    for position in range(positions):
        heights = np.arange(rows) + width * (position - (positions - 1) / 2)
        axes.barh(
            heights, 100 * found.shares[:rows, position], height=0.9 * width, color=_COLOURS[position],
            label=f"position of {picture.patches[position]}",
        )  # fmt: skip
    axes.set_yticks(range(rows), [plain(name) for name in found.names[:rows]], fontsize=SMALL)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _table(picture: ArrivalPicture) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"direction": direction, "from": name, "position_of": picture.patches[position], "share": share}
            for direction, found in picture.directions.items()
            for name, shares in zip(found.names, found.shares, strict=True)
            for position, share in enumerate(shares)
        ],
        columns=["direction", "from", "position_of", "share"],
    )
