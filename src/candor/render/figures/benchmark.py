"""The figures of grids and profiles: what parts are worth, what a setting does, accuracy against cost."""

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from statistics import fmean
from typing import get_args

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

from candor.render.figures import style
from candor.render.figures.bubbles import Bubble, Cost, draw_bubbles
from candor.render.figures.style import Drawing, in_unit, new_axes, plain
from candor.research.ablations import CHANGES, Change
from candor.research.grid import ALL_STEPS
from candor.research.profiling import Profile, TaskErrors
from candor.research.tables import is_ours

_TITLES = {False: "CANDOR without its parts", True: "CANDOR that is given rain"}
"""Of heat maps, by whether they show interventions."""
_LEAST_RANGE = 0.01  # so that differences below a percent look like what they are
_COLUMN, _NAMES = 0.8, 1.6  # inches that a column and the names of variants need
_ABOVE_METRICS = 20.0  # points


def draw_ablations(changes: Mapping[str, Sequence[Change]]) -> Drawing:
    """Draw the heat map of variants by task and metric, under the names that the paper gives to variants.

    Args:
        changes: by task, as `paired_changes` gives them, at least one. Variants that a task lacks are left out; one
            must be in all. All of them are parts taken away, or all interventions.
    """
    shared = set.intersection(*({one.variant for one in found} for found in changes.values()))
    chosen = {task: [one for one in found if one.variant in shared] for task, found in changes.items()}
    rows: dict[str, dict[str, Change]] = {}
    for task, found in chosen.items():
        for change in found:
            metric = f"{task}, {change.metric}" if len(chosen) > 1 else change.metric
            rows.setdefault(paper_name(change.variant), {})[metric] = change
    everything = [change for found in chosen.values() for change in found]
    title = ", ".join([_TITLES[everything[0].is_intervention], *(changes if len(changes) == 1 else ())])
    seeds = count_seeds([change.seeds for change in everything])
    note = f"Mean over {seeds} of the paired relative change. Dot: beyond twice the full model's spread."
    return draw_changes(rows, title, note)


def paper_name(variant: str) -> str:
    """Return what the paper calls a variant."""
    return CHANGES[variant][0] if variant in CHANGES else variant


def draw_changes(rows: Mapping[str, Mapping[str, Change]], title: str, note: str) -> Drawing:
    """Draw the heat map of changes by variant and metric; red is worse, blue is better.

    Args:
        rows: by variant and metric; where there are several tasks, `TASK, METRIC`. What a variant lacks stays empty.
        title: of the figure.
        note: small print.
    """
    metrics = list(dict.fromkeys(metric for cells in rows.values() for metric in cells))
    changes = np.array([[cells[one].relative if one in cells else nan for one in metrics] for cells in rows.values()])
    figure, axes = new_axes(title, note, height=1.4 + 0.36 * len(rows))
    figure.set_figwidth(max(style.WIDTH, _NAMES + _COLUMN * len(metrics)))
    axes.grid(visible=False)
    reach = max(_LEAST_RANGE, float(np.nanmax(np.abs(changes))))
    colours = LinearSegmentedColormap.from_list("change", [style.BLUE, "#ffffff", style.VERMILION])
    axes.imshow(np.ma.masked_invalid(changes), cmap=colours, norm=TwoSlopeNorm(0.0, -reach, reach), aspect="auto")
    axes.set_xticks(range(len(metrics)), [metric.split(", ")[-1].upper() for metric in metrics], fontsize=style.LABEL)
    axes.xaxis.tick_top()
    _name_tasks(axes, [metric.rpartition(", ")[0] for metric in metrics])
    axes.set_yticks(range(len(rows)), [plain(name) for name in rows], fontsize=style.LABEL)
    axes.tick_params(length=0)
    _state_sizes(axes, list(rows.values()))
    for (row, column), change in np.ndenumerate(changes):
        if (cell := list(rows.values())[row].get(metrics[column])) is not None:
            text = f"{100 * cell.relative:+.1f} %{' •' if cell.is_beyond_chance else ''}"
            colour = "white" if abs(change) > 0.7 * reach else style.BLACK
            axes.text(column, row, text, ha="center", va="center", fontsize=style.SMALL, color=colour)
    axes.spines[:].set_visible(False)
    table = pd.DataFrame(
        [
            {"variant": name, "metric": metric, "relative_change": cell.relative,
             "is_beyond_chance": cell.is_beyond_chance, "parameters": cell.parameters}
            for name, cells in rows.items()
            for metric, cell in cells.items()
        ]
    ).astype({"parameters": "Int64"})  # fmt: skip
    return Drawing(figure, table)


def _name_tasks(axes: Axes, tasks: Sequence[str]) -> None:
    """Write each task once above its columns and part it from the next, where there are several."""
    if not any(tasks):
        return
    columns = {task: [place for place, other in enumerate(tasks) if other == task] for task in dict.fromkeys(tasks)}
    above = axes.secondary_xaxis("top")
    above.set_xticks([fmean(own) for own in columns.values()], [plain(task) for task in columns])
    above.tick_params(length=0, labelsize=style.LABEL, labelcolor=style.BLACK, pad=_ABOVE_METRICS)
    above.spines["top"].set_visible(False)
    for own in list(columns.values())[1:]:
        axes.axvline(own[0] - 0.5, color="white", linewidth=4)


def _state_sizes(axes: Axes, rows: Sequence[Mapping[str, Change]]) -> None:
    """Write the parameters of each variant beside its row, where they are known and the same for all columns."""
    sizes = [{cell.parameters for cell in cells.values()} for cells in rows]
    if all(len(found) == 1 and None not in found for found in sizes):
        beside = axes.secondary_yaxis("right")
        beside.set_yticks(range(len(rows)), [f"{size:,}" for found in sizes for size in found])
        beside.tick_params(length=0, labelsize=style.SMALL, labelcolor=style.BLACK)
        beside.set_ylabel("parameters", fontsize=style.LABEL, color=style.BLACK)
        beside.spines[:].set_visible(False)


def draw_setting(results: pd.DataFrame, setting: str, task: str) -> Drawing:
    """Draw the errors by value of a setting, from the results of a sweep on one task."""
    errors = errors_by_value(results, setting)
    return draw_sweep(errors, setting, f"{setting} of CANDOR, {task}", str(results["unit"].iloc[0] or ""))


def draw_sweep(errors: Mapping[str, Sequence[float]], setting: str, title: str, unit: str) -> Drawing:
    """Draw the error by value of a setting: a point per seed, a line through the means."""
    seeds = count_seeds([len(found) for found in errors.values()])
    note, up = f"Test part, all steps together; {seeds} of each value.", in_unit("mean absolute error", unit)
    figure, axes = new_axes(title, note, setting, up)
    places = range(len(errors))
    axes.plot(places, [fmean(found) for found in errors.values()], "o-", color=style.BLUE, markersize=5)
    for place, found in zip(places, errors.values(), strict=True):
        axes.plot([place] * len(found), list(found), "o", color=style.GREY, markersize=3)
    axes.set_xticks(places, list(errors))
    table = pd.DataFrame([{setting: value, "mae": error} for value, found in errors.items() for error in found])
    return Drawing(figure, table)


def errors_by_value(results: pd.DataFrame, setting: str) -> dict[str, list[float]]:
    """Return the mean absolute errors over all steps by value of a setting, one per seed."""
    chosen = results[(results["step"] == ALL_STEPS) & (results["metric"] == "mae")]
    values = {str(model): found.tolist() for model, found in chosen.groupby("model", sort=False)["value"]}
    return {model.removeprefix(f"{setting}="): found for model, found in values.items()}


def count_seeds(counts: Sequence[int]) -> str:
    """Return how many seeds each of several things has, such as `3 seeds` or `1 to 3 seeds`."""
    fewest, most = min(counts), max(counts)
    return f"{most} seed{'s' if most > 1 else ''}" if fewest == most else f"{fewest} to {most} seeds"


def draw_costs(profile: Profile, errors: TaskErrors) -> dict[str, Drawing]:
    """Draw errors against parameters and against time, by the names of their files; none if no model has both."""
    bubbles, at = bubbles_of(profile, errors), profile.circumstances
    if not bubbles:
        return {}
    title, costs = f"Accuracy and cost on {at.preset}", get_args(Cost)
    return {f"accuracy-{cost}": draw_bubbles(bubbles, cost, title, errors.unit, at.batch) for cost in costs}


def bubbles_of(profile: Profile, errors: TaskErrors) -> list[Bubble]:
    """Return the networks with costs and with errors that are numbers, smallest first."""
    return [
        Bubble(
            name=model.label,
            error=fmean(errors.by_model[model.name]),
            seeds=len(errors.by_model[model.name]),
            parameters=model.parameters,
            seconds=model.inference_seconds,
            is_ours=is_ours(model.name),
            is_reconstruction=model.is_reconstruction,
            metric=errors.metric,
        )
        for model in profile.models
        if model.parameters is not None and isfinite(fmean(errors.by_model.get(model.name, [nan])))
    ]
