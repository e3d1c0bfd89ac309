"""`candor ablate` and `candor sweep`: the full model beside itself without a part, or with one setting varied."""

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from candor.cli import inputs
from candor.cli.benchmark import GridOptions, run_grid
from candor.cli.inputs import argument, option
from candor.cli.screen import show_table
from candor.core.text import NOTHING, number

if TYPE_CHECKING:
    from candor.research.ablations import Change

PresetArgument = Annotated[str, argument("PRESET", "A preset, e.g. korea4-do-192 or metr-la.")]


@inputs.takes(GridOptions)
def ablate(
    grid: GridOptions,
    preset: PresetArgument,
    variants: Annotated[
        str | None,
        option(
            "Names, separated by commas. (default: the paper's nine; one-relation keeps one kind of relation; "
            "rain-added and rain-alone need rain)"
        ),
    ] = None,
    out: Annotated[Path | None, option("Folder. (default: runs/ablations-PRESET)")] = None,
) -> None:
    """Train CANDOR with and without each of its parts, and show how much worse it gets."""
    from candor.research.ablations import CHANGES, VARIANTS, ablation, paired_changes, parameters_of, split_changes

    chosen = list(VARIANTS) if variants is None else inputs.parse_names(variants, "variant")
    folder = out or Path("runs") / f"ablations-{preset}"
    suite, whole = (ablation(preset, names, **grid.terms()) for names in (chosen, list(CHANGES)))
    work = run_grid(suite, whole, folder, grid)
    changes = [] if work.results.empty else paired_changes(work.results)
    sizes = parameters_of(work.results)
    if changes:
        from candor.render.figures.benchmark import draw_ablations

        for name, some in split_changes(changes).items():
            work.draw(draw_ablations({preset: some}), name)
        if not grid.json:
            _show_changes(changes, sizes)
    work.tell(parameters=sizes, changes=[asdict(change) for change in changes])


@inputs.takes(GridOptions, defaults={"seeds": "0"})
def sweep(
    grid: GridOptions,
    preset: PresetArgument,
    setting: Annotated[
        str,
        argument(
            "SETTING=VALUES",
            "E.g. pairs=4,8,16,32, or pairs, temporal_span, spatial_orders as the paper.",
        ),
    ],
    out: Annotated[Path | None, option("Folder. (default: runs/sweep-PRESET-SETTING)")] = None,
) -> None:
    """Train CANDOR with several values of one setting, and show the errors."""
    from candor.research.ablations import parse_values, values_in
    from candor.research.ablations import sweep as make_sweep

    name, values = parse_values(setting)
    folder = out or Path("runs") / f"sweep-{preset}-{name}"
    suite, whole = (
        make_sweep(preset, name, some, **grid.terms()) for some in (values, values_in(folder, name, values))
    )
    work = run_grid(suite, whole, folder, grid)
    errors: dict[str, list[float]] = {}
    if not work.results.empty:
        from candor.render.figures.benchmark import draw_setting, errors_by_value

        errors = errors_by_value(work.results, name)
        work.draw(draw_setting(work.results, name, preset), f"sweep-{name}")
    known = {value: [error if isfinite(error) else None for error in found] for value, found in errors.items()}
    work.tell(setting=name, mae=known)


def _show_changes(changes: "Sequence[Change]", sizes: dict[str, int]) -> None:
    from candor.render.figures.benchmark import paper_name
    from candor.research.ablations import FULL

    metrics = list(dict.fromkeys(change.metric for change in changes))
    found = {(change.variant, change.metric): change for change in changes}
    rows = [[FULL, "CANDOR", number(sizes.get(FULL), 0), *("" for _ in metrics)]]
    for variant in dict.fromkeys(change.variant for change in changes):
        cells = [
            f"{100 * change.relative:+.1f} %{' •' if change.is_beyond_chance else '  '}"
            if (change := found.get((variant, metric)))
            else NOTHING
            for metric in metrics
        ]
        rows.append([variant, paper_name(variant), number(sizes.get(variant), 0), *cells])
    title = "Change against the full model, paired by seed; a dot: more than twice its own spread"
    heads = ("variant", "in the paper", "parameters", *(metric.upper() for metric in metrics))
    show_table(title, heads, rows, left=2)
