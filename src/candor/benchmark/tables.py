"""Tables shaped like the paper's: mean and spread over seeds, the best marked, our gain over the best baseline.

Spreads are standard deviations over seeds with one degree of freedom taken off (ddof = 1), and absent for one seed.
Reconstructions, models that were rebuilt without their authors' code, are shown and named as such in tables of all
models; no rank, mark, gain or count rests on them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import mean, stdev
from typing import Any

import pandas as pd

from candor.benchmark.results import ALL_STEPS
from candor.benchmark.suites import Suite
from candor.forecasting import forecasters

OURS = "candor"
_MOST_BASELINES = 8
_SHOWN = {"mae": ("mae", "rmse", "mape"), "mse": ("mse", "mae")}
_ABOUT_RECONSTRUCTIONS = "(reconstruction): rebuilt by us from what is published, without the authors' code; not ranked"
_NAMES = {"mae": "MAE", "rmse": "RMSE", "mape": "MAPE [%]", "mse": "MSE"}
Place = tuple[int, str]
"""A step and a metric."""
Errors = Mapping[str, Mapping[Place, Sequence[float]]]
"""By model and place, one per seed."""


@dataclass(frozen=True)
class TableCell:
    """A number as it is printed, and whether it is the best or second best of its column."""

    text: str
    is_best: bool = False
    is_second: bool = False


@dataclass(frozen=True)
class Table:
    """A table without a form yet.

    Args:
        title: what it shows.
        groups: heads over groups of columns with how many columns each spans; the first column is the models'.
        columns: heads of the columns after the first.
        rows: a name and its cells.
        note: what has to be said below it.
    """

    title: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]
    note: str = ""


def is_ours(model: str) -> bool:
    """Returns whether a contender is CANDOR, of whatever size."""
    return model.split("-")[0] == OURS


def is_reconstruction(model: str) -> bool:
    """Returns whether a contender is a model that was rebuilt without its authors' code, with whatever settings."""
    kinds = [name for name in forecasters.names() if model == name or model.startswith(f"{name}-")]
    return bool(kinds) and bool(getattr(forecasters.get(max(kinds, key=len)), "is_reconstruction", False))


def tables_of(results: pd.DataFrame, suite: Suite, *, is_whole: bool = False) -> list[Table]:
    """Returns a table per task.

    Args:
        results: as `collect` gives them.
        suite: how models are ranked.
        is_whole: whether all models are shown, or ours and the eight best baselines, reconstructions left out.
    """
    by_task = _errors_by_task(results)
    found = []
    for task, errors in by_task.items():
        ranked = _ranked(by_task if suite.ranking == "suite" else {task: errors}, suite.metric)
        shown = [model for model in ranked if model in errors]
        unranked = sorted(filter(is_reconstruction, errors)) if is_whole else []
        found.append(_table(task, errors, shown if is_whole else shown[:_MOST_BASELINES], unranked, suite, results))
    return [table for table in found if table.rows]


def count_strict_wins(results: pd.DataFrame, metric: str) -> tuple[int, int]:
    """Returns how often our worst seed beats the best seed of a baseline over all steps, and out of how many times."""
    place, wins, pairs = (ALL_STEPS, metric), 0, 0
    for errors in _errors_by_task(results).values():
        for ours in filter(is_ours, errors):
            others = list(filter(_is_rival, errors))
            pairs += len(others)
            wins += sum(max(errors[ours][place]) < min(errors[other][place]) for other in others)
    return wins, pairs


def _errors_by_task(results: pd.DataFrame) -> dict[str, dict[str, dict[Place, list[float]]]]:
    found: dict[str, dict[str, dict[Place, list[float]]]] = {}
    columns = ("task", "model", "step", "metric", "value")
    for task, model, step, metric, value in zip(*(results[name].tolist() for name in columns), strict=True):
        found.setdefault(task, {}).setdefault(model, {}).setdefault((step, metric), []).append(value)
    return found


def _is_rival(model: str) -> bool:
    return not is_ours(model) and not is_reconstruction(model)


def _ranked(by_task: Mapping[str, Errors], metric: str) -> list[str]:
    """Returns the baselines, best first, by the unrounded mean error over all steps, seeds and tasks."""
    means: dict[str, list[float]] = {}
    for errors in by_task.values():
        for model in errors:
            means.setdefault(model, []).append(mean(errors[model][ALL_STEPS, metric]))
    return sorted(filter(_is_rival, means), key=lambda model: mean(means[model]))


def _table(
    task: str, errors: Errors, baselines: Sequence[str], unranked: Sequence[str], suite: Suite, results: pd.DataFrame
) -> Table:
    metrics, ours = _SHOWN[suite.metric], [model for model in errors if is_ours(model)]
    steps = sorted({step for places in errors.values() for step, _ in places})
    places = [(step, metric) for step in steps for metric in metrics]
    best = {place: sorted([*baselines, *ours], key=lambda model: mean(errors[model][place])) for place in places}
    rows = []
    for model in [*baselines, *unranked, *ours]:
        cells = [
            TableCell(_text(errors[model][place], place), best[place][:1] == [model], best[place][1:2] == [model])
            for place in places
        ]
        rows.append((f"{model} (reconstruction)" if model in unranked else model, tuple(cells)))
    if baselines and suite.has_rivals:
        rows += [
            (f"gain of {model}", tuple(_gain(errors, model, baselines, place) for place in places)) for model in ours
        ]
    note = _note(results[results["task"] == task])
    return Table(
        title=task,
        groups=tuple(("all steps" if step == ALL_STEPS else f"step {step}", len(metrics)) for step in steps),
        columns=tuple(_NAMES[metric] for _ in steps for metric in metrics),
        rows=tuple(rows),
        note=f"{note}; {_ABOUT_RECONSTRUCTIONS}" if unranked else note,
    )


def _text(values: Sequence[float], place: Place) -> str:
    digits = 2 if place[1] == "mape" else 3
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 and all(map(isfinite, values)) else ""
    return f"{mean(values):.{digits}f}{spread}"


def _gain(errors: Errors, ours: str, baselines: Sequence[str], place: Place) -> TableCell:
    """Returns by how much our error is below that of the best baseline shown."""
    best = min(mean(errors[model][place]) for model in baselines)
    return TableCell(f"{100 * (1 - mean(errors[ours][place]) / best):+.1f} %")


def _note(results: pd.DataFrame) -> str:
    first: dict[Any, Any] = results.iloc[0].to_dict()
    seeds = ", ".join(str(seed) for seed in sorted(set(results["seed"].tolist())))
    spread = " ± standard deviation (ddof 1)" if "," in seeds else ""
    budgets = sorted({float(budget) for budget in results["budget_minutes"].dropna()})
    parts = [
        f"Errors in {first['unit'] or 'the unit of the sensors'}, mean over seeds {seeds}{spread}",
        f"{first['windows']:,} test windows",
        str(first["aggregation"]).partition(";")[0],
        f"mask: {first['mask']}",
        f"split {first['split']}",
        *(f"{budget:g} minutes of training each" for budget in budgets),
    ]
    return "; ".join(parts)
