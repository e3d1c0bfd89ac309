"""`candor truth`: whether CANDOR's explanations are true, on networks whose truth is known."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, print_json, say, table
from candor.cli.watching import work_on
from candor.core.errors import InputError
from candor.core.text import number

if TYPE_CHECKING:
    from candor.research.truth.results import Row

_DATASETS = "synthetic-river,synthetic-road"


def truth(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings, e.g. epochs=20, or of the network: data.steps=4000."),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds of network and training, with commas.")] = "0,1,2",
    datasets: Annotated[str, typer.Option("--datasets", help="Synthetic datasets, with commas.")] = _DATASETS,
    budget_minutes: Annotated[
        float | None, typer.Option("--budget-minutes", help="Training of each cell; schedules are shortened to it.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Cells at a time on this machine.")] = 1,
    out: Annotated[Path, typer.Option("--out", help="Folder of the cells and results.")] = Path("runs/truth"),
    json: inputs.JsonOption = False,
) -> None:
    """Train CANDOR on synthetic networks, and score its explanations against the truth, beside simple rules."""
    from candor.core.files import read_json
    from candor.core.settings import parse_overrides
    from candor.render.paper.truth import write_truth
    from candor.research.engine import CellState, failure_of
    from candor.research.truth.cells import cells_of, read_scored
    from candor.research.truth.results import rows_of, verdicts

    names = inputs.parse_names(datasets, "dataset")
    cells = cells_of(names, inputs.parse_seeds(seeds), parse_overrides(settings or []), budget_minutes)
    work_on(cells, out, workers=workers)
    for cell in cells:
        if (failure := failure_of(cell, out)) is not None:
            raise failure
        if cell.state(out) != CellState.DONE:
            raise InputError("another process works on this network, or it was stopped", where=str(out / cell.name))
    scored = [read_scored(cell, out) for cell in cells]
    files = write_truth(scored, out, _command(seeds, names, budget_minutes, settings or []))
    rows = rows_of(scored)
    if json:
        print_json(read_json(files[0]))
    else:
        _show(rows)
        for verdict in verdicts(rows):
            console().print(escape(verdict), soft_wrap=True)
    say(f"written: {', '.join(str(file) for file in files)}")


def _command(seeds: str, datasets: Sequence[str], budget_minutes: float | None, settings: Sequence[str]) -> str:
    """Returns the command that makes the same results, wherever they are put."""
    budget = [] if budget_minutes is None else ["--budget-minutes", f"{budget_minutes:g}"]
    return shlex.join(["candor", "truth", "--seeds", seeds, "--datasets", ",".join(datasets), *budget, *settings])


def _show(rows: "Sequence[Row]") -> None:
    for dataset in dict.fromkeys(row.dataset for row in rows):
        shown = table(
            f"{dataset}: explanations against the truth, test part; a star is CANDOR",
            "question", "measure", "answer", "", "mean", "spread", "goal", left=4,
        )  # fmt: skip
        before = ("", "")
        for row in rows:
            if row.dataset != dataset:
                continue
            place = row.question, row.measure
            question, measure = ("", "") if place == before else place
            mark = "*" if row.is_ours else ""
            goal = f"{row.goal:g}" if row.is_ours and row.goal is not None else ""
            shown.add_row(question, measure, row.answer, mark, number(row.mean), number(row.spread), goal)
            before = place
        console().print(shown)
