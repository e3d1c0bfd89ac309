"""How much worse a model gets without its parts: the heat map of the ablations."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

from candor.figures.style import BLACK, BLUE, LABEL, SMALL, VERMILION, Drawing, dress, new_figure, plain

_LEAST_RANGE = 0.01  # so that differences below a percent look like what they are


@dataclass(frozen=True)
class HeatCell:
    """A relative change, 0.1 is ten percent worse, and whether it carries a dot."""

    change: float
    is_marked: bool


def draw_changes(rows: Mapping[str, Mapping[str, HeatCell]], title: str, note: str) -> Drawing:
    """Returns the heat map of changes by variant and metric; red is worse, blue is better."""
    metrics = list(dict.fromkeys(metric for cells in rows.values() for metric in cells))
    changes = np.array([[cells[metric].change for metric in metrics] for cells in rows.values()])
    figure = new_figure(title, note, height=1.4 + 0.36 * len(rows))
    axes = figure.subplots()
    dress(axes)
    axes.grid(visible=False)
    reach = max(_LEAST_RANGE, float(np.abs(changes).max()))
    colours = LinearSegmentedColormap.from_list("change", [BLUE, "#ffffff", VERMILION])
    axes.imshow(changes, cmap=colours, norm=TwoSlopeNorm(0.0, -reach, reach), aspect="auto")
    axes.set_xticks(range(len(metrics)), [metric.upper() for metric in metrics], fontsize=LABEL)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize=LABEL)
    axes.tick_params(length=0)
    for row, cells in enumerate(rows.values()):
        for column, metric in enumerate(metrics):
            dot = " •" if cells[metric].is_marked else ""
            text = f"{100 * cells[metric].change:+.1f} %{dot}"
            is_dark = abs(changes[row, column]) > 0.7 * reach
            axes.text(column, row, text, ha="center", va="center", fontsize=SMALL, color="white" if is_dark else BLACK)
    for spine in axes.spines.values():
        spine.set_visible(False)
    table = pd.DataFrame(
        [
            {"variant": name, "metric": metric, "relative_change": cell.change, "is_beyond_chance": cell.is_marked}
            for name, cells in rows.items()
            for metric, cell in cells.items()
        ]
    )
    return Drawing(figure, table)
