"""`candor benchmark`: a grid of models, tasks and seeds, and the tables that come out."""

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.screen import console, errors, print_json, say, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from candor.benchmark.cells import Cell
    from candor.benchmark.local import Watch
    from candor.benchmark.suites import Suite
    from candor.benchmark.tables import Table, TableCell


def benchmark(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="quick, traffic, river, basins, rainfall or paper.")],
    models: Annotated[
        str | None, typer.Option("--models", help="Models, separated by commas. (default: the suite's)")
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

    chosen = load_suite(suite).chosen(_names(models), None if seeds is None else parse_seeds(seeds), budget_minutes)
    run_grid(chosen, out or Path("runs") / f"benchmark-{suite}", workers=workers, ray=ray, is_json=json)


def run_grid(suite: "Suite", grid: Path, *, workers: int, ray: str | None, is_json: bool) -> "pd.DataFrame":
    """Works on all cells of a suite that are not done, writes and shows the tables, and returns all scores.

    Leaves with exit code 1 if a cell failed.
    """
    from candor.benchmark.cells import CellState, cells_of, failure_of
    from candor.benchmark.cluster import run_on_cluster
    from candor.benchmark.local import run_locally
    from candor.benchmark.results import collect

    cells = cells_of(suite)
    left = [cell for cell in cells if cell.state(grid) != CellState.DONE]
    say(f"{suite.title}: {len(cells)} cells, {len(cells) - len(left)} of them done")
    with _live(cells, grid) as watch:
        if ray is not None:
            run_on_cluster(left, grid, ray, watch)
        else:
            run_locally(left, grid, workers, watch)
    results = collect(cells, grid)
    files = _write(results, grid, suite)
    failed = {cell.name: failure_of(cell, grid) for cell in cells if cell.state(grid) == CellState.FAILED}
    if is_json:
        print_json({"cells": len(cells), "failed": failed, "files": [str(file) for file in files]})
    for name, what in failed.items():
        say(f"[red]failed[/] {name}: {what}")
    if files:
        say(f"tables and all scores: {', '.join(str(file) for file in files)}")
    if failed:
        raise typer.Exit(1)
    return results


def _names(models: str | None) -> list[str] | None:
    from candor.forecasting import forecasters

    if models is None:
        return None
    names = [name.strip() for name in models.split(",") if name.strip()]
    for name in names:
        if name not in forecasters:
            forecasters.get(name)  # says which are known
    return names


def parse_seeds(seeds: str) -> list[int]:
    """Returns seeds written with commas."""
    from candor.errors import InputError

    try:
        return [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise InputError(
            f"{seeds!r} are not seeds", mend="write whole numbers with commas, e.g. --seeds 0,1,2"
        ) from None


def _write(results: "pd.DataFrame", grid: Path, suite: "Suite") -> list[Path]:
    from candor.benchmark.results import save_results
    from candor.benchmark.tables import count_strict_wins, tables_of
    from candor.benchmark.writing import write_grid_tables

    if results.empty:
        return []
    save_results(results, grid / "results.parquet")
    files = write_grid_tables(results, suite, grid)
    for shown in tables_of(results, suite, is_whole=True):
        _show(shown)
    wins, pairs = count_strict_wins(results, suite.metric)
    if pairs and suite.has_rivals:
        say(f"the worst seed of candor beats the best seed of a baseline in {wins} of {pairs} comparisons")
    return [grid / "results.parquet", *files]


def _show(whole: "Table") -> None:
    """Prints a table with the errors over all steps; the files have the others."""
    from rich.markup import escape

    _, columns = whole.groups[0]
    shown = table(f"{whole.title}, all steps", "model", *(escape(name) for name in whole.columns[:columns]))
    for name, cells in whole.rows:
        shown.add_row(name, *(_marked(cell) for cell in cells[:columns]))
    console().print(shown)


def _marked(cell: "TableCell") -> str:
    mark = "bold" if cell.is_best else "underline" if cell.is_second else ""
    return f"[{mark}]{cell.text}[/]" if mark else cell.text


@contextmanager
def _live(cells: "Sequence[Cell]", grid: Path) -> "Iterator[Watch]":
    """Yields what shows the cells under way with their progress, and how many are done."""
    from rich.live import Live

    from candor.benchmark.cells import CellState, status_of

    screen = errors()
    with Live(console=screen, auto_refresh=False, transient=True) as live:

        def watch(running: "Sequence[Cell]") -> None:
            if not screen.is_terminal:
                return
            states = [cell.state(grid) for cell in cells]
            done, failed = states.count(CellState.DONE), states.count(CellState.FAILED)
            shown = table(f"{done} of {len(cells)} cells done, {failed} failed", "cell", "now", "done", left=2)
            for cell in running:
                status = status_of(cell, grid)
                share = status.get("share")
                shown.add_row(
                    cell.name, status.get("what", "starting"), "" if share is None else f"{100 * share:.0f} %"
                )
            live.update(shown, refresh=True)

        yield watch
