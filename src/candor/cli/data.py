"""`candor data`: look at data, check them, bring them in and take them out."""

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.build_river import build_river
from candor.cli.explore import explore
from candor.cli.follow import follow
from candor.cli.map import draw_map
from candor.cli.screen import console, percent, print_json, progress, say, table
from candor.core.errors import InputError
from candor.core.text import number

if TYPE_CHECKING:
    from candor.data.checks import CheckReport
    from candor.data.findings import Findings
    from candor.data.panel import Panel

data_app = typer.Typer(help="Look at data, check them, bring them in and take them out.", no_args_is_help=True)
_MOST_SENSORS = 40


@data_app.command("check")
@inputs.takes_data
def check(files: inputs.DataFiles, json: inputs.JsonOption = False) -> None:
    """Say what is wrong with readings (and edges and sensors), where, how often, and how to correct it."""
    from candor.data.checks import check_panel
    from candor.data.findings import Findings

    findings, report = Findings(), None
    try:
        panel = files.read(findings) if files.is_file() else files.load()[0]
        with progress() as listen:
            report = check_panel(panel, listen)
        findings.extend(report.findings)
    except InputError as error:
        findings.error(error.what, error.where, hint=error.hint)
    if json:
        print_json(
            {
                "findings": [asdict(finding) for finding in findings],
                "sensors": [asdict(sensor) for sensor in report.sensors] if report else [],
            }
        )
    else:
        _show_findings(findings)
        if report is not None:
            _show_sensors(report, panel.times.interval)
    if findings.errors:
        raise typer.Exit(2)


def _show_findings(findings: "Findings") -> None:
    if not findings:
        console().print("Nothing to complain about.")
        return
    colours = {"error": "red", "warning": "yellow", "note": "dim"}
    shown = table(f"Findings ({len(findings)})", "level", "what", "where", "how many", "hint", left=3)
    shown.columns[-1].justify = "left"
    for level in colours:
        for finding in findings:
            if finding.level == level:
                cells = (finding.what, finding.where, f"{finding.count:,}", finding.hint)
                shown.add_row(f"[{colours[level]}]{level}[/]", *(escape(cell) for cell in cells))
    console().print(shown)


def _show_sensors(report: "CheckReport", interval: timedelta) -> None:
    from candor.core.text import duration

    shown = table(
        "Sensors", "id", "name", "missing %", "longest gap", "min", "median", "max", "flat %", "in", "out", left=2
    )
    worst = sorted(report.sensors, key=lambda sensor: -(sensor.missing_share or 0.0))
    chosen = report.sensors if len(worst) <= _MOST_SENSORS else worst[:_MOST_SENSORS]
    for sensor in chosen:
        longest = duration(sensor.longest_gap * interval) if sensor.longest_gap else "–"
        numbers = (sensor.minimum, sensor.median, sensor.maximum)
        shown.add_row(
            escape(sensor.id), escape(sensor.name), percent(sensor.missing_share), longest,
            *(number(value, 2) for value in numbers), percent(sensor.flat_share),
            str(sensor.edges_in), str(sensor.edges_out),
        )  # fmt: skip
    console().print(shown)
    if len(worst) > _MOST_SENSORS:
        console().print(f"... the {_MOST_SENSORS} sensors with most missing of {len(worst)}; --json lists all")


@data_app.command("list")
def list_datasets(json: inputs.JsonOption = False) -> None:
    """List the datasets that candor knows by name."""
    from candor.data.catalog import datasets

    rows = [datasets.get(name) for name in datasets]
    if json:
        print_json([{"name": row.name, "title": row.title, "licence": row.licence} for row in rows])
        return
    shown = table("Datasets", "name", "what", "here", left=3)
    for row in rows:
        shown.add_row(row.name, row.title, "yes" if row.is_available() else "no")
    console().print(shown)


@data_app.command("info")
@inputs.takes_data
def info(files: inputs.DataFiles, json: inputs.JsonOption = False) -> None:
    """Tell what data are: facts, licence, source, and the checksum of the content."""
    from candor.data.catalog import datasets

    facts: dict[str, object] = {}
    entry = datasets.get(files.data) if files.data in datasets else None
    if entry is not None:
        files.refuse_options()
        facts = {"title": entry.title, "licence": entry.licence, "source": entry.source, "facts": entry.facts}
    try:
        panel, _ = files.load()
        facts |= _facts_of(panel)
        if entry is not None and entry.fingerprint:
            is_same = panel.fingerprint == entry.fingerprint
            facts["as recorded in the catalogue"] = "yes" if is_same else "no: this is another copy"
    except InputError as error:
        if entry is None:
            raise
        here = "yes, but it cannot be read" if entry.is_available() else "no"
        facts["here"] = f"{here}: {error.what}. {error.hint}"
    if json:
        print_json(facts)
        return
    for name, fact in facts.items():
        if name == "facts":
            console().print(f"\n{escape(str(fact))}\n")
        else:
            console().print(f"[bold]{name}[/]: {escape(str(fact))}", soft_wrap=True)


def _facts_of(panel: "Panel") -> dict[str, object]:
    times = panel.times
    return {
        "name": panel.name,
        "sensors": len(panel.sensors),
        "times": times.length,
        "first": str(times.local[0]),
        "last": str(times.local[-1]),
        "interval": str(times.interval),
        "zone": times.zone,
        "unit": panel.unit or "not stated",
        "missing": f"{100 * (1 - panel.mask.mean()):.2f} %",
        "edges": len(panel.edges),
        "covariates": ", ".join(f"{n} ({c.unit})" for n, c in panel.covariates.items()) or "none",
        "sha256 of the content": panel.fingerprint,
    }


@data_app.command("import")
@inputs.takes_data
def import_data(
    files: inputs.DataFiles,
    out: Annotated[Path, typer.Option("--out", help="Folder to write the panel to.")],
) -> None:
    """Read files once, with all that has to be said about them, and save them as a panel folder."""
    from candor.data.panel_store import save_panel

    panel, _ = files.load()
    save_panel(panel, out)
    say(f"{panel.times.length:,} times x {len(panel.sensors):,} sensors, {len(panel.edges):,} edges -> {out}")


@data_app.command("export")
def export_data(
    data: inputs.DataArgument,
    out: Annotated[Path, typer.Option("--out", help="Folder to write readings, edges and sensors to.")],
    format: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
) -> None:
    """Write DATA as plain files: readings (local time with offset), edges, sensors, and a file per covariate."""
    from candor.data.writers import export_panel

    panel, _ = inputs.DataFiles(data).load()
    for path in export_panel(panel, out, format):
        say(str(path))


data_app.command("build-river")(build_river)
data_app.command("follow")(follow)
data_app.command("map")(draw_map)
data_app.command("explore")(explore)
