"""`candor explain` and `candor report`: what a run learned, where a forecast came from, and all of it on one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from candor.cli import inputs
from candor.cli.inputs import option
from candor.cli.screen import console, preparing_figures, print_json, progress, say, show_table, tell
from candor.core.progress import within

if TYPE_CHECKING:
    from candor.explain.run import RunExplanation


def explain(
    run: inputs.RunArgument,
    sensor: Annotated[str | None, option("Id of the sensor to look at. (default: the one with most readings)")] = None,
    time: Annotated[
        str | None, option("First step of the forecast to look at. (default: the last with a known outcome)")
    ] = None,
    out: Annotated[
        Path | None, option("Folder, made anew each time. (default: explained in RUN, or beside a bundle)")
    ] = None,
    figures: Annotated[
        Path | None,
        option(
            "Folder: write only the figures that need no analyses into it (forecasts, components, fusion, edges, "
            "training), as PNG, SVG and CSV."
        ),
    ] = None,
    windows: Annotated[
        int | None, option("Windows of the test part to read. (default: 200, fewer if it is large)", min=2)
    ] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Explain what a run of CANDOR learned and where one of its forecasts came from: figures, numbers, two pages."""
    from candor.runs.bundle import open_run, results_folder

    opened = open_run(run)
    if figures is not None:
        with preparing_figures() as report:
            from candor.explain.run_pictures import run_pictures
            from candor.render.figures.gallery import write_figures

            written = write_figures(run_pictures(opened, sensor, time, report), figures, report)
        say(f"{len([path for path in written if path.suffix == '.png'])} figures, as PNG, SVG and CSV: {figures}")
        return
    with progress() as report:
        report("explaining | preparing figures", 0.0)
        from candor.explain.breakdown import explain_account
        from candor.explain.run import explain_run
        from candor.render.explanation_page import EXPLAINED, FORECAST_PAGE, INDEX, check_folder, write_explanation

        folder = out or results_folder(run) / EXPLAINED
        check_folder(folder)
        if opened.forecaster.is_additive:
            found = explain_account(opened, sensor, time)
            if not json:
                _tell(found)  # before the pictures, which take longer
        else:
            found = explain_run(opened, sensor, time, windows, within(report, "explaining", "analyses", 0.0, 0.8))
        write_explanation(found, folder, within(report, "explaining", "figures", 0.8, 1.0))
    if json:
        print_json(dict(found.summary))
        return
    if not opened.forecaster.is_additive:
        _tell(found)
    tell(f"all of it, to open in a browser: {folder / INDEX}")
    tell(f"the one forecast: {folder / FORECAST_PAGE}")


def _tell(found: "RunExplanation") -> None:
    """Print what was found, in sentences, with the parts of a forecast as a table."""
    for finding in found.run.findings:
        console().print(finding.title, style="bold", markup=False, soft_wrap=True)
        for sentence in finding.sentences:
            tell(f"  {sentence}")
        if finding.table is not None and finding.name == "account":
            show_table(finding.table.title, finding.table.head, finding.table.rows)


def report(
    run: inputs.RunArgument,
    out: Annotated[Path | None, option("The HTML file. (default: report.html in RUN, or beside a bundle)")] = None,
) -> None:
    """Write all about a run into one HTML file that needs no network: skill, forecasts, why, errors, data, settings."""
    from candor.runs.bundle import open_run, results_folder

    opened = open_run(run)
    with progress() as listen:
        listen("preparing charts", None)
        from candor.explain.overview import overview_of
        from candor.render.report.page import REPORT, write_report

        path = out or results_folder(run) / REPORT
        write_report(overview_of(opened, listen), path)
    tell(f"report: {path}")
