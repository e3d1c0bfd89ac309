"""`candor truth`: whether explanations are true, on networks whose truth is known."""

import shlex
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from candor.cli import inputs
from candor.cli.inputs import argument, option
from candor.cli.screen import print_json, say_written, show_table, tell
from candor.cli.watching import work_on
from candor.core.errors import InputError
from candor.core.text import number

if TYPE_CHECKING:
    from candor.research.truth.results import Row

_DATASETS = "synthetic-river,synthetic-road"


def truth(
    settings: Annotated[
        list[str] | None, argument("KEY=VALUE", "Settings, e.g. epochs=20, or of the network: data.steps=4000.")
    ] = None,
    model: Annotated[
        str, option("Whose explanations: the account in closed form (account), or CANDOR's network, trained (candor).")
    ] = "account",
    seeds: inputs.SeedsOption = "0,1,2",
    datasets: Annotated[str, option("Synthetic datasets, with commas.")] = _DATASETS,
    budget_minutes: inputs.BudgetOption = None,
    workers: inputs.WorkersOption = 1,
    out: Annotated[Path, option("Folder of the cells and results.")] = Path("runs/truth"),
    json: inputs.JsonOption = False,
) -> None:
    """Score explanations against the truth on synthetic networks, beside those of simple rules."""
    from candor.core.files import read_json
    from candor.core.settings import parse_overrides
    from candor.render.paper.truth import write_truth
    from candor.research.engine import CellState, failure_of
    from candor.research.truth.cells import cells_of, read_scored
    from candor.research.truth.results import rows_of, verdicts

    names = inputs.parse_names(datasets, "dataset")
    cells = cells_of(names, inputs.parse_seeds(seeds), parse_overrides(settings or []), budget_minutes, model)
    work_on(cells, out, workers=workers)
    for cell in cells:
        if (failure := failure_of(cell, out)) is not None:
            raise failure
        if cell.state(out) != CellState.DONE:
            raise InputError("another process works on this network, or it was stopped", where=str(out / cell.name))
    scored = [read_scored(cell, out) for cell in cells]
    # The command that makes the same results, wherever they are put.
    budget = [] if budget_minutes is None else ["--budget-minutes", f"{budget_minutes:g}"]
    command = [
        "candor",
        "truth",
        "--model",
        model,
        "--seeds",
        seeds,
        "--datasets",
        ",".join(names),
        *budget,
        *(settings or []),
    ]
    files = write_truth(scored, out, shlex.join(command))
    rows = rows_of(scored)
    if json:
        print_json(read_json(files[0]))
    else:
        _show(rows)
        for verdict in verdicts(rows):
            tell(verdict)
    say_written(files)


def _show(rows: "Sequence[Row]") -> None:
    from candor.research.truth.results import OURS

    for dataset in dict.fromkeys(row.dataset for row in rows):
        cells = []
        own = [row for row in rows if row.dataset == dataset]
        for place, members in groupby(own, lambda row: (row.question, row.measure)):
            named = place
            for row in members:
                mark = "*" if row.is_ours else ""
                goal = f"{row.goal:g}" if row.is_ours and row.goal is not None else ""
                cells.append((*named, row.answer, mark, number(row.mean), number(row.spread), goal))
                named = "", ""
        title = f"{dataset}: explanations against the truth, test part; a star is {OURS[own[0].model]}"
        show_table(title, ("question", "measure", "answer", "", "mean", "spread", "goal"), cells, left=4)
