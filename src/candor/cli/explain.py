"""`candor explain`: what a run learned, how it uses that, and where one forecast came from."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.evaluate import RunArgument
from candor.cli.screen import console, print_json, progress, say
from candor.core.progress import within


def explain(
    run: RunArgument,
    sensor: Annotated[
        str | None, typer.Option("--sensor", help="Id of the sensor to look at. (default: the one with most readings)")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="First step of the forecast to look at. (default: the last with a known outcome)"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder, made anew each time. (default: explained in RUN, or beside a bundle)"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures",
            help="Folder: write only the figures that need no analyses into it (forecasts, components, fusion, edges, "
            "training), as PNG, SVG and CSV.",
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option("--windows", min=2, help="Windows of the test part to read. (default: 200, fewer if it is large)"),
    ] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Explain what a run of CANDOR learned and where one of its forecasts came from: figures, numbers, two pages."""
    from candor.runs.bundle import open_run, results_folder

    opened = open_run(run)
    if figures is not None:
        with progress() as report:
            report("preparing figures", None)  # the first import of matplotlib looks for the fonts of the machine
            from candor.explain.run import run_pictures
            from candor.render.figures.gallery import write_figures

            written = write_figures(run_pictures(opened, sensor, time, report), figures, report)
        say(f"{len([path for path in written if path.suffix == '.png'])} figures, as PNG, SVG and CSV: {figures}")
        return
    with progress() as report:
        report("explaining | preparing figures", 0.0)
        from candor.explain.run import explain_run
        from candor.render.explanation_page import EXPLAINED, FORECAST_PAGE, INDEX, check_folder, write_explanation

        folder = out or results_folder(run) / EXPLAINED
        check_folder(folder)
        found = explain_run(opened, sensor, time, windows, within(report, "explaining", "analyses", 0.0, 0.8))
        write_explanation(found, folder, within(report, "explaining", "figures", 0.8, 1.0))
    if json:
        print_json(dict(found.summary))
        return
    screen = console()
    for finding in found.run.findings:
        screen.print(f"[bold]{escape(finding.title)}[/]")
        for sentence in finding.sentences:
            screen.print(f"  {escape(sentence)}", soft_wrap=True)
    screen.print(f"all of it, to open in a browser: {escape(str(folder / INDEX))}", soft_wrap=True)
    screen.print(f"the one forecast: {escape(str(folder / FORECAST_PAGE))}", soft_wrap=True)
