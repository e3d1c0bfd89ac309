"""Tables beside those of a grid: costs, truth, rain, settings and ablations of several tasks, as plain data."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from candor.core.errors import InputError
from candor.core.text import NOTHING, significant
from candor.research.ablations import Change, paired_changes, parameters_of, split_changes
from candor.research.grid import RESULTS, overall_errors
from candor.research.paper.found import FoundGrid, GridKind
from candor.research.paper.origins import circumstances_in_words
from candor.research.profiling import Profile, TaskErrors, errors_in
from candor.research.tables import PaperTable, TableCell, mean_and_spread, tables_of
from candor.research.truth.results import Row

_COSTS = ("parameters", "MFLOPs", "inference [ms]", "training step [ms]", "peak memory [MB]")
_SWEPT = ("mae", "rmse", "mse")


def variant_tables(grid: FoundGrid) -> dict[str, PaperTable]:
    """Return the tables of all variants by task, rows in the order of the variants instead of that of the errors."""
    places = {model: place for place, model in enumerate(grid.models)}
    return {
        table.title: replace(table, rows=tuple(sorted(table.rows, key=lambda row: places.get(row[0], len(places)))))
        for table in tables_of(grid.results, grid.suite, is_whole=True)
    }


def with_sizes(table: PaperTable, grid: FoundGrid) -> PaperTable:
    """Return the table of a task with the parameters of each variant in front, if the results state them."""
    sizes = parameters_of(grid.of_task(table.title))
    if not sizes:
        return table
    rows = tuple(
        (name, (TableCell(f"{sizes[name]:,}" if name in sizes else NOTHING), *cells)) for name, cells in table.rows
    )
    return replace(table, groups=(("network", 1), *table.groups), columns=("parameters", *table.columns), rows=rows)


def ablations_by_task(grids: Sequence[FoundGrid]) -> dict[str, dict[str, list[Change]]]:
    """Return the changes of all ablations by kind (`ablations`, `interventions`) and task.

    Grids on the same task are put together; what several of them have is taken from the first. A kind is absent unless
    there are two tasks that share a variant.
    """
    merged: dict[str, dict[tuple[str, str], Change]] = {}
    for grid in grids:
        if grid.kind == GridKind.ABLATIONS:
            for task in grid.tasks:
                there = merged.setdefault(task, {})
                for change in paired_changes(grid.of_task(task)):
                    there.setdefault((change.variant, change.metric), change)
    found: dict[str, dict[str, list[Change]]] = {}
    for task, changes in merged.items():
        for kind, some in split_changes(list(changes.values())).items():
            found.setdefault(kind, {})[task] = some
    return {kind: by_task for kind, by_task in found.items() if len(by_task) > 1 and shared_variants(by_task)}


def shared_variants(by_task: Mapping[str, Sequence[Change]]) -> set[str]:
    """Return the variants that all tasks have."""
    return set.intersection(*({change.variant for change in changes} for changes in by_task.values()))


def sensitivity_table(sweeps: Sequence[FoundGrid]) -> PaperTable:
    """Return the errors over all steps by setting and value, a group of columns per task.

    Of several sweeps of a setting on a task the first is taken: others may have another budget or other sizes.
    """
    errors: dict[tuple[str, str, str], list[float]] = {}
    taken: set[tuple[str, str]] = set()
    for grid in sweeps:
        overall = overall_errors(grid.results)
        for task in grid.tasks:
            if (grid.setting, task) not in taken:
                of_task = overall[overall["task"] == task].groupby(["model", "metric"], sort=False)["value"]
                errors |= {(task, str(model), str(metric)): values.tolist() for (model, metric), values in of_task}
        taken |= {(grid.setting, task) for task in grid.tasks}
    tasks = list(dict.fromkeys(task for task, _, _ in errors))
    places = [(task, metric) for task in tasks for metric in _SWEPT]
    rows = [
        (model, tuple(TableCell(mean_and_spread(errors.get((task, model, metric), ()), 4)) for task, metric in places))
        for model in dict.fromkeys(model for _, model, _ in errors)
    ]
    return PaperTable(
        title="One setting at a time",
        groups=tuple((task, len(_SWEPT)) for task in tasks),
        columns=tuple(metric.upper() for _, metric in places),
        rows=tuple(rows),
        note="Test part, all steps together, in the unit of each task's sensors (MSE in its square); mean over seeds",
    )


def find_errors(profile: Profile, grids: Sequence[FoundGrid]) -> TaskErrors | None:
    """Return the errors of the benchmark grid that has most of the profile's models on its preset, if there is one."""
    preset, measured = profile.circumstances.preset, {model.name for model in profile.models}
    found: list[TaskErrors] = []
    for grid in grids:
        if grid.kind == GridKind.BENCHMARK:
            with suppress(InputError):  # of a grid that has no scores on the preset, or none by its metric
                found.append(errors_in(grid.results, preset, grid.folder / RESULTS, grid.suite))
    best = max(found, key=lambda errors: len(measured & set(errors.by_model)), default=None)
    return best if best and measured & set(best.by_model) else None


def cost_table(profile: Profile) -> PaperTable:
    """Return a row per model, smallest first: parameters, operations, times and memory, a dash where it has none."""
    at, rows = profile.circumstances, []
    notes = [circumstances_in_words(at)]
    if any(model.parameters is None for model in profile.models):
        notes.append("models without a network have no costs but the time of a forecast")
    if any(model.is_reconstruction for model in profile.models):
        notes.append("(reconstruction): rebuilt by us from what is published, without the authors' code")
    for model in profile.models:
        texts = (
            NOTHING if model.parameters is None else f"{model.parameters:,}",
            significant(None if model.operations is None else model.operations / 1e6),
            significant(1e3 * model.inference_seconds),
            significant(None if model.training_seconds is None else 1e3 * model.training_seconds),
            significant(model.peak_megabytes),
        )
        rows.append((model.label, tuple(TableCell(text) for text in texts)))
    return PaperTable(
        title=f"Cost on {at.preset}",
        groups=((f"batch of {at.batch} windows", len(_COSTS)),),
        columns=_COSTS,
        rows=tuple(rows),
        note="; ".join(notes),
    )


def truth_tables(rows: Sequence[Row]) -> list[PaperTable]:
    """Return a table for each question and measure, a row per answer; the best of each dataset is marked."""
    tables = []
    for question, measure in dict.fromkeys((row.question, row.measure) for row in rows):
        asked = [row for row in rows if (row.question, row.measure) == (question, measure)]
        datasets = list(dict.fromkeys(row.dataset for row in asked))
        shown = []
        for answer, is_ours in dict.fromkeys((row.answer, row.is_ours) for row in asked):
            by_dataset = {row.dataset: row for row in asked if (row.answer, row.is_ours) == (answer, is_ours)}
            cells = tuple(_truth_cell(by_dataset.get(name), asked) for name in datasets)
            shown.append((f"{asked[0].model}: {answer}" if is_ours else answer, cells))
        goal = "" if asked[0].goal is None else f"; goal of {asked[0].model}: {asked[0].goal:g}"
        note = f"Mean over seeds ± standard deviation, held-out test part{goal}"
        groups = (("score", len(datasets)),)
        tables.append(PaperTable(f"{question}: {measure}", groups, tuple(datasets), tuple(shown), note))
    return tables


def _truth_cell(row: Row | None, asked: Sequence[Row]) -> TableCell:
    if row is None or row.mean is None:
        return TableCell(NOTHING)
    best = max(other.mean for other in asked if other.dataset == row.dataset and other.mean is not None)
    return TableCell(row.text, is_best=row.mean == best)
