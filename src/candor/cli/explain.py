"""`candor explain`: what a run learned, how it uses that, and where one forecast came from."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.evaluate import RunArgument
from candor.cli.plot import SensorOption, TimeOption
from candor.cli.screen import console, print_json, progress


def explain(
    run: RunArgument,
    sensor: SensorOption = None,
    time: TimeOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder, made anew each time. (default: explained in RUN, or beside a bundle)"),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option("--windows", min=2, help="Windows of the test part to read. (default: 200, fewer if it is large)"),
    ] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Tell what a run of CANDOR learned and where one of its forecasts came from: figures, numbers, pages to read."""
    from candor.runs.bundle import open_run, results_folder

    opened = open_run(run)
    with progress() as report:
        report("explaining | preparing figures", 0.0)  # the first import of matplotlib looks for the machine's fonts
        from candor.explain.reading import EXPLAINED, FORECAST_PAGE, INDEX, explain_run

        found = explain_run(opened, out or results_folder(run) / EXPLAINED, sensor, time, windows, report)
    if json:
        print_json(found.summary)
        return
    screen = console()
    for finding in found.findings:
        screen.print(f"[bold]{escape(finding.title)}[/]")
        for sentence in finding.sentences:
            screen.print(f"  {escape(sentence)}", soft_wrap=True)
    screen.print(f"all of it, to open in a browser: {escape(str(found.folder / INDEX))}", soft_wrap=True)
    screen.print(f"the one forecast: {escape(str(found.folder / FORECAST_PAGE))}", soft_wrap=True)
