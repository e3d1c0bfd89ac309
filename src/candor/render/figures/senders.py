"""What one forecast took from other sensors: what arrived along edges, and the peers of the functional branch."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from candor.explain.pictures import ArrivalPicture, PeerPicture
from candor.render.figures.style import (
    GREY,
    POSITION_COLOURS,
    PURPLE,
    Drawing,
    add_key,
    add_legend,
    dress,
    name_rows,
    new_figure,
)

_SENDER, _PEER = 0.42, 0.3  # inches of height
_WAYS = {"forward": "along the edges", "reverse": "against the edges"}


def draw_arrivals(picture: ArrivalPicture) -> Drawing:
    """Returns the figure: a bar for every sender and patch, one direction above the other."""
    drawn = {direction: min(len(found.names), picture.most) for direction, found in picture.directions.items()}
    heights = [_SENDER * rows + 0.55 for rows in drawn.values()]
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
    add_key(key, panels[0].containers, 2, loc="center right")  # names are on the left
    rows_of_table = [
        {"direction": direction, "from": name, "position_of": picture.patches[position], "share": share}
        for direction, found in picture.directions.items()
        for name, shares in zip(found.names, found.shares, strict=True)
        for position, share in enumerate(shares)
    ]
    return Drawing(figure, pd.DataFrame(rows_of_table, columns=["direction", "from", "position_of", "share"]))


def _draw_direction(axes: Axes, picture: ArrivalPicture, direction: str, rows: int) -> None:
    found = picture.directions[direction]
    dress(axes, f"{_WAYS[direction]}, from these: share of what arrived [%]")
    positions = found.shares.shape[1]
    width = 0.8 / positions
    for position in range(positions):
        heights = np.arange(rows) + width * (position - (positions - 1) / 2)
        axes.barh(
            heights, 100 * found.shares[:rows, position], height=0.9 * width, color=POSITION_COLOURS[position],
            label=f"position of {picture.patches[position]}",
        )  # fmt: skip
    name_rows(axes, found.names[:rows])


def draw_peers(picture: PeerPicture) -> Drawing:
    """Returns the figure: a bar for every peer."""
    rows = min(len(picture.names), picture.most)
    note = f"The {rows} heaviest of {len(picture.names)} peers are shown." if rows < len(picture.names) else ""
    figure = new_figure(f"Peers of {picture.sensor}", note, height=1.9 + _PEER * max(rows, 2))
    axes = figure.subplots()
    dress(axes, "weight among peers [%]")
    colours = [PURPLE if is_beyond else GREY for is_beyond in picture.is_beyond[:rows]]
    axes.barh(range(rows), 100 * picture.weights[:rows], height=0.7, color=colours)
    name_rows(axes, picture.names[:rows])
    walk = f"a walk of up to {picture.orders} edge{'' if picture.orders == 1 else 's'}"
    key = [Patch(color=GREY, label=f"joined by {walk}"), Patch(color=PURPLE, label="not joined by any")]
    add_legend(axes, 2, key)
    table = {
        "peer": list(picture.names),
        "share": picture.weights,
        "resemblance": picture.resemblance,
        "is_beyond_edges": list(picture.is_beyond),
    }
    return Drawing(figure, pd.DataFrame(table))
