"""Tables and figures of grids: models beside each other, CANDOR without its parts, settings varied."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from candor.core.progress import Report
from candor.core.text import counted
from candor.render.figures.benchmark import draw_ablations, draw_setting
from candor.render.paper.entry import PaperEntry, Picture, ShownTable, draw, make_slug, write_shown
from candor.research.ablations import paired_changes, split_changes
from candor.research.paper.found import FoundGrid, GridKind
from candor.research.paper.origins import joined, origin_of_task
from candor.research.paper.tables import (
    ablations_by_task,
    sensitivity_table,
    shared_variants,
    variant_tables,
    with_sizes,
)
from candor.research.tables import paper_tables_of, rain_table_of, strict_wins, tables_of

HEAT_MAPS = {
    "ablations": (
        "CANDOR without its parts",
        "What CANDOR loses without each of its parts: how its errors change.",
    ),
    "interventions": (
        "CANDOR that is given rain",
        "What rain changes: added to the shock component (RainAdd), or in place of what readings show of shocks "
        "(RainOnly).",
    ),
}
"""By kind of change: what a heat map is called, and what it shows."""


def make_grid(grid: FoundGrid, folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write the tables and figures of a grid to a folder and return an entry per task."""
    report("writing tables", None)
    if grid.kind == GridKind.BENCHMARK:
        yield from _make_benchmark(grid, folder)
        return
    tables = variant_tables(grid)
    if grid.kind == GridKind.ABLATIONS:
        tables = {task: with_sizes(table, grid) for task, table in tables.items()}
    files = write_shown(list(tables.values()), folder)
    for task in grid.tasks:
        title, shows, pictures = (_ablations if grid.kind == GridKind.ABLATIONS else _sweep)(grid, task, folder)
        shown = (ShownTable(tables[task], "variant", has_note=False),) if task in tables else ()
        said = (*shows, *_holes(grid, task))
        yield PaperEntry(title, said, origin_of_task(grid, task), tuple(pictures), shown, files)


def _make_benchmark(grid: FoundGrid, folder: Path) -> Iterator[PaperEntry]:
    """Write all tables and yield an entry per task, and one of models without and with rain if there are such."""
    few = {table.title: table for table in tables_of(grid.results, grid.suite)}
    whole = {table.title: table for table in tables_of(grid.results, grid.suite, is_whole=True)}
    files = write_shown(paper_tables_of(grid.results, grid.suite), folder)
    all_models = paper_tables_of(grid.results, grid.suite, is_whole=True)
    files += write_shown(all_models, folder, "tables-all", "all models")
    if (rain := rain_table_of(grid.results, grid.suite)) is not None:
        yield PaperEntry(
            title=f"{rain.title}: the suite {grid.suite.name}",
            shows=("What rain as a further input does to models that can read one; of each pair the better is bold.",),
            origin=joined([origin_of_task(grid, task) for task in grid.tasks]),
            tables=(ShownTable(rain),),
            files=write_shown([rain], folder, "tables-rain", "without and with rain"),
        )
    for task in grid.tasks:
        shown = [ShownTable(few[task], has_note=False)] if task in few else []
        if task in whole and (task not in few or len(whole[task].rows) > len(few[task].rows)):
            everything = replace(whole[task], title=f"{task}, all models")
            shown.append(ShownTable(everything, is_folded=bool(shown), has_note=False))
        title = f"{task}: models of the suite {grid.suite.name}"
        shows = (*_comparison(grid, task), *_holes(grid, task))
        yield PaperEntry(title, shows, origin_of_task(grid, task), (), tuple(shown), files)


def _comparison(grid: FoundGrid, task: str) -> list[str]:
    """Return how models compare on a task, in sentences."""
    results = grid.of_task(task)
    models = counted(results["model"].nunique(), "model")
    said = [f"Errors of {models} on the test part; bold is best, underlined second best of all that may be ranked."]
    if any(
        "(reconstruction)" in name for table in tables_of(results, grid.suite, is_whole=True) for name, _ in table.rows
    ):
        said.append("Reconstructions were rebuilt from what is published, without their authors' code; none is ranked.")
    wins = strict_wins(results, grid.suite.metric_of(task)) if grid.suite.has_rivals else {}
    return said + [
        f"The worst seed of {model} beats the best seed of a baseline in {count} of {pairs} comparisons."
        for model, (count, pairs) in wins.items()
    ]


def _ablations(grid: FoundGrid, task: str, folder: Path) -> tuple[str, list[str], list[Picture]]:
    """Draw the heat maps of a task and return the title of its entry, what it shows, and the figures."""
    kinds = split_changes(paired_changes(grid.of_task(task)))
    caption = (
        "Relative change of each error against the full model, paired by seed; red is worse. A dot: more than "
        "twice the spread of the full model over its seeds."
    )
    pictures = [
        draw(folder, _stem(kind, task, grid), draw_ablations({task: some}), caption) for kind, some in kinds.items()
    ]
    heat_maps = [HEAT_MAPS[kind] for kind in kinds] or [HEAT_MAPS["ablations"]]
    shows = [*(shown for _, shown in heat_maps), "The table has the errors themselves."]
    return f"{task}: {' and '.join(title for title, _ in heat_maps)}", shows, pictures


def _sweep(grid: FoundGrid, task: str, folder: Path) -> tuple[str, list[str], list[Picture]]:
    """Draw the errors by value of a task and return the title of its entry, what it shows, and the figure."""
    caption = "Mean absolute error over all steps by value: a dot per seed, a line through the means."
    stem = _stem(f"sweep-{make_slug(grid.setting)}", task, grid)
    picture = draw(folder, stem, draw_setting(grid.of_task(task), grid.setting, task), caption)
    shows = f"What the setting {grid.setting} does to the errors of CANDOR, all else equal."
    return f"{task}: {grid.setting} varied", [shows], [picture]


def _stem(name: str, task: str, grid: FoundGrid) -> str:
    """Return the name of a figure's files; that of the task is in it where there are several."""
    return name if len(grid.tasks) == 1 else f"{name}-{make_slug(task)}"


def _holes(grid: FoundGrid, task: str) -> list[str]:
    """Return a sentence about scores that are not numbers, if there are any."""
    results = grid.of_task(task)
    holes = results[results["value"].isna()]
    if holes.empty:
        return []
    metrics = ", ".join(sorted(set(holes["metric"].astype(str))))
    return [f"{counted(len(holes), 'score')} could not be computed ({metrics}) and stand as nan."]


def make_ablations_together(grids: Sequence[FoundGrid], folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Draw the ablations of all tasks as one heat map and return its entry; none where they share no variant.

    Interventions have a heat map and an entry of their own.
    """
    report("drawing ablations", None)
    for kind, changes in ablations_by_task(grids).items():
        origins = [
            origin_of_task(grid, task)
            for task in changes
            for grid in grids
            if grid.kind == GridKind.ABLATIONS and task in grid.tasks and shared_variants(changes) & set(grid.models)
        ]
        title, shows = HEAT_MAPS[kind]
        caption = "Relative change of each error, paired by seed, by task; red is worse."
        picture = draw(folder, kind, draw_ablations(changes), caption)
        yield PaperEntry(f"All tasks: {title}", (shows,), joined(origins), (picture,))


def make_sweeps_together(sweeps: Sequence[FoundGrid], folder: Path, report: Report) -> Iterator[PaperEntry]:
    """Write the errors of all sweeps as one table and return its entry."""
    report("writing tables", None)
    table = sensitivity_table(sweeps)
    yield PaperEntry(
        title="All settings that were varied",
        shows=("What each setting does to the errors of CANDOR, one at a time, all else equal.",),
        origin=joined([origin_of_task(grid, task) for grid in sweeps for task in grid.tasks]),
        tables=(ShownTable(table, "setting"),),
        files=write_shown([table], folder),
    )
