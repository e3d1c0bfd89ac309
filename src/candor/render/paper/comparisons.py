"""Tables and figures of grids: models beside each other, CANDOR without its parts, one setting varied."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from candor.core.progress import Report
from candor.core.text import NOTHING, counted
from candor.render.figures.benchmark import draw_ablations, draw_setting, split_changes
from candor.render.paper.entry import Entry, Picture, ShownTable, joined, make_slug, table_files
from candor.render.paper.grid import Grid, Kind
from candor.render.paper.tables import write_grid_tables, write_tables
from candor.render.paper.words import origin_of_task
from candor.research.ablations import paired_changes, parameters_of
from candor.research.rain_table import rain_table_of
from candor.research.tables import Table, TableCell, strict_wins, tables_of

HEAT_MAPS = {
    "ablations": (
        "CANDOR without its parts",
        "What CANDOR loses without each of its parts: how its errors change.",
    ),
    "interventions": (
        "CANDOR that is given rain",
        "What rain changes: added to the shock component (RainAdd), or in place of what readings tell of shocks "
        "(RainOnly).",
    ),
}
"""By kind of change: what a heat map is called, and what it shows."""


def make_grid(grid: Grid, folder: Path, report: Report) -> list[Entry]:
    """Writes the tables and figures of a grid to a folder and returns an entry per task."""
    report("writing tables", None)
    return _MAKERS[grid.kind](grid, folder)


def _make_benchmark(grid: Grid, folder: Path) -> list[Entry]:
    write_grid_tables(grid.results, grid.suite, folder)
    few = {table.title: table for table in tables_of(grid.results, grid.suite)}
    whole = {table.title: table for table in tables_of(grid.results, grid.suite, is_whole=True)}
    files = (
        *table_files(folder.name),
        *table_files(folder.name, "tables-all", "all models"),
    )
    entries = _make_rain(grid, folder)
    for task in grid.tasks:
        shown = [ShownTable(few[task], has_note=False)] if task in few else []
        if task in whole and (task not in few or len(whole[task].rows) > len(few[task].rows)):
            everything = replace(whole[task], title=f"{task}, all models")
            shown.append(ShownTable(everything, is_folded=bool(shown), has_note=False))
        entries.append(
            Entry(
                title=f"{task}: models of the suite {grid.suite.name}",
                shows=_compared(grid, task),
                origin=origin_of_task(grid, task),
                tables=tuple(shown),
                files=files,
            )
        )
    return entries


def _make_rain(grid: Grid, folder: Path) -> list[Entry]:
    """Returns the entry of models without and with rain; none if no model has results of both."""
    rain = rain_table_of(grid.results, grid.suite)
    if rain is None:
        return []
    return [
        Entry(
            title=f"{rain.title}: the suite {grid.suite.name}",
            shows=("What rain as a further input does to models that can read one; of each pair the better is bold.",),
            origin=joined([origin_of_task(grid, task) for task in grid.tasks]),
            tables=(ShownTable(rain),),
            files=table_files(folder.name, "tables-rain", "without and with rain"),
        )
    ]


def _compared(grid: Grid, task: str) -> tuple[str, ...]:
    results = grid.results[grid.results["task"] == task]
    models = counted(results["model"].nunique(), "model")
    said = [f"Errors of {models} on the test part; bold is best, underlined second best of all that may be ranked."]
    if any(
        "(reconstruction)" in name for table in tables_of(results, grid.suite, is_whole=True) for name, _ in table.rows
    ):
        said.append("Reconstructions were rebuilt from what is published, without their authors' code; none is ranked.")
    wins = strict_wins(results, grid.suite.metric_of(task)) if grid.suite.has_rivals else {}
    for model, (count, pairs) in wins.items():
        said.append(f"The worst seed of {model} beats the best seed of a baseline in {count} of {pairs} comparisons.")
    return (*said, *_holes(grid, task))


def _make_ablations(grid: Grid, folder: Path) -> list[Entry]:
    tables = {task: _with_sizes(table, grid) for task, table in _in_order(grid).items()}
    write_tables(list(tables.values()), folder, "tables")
    entries = []
    for task in grid.tasks:
        changes = paired_changes(grid.results[grid.results["task"] == task])
        pictures: list[Picture] = []
        kinds = split_changes(changes)
        for kind, some in kinds.items():
            stem = _stem(kind, task, grid)
            draw_ablations(some, task).write(folder, stem)
            caption = (
                "Relative change of each error against the full model, paired by seed; red is worse. A dot: more than "
                "twice the spread of the full model over its seeds."
            )
            pictures.append(Picture(f"{folder.name}/{stem}", caption))
        told = [HEAT_MAPS[kind] for kind in kinds] or [HEAT_MAPS["ablations"]]
        shows = (*(shown for _, shown in told), "The table has the errors themselves.", *_holes(grid, task))
        title = f"{task}: {' and '.join(title for title, _ in told)}"
        entries.append(_entry(grid, task, title, shows, pictures, tables, folder))
    return entries


def _with_sizes(table: Table, grid: Grid) -> Table:
    """Returns the table of a task with the parameters of each variant in front, if the results state them."""
    sizes = parameters_of(grid.results[grid.results["task"] == table.title])
    if not sizes:
        return table
    rows = tuple(
        (name, (TableCell(f"{sizes[name]:,}" if name in sizes else NOTHING), *cells)) for name, cells in table.rows
    )
    return replace(table, groups=(("network", 1), *table.groups), columns=("parameters", *table.columns), rows=rows)


def _make_sweep(grid: Grid, folder: Path) -> list[Entry]:
    tables = _in_order(grid)
    write_tables(list(tables.values()), folder, "tables")
    entries = []
    for task in grid.tasks:
        stem = _stem(f"sweep-{make_slug(grid.setting)}", task, grid)
        draw_setting(grid.results[grid.results["task"] == task], grid.setting, task).write(folder, stem)
        caption = "Mean absolute error over all steps by value: a dot per seed, a line through the means."
        shows = (f"What the setting {grid.setting} does to the errors of CANDOR, all else equal.", *_holes(grid, task))
        pictures = [Picture(f"{folder.name}/{stem}", caption)]
        entries.append(_entry(grid, task, f"{task}: {grid.setting} varied", shows, pictures, tables, folder))
    return entries


_MAKERS: Mapping[Kind, Callable[[Grid, Path], list[Entry]]] = {
    Kind.BENCHMARK: _make_benchmark,
    Kind.ABLATIONS: _make_ablations,
    Kind.SWEEP: _make_sweep,
}


def _entry(
    grid: Grid,
    task: str,
    title: str,
    shows: tuple[str, ...],
    pictures: list[Picture],
    tables: Mapping[str, Table],
    folder: Path,
) -> Entry:
    shown = (ShownTable(tables[task], "variant", has_note=False),) if task in tables else ()
    return Entry(title, shows, origin_of_task(grid, task), tuple(pictures), shown, table_files(folder.name))


def _stem(name: str, task: str, grid: Grid) -> str:
    """Returns the name of a figure's files; that of the task is in it where there are several."""
    return name if len(grid.tasks) == 1 else f"{name}-{make_slug(task)}"


def _in_order(grid: Grid) -> dict[str, Table]:
    """Returns the tables of all variants by task, rows in the order of the variants instead of that of the errors."""
    places = {model: place for place, model in enumerate(grid.models)}
    return {
        table.title: replace(table, rows=tuple(sorted(table.rows, key=lambda row: places.get(row[0], len(places)))))
        for table in tables_of(grid.results, grid.suite, is_whole=True)
    }


def _holes(grid: Grid, task: str) -> list[str]:
    """Returns a sentence about scores that are not numbers, if there are any."""
    results = grid.results[grid.results["task"] == task]
    holes = results[results["value"].isna()]
    if holes.empty:
        return []
    metrics = ", ".join(sorted(set(holes["metric"].astype(str))))
    return [f"{counted(len(holes), 'score')} could not be computed ({metrics}) and stand as nan."]
