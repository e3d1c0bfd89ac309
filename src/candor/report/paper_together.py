"""Several results side by side, as the paper has them: ablations of all tasks, all sweeps, rain of all data."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

from candor.benchmark.drawing import draw_ablations_together
from candor.benchmark.pairing import Change, paired_changes
from candor.benchmark.results import ALL_STEPS
from candor.benchmark.tables import Table, TableCell
from candor.benchmark.variants import FULL
from candor.benchmark.writing import write_tables
from candor.progress import Report
from candor.report.paper_entry import Entry, Origin, Picture, ShownTable, table_files
from candor.report.paper_grid import Grid, Kind
from candor.report.paper_shock_rain import Kept, association_table
from candor.report.paper_words import origin_of_task
from candor.report.wording import NOTHING

ABLATIONS = "ablations"
_METRICS = ("mae", "rmse", "mse")


def has_ablations(grids: Sequence[Grid]) -> bool:
    """Returns whether there are ablations of several tasks."""
    return len({task for grid in grids if grid.kind == Kind.ABLATIONS for task in grid.tasks}) > 1


def ablations_by_task(grids: Sequence[Grid]) -> dict[str, list[Change]]:
    """Returns the changes of all ablations by task; empty unless there are two tasks that share a variant."""
    found: dict[str, list[Change]] = {}
    for grid in grids:
        if grid.kind == Kind.ABLATIONS:
            for task in grid.tasks:
                if changes := paired_changes(grid.results[grid.results["task"] == task], FULL, ("mae",)):
                    found.setdefault(task, changes)
    shared = set.intersection(*({change.variant for change in changes} for changes in found.values())) if found else ()
    return found if len(found) > 1 and shared else {}


def make_ablations(grids: Sequence[Grid], folder: Path, report: Report) -> list[Entry]:
    """Draws the ablations of all tasks as one heat map and returns its entry; none where they share no variant."""
    report("drawing ablations", None)
    if not (changes := ablations_by_task(grids)):
        return []
    draw_ablations_together(changes).write(folder, ABLATIONS)
    origins = [
        origin_of_task(grid, task)
        for task in changes
        for grid in [next(one for one in grids if one.kind == Kind.ABLATIONS and task in one.tasks)]
    ]
    caption = "Relative change of the mean absolute error, paired by seed, by task; red is worse."
    return [
        Entry(
            title="All tasks: CANDOR without its parts",
            shows=("What CANDOR loses without each of its parts, on every task that was tried.",),
            origin=joined(origins),
            pictures=(Picture(f"{folder.name}/{ABLATIONS}", caption),),
        )
    ]


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
    """Returns the errors over all steps by setting and value, a group of columns per task."""
    errors: dict[tuple[str, str, str], list[float]] = {}
    for grid in sweeps:
        chosen = grid.results[grid.results["step"] == ALL_STEPS]
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
        note="Test part, all steps together, in the unit of each task's sensors; mean over seeds",
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
        source=_listed([str(one.path) for one in kept]),
        command="those of the entries below, one for each data",
        data=_listed([one.data for one in kept]),
        protocol="as in the entries below",
        made="as in the entries below",
        versions="as in the entries below",
    )
    return [
        Entry(
            title="All data: shock activity and rain",
            shows=("Whether the shock that CANDOR learned knows of rain that it was not given.",),
            origin=origin,
            tables=(ShownTable(table, "data"),),
            files=table_files(folder.name),
        )
    ]


def joined(origins: Sequence[Origin]) -> Origin:
    """Returns one origin for numbers of several; what is the same in all is said once."""
    return Origin(
        source=_listed([origin.source for origin in origins]),
        command="\n".join(dict.fromkeys(origin.command for origin in origins)),
        data=_listed([origin.data for origin in origins]),
        protocol=_listed([origin.protocol for origin in origins], " "),
        made=_listed([origin.made for origin in origins]),
        versions=_listed([origin.versions for origin in origins]),
    )


def _listed(texts: Sequence[str], between: str = "; ") -> str:
    return between.join(dict.fromkeys(texts))
