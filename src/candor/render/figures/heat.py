"""How much worse a model gets without its parts: the heat map of the ablations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

from candor.render.figures.style import BLACK, BLUE, LABEL, SMALL, VERMILION, WIDTH, Drawing, dress, new_figure, plain

_LEAST_RANGE = 0.01  # so that differences below a percent look like what they are
_COLUMN, _NAMES = 0.8, 1.6  # inches that a column and the names of variants need
_ABOVE_METRICS = 20.0  # points


@dataclass(frozen=True)
class HeatCell:
    """A relative change, 0.1 is ten percent worse, whether it carries a dot, and the parameters of the variant."""

    change: float
    is_marked: bool
    parameters: int | None = None


def draw_changes(rows: Mapping[str, Mapping[str, HeatCell]], title: str, note: str) -> Drawing:
    """Returns the heat map of changes by variant and metric; red is worse, blue is better.

    Args:
        rows: by variant and metric; where there are several tasks, `TASK, METRIC`. What a variant lacks stays empty.
        title: of the figure.
        note: small print.
    """
    metrics = list(dict.fromkeys(metric for cells in rows.values() for metric in cells))
    nothing = HeatCell(np.nan, is_marked=False)
    changes = np.array([[cells.get(metric, nothing).change for metric in metrics] for cells in rows.values()])
    figure = new_figure(title, note, height=1.4 + 0.36 * len(rows))
    figure.set_figwidth(max(WIDTH, _NAMES + _COLUMN * len(metrics)))
    axes = figure.subplots()
    dress(axes)
    axes.grid(visible=False)
    reach = max(_LEAST_RANGE, float(np.nanmax(np.abs(changes))))
    colours = LinearSegmentedColormap.from_list("change", [BLUE, "#ffffff", VERMILION])
    axes.imshow(np.ma.masked_invalid(changes), cmap=colours, norm=TwoSlopeNorm(0.0, -reach, reach), aspect="auto")
    axes.set_xticks(range(len(metrics)), [metric.split(", ")[-1].upper() for metric in metrics], fontsize=LABEL)
    axes.xaxis.tick_top()
    _name_tasks(axes, [metric.rpartition(", ")[0] for metric in metrics])
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize=LABEL)
    axes.tick_params(length=0)
    _state_sizes(axes, list(rows.values()))
    for row, cells in enumerate(rows.values()):
        for column, metric in enumerate(metrics):
            if metric in cells:
                text = f"{100 * cells[metric].change:+.1f} %{' •' if cells[metric].is_marked else ''}"
                colour = "white" if abs(changes[row, column]) > 0.7 * reach else BLACK
                axes.text(column, row, text, ha="center", va="center", fontsize=SMALL, color=colour)
    for spine in axes.spines.values():
        spine.set_visible(False)
    table = pd.DataFrame(
        [
            {"variant": name, "metric": metric, "relative_change": cell.change, "is_beyond_chance": cell.is_marked,
             "parameters": cell.parameters}
            for name, cells in rows.items()
            for metric, cell in cells.items()
        ]
    ).astype({"parameters": "Int64"})  # fmt: skip
    return Drawing(figure, table)


def _name_tasks(axes: Axes, tasks: Sequence[str]) -> None:
    """Writes each task once above its columns and parts it from the next, where there are several."""
    if not any(tasks):
        return
    columns = {task: [place for place, other in enumerate(tasks) if other == task] for task in dict.fromkeys(tasks)}
    above = axes.secondary_xaxis("top")
    above.set_xticks([sum(own) / len(own) for own in columns.values()], [plain(task) for task in columns])
    above.tick_params(length=0, labelsize=LABEL, labelcolor=BLACK, pad=_ABOVE_METRICS)
    above.spines["top"].set_visible(False)
    for own in list(columns.values())[1:]:
        axes.axvline(own[0] - 0.5, color="white", linewidth=4)


def _state_sizes(axes: Axes, rows: Sequence[Mapping[str, HeatCell]]) -> None:
    """Writes the parameters of each variant beside its row, where they are known and the same for all columns."""
    sizes = [{cell.parameters for cell in cells.values()} for cells in rows]
    if all(len(found) == 1 and None not in found for found in sizes):
        beside = axes.secondary_yaxis("right")
        beside.set_yticks(range(len(rows)), [f"{size:,}" for found in sizes for size in found])
        beside.tick_params(length=0, labelsize=SMALL, labelcolor=BLACK)
        beside.set_ylabel("parameters", fontsize=LABEL, color=BLACK)
        for spine in beside.spines.values():
            spine.set_visible(False)
