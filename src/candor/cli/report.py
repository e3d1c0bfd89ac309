"""`candor report`: all about a run in one file for people."""

from pathlib import Path
from typing import Annotated

import typer

from candor.cli.evaluate import RunArgument
from candor.cli.screen import progress, tell


def report(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option("--out", help="The HTML file. (default: report.html in RUN, or beside a bundle)")
    ] = None,
) -> None:
    """Tell all about a run in one HTML file that needs no network: skill, forecasts, why, errors, data, settings."""
    from candor.runs.bundle import open_run, results_folder

    opened = open_run(run)
    with progress() as listen:
        listen("preparing charts", None)
        from candor.explain.overview import overview_of
        from candor.render.report.page import REPORT, write_report

        path = out or results_folder(run) / REPORT
        write_report(overview_of(opened, listen), path)
    tell(f"report: {path}")
