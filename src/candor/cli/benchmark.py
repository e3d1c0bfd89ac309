"""`candor benchmark`: a grid of models, tasks and seeds, and the tables that come out."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.inputs import argument, option, parse_names
from candor.cli.screen import print_json, say, say_failed, say_written, show_table
from candor.cli.watching import work_on
from candor.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from candor.render.figures.style import Drawing
    from candor.research.grid import GridCell
    from candor.research.suites import Suite
    from candor.research.tables import PaperTable, TableCell


@dataclass(frozen=True)
class GridOptions:
    """The arguments that all commands on grids share."""

    settings: Annotated[
        list[str] | None,
        argument(
            "KEY=VALUE", "Settings of the protocol and of all networks, e.g. epochs=5 size=small; a model's own stay."
        ),
    ] = None
    seeds: inputs.SeedsOption = "0,1,2"
    budget_minutes: inputs.BudgetOption = None
    workers: inputs.WorkersOption = 1
    ray: Annotated[str | None, option("Address of a Ray cluster to work on instead.")] = None
    json: inputs.JsonOption = False

    def terms(self) -> dict[str, Any]:
        """Return settings, seeds and budget of a suite."""
        from candor.core.settings import parse_overrides

        seeds = None if self.seeds is None else inputs.parse_seeds(self.seeds)
        return {"settings": parse_overrides(self.settings or []), "seeds": seeds, "budget_minutes": self.budget_minutes}


@inputs.takes(
    GridOptions,
    defaults={"seeds": None},
    seeds=Annotated[str | None, option("Seeds, e.g. 0,1,2. (default: the suite's)")],
)
def benchmark(
    grid: GridOptions,
    suite: Annotated[str, argument("SUITE", "quick, traffic, river, basins, rainfall or paper.")],
    models: Annotated[str | None, option("Models, separated by commas. (default: the suite's)")] = None,
    tasks: Annotated[str | None, option("Tasks, separated by commas, as tables name them. (default: all)")] = None,
    out: Annotated[Path | None, option("Folder of the grid. (default: runs/benchmark-SUITE)")] = None,
) -> None:
    """Run a suite: cells that are done are skipped, killed ones go on, failed ones are named and stop nothing."""
    from candor.forecasting import forecasters
    from candor.research.grid import cells_in
    from candor.research.suites import load_suite

    base, terms, folder = load_suite(suite), grid.terms(), out or Path("runs") / f"benchmark-{suite}"
    chosen = base.chosen(
        None if models is None else parse_names(models, "model"),
        tasks=None if tasks is None else parse_names(tasks, "task"),
        **terms,
    )
    known = [contender.name for contender in (*base.contenders, *chosen.contenders)]
    further = [cell.contender.name for cell in cells_in(folder) if cell.contender.name in forecasters]
    work = run_grid(chosen, base.chosen([*known, *further], **terms | {"seeds": None}), folder, grid)
    work.tell(cells=work.cells, left_out=work.left_out)


@dataclass
class Work:
    """What came of a grid."""

    folder: Path
    cells: int  # how many were asked for
    left_out: list[str]  # tasks whose data are not here
    results: "pd.DataFrame"  # scores of all that is done in the folder, asked for now or not
    failed: dict[str, str]  # why, by cell
    unfinished: list[str]  # cells that were left to another process, or stopped by somebody
    files: list[Path]  # that were written
    is_json: bool

    def draw(self, drawing: "Drawing", name: str) -> None:
        """Write a figure and its numbers."""
        self.files += drawing.write(self.folder, name)

    def tell(self, **content: Any) -> None:
        """Say what is not done and which files there are, or print all as JSON; exit code 1 if a cell failed."""
        if self.is_json:
            files = [str(file) for file in self.files]
            print_json({"failed": self.failed, "unfinished": self.unfinished, "files": files, **content})
        for name in self.unfinished:
            say(f" {name}: another process works on it, or it was stopped", label="unfinished", colour="yellow")
        say_failed(self.failed.items())
        if self.files:
            say_written(self.files)
        if self.failed:
            raise typer.Exit(1)


def run_grid(suite: "Suite", whole: "Suite", folder: Path, options: GridOptions) -> Work:
    """Work on all cells of a suite that are not done, and show their tables; tasks without data are left out.

    The tables and scores that are written are those of all that is done in the folder, which may be of the `whole`
    suite under the same terms.
    """
    from candor.research.engine import CellState, failure_of
    from candor.research.grid import cells_of, collect, collect_whole
    from candor.research.table_notes import shown_name

    suite, left_out = suite.available()
    cells = cells_of(suite)
    left = [cell for cell in cells if cell.state(folder) != CellState.DONE]
    say(f"{suite.title}: {len(cells)} cells, {len(cells) - len(left)} of them done")
    if left_out:
        say(f"left out, since their data are not here: {', '.join(left_out)}")
    look = _warning_of_copies(folder)
    work_on(cells, folder, workers=options.workers, ray=options.ray, look=look)
    for cell in left:
        look(cell)
    if not options.json:
        _show_all(collect(cells, folder), suite)
    results, others = collect_whole(whole, folder)
    if others:
        names = ", ".join(dict.fromkeys(shown_name(cell.contender.name) for cell in others))
        say(f"cells of another suite, budget or settings in {folder} are not in the tables: {names}")
    states = {cell.name: cell.state(folder) for cell in cells}
    failed = {cell.name: str(failure_of(cell, folder)) for cell in cells if states[cell.name] == CellState.FAILED}
    unfinished = [name for name, state in states.items() if state not in (CellState.DONE, CellState.FAILED)]
    files = _write(results, folder, whole)
    return Work(folder, len(cells), left_out, results, failed, unfinished, files, options.json)


def _warning_of_copies(folder: Path) -> "Callable[[GridCell], None]":
    """Return what warns of another copy of a dataset than the catalogue knows, once a cell has read it."""
    from candor.runs.run import load_record

    known: set[str] = set()

    def look(cell: "GridCell") -> None:
        if cell.task.preset not in known:
            with suppress(InputError):  # not read yet, or gone for a moment while its run replaces the folder
                record = load_record(folder / cell.name)
                known.add(cell.task.preset)
                inputs.warn_of_copy(record.data, record.fingerprint)

    return look


def _write(results: "pd.DataFrame", grid: Path, suite: "Suite") -> list[Path]:
    from candor.render.paper.tables import write_grid_tables
    from candor.research.grid import RESULTS, save_results

    if results.empty:
        return []
    save_results(results, grid / RESULTS)
    return [grid / RESULTS, *write_grid_tables(results, suite, grid)]


def _show_all(results: "pd.DataFrame", suite: "Suite") -> None:
    """Print the tables of all models, and how often even our worst seed is better than a baseline's best."""
    from candor.research.tables import paper_tables_of, strict_wins

    for shown in paper_tables_of(results, suite, is_whole=True):
        _show(shown)
    for rules, tasks in suite.parts_of(results["task"].tolist()):
        counts = strict_wins(results[results["task"].isin(tasks)], rules.metric) if suite.has_rivals else {}
        for model, (wins, pairs) in counts.items():
            say(f"the worst seed of {model} beats the best seed of a baseline in {wins} of {pairs} comparisons")


def _show(whole: "PaperTable") -> None:
    """Print the errors over all steps, at every horizon the first metric; the files have the others."""
    from candor.research.tables import AVERAGE

    (first, columns), *others = whole.groups
    if others and others[-1][0] == AVERAGE:
        places = range(0, len(whole.columns), columns)
        heads, title = [name for name, _ in whole.groups], f"{whole.title}, {whole.columns[0]}"
    else:
        places = range(columns)
        heads, title = list(whole.columns[:columns]), f"{whole.title}, {first}"
    rows = [[escape(name), *(_marked(cells[place]) for place in places)] for name, cells in whole.rows]
    show_table(escape(title), ("model", *map(escape, heads)), rows)


def _marked(cell: "TableCell") -> str:
    mark = "bold" if cell.is_best else "underline" if cell.is_second else ""
    return f"[{mark}]{cell.text}[/]" if mark else cell.text
