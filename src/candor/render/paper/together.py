"""Several results side by side, as the paper has them: ablations of all tasks, all sweeps, rain of all data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev

from candor.core.progress import Report
from candor.core.text import NOTHING
from candor.render.figures.benchmark import draw_ablations_together, split_changes
from candor.render.paper.comparisons import HEAT_MAPS
from candor.render.paper.entry import Entry, Origin, Picture, ShownTable, joined, table_files
from candor.render.paper.grid import Grid, Kind
from candor.render.paper.shock_rain import Kept, association_table
from candor.render.paper.tables import write_tables
from candor.render.paper.words import origin_of_task
from candor.research.ablations import Change, paired_changes
from candor.research.grid import ALL_STEPS
from candor.research.tables import Table, TableCell

_METRICS = ("mae", "rmse", "mse")


def has_ablations(grids: Sequence[Grid]) -> bool:
    """Returns whether there are ablations of several tasks."""
    return len({task for grid in grids if grid.kind == Kind.ABLATIONS for task in grid.tasks}) > 1


def ablations_by_task(grids: Sequence[Grid]) -> dict[str, dict[str, list[Change]]]:
    """Returns the changes of all ablations by kind (`ablations`, `interventions`) and task.

    Grids on the same task are put together; what several of them have is taken from the first. A kind is absent unless
    there are two tasks that share a variant.
    """
    merged: dict[str, dict[tuple[str, str], Change]] = {}
    for grid in grids:
        if grid.kind == Kind.ABLATIONS:
            for task in grid.tasks:
                there = merged.setdefault(task, {})
                for change in paired_changes(grid.results[grid.results["task"] == task]):
                    there.setdefault((change.variant, change.metric), change)
    found: dict[str, dict[str, list[Change]]] = {}
    for task, changes in merged.items():
        for kind, some in split_changes(list(changes.values())).items():
            found.setdefault(kind, {})[task] = some
    return {kind: by_task for kind, by_task in found.items() if len(by_task) > 1 and _shared(by_task)}


def _shared(by_task: Mapping[str, Sequence[Change]]) -> set[str]:
    """Returns the variants that all tasks have."""
    return set.intersection(*({change.variant for change in changes} for changes in by_task.values()))


def make_ablations(grids: Sequence[Grid], folder: Path, report: Report) -> list[Entry]:
    """Draws the ablations of all tasks as one heat map and returns its entry; none where they share no variant.

    Interventions have a heat map and an entry of their own.
    """
    report("drawing ablations", None)
    entries = []
    for kind, changes in ablations_by_task(grids).items():
        draw_ablations_together(changes).write(folder, kind)
        origins = [
            origin_of_task(grid, task)
            for task in changes
            for grid in grids
            if grid.kind == Kind.ABLATIONS and task in grid.tasks and _shared(changes) & set(grid.models)
        ]
        caption = "Relative change of each error, paired by seed, by task; red is worse."
        title, shows = HEAT_MAPS[kind]
        entries.append(
            Entry(
                title=f"All tasks: {title}",
                shows=(shows,),
                origin=joined(origins),
                pictures=(Picture(f"{folder.name}/{kind}", caption),),
            )
        )
    return entries


def make_sweeps(grids: Sequence[Grid], folder: Path, report: Report) -> list[Entry]:
    """Writes the errors of all sweeps as one table and returns its entry."""
    report("writing tables", None)
    sweeps = [grid for grid in grids if grid.kind == Kind.SWEEP]
    table = sensitivity_table(sweeps)
    write_tables([table], folder, "tables")
    return [
        Entry(
            title="All settings that were varied",
            shows=("What each setting does to the errors of CANDOR, one at a time, all else equal.",),
            origin=joined([origin_of_task(grid, task) for grid in sweeps for task in grid.tasks]),
            tables=(ShownTable(table, "setting"),),
            files=table_files(folder.name),
        )
    ]


def sensitivity_table(sweeps: Sequence[Grid]) -> Table:
    """Returns the errors over all steps by setting and value, a group of columns per task.

    Of several sweeps of a setting on a task the first is taken: others may have another budget or other sizes.
    """
    errors: dict[tuple[str, str, str], list[float]] = {}
    taken: set[tuple[str, str]] = set()
    for grid in sweeps:
        new = [task for task in grid.tasks if (grid.setting, task) not in taken]
        taken |= {(grid.setting, task) for task in new}
        chosen = grid.results[(grid.results["step"] == ALL_STEPS) & grid.results["task"].isin(new)]
        columns = (chosen[name].tolist() for name in ("task", "model", "metric", "value"))
        for task, model, metric, value in zip(*columns, strict=True):
            errors.setdefault((str(task), str(model), str(metric)), []).append(float(value))
    tasks = list(dict.fromkeys(task for task, _, _ in errors))
    places = [(task, metric) for task in tasks for metric in _METRICS]
    rows = [
        (model, tuple(_cell(errors.get((task, model, metric), [])) for task, metric in places))
        for model in dict.fromkeys(model for _, model, _ in errors)
    ]
    return Table(
        title="One setting at a time",
        groups=tuple((task, len(_METRICS)) for task in tasks),
        columns=tuple(metric.upper() for _, metric in places),
        rows=tuple(rows),
        note="Test part, all steps together, in the unit of each task's sensors (MSE in its square); mean over seeds",
    )


def _cell(values: Sequence[float]) -> TableCell:
    if not values:
        return TableCell(NOTHING)
    return TableCell(f"{mean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else ""))


def make_associations(kept: Sequence[Kept], folder: Path, report: Report) -> list[Entry]:
    """Writes the tests of shock activity against rain on all data as one table and returns its entry."""
    report("writing tables", None)
    table = association_table(kept)
    write_tables([table], folder, "tables")
    origin = Origin(
        source="; ".join(dict.fromkeys(str(one.path) for one in kept)),
        command="those of the entries below, one for each data",
        data="; ".join(dict.fromkeys(one.data for one in kept)),
        protocol="as in the entries below",
        made="as in the entries below",
        versions="as in the entries below",
    )
    return [
        Entry(
            title="All data: shock activity and rain",
            shows=("Whether the shock that CANDOR learned knows of rain.",),
            origin=origin,
            tables=(ShownTable(table, "data"),),
            files=table_files(folder.name),
        )
    ]
