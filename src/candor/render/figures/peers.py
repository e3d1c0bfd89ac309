"""The peers of one sensor: those that it listens to, and whether edges join them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.patches import Patch
from numpy.typing import NDArray

from candor.render.figures.style import GREY, PURPLE, SMALL, Drawing, dress, new_figure, plain

_ROW = 0.3  # inches of height for a peer


@dataclass(frozen=True, eq=False)
class PeerPicture:
    """Peers of one sensor, the heaviest first.

    Args:
        sensor: what people call it.
        names: of the peers.
        weights: of the peers; they sum to one.
        resemblance: of their backgrounds to that of the sensor, -1 to 1.
        is_beyond: whether no short walk along edges joins a peer and the sensor.
        orders: edges of the longest walk that counts as short.
        most: peers that are drawn.
    """

    sensor: str
    names: Sequence[str]
    weights: NDArray[np.floating]
    resemblance: NDArray[np.floating]
    is_beyond: Sequence[bool]
    orders: int
    most: int = 12


def draw_peers(picture: PeerPicture) -> Drawing:
    """Returns the figure: a bar for every peer."""
    rows = min(len(picture.names), picture.most)
    note = f"The {rows} heaviest of {len(picture.names)} peers are shown." if rows < len(picture.names) else ""
    figure = new_figure(f"Peers of {picture.sensor}", note, height=1.9 + _ROW * max(rows, 2))
    axes = figure.subplots()
    dress(axes, "weight among peers [%]")
    colours = [PURPLE if is_beyond else GREY for is_beyond in picture.is_beyond[:rows]]
    axes.barh(range(rows), 100 * picture.weights[:rows], height=0.7, color=colours)
    axes.set_yticks(range(rows), [plain(name) for name in picture.names[:rows]], fontsize=SMALL)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    walk = f"a walk of up to {picture.orders} edge{'' if picture.orders == 1 else 's'}"
    key = [Patch(color=GREY, label=f"joined by {walk}"), Patch(color=PURPLE, label="not joined by any")]
    axes.legend(
        handles=key, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, fontsize=SMALL, frameon=False,
        borderaxespad=0.3,
    )  # fmt: skip
    table = {
        "peer": list(picture.names),
        "share": picture.weights,
        "resemblance": picture.resemblance,
        "is_beyond_edges": list(picture.is_beyond),
    }
    return Drawing(figure, pd.DataFrame(table))
