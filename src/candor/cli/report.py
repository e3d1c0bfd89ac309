"""`candor report`: all about a run in one file for people."""

from pathlib import Path
from typing import Annotated

import typer

from candor.cli.evaluate import RunArgument
from candor.cli.screen import console, progress


def report(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option("--out", help="The HTML file. (default: RUN/report.html)")] = None,
) -> None:
    """Tell all about a run in one HTML file that needs no network: skill, forecasts, why, errors, data, settings."""
    from candor.forecasting.runs import load_run

    opened = load_run(run)
    with progress() as listen:
        listen("preparing charts", None)
        from candor.report import write_report

        path = write_report(opened, out, listen)
    console().print(f"report: {path}", soft_wrap=True)
