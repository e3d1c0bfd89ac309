"""`candor ablate` and `candor sweep`: the full model beside itself without a part, or with one setting varied."""

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.benchmark import run_grid
from candor.cli.screen import console, table
from candor.core.text import number

if TYPE_CHECKING:
    from candor.research.ablations import Change

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
    from candor.core.settings import parse_overrides
    from candor.research.ablations import CHANGES, VARIANTS, ablation, paired_changes, parameters_of, split_changes

    chosen = list(VARIANTS) if variants is None else inputs.parse_names(variants, "variant")
    folder, shared = out or Path("runs") / f"ablations-{preset}", parse_overrides(settings or [])
    suite, whole = (
        ablation(preset, names, shared, seeds=inputs.parse_seeds(seeds), budget_minutes=budget_minutes)
        for names in (chosen, list(CHANGES))
    )
    work = run_grid(suite, whole, folder, workers=workers, ray=ray, is_json=json)
    changes = [] if work.results.empty else paired_changes(work.results)
    sizes = parameters_of(work.results)
    if changes:
        from candor.render.figures.benchmark import draw_ablations

        for name, some in split_changes(changes).items():
            work.draw(draw_ablations({preset: some}), name)
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
    from candor.core.settings import parse_overrides
    from candor.research.ablations import parse_values, values_in
    from candor.research.ablations import sweep as make_sweep

    name, values = parse_values(setting)
    folder, shared = out or Path("runs") / f"sweep-{preset}-{name}", parse_overrides(settings or [])
    suite, whole = (
        make_sweep(preset, name, some, shared, seeds=inputs.parse_seeds(seeds), budget_minutes=budget_minutes)
        for some in (values, values_in(folder, name, values))
    )
    work = run_grid(suite, whole, folder, workers=workers, ray=ray, is_json=json)
    errors: dict[str, list[float]] = {}
    if not work.results.empty:
        from candor.render.figures.benchmark import draw_setting, errors_by_value

        errors = errors_by_value(work.results, name)
        work.draw(draw_setting(work.results, name, preset), f"sweep-{name}")
    known = {value: [error if isfinite(error) else None for error in found] for value, found in errors.items()}
    work.tell(json, setting=name, mae=known)


def _show_changes(changes: "Sequence[Change]", sizes: dict[str, int]) -> None:
    from candor.render.figures.benchmark import paper_name
    from candor.research.ablations import FULL

    metrics = list(dict.fromkeys(change.metric for change in changes))
    shown = table(
        "Change against the full model, paired by seed; a dot: more than twice its own spread",
        "variant", "in the paper", "parameters", *(metric.upper() for metric in metrics), left=2,
    )  # fmt: skip
    shown.add_row(FULL, "CANDOR", number(sizes.get(FULL), 0), *("" for _ in metrics))
    for variant in dict.fromkeys(change.variant for change in changes):
        by_metric = {change.metric: change for change in changes if change.variant == variant}
        cells = (
            f"{100 * change.relative:+.1f} %{' •' if change.is_beyond_chance else '  '}"
            if (change := by_metric.get(metric))
            else "–"
            for metric in metrics
        )
        shown.add_row(variant, paper_name(variant), number(sizes.get(variant), 0), *cells)
    console().print(shown)
