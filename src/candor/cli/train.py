"""`candor train`: from data to a run directory."""

from pathlib import Path
from typing import Annotated

import typer

from candor.cli import inputs
from candor.cli.screen import print_json, progress, say


@inputs.takes_data
def train(
    files: inputs.DataFiles,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings, e.g. horizon=24 penalty=10.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Name of a model.")] = "linear",
    run: Annotated[Path | None, typer.Option("--run", help="Run directory. (default: runs/DATA-MODEL)")] = None,
    preset: Annotated[str | None, typer.Option("--preset", help="A recipe. (default: that of the dataset)")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Where chance begins.")] = 0,
    json: inputs.JsonOption = False,
) -> None:
    """Fit a model to data and keep it in a run directory."""
    from candor.forecasting.train import choose_protocol, train_model
    from candor.settings import parse_overrides

    overrides = parse_overrides(settings or [])
    panel, is_catalogued = files.load()
    protocol, rest = choose_protocol(panel, preset or (panel.name if is_catalogued else None), overrides)
    folder = run or Path("runs") / f"{panel.name}-{model}"
    say(
        f"{panel.name}: {len(panel.sensors):,} sensors, {panel.times.length:,} times; "
        f"{protocol.horizon} steps ahead from {protocol.history}, split by {protocol.split}"
    )
    with progress() as report:
        trained = train_model(
            panel, protocol, model, rest, folder, seed=seed, is_catalogued=is_catalogued, report=report
        )
    if json:
        print_json({"run": str(folder)} | trained.record.model_dump(mode="json"))
    else:
        say(f"{model} is fitted. Judge it with: candor evaluate {folder}")
