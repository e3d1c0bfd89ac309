"""`candor ablate` and `candor sweep`: the full model beside itself without a part, or with one setting varied."""

from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from candor.cli import inputs
from candor.cli.benchmark import run_grid
from candor.cli.screen import console, print_json, say, table

if TYPE_CHECKING:
    import pandas as pd

    from candor.benchmark.pairing import Change
    from candor.benchmark.suites import Suite
    from candor.figures.style import Drawing

PresetArgument = Annotated[str, typer.Argument(metavar="PRESET", help="A preset, e.g. korea4-do-192 or metr-la.")]
SettingsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings of all models, e.g. size=small.")
]
SeedsOption = Annotated[str, typer.Option("--seeds", help="Seeds, separated by commas.")]
BudgetOption = Annotated[
    float | None, typer.Option("--budget-minutes", help="Training of each cell; schedules are shortened to it.")
]
WorkersOption = Annotated[int, typer.Option("--workers", min=1, help="Cells at a time on this machine.")]
RayOption = Annotated[str | None, typer.Option("--ray", help="Address of a Ray cluster to work on instead.")]


@dataclass
class _Work:
    """What was done: scores of all that is done in the folder, cells that failed, and files that were written."""

    folder: Path
    results: "pd.DataFrame"
    failed: dict[str, str]
    files: list[Path] = field(default_factory=list)

    def draw(self, drawing: "Drawing", name: str) -> None:
        """Writes a figure and its numbers."""
        self.files += drawing.write(self.folder, name)

    def tell(self, is_json: bool, **content: Any) -> None:
        """Says which files there are, or prints all as JSON; leaves with exit code 1 if a cell failed."""
        if is_json:
            print_json({"failed": self.failed, "files": [str(file) for file in self.files], **content})
        elif self.files:
            say(f"written: {', '.join(str(file) for file in self.files)}")
        if self.failed:
            raise typer.Exit(1)


def ablate(
    preset: PresetArgument,
    settings: SettingsArgument = None,
    variants: Annotated[
        str | None,
        typer.Option(
            "--variants",
            help="Names, separated by commas. (default: the paper's nine; one-relation keeps one kind of relation; "
            "rain-added and rain-alone need rain)",
        ),
    ] = None,
    seeds: SeedsOption = "0,1,2",
    budget_minutes: BudgetOption = None,
    workers: WorkersOption = 1,
    ray: RayOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder. (default: runs/ablations-PRESET)")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Train CANDOR with and without each of its parts, and show how much worse it gets."""
    from candor.benchmark.pairing import paired_changes, parameters_of
    from candor.benchmark.variants import FULL, VARIANTS, ablation
    from candor.cli.benchmark import parse_seeds
    from candor.settings import parse_overrides

    chosen = list(VARIANTS) if variants is None else [name.strip() for name in variants.split(",")]
    suite = ablation(
        preset, chosen, parse_overrides(settings or []), seeds=parse_seeds(seeds), budget_minutes=budget_minutes
    )
    work = _run(suite, out or Path("runs") / f"ablations-{preset}", workers=workers, ray=ray, is_json=json)
    changes = [] if work.results.empty else paired_changes(work.results, FULL)
    sizes = parameters_of(work.results)
    if changes:
        from candor.benchmark.drawing import draw_ablations, split_changes

        for name, some in split_changes(changes).items():
            work.draw(draw_ablations(some, preset), name)
        if not json:
            _show_changes(changes, sizes)
    work.tell(json, parameters=sizes, changes=[asdict(change) for change in changes])


def sweep(
    preset: PresetArgument,
    setting: Annotated[
        str,
        typer.Argument(
            metavar="SETTING=VALUES", help="E.g. pairs=4,8,16,32, or pairs, temporal_span, spatial_orders as the paper."
        ),
    ],
    settings: SettingsArgument = None,
    seeds: SeedsOption = "0",
    budget_minutes: BudgetOption = None,
    workers: WorkersOption = 1,
    ray: RayOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder. (default: runs/sweep-PRESET-SETTING)")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Train CANDOR with several values of one setting, and show the errors."""
    from candor.benchmark.variants import parse_values
    from candor.benchmark.variants import sweep as make_sweep
    from candor.cli.benchmark import parse_seeds
    from candor.settings import parse_overrides

    name, values = parse_values(setting)
    suite = make_sweep(
        preset, name, values, parse_overrides(settings or []), seeds=parse_seeds(seeds), budget_minutes=budget_minutes
    )
    work = _run(suite, out or Path("runs") / f"sweep-{preset}-{name}", workers=workers, ray=ray, is_json=json)
    errors: dict[str, list[float]] = {}
    if not work.results.empty:
        from candor.benchmark.drawing import draw_setting, errors_by_value

        errors = errors_by_value(work.results, name)
        work.draw(draw_setting(work.results, name, preset), f"sweep-{name}")
    known = {value: [error if isfinite(error) else None for error in found] for value, found in errors.items()}
    work.tell(json, setting=name, mae=known)


def _run(suite: "Suite", folder: Path, *, workers: int, ray: str | None, is_json: bool) -> _Work:
    """Works on the cells of a suite, and writes the tables of all that was ever done in the folder."""
    from candor.benchmark.cells import CellState, cells_of, failure_of
    from candor.benchmark.results import save_results
    from candor.benchmark.variants import collect_whole
    from candor.benchmark.writing import write_grid_tables

    apart = redirect_stdout(StringIO()) if is_json else nullcontext()  # tables do not mix with JSON
    with apart, suppress(typer.Exit):  # if a cell failed, what the others found is shown all the same
        run_grid(suite, folder, workers=workers, ray=ray, is_json=False)
    failed = {cell.name: failure_of(cell, folder) for cell in cells_of(suite) if cell.state(folder) == CellState.FAILED}
    whole, results = collect_whole(suite, folder)
    work = _Work(folder, results, failed)
    if not results.empty:
        save_results(results, folder / "results.parquet")
        work.files += [folder / "results.parquet", *write_grid_tables(results, whole, folder)]
    return work


def _show_changes(changes: "Sequence[Change]", sizes: dict[str, int]) -> None:
    from candor.benchmark.drawing import paper_name
    from candor.benchmark.variants import FULL

    metrics = list(dict.fromkeys(change.metric for change in changes))
    shown = table(
        "Change against the full model, paired by seed; a dot: more than twice its own spread",
        "variant", "in the paper", "parameters", *(metric.upper() for metric in metrics), left=2,
    )  # fmt: skip
    shown.add_row(FULL, "CANDOR", _counted(sizes.get(FULL)), *("" for _ in metrics))
    for variant in dict.fromkeys(change.variant for change in changes):
        by_metric = {change.metric: change for change in changes if change.variant == variant}
        cells = (
            f"{100 * change.relative:+.1f} %{' •' if change.is_beyond_chance else '  '}"
            if (change := by_metric.get(metric))
            else "–"
            for metric in metrics
        )
        shown.add_row(variant, paper_name(variant), _counted(sizes.get(variant)), *cells)
    console().print(shown)


def _counted(parameters: int | None) -> str:
    return "–" if parameters is None else f"{parameters:,}"
