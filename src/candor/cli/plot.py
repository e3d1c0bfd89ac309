"""`candor plot`: the figures of a run."""

from pathlib import Path
from typing import Annotated

import typer

from candor.cli.evaluate import RunArgument
from candor.cli.screen import progress, say

SensorOption = Annotated[
    str | None, typer.Option("--sensor", help="Id of the sensor to look at. (default: the one with most readings)")
]
TimeOption = Annotated[
    str | None,
    typer.Option("--time", help="First step of the forecast to look at. (default: the last with a known outcome)"),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder for the figures. (default: figures in RUN, or beside a bundle)")
]


def plot(run: RunArgument, sensor: SensorOption = None, time: TimeOption = None, out: OutOption = None) -> None:
    """Draw what a run of CANDOR learned and forecasts: PNG and SVG files, with the numbers beside them as CSV."""
    from candor.runs.bundle import open_run, results_folder

    opened = open_run(run)
    with progress() as report:
        report("preparing figures", None)  # the first import of matplotlib looks for the fonts of the machine
        from candor.render.figures.runs import FIGURES, draw_run

        folder = out or results_folder(run) / FIGURES
        written = draw_run(opened, folder, sensor, time, report)
    say(f"{len([path for path in written if path.suffix == '.png'])} figures, as PNG, SVG and CSV: {folder}")
