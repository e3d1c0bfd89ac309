"""What a network learned: its training, components, branches, edges, and how residuals travel."""

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from candor.core.arrays import Floats, Integers
from candor.core.text import shared_time_format
from candor.explain.pictures import (
    FUSION_CLOCKS,
    EmbeddingPicture,
    FusionPicture,
    OperatorPicture,
    OperatorWeights,
    PropagationPicture,
    RolePicture,
    Spread,
    TrainingPicture,
    WeightGroup,
)
from candor.render.figures import style
from candor.render.figures.style import (
    Drawing,
    add_key,
    add_legend,
    at_tick,
    cut,
    dress,
    every,
    in_unit,
    name_rows,
    new_axes,
    new_figure,
    plain,
)

_LONGEST_ID = 15


def draw_training(picture: TrainingPicture) -> Drawing:
    """Draw both errors by epoch, with the epoch whose weights were kept."""
    note = "Training: over the steps supervised in that epoch, with dropout. Validation: over all steps."
    figure, axes = new_axes("Training", note, "epoch", in_unit("mean absolute error", picture.unit))
    table = pd.DataFrame(
        [
            {"epoch": epoch.number + 1, "train_error": epoch.train_error, "validation_error": epoch.validation_error,
             "supervised_steps": epoch.steps}
            for epoch in picture.epochs
        ]
    )  # fmt: skip
    axes.plot(table.epoch, table.train_error, "o-", color=style.BLUE, markersize=4, label="training")
    axes.plot(table.epoch, table.validation_error, "o-", color=style.VERMILION, markersize=4, label="validation")
    kept = table.iloc[picture.kept]
    label, ringed = f"weights kept: epoch {kept.epoch:.0f}", kept.train_error
    if not math.isnan(kept.validation_error):
        ringed = kept.validation_error
        label += f", {ringed:.4g} {picture.unit}".rstrip()
    axes.plot(kept.epoch, ringed, "o", color=style.BLACK, fillstyle="none", markersize=10, label=plain(label))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    add_legend(axes, 3)
    return Drawing(figure, table)


_ROLES = {
    "before": ("before training", style.GREY, "s"),
    "after": ("after training", style.BLUE, "o"),
    "after_apart": ("after, with another window's state", style.ORANGE, "^"),
    "deviations_before": ("before training", style.GREY, "s"),
    "deviations_after": ("after training", style.BLUE, "o"),
}
_STATES, _DEVIATIONS = ("before", "after", "after_apart"), ("deviations_before", "deviations_after")
_LETTERS = 20  # in a line beside the axis


def draw_roles(picture: RolePicture) -> Drawing:
    """Draw alignments of states on the left, of their deviations from the usual on the right."""
    note = (
        f"Cosines over {picture.windows:,} windows, all sensors and patches: 1 same direction, 0 unrelated, -1 opposite"
        ".\nMarks: means. Lines: from 10 % to 90 %. Deviations: from what is usual at the sensor, patch and hour."
    )
    rows = len(picture.alignments)
    figure = new_figure("Components and their parts in propagation", note, height=2.4 + 0.95 * rows)
    parts = figure.subplot_mosaic([["key", "key"], ["states", "deviations"]], height_ratios=(0.3, 0.95 * rows))
    _draw_alignments(parts["states"], picture, _STATES, "Of states")
    _draw_alignments(parts["deviations"], picture, _DEVIATIONS, "Of deviations from the usual")
    parts["deviations"].set_yticks([])
    add_key(parts["key"], parts["states"].get_legend_handles_labels()[0], len(_STATES))
    table = [
        {"compared": name, "what": kind, "mean": one.mean, "low_10": one.low, "high_90": one.high}
        for name, found in picture.alignments.items()
        for kind, one in found.items()
    ]
    return Drawing(figure, pd.DataFrame(table))


def _draw_alignments(axes: Axes, picture: RolePicture, kinds: Sequence[str], title: str) -> None:
    dress(axes, "cosine", "", title)
    for row, found in enumerate(picture.alignments.values()):
        for place, kind in enumerate(kinds):
            label, colour, mark = _ROLES[kind]
            height, one = row + 0.24 * (place - 1), found[kind]
            axes.plot([one.low, one.high], [height, height], color=colour, linewidth=2.4, alpha=0.5)
            axes.plot([one.mean], [height], mark, color=colour, markersize=8, label=None if row else label)
    axes.set_xlim(-1.05, 1.05)
    name_rows(axes, [fill(name, _LETTERS) for name in picture.alignments], style.LABEL)
    axes.axvline(0, color=style.GREY, linewidth=0.8)


def draw_embedding(picture: EmbeddingPicture) -> Drawing:
    """Draw the states in their plane on the left, their separation before and after training on the right."""
    figure = new_figure("The four components in one space", picture.note, height=4.8)
    plane, scores = figure.subplots(1, 2, width_ratios=(3, 2))
    across, up = (f"{100 * share:.0f} % of the variance" for share in picture.shares)
    dress(plane, f"first axis ({across})", f"second axis ({up})")
    for name, points in picture.points.items():
        look: dict[str, Any] = {"color": style.COMPONENTS[name].colour, "marker": style.COMPONENTS[name].mark}
        plane.scatter(points[:, 0], points[:, 1], s=11, alpha=0.5, linewidths=0, label=name, **look)
    add_legend(plane, 2)
    for handle in plane.get_legend().legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)
    _draw_separations(scores, picture)
    parts = [
        pd.DataFrame(points, columns=["first_axis", "second_axis"]).assign(
            component=name, separation_before=picture.before[name], separation_after=picture.after[name]
        )
        for name, points in picture.points.items()
    ]
    columns = ["component", "first_axis", "second_axis", "separation_before", "separation_after"]
    return Drawing(figure, pd.concat(parts, ignore_index=True)[columns])


def _draw_separations(axes: Axes, picture: EmbeddingPicture) -> None:
    """Draw a line from the separation before training to that after it, for each component."""
    dress(axes, "separation (silhouette)")
    hollow: dict[str, Any] = {"color": "white", "markeredgecolor": style.GREY, "markersize": 8}
    for place, (name, after) in enumerate(picture.after.items()):
        colour = style.COMPONENTS[name].colour if name in style.COMPONENTS else style.BLACK
        before = picture.before[name]
        axes.plot([before, after], [place, place], color=colour, linewidth=1.6, alpha=0.6)
        axes.plot(before, place, "o", **hollow)
        axes.plot(after, place, "o", color=colour, markersize=8)
    axes.plot([], [], "o", label="before training", **hollow)
    axes.plot([], [], "o", color=style.BLACK, markersize=8, label="after")
    name_rows(axes, list(picture.after), style.LABEL, has_lines=True)
    axes.set_xlim(-1, 1)
    axes.axvline(0, color=style.GREY, linewidth=0.8)
    add_legend(axes, 2)


_MOST_CLOCKS, _MOST_STEPS = 6, 5  # labels of groups there is room for


def draw_fusion(picture: FusionPicture) -> Drawing:
    """Draw how much branches count: altogether, by step ahead, and by hour of day, else by month, else by weekday."""
    figure = new_figure("How much the branches count", picture.note, height=4.6)
    parts = figure.subplot_mosaic(
        [["key", "key", "key"], ["overall", "clock", "ahead"]], width_ratios=(2, 4, 4), height_ratios=(0.25, 3)
    )
    dress(parts["overall"], "", "weight", "Altogether")
    for place, (name, (mean, low, high)) in enumerate(picture.overall.items()):
        parts["overall"].bar(place, mean, width=0.7, color=style.BRANCHES[name].colour, alpha=0.85)
        ends = [[mean - low], [high - mean]]
        parts["overall"].errorbar(place, mean, ends, color=style.BLACK, capsize=4, linewidth=1.4)
    parts["overall"].set(xticks=[], ylim=(0, 1))
    clock = next(kind for kind in FUSION_CLOCKS if kind in picture.groups)
    dress(parts["clock"], "local time" if "hour" in clock else "", "", f"By {clock}")
    _draw_groups(parts["clock"], picture.groups[clock], _MOST_CLOCKS)
    dress(parts["ahead"], "beginning of the target patch", "", "By step ahead")
    _draw_groups(parts["ahead"], picture.groups["step ahead"], _MOST_STEPS)
    add_key(parts["key"], parts["clock"].get_lines(), 3)
    grouped = [("all", "all", picture.overall)]
    grouped += [(kind, group.label, group.weights) for kind, groups in picture.groups.items() for group in groups]
    return Drawing(figure, _spreads(["by", "group"], (((kind, label), weights) for kind, label, weights in grouped)))


def _spreads(names: Sequence[str], weights: Iterable[tuple[Sequence[str], Mapping[str, Spread]]]) -> pd.DataFrame:
    """Return weights by branch of several things as a table; `names` are the columns that name the things."""
    rows = [(*called, branch, *spread) for called, by_branch in weights for branch, spread in by_branch.items()]
    return pd.DataFrame(rows, columns=[*names, "branch", "mean", "low_10", "high_90"])


def _draw_groups(axes: Axes, groups: Sequence[WeightGroup], most: int) -> None:
    places = range(len(groups))
    for name, look in style.BRANCHES.items():
        if name not in groups[0].weights:
            continue
        mean, low, high = zip(*(group.weights[name] for group in groups), strict=True)
        axes.fill_between(places, low, high, color=look.colour, alpha=0.18, linewidth=0)
        axes.plot(places, mean, look.line, color=look.colour, linewidth=1.6, markersize=4, label=look.label(name))
    shown = every(len(groups), most)
    axes.set_xticks(shown, [groups[place].label for place in shown])
    axes.set_ylim(0, 1)
    axes.tick_params(labelleft=False)


def draw_fusions(systems: Mapping[str, Mapping[str, Spread]]) -> Drawing:
    """Draw the mean weights of several systems, by name and branch, with 10 % to 90 % as bars."""
    note = "Mean over sensors, windows of the test part and target patches; bars: 10 % to 90 %."
    height, title = 1.8 + 0.6 * len(systems), "What forecasts rest on, system by system"
    figure, axes = new_axes(title, note, "weight in the forecast", height=height)
    branches = {name: look for name, look in style.BRANCHES.items() if any(name in found for found in systems.values())}
    for rank, (branch, look) in enumerate(branches.items()):
        offset = (rank - (len(branches) - 1) / 2) * 0.22
        places = [place + offset for place, found in enumerate(systems.values()) if branch in found]
        means, lows, highs = np.array([found[branch] for found in systems.values() if branch in found]).T
        axes.hlines(places, lows, highs, color=look.colour, linewidth=2.4, alpha=0.45)
        axes.plot(means, places, look.mark, color=look.colour, markersize=7, label=look.label(branch))
    name_rows(axes, list(systems))
    axes.set_xlim(0, 1)
    add_legend(axes, len(branches))
    return Drawing(figure, _spreads(["system"], (([system], weights) for system, weights in systems.items())))


_MOST_EDGES = 12
_EDGE = 0.3  # inches of height for an edge


def draw_operator(picture: OperatorPicture) -> Drawing:
    """Draw the weights of the edges that learning changed most, one direction above the other."""
    chosen = {direction: _most_changed(edges) for direction, edges in picture.directions.items()}
    chosen = {direction: edges for direction, edges in chosen.items() if len(edges)}
    note = (
        f"Lines: 10 % to 90 % of {picture.windows:,} windows. Up to {_MOST_EDGES} edges that learning changed most; "
        "the table has all.\nAn edge that is the only one into its sensor weighs 1 and is not shown."
    )
    heights = [_EDGE * max(len(edges), 2) + 0.5 for edges in chosen.values()] or [0.6]
    figure = new_figure("Weights of edges: given, learned, and by window", note, height=1.9 + sum(heights))
    key, *panels = figure.subplots(1 + len(heights), 1, height_ratios=(0.45, *heights))
    for axes, (direction, edges) in zip(panels, chosen.items(), strict=False):
        _draw_edges(axes, picture, direction, edges)
    if not chosen:
        panels[0].set_axis_off()
        panels[0].text(0, 0.5, "Every sensor hears from one other at most: all weights are 1.", fontsize=style.SMALL)
    _draw_operator_key(key, positions=next(iter(picture.directions.values())).mean.shape[0])
    return Drawing(figure, _operator_table(picture))


def _most_changed(edges: OperatorWeights) -> Integers:
    """Return the edges with a choice whose weights differ most from those that were given, by receiver."""
    change = np.abs(np.stack([edges.low, edges.mean, edges.high]) - edges.support).max(axis=(0, 1))
    candidates = np.flatnonzero(edges.has_choice & (edges.sender != edges.receiver))
    most = candidates[np.argsort(-change[candidates], kind="stable")[:_MOST_EDGES]]
    return most[np.lexsort((edges.sender[most], edges.receiver[most]))]


def _draw_edges(axes: Axes, picture: OperatorPicture, direction: str, chosen: Integers) -> None:
    edges, names = picture.directions[direction], [cut(name, _LONGEST_ID) for name in picture.sensors]
    dress(axes, "weight: share of what the sensor hears", "", style.DIRECTIONS[direction])
    positions, rows = edges.mean.shape[0], np.arange(len(chosen))
    for position, colour in zip(range(positions), style.POSITION_COLOURS, strict=False):
        heights = rows + 0.6 * ((position + 0.5) / positions - 0.5)
        low, high = edges.low[position, chosen], edges.high[position, chosen]
        axes.hlines(heights, low, high, color=colour, linewidth=2.2, alpha=0.5)
        shared = edges.with_shared[position, chosen]
        axes.plot(shared, heights, "D", color="white", markeredgecolor=colour, markersize=5)
        axes.plot(edges.mean[position, chosen], heights, "o", color=colour, markersize=5)
    axes.vlines(edges.support[0, chosen], rows - 0.36, rows + 0.36, color=style.BLACK, linewidth=2)
    ends = [(names[edges.sender[edge]], names[edges.receiver[edge]]) for edge in chosen]
    name_rows(axes, [f"{sender} → {receiver}" for sender, receiver in ends], style.SMALL - 1, has_lines=True)
    axes.set_xlim(-0.01, 1.01)


def _draw_operator_key(axes: Axes, positions: int) -> None:
    words = ["newest patch", *(f"{back} before" for back in range(1, positions))][::-1]
    looks: list[dict[str, Any]] = [
        {"color": style.BLACK, "marker": "|", "markersize": 9, "markeredgewidth": 2, "label": "as given"},
        {"color": "white", "marker": "D", "markeredgecolor": style.GREY, "label": "for all windows"},
        {"color": style.GREY, "marker": "o", "label": "mean over windows"},
    ]
    mark: dict[str, Any] = {"linestyle": "none", "markersize": 5}
    handles = [Line2D([], [], **(mark | look)) for look in looks]
    handles += [
        Line2D([], [], color=style.POSITION_COLOURS[i], linewidth=3, label=word) for i, word in enumerate(words)
    ]
    columns = len(handles) if positions <= 2 else 4
    add_key(axes, handles, columns, fontsize=style.SMALL - 0.5, columnspacing=1.0, handletextpad=0.5)


def _operator_table(picture: OperatorPicture) -> pd.DataFrame:
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


_MOST_NAMES, _MOST_PATCHES = 26, 6
_LARGEST = 2.5  # end of the colours: so many times as unusual as states mostly are
_LINE = 0.17  # inches of height for a sensor


def draw_propagation(picture: PropagationPicture) -> Drawing:
    """Draw residuals and what arrives in one window above, likeness and influence over all windows below."""
    note = (
        "Above: one window; 1 is as far from the usual as states mostly are, and what arrives stands at the patch it "
        f"helps to predict.\nBelow: over {picture.windows:,} windows; shaded are the lags whose residuals are used."
    )
    tall = max(1.8, _LINE * min(len(picture.sensors), _MOST_NAMES))
    figure = new_figure("From residuals to what arrives", note, height=4.3 + tall)
    parts = figure.subplot_mosaic([["residual", "arriving"], ["likeness", "influence"]], height_ratios=(tall, 2.1))
    _draw_window(parts["residual"], picture, picture.residual, 0, "Residual E: how unusual")
    colours = _draw_window(parts["arriving"], picture, picture.contribution, 1, "What arrives, o: how unusual")
    parts["arriving"].set_yticks([])
    bar = figure.colorbar(colours, ax=[parts["residual"], parts["arriving"]], shrink=0.9, pad=0.02, extend="max")
    bar.ax.tick_params(labelsize=style.SMALL)
    _draw_likeness(parts["likeness"], picture)
    _draw_influence(parts["influence"], picture)
    return Drawing(figure, _propagation_table(picture))


def _draw_window(axes: Axes, picture: PropagationPicture, values: Floats, first: int, title: str) -> Any:
    """Draw sensors down and patches across, the patch numbered `first` on the left."""
    dress(axes, "patch beginning", "", title)
    axes.grid(visible=False)
    sensors, patches = values.shape
    colours = LinearSegmentedColormap.from_list("unusual", ["#ffffff", style.BLUE, "#001a33"])
    across, down = np.arange(patches + 1) + first - 0.5, np.arange(sensors + 1) - 0.5
    drawn = axes.pcolormesh(across, down, values, cmap=colours, vmin=0, vmax=_LARGEST, rasterized=True)
    axes.set(xlim=(-0.5, patches + 0.5), ylim=(sensors - 0.5, -0.5))  # both maps share their patches
    form = f"%d %b\n{shared_time_format(picture.starts)}"
    shown = every(len(picture.starts), _MOST_PATCHES)
    axes.set_xticks(shown, [at_tick(picture.starts[place], form) for place in shown], fontsize=style.SMALL)
    if sensors <= _MOST_NAMES:
        name_rows(axes, [cut(name, _LONGEST_ID) for name in picture.sensors], style.SMALL - 1)
    else:
        axes.set_ylabel(f"{sensors:,} sensors", fontsize=style.LABEL)
        axes.set_yticks([])
    return drawn


def _draw_likeness(axes: Axes, picture: PropagationPicture) -> None:
    dress(axes, "patches before the one predicted", "likeness", "Along the edges, and what arrives")
    if np.isnan(picture.likeness).all():
        axes.text(0.5, 0.5, "no edges between sensors", transform=axes.transAxes, ha="center", fontsize=style.LABEL)
        axes.set(xticks=[], yticks=[])
        return
    axes.axvspan(0.5, len(picture.own) + 0.5, color=style.GREY, alpha=0.2, linewidth=0)
    axes.plot(picture.lags, picture.likeness, "o-", color=style.BLUE, linewidth=1.8, markersize=5)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.invert_xaxis()  # time runs to the right


def _draw_influence(axes: Axes, picture: PropagationPicture) -> None:
    dress(axes, "patches before the one predicted", "change of what arrives", "If a residual were as usual")
    lags = np.arange(1, len(picture.own) + 1)
    axes.bar(lags + 0.2, picture.own, width=0.38, color=style.ORANGE, label="the sensor's own")
    axes.bar(lags - 0.2, picture.others, width=0.38, color=style.BLUE, label="of all others")
    axes.set_xticks(lags, [str(lag) for lag in lags])
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 1.35 * max(0.05, float(np.max([picture.own, picture.others]))))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.invert_xaxis()
    axes.legend(loc="upper left", ncols=2, fontsize=style.SMALL, frameon=False)


def _propagation_table(picture: PropagationPicture) -> pd.DataFrame:
    """Return one row per number: what it is, of which sensor and patch, at which lag."""
    rows: list[dict[str, Any]] = []
    for name, values, first in (("residual", picture.residual, 0), ("contribution", picture.contribution, 1)):
        rows += [
            {"what": f"{name}, how unusual", "sensor": picture.sensors[sensor], "value": value}
            | {"patch_begins": picture.starts[patch + first].isoformat()}
            for (sensor, patch), value in np.ndenumerate(values)
        ]
    by_lag = {
        "likeness": zip(picture.lags.tolist(), picture.likeness, strict=True),
        "influence of own": enumerate(picture.own, start=1),
        "influence of others": enumerate(picture.others, start=1),
    }
    rows += [{"what": name, "lag": lag, "value": value} for name, found in by_lag.items() for lag, value in found]
    return pd.DataFrame(rows, columns=["what", "sensor", "patch_begins", "lag", "value"])
