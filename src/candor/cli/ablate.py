"""`candor ablate` and `candor sweep`: the full model beside itself without a part, or with one setting varied."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from candor.cli import inputs
from candor.cli.benchmark import run_grid
from candor.cli.screen import console, say, table

if TYPE_CHECKING:
    from candor.benchmark.pairing import Change

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
            help="Names, separated by commas. (default: the paper's nine; rain-added and rain-alone need rain)",
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
    from candor.benchmark.pairing import paired_changes
    from candor.benchmark.variants import FULL, VARIANTS, ablation
    from candor.cli.benchmark import parse_seeds
    from candor.settings import parse_overrides

    chosen = list(VARIANTS) if variants is None else [name.strip() for name in variants.split(",")]
    suite = ablation(
        preset, chosen, parse_overrides(settings or []), seeds=parse_seeds(seeds), budget_minutes=budget_minutes
    )
    folder = out or Path("runs") / f"ablations-{preset}"
    results = run_grid(suite, folder, workers=workers, ray=ray, is_json=json)
    changes = [] if results.empty else paired_changes(results, FULL)
    if not changes:
        return
    _show_changes(changes)
    from candor.benchmark.drawing import draw_ablations

    for file in draw_ablations(changes, preset).write(folder, "ablations"):
        say(f"wrote {file}")


def sweep(
    preset: PresetArgument,
    setting: Annotated[
        str, typer.Argument(metavar="SETTING=VALUES", help="E.g. pairs=4,8,16,32, temporal_span=1,2,3,4.")
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
    from candor.benchmark.variants import SWEEPS
    from candor.benchmark.variants import sweep as make_sweep
    from candor.cli.benchmark import parse_seeds
    from candor.settings import parse_overrides

    name, equals, listed = setting.partition("=")
    pairs = [f"{name}={value}" for value in listed.split(",")] if equals else []
    values: list[Any] = [parse_overrides([pair])[name] for pair in pairs] or list(SWEEPS.get(name, ()))
    if not values:
        from candor.errors import InputError

        raise InputError(f"{setting!r} names no values", mend="write e.g. pairs=4,8,16,32")
    suite = make_sweep(
        preset, name, values, parse_overrides(settings or []), seeds=parse_seeds(seeds), budget_minutes=budget_minutes
    )
    folder = out or Path("runs") / f"sweep-{preset}-{name}"
    results = run_grid(suite, folder, workers=workers, ray=ray, is_json=json)
    if not results.empty:
        from candor.benchmark.drawing import draw_setting

        for file in draw_setting(results, name, preset).write(folder, f"sweep-{name}"):
            say(f"wrote {file}")


def _show_changes(changes: "list[Change]") -> None:
    from candor.benchmark.variants import CHANGES

    metrics = list(dict.fromkeys(change.metric for change in changes))
    shown = table(
        "Change against the full model, paired by seed; a dot: more than twice its own spread",
        "variant", "in the paper", *(metric.upper() for metric in metrics), left=2,
    )  # fmt: skip
    for variant in dict.fromkeys(change.variant for change in changes):
        by_metric = {change.metric: change for change in changes if change.variant == variant}
        cells = (
            f"{100 * by_metric[metric].relative:+.1f} %{' •' if by_metric[metric].is_beyond_chance else '  '}"
            for metric in metrics
        )
        shown.add_row(variant, CHANGES[variant][0], *cells)
    console().print(shown)
