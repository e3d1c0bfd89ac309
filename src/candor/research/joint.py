"""Tables of datasets whose horizons are tasks of their own: horizons side by side with their mean, as the paper has it.

The mean over horizons is taken seed by seed, over seeds that have all of them.
"""

from statistics import mean

import pandas as pd

from candor.research.results import ALL_STEPS
from candor.research.suites import Suite
from candor.research.tables import SHOWN, Place, Table, errors_by_task, line_up, make_table, tables_of

AVERAGE = "Avg"


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
                found.append(_joint(str(data), of_data, some, rules, is_whole))
            else:
                found += [alone[task] for task in own if task in alone]
    return [table for table in found if table.rows]


def _joint(data: str, results: pd.DataFrame, ranked: pd.DataFrame, rules: Suite, is_whole: bool) -> Table:
    """Returns the table of a dataset; models are ranked by more than its own results."""
    horizons = results.drop_duplicates("task").sort_values("horizon", kind="stable")
    heads = {str(task): f"H = {horizon}" for task, horizon in zip(horizons["task"], horizons["horizon"], strict=True)}
    errors = _errors(results, list(heads), SHOWN[rules.metric])
    lineup = line_up(errors_by_task(ranked), errors, rules.metric, is_whole=is_whole or not rules.has_rivals)
    return make_table(data, errors, heads | {AVERAGE: AVERAGE}, lineup, rules, results)


def _errors(results: pd.DataFrame, tasks: list[str], metrics: tuple[str, ...]) -> dict[str, dict[Place, list[float]]]:
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
