"""`candor benchmark`: a grid of models, tasks and seeds, and the tables that come out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, print_json, say, table
from candor.cli.watching import watching

if TYPE_CHECKING:
    import pandas as pd

    from candor.benchmark.suites import Suite
    from candor.benchmark.tables import Table, TableCell


def benchmark(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="quick, traffic, river, basins, rainfall or paper.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Settings of the protocol and of all networks, e.g. epochs=5; those of candor-small itself stay.",
        ),
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", help="Models, separated by commas. (default: the suite's)")
    ] = None,
    tasks: Annotated[
        str | None, typer.Option("--tasks", help="Tasks, separated by commas, as tables name them. (default: all)")
    ] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="Seeds, e.g. 0,1,2. (default: the suite's)")] = None,
    budget_minutes: Annotated[
        float | None, typer.Option("--budget-minutes", help="Training of each cell; schedules are shortened to it.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Cells at a time on this machine.")] = 1,
    ray: Annotated[str | None, typer.Option("--ray", help="Address of a Ray cluster to work on instead.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the grid. (default: runs/benchmark-SUITE)")
    ] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Run a suite: cells that are done are skipped, killed ones go on, failed ones are told and stop nothing."""
    from candor.benchmark.suites import load_suite
    from candor.settings import parse_overrides

    chosen = load_suite(suite).chosen(
        _names(models),
        None if seeds is None else parse_seeds(seeds),
        budget_minutes,
        tasks=_names(tasks),
        settings=parse_overrides(settings or []),
    )
    run_grid(chosen, out or Path("runs") / f"benchmark-{suite}", workers=workers, ray=ray, is_json=json)


def run_grid(suite: "Suite", grid: Path, *, workers: int, ray: str | None, is_json: bool) -> "pd.DataFrame":
    """Works on all cells of a suite that are not done, writes and shows the tables, and returns all scores.

    Tasks whose data are not here are named and left out. Leaves with exit code 1 if a cell failed.
    """
    from candor.benchmark.cells import CellState, cells_of, failure_of
    from candor.benchmark.cluster import run_on_cluster
    from candor.benchmark.local import run_locally, stopped_by_sigterm
    from candor.benchmark.results import collect

    suite, left_out = suite.available()
    cells = cells_of(suite)
    left = [cell for cell in cells if cell.state(grid) != CellState.DONE]
    say(f"{suite.title}: {len(cells)} cells, {len(cells) - len(left)} of them done")
    if left_out:
        say(f"left out, since their data are not here: {', '.join(left_out)}")
    with stopped_by_sigterm(), watching(cells, grid) as watch:
        if ray is not None:
            run_on_cluster(left, grid, ray, watch)
        else:
            run_locally(left, grid, workers, watch)
    results = collect(cells, grid)
    files = [str(file) for file in _write(results, grid, suite)]
    if not is_json:
        _show_all(results, suite)
    failed = {cell.name: failure_of(cell, grid) for cell in cells if cell.state(grid) == CellState.FAILED}
    if is_json:
        print_json({"cells": len(cells), "left_out": left_out, "failed": failed, "files": files})
    for name, what in failed.items():
        say(f" {name}: {what}", label="failed", colour="red")
    if files:
        say(f"tables and all scores: {', '.join(files)}")
    if failed:
        raise typer.Exit(1)
    return results


def _names(listed: str | None) -> list[str] | None:
    return None if listed is None else [name.strip() for name in listed.split(",") if name.strip()]


def parse_seeds(seeds: str) -> list[int]:
    """Returns seeds written with commas."""
    from candor.errors import InputError

    words = [seed.strip() for seed in seeds.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"{seeds!r} are not seeds", mend="write whole numbers with commas, e.g. --seeds 0,1,2")
    return [int(word) for word in words]


def _write(results: "pd.DataFrame", grid: Path, suite: "Suite") -> list[Path]:
    from candor.benchmark.results import save_results
    from candor.benchmark.writing import write_grid_tables

    if results.empty:
        return []
    save_results(results, grid / "results.parquet")
    return [grid / "results.parquet", *write_grid_tables(results, suite, grid)]


def _show_all(results: "pd.DataFrame", suite: "Suite") -> None:
    """Prints the tables of all models, and how often even our worst seed is better than a baseline's best."""
    from candor.benchmark.joint import paper_tables_of
    from candor.benchmark.tables import strict_wins

    for shown in paper_tables_of(results, suite, is_whole=True):
        _show(shown)
    for rules, tasks in suite.parts_of(results["task"].tolist()):
        counts = strict_wins(results[results["task"].isin(tasks)], rules.metric) if suite.has_rivals else {}
        for model, (wins, pairs) in counts.items():
            say(f"the worst seed of {model} beats the best seed of a baseline in {wins} of {pairs} comparisons")


def _show(whole: "Table") -> None:
    """Prints the errors over all steps, at every horizon the first metric; the files have the others."""
    from candor.benchmark.joint import AVERAGE

    (first, columns), *others = whole.groups
    if others and others[-1][0] == AVERAGE:
        places = range(0, len(whole.columns), columns)
        heads, title = [name for name, _ in whole.groups], f"{whole.title}, {whole.columns[0]}"
    else:
        places = range(columns)
        heads, title = list(whole.columns[:columns]), f"{whole.title}, {first}"
    shown = table(escape(title), "model", *(escape(name) for name in heads))
    for name, cells in whole.rows:
        shown.add_row(escape(name), *(_marked(cells[place]) for place in places))
    console().print(shown)


def _marked(cell: "TableCell") -> str:
    mark = "bold" if cell.is_best else "underline" if cell.is_second else ""
    return f"[{mark}]{cell.text}[/]" if mark else cell.text
