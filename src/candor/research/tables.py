"""Tables shaped like the paper's: mean and spread over seeds, the best marked, our gain over the best baseline.

Spreads are standard deviations over seeds with one degree of freedom taken off (ddof = 1), and absent for one seed.
Reconstructions, models that were rebuilt without their authors' code, are shown and named as such in tables of all
models; no rank, mark, gain or count rests on them. Neither does one on an error that is not a number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import mean, stdev

import pandas as pd

from candor.research.grid import ALL_STEPS
from candor.research.suites import Suite
from candor.research.table_notes import Lineup, is_reconstruction, shown_name, write_note

OURS = "candor"
NOTHING = "–"
AVERAGE = "Avg"
"""The head over means over horizons."""
_MOST_BASELINES = 8
SHOWN = {"mae": ("mae", "rmse", "mape"), "mse": ("mse", "mae")}
"""Metrics of a table by that of the ranking."""
_NAMES = {"mae": "MAE", "rmse": "RMSE", "mape": "MAPE [%]", "mse": "MSE"}
Place = tuple[int | str, str]
"""A step, or whatever else stands over a group of columns, and a metric."""
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


def _is_rival(model: str) -> bool:
    return not is_ours(model) and not is_reconstruction(model)


def tables_of(results: pd.DataFrame, suite: Suite, *, is_whole: bool = False) -> list[Table]:
    """Returns a table per task: errors over all steps, and at the steps that all its models report.

    Args:
        results: as `collect` gives them.
        suite: how models are ranked.
        is_whole: whether all models are shown, or ours and the eight best baselines, reconstructions left out; all
            variants of CANDOR are shown in any case.
    """
    found = []
    for rules, tasks in suite.parts_of(results["task"].tolist()):
        some = results[results["task"].isin(tasks)]
        by_task = _errors_by_task(some)
        for task, errors in by_task.items():
            shared = by_task if rules.ranking == "suite" else {task: errors}
            lineup = _line_up(shared, errors, rules.metric, is_whole=is_whole or not rules.has_rivals)
            steps = sorted(set.intersection(*({int(step) for step, _ in places} for places in errors.values())))
            heads = {step: "all steps" if step == ALL_STEPS else f"step {step}" for step in steps}
            found.append(_make_table(task, errors, heads, lineup, rules, some[some["task"] == task]))
    return [table for table in found if table.rows]


def paper_tables_of(results: pd.DataFrame, suite: Suite, *, is_whole: bool = False) -> list[Table]:
    """Returns tables shaped like the paper's.

    Where baselines are chosen once for several tasks, there is a table per dataset with its horizons side by side;
    elsewhere, and for datasets with one horizon, a table per task with some of its steps.

    Args:
        results: as `collect` gives them.
        suite: how models are ranked.
        is_whole: whether all models are shown, or ours and the eight best baselines, reconstructions left out.
    """
    found: list[Table] = []
    for rules, tasks in suite.parts_of(results["task"].tolist()):
        some = results[results["task"].isin(tasks)]
        alone = {table.title: table for table in tables_of(some, rules, is_whole=is_whole)}
        for data in some["data"].unique():
            of_data = some[some["data"] == data]
            own = of_data["task"].unique().tolist()
            if rules.ranking == "suite" and len(own) > 1:
                found.append(_side_by_side(str(data), of_data, some, rules, is_whole))
            else:
                found += [alone[task] for task in own if task in alone]
    return [table for table in found if table.rows]


def _side_by_side(data: str, results: pd.DataFrame, ranked: pd.DataFrame, rules: Suite, is_whole: bool) -> Table:
    """Returns the table of a dataset; models are ranked by more than its own results."""
    horizons = results.drop_duplicates("task").sort_values("horizon", kind="stable")
    heads = {str(task): f"H = {horizon}" for task, horizon in zip(horizons["task"], horizons["horizon"], strict=True)}
    errors = _errors_over_tasks(results, list(heads), SHOWN[rules.metric])
    lineup = _line_up(_errors_by_task(ranked), errors, rules.metric, is_whole=is_whole or not rules.has_rivals)
    return _make_table(data, errors, heads | {AVERAGE: AVERAGE}, lineup, rules, results)


def _errors_over_tasks(
    results: pd.DataFrame, tasks: list[str], metrics: tuple[str, ...]
) -> dict[str, dict[Place, list[float]]]:
    """Returns the errors over all steps by model, task and metric, and under `AVERAGE` their mean over tasks."""
    by_seed: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    chosen = results[(results["step"] == ALL_STEPS) & results["metric"].isin(metrics)]
    columns = (chosen[name].tolist() for name in ("model", "metric", "task", "seed", "value"))
    for model, metric, task, seed, value in zip(*columns, strict=True):
        by_seed.setdefault((model, metric), {}).setdefault(task, {})[seed] = value
    found: dict[str, dict[Place, list[float]]] = {}
    for (model, metric), by_task in by_seed.items():
        places = found.setdefault(model, {})
        for task, values in by_task.items():
            places[task, metric] = list(values.values())
        whole = set.intersection(*(set(by_task.get(task, {})) for task in tasks))
        if whole:
            places[AVERAGE, metric] = [mean(by_task[task][seed] for task in tasks) for seed in sorted(whole)]
    return found


def _errors_by_task(results: pd.DataFrame) -> dict[str, dict[str, dict[Place, list[float]]]]:
    """Returns the errors of every task by model, step and metric."""
    found: dict[str, dict[str, dict[Place, list[float]]]] = {}
    columns = ("task", "model", "step", "metric", "value")
    for task, model, step, metric, value in zip(*(results[name].tolist() for name in columns), strict=True):
        found.setdefault(task, {}).setdefault(model, {}).setdefault((step, metric), []).append(value)
    return found


def _line_up(by_task: Mapping[str, Errors], models: Sequence[str] | Errors, metric: str, *, is_whole: bool) -> Lineup:
    """Returns who is shown in a table.

    Baselines are ranked by the unrounded mean error over all steps, seeds and tasks, if they have results on all tasks;
    those without have no rank, and no place among the best.

    Args:
        by_task: the errors of all tasks that the ranking rests on.
        models: those with results in this table.
        metric: by which they are ranked.
        is_whole: whether all models are shown.
    """
    means: dict[str, list[float]] = {}
    for errors in by_task.values():
        for model in errors:
            means.setdefault(model, []).append(mean(errors[model][ALL_STEPS, metric]))
    worth = {model: _worth(mean(found)) for model, found in means.items() if len(found) == len(by_task)}
    ranked = sorted(filter(_is_rival, worth), key=worth.__getitem__)
    unranked = sorted(model for model in models if _is_rival(model) and model not in worth)
    rivals = (*ranked, *unranked)
    return Lineup(
        baselines=rivals if is_whole else rivals[: min(len(ranked), _MOST_BASELINES)],
        reconstructions=tuple(sorted(filter(is_reconstruction, models))) if is_whole else (),
        ours=tuple(filter(is_ours, models)),
        unranked=tuple(unranked),
        rivals=rivals,
    )


def _worth(error: float) -> tuple[bool, float]:
    """Returns what errors are sorted by, smallest first and at the end those that are not numbers."""
    return not isfinite(error), error


def _make_table(
    title: str,
    errors: Errors,
    heads: Mapping[int, str] | Mapping[str, str],
    lineup: Lineup,
    rules: Suite,
    results: pd.DataFrame,
) -> Table:
    """Returns a table of errors, with the gain of ours below them.

    Args:
        title: what it shows.
        errors: by model and place; a model may lack places.
        heads: what stands over groups of columns, by the first part of their places.
        lineup: who is shown.
        rules: which metrics are shown, and whether there is a gain.
        results: what the errors come from.
    """
    metrics = SHOWN[rules.metric]
    places: list[Place] = [(key, metric) for key in heads for metric in metrics]
    best = {place: _best_two(errors, [*lineup.rivals, *lineup.ours], place) for place in places}
    rows = []
    for model in lineup.models:
        cells = [
            TableCell(_text(errors[model].get(place), place), model in best[place][0], model in best[place][1])
            for place in places
        ]
        rows.append((shown_name(model), tuple(cells)))
    wins = strict_wins(results, rules.metric) if rules.has_rivals else {}
    if lineup.baselines and rules.has_rivals:
        rows += [
            (f"gain of {model}", tuple(_gain(errors, model, lineup.rivals, place) for place in places))
            for model in lineup.ours
        ]
    return Table(
        title=title,
        groups=tuple((head, len(metrics)) for head in heads.values()),
        columns=tuple(_NAMES[metric] for _ in heads for metric in metrics),
        rows=tuple(rows),
        note=write_note(results, lineup, _NAMES[rules.metric], wins),
    )


def strict_wins(results: pd.DataFrame, metric: str) -> dict[str, tuple[int, int]]:
    """Returns for each of ours how often its worst seed beats the best seed of a baseline, and out of how many times.

    Errors are those over all steps; there is a comparison for every task and baseline.
    """
    place: Place = (ALL_STEPS, metric)
    found: dict[str, tuple[int, int]] = {}
    for errors in _errors_by_task(results).values():
        rivals = (filter(isfinite, errors[model][place]) for model in errors if _is_rival(model))
        best = [min(seeds) for values in rivals if (seeds := list(values))]
        for model in filter(is_ours, errors):
            worst = max(errors[model][place], key=_worth)
            wins, pairs = found.get(model, (0, 0))
            # What is not a number is below nothing.
            found[model] = wins + sum(worst < other for other in best), pairs + len(best)
    return {model: counts for model, counts in found.items() if counts[1]}


def _best_two(errors: Errors, models: Sequence[str], place: Place) -> tuple[set[str], set[str]]:
    """Returns the models with the smallest and with the second smallest mean error; several where they are equal."""
    means = {model: mean(errors[model][place]) for model in _in_order(errors, models, place)}
    numbers = list(dict.fromkeys(means.values()))
    first, second = ({model for model in means if means[model] in wanted} for wanted in (numbers[:1], numbers[1:2]))
    return first, second


def _in_order(errors: Errors, models: Sequence[str], place: Place) -> list[str]:
    """Returns the models whose mean error is a number, best first."""
    means = {model: mean(errors[model][place]) for model in models if place in errors[model]}
    return sorted(filter(lambda model: isfinite(means[model]), means), key=means.__getitem__)


def _text(values: Sequence[float] | None, place: Place) -> str:
    if not values:
        return NOTHING
    digits = 2 if place[1] == "mape" else 3
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 and all(map(isfinite, values)) else ""
    return f"{mean(values):.{digits}f}{spread}"


def _gain(errors: Errors, ours: str, baselines: Sequence[str], place: Place) -> TableCell:
    """Returns by how much our error is below that of the best baseline."""
    rivals, mine = _in_order(errors, baselines, place), _in_order(errors, [ours], place)
    best = mean(errors[rivals[0]][place]) if rivals else 0.0
    if not mine or best <= 0:
        return TableCell(NOTHING)
    return TableCell(f"{100 * (1 - mean(errors[ours][place]) / best):+.1f} %")
