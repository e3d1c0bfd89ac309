"""`candor data`: look at data, check them, draw them, bring them in and take them out."""

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.build_river import build_river
from candor.cli.follow import follow
from candor.cli.inputs import option
from candor.cli.screen import (
    LEVEL_COLOURS,
    console,
    percentage,
    preparing_figures,
    print_json,
    progress,
    say,
    say_written,
    show_table,
    table,
    tell,
    tell_facts,
)
from candor.core.errors import InputError
from candor.core.text import NOTHING, duration, number

if TYPE_CHECKING:
    from candor.data.checks import CheckReport
    from candor.data.findings import Findings
    from candor.data.panel import Panel

data_app = typer.Typer(help="Look at data, check them, bring them in and take them out.", no_args_is_help=True)
_MOST_SENSORS = 40
_MAP_ENDINGS = (".png", ".svg")


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
        sensors = report.sensors if report else ()
        print_json({"findings": [*map(asdict, findings)], "sensors": [*map(asdict, sensors)]})
    else:
        _show_findings(findings)
        if report is not None:
            _show_sensors(report, panel.times.interval)
    if findings.errors:
        raise typer.Exit(2)


def _show_findings(findings: "Findings") -> None:
    if not findings:
        tell("Nothing to complain about.")
        return
    shown = table(f"Findings ({len(findings)})", "level", "what", "where", "how many", "hint", left=3)
    shown.columns[-1].justify = "left"
    for level, colour in LEVEL_COLOURS.items():
        for finding in findings:
            if finding.level == level:
                cells = (finding.what, finding.where, f"{finding.count:,}", finding.hint)
                shown.add_row(f"[{colour}]{level}[/]", *map(escape, cells))
    console().print(shown)


def _show_sensors(report: "CheckReport", interval: timedelta) -> None:
    worst = sorted(report.sensors, key=lambda sensor: -(sensor.missing_share or 0.0))
    chosen = report.sensors if len(worst) <= _MOST_SENSORS else worst[:_MOST_SENSORS]
    rows = [
        (
            *(escape(sensor.id), escape(sensor.name), percentage(sensor.missing_share)),
            duration(sensor.longest_gap * interval) if sensor.longest_gap else NOTHING,
            *(number(value, 2) for value in (sensor.minimum, sensor.median, sensor.maximum)),
            *(percentage(sensor.flat_share), str(sensor.edges_in), str(sensor.edges_out)),
        )
        for sensor in chosen
    ]
    heads = ("id", "name", "missing %", "longest gap", "min", "median", "max", "flat %", "in", "out")
    show_table("Sensors", heads, rows, left=2)
    if len(worst) > _MOST_SENSORS:
        tell(f"... the {_MOST_SENSORS} sensors with most missing of {len(worst)}; --json lists all")


@data_app.command("list")
def list_datasets(json: inputs.JsonOption = False) -> None:
    """List the datasets that candor knows by name."""
    from candor.data.catalog import datasets

    entries = [datasets.get(name) for name in datasets]
    if json:
        print_json([{"name": entry.name, "title": entry.title, "licence": entry.licence} for entry in entries])
        return
    rows = [(entry.name, entry.title, "yes" if entry.is_available() else "no") for entry in entries]
    show_table("Datasets", ("name", "what", "here"), rows, left=3)


@data_app.command("info")
@inputs.takes_data
def info(files: inputs.DataFiles, json: inputs.JsonOption = False) -> None:
    """Print what data are: facts, licence, source, and the checksum of the content."""
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
            tell(f"\n{fact}\n")
        else:
            tell_facts([(name, fact)])


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
def import_data(files: inputs.DataFiles, out: Annotated[Path, option("Folder to write the panel to.")]) -> None:
    """Read files once, with all that has to be said about them, and save them as a panel folder."""
    from candor.data.panel_store import save_panel

    panel, _ = files.load()
    save_panel(panel, out)
    say(f"{panel.times.length:,} times x {len(panel.sensors):,} sensors, {len(panel.edges):,} edges -> {out}")


@data_app.command("export")
def export_data(
    data: inputs.DataArgument,
    out: Annotated[Path, option("Folder to write readings, edges and sensors to.")],
    format: Annotated[str, option("csv or parquet.")] = "csv",
) -> None:
    """Write DATA as plain files: readings (local time with offset), edges, sensors, and a file per covariate."""
    from candor.data.writers import export_panel

    panel, _ = inputs.DataFiles(data).load()
    for path in export_panel(panel, out, format):
        say(str(path))


data_app.command("build-river")(build_river)
data_app.command("follow")(follow)


@data_app.command("map")
@inputs.takes_data
def draw_map(
    files: inputs.DataFiles,
    out: Annotated[Path, option("Picture to write, e.g. map.png; PNG, SVG and CSV are written.")],
) -> None:
    """Draw the sensors of DATA with their names and the direction of their edges: PNG, SVG, and the edges as CSV."""
    if out.suffix not in _MAP_ENDINGS:
        raise InputError(
            f"a map is written as PNG and SVG, not as {out.suffix or 'a file without an ending'}",
            where=str(out),
            hint=f"end the name with {' or '.join(_MAP_ENDINGS)}",
        )
    panel, _ = files.load()
    with preparing_figures():
        from candor.explain.places import picture_river_map
        from candor.render.figures.maps import draw_river_map

        written = draw_river_map(picture_river_map(panel)).write(out.parent, out.stem)
    say(", ".join(str(path) for path in written))


@data_app.command("explore")
@inputs.takes_data
def explore(
    files: inputs.DataFiles,
    sensor: Annotated[str | None, option("Id of the sensor to look at. (default: a lively one)")] = None,
    longest_lag: Annotated[int | None, option("Steps, either way. (default: 24; 14 for daily readings)", min=1)] = None,
    out: Annotated[Path | None, option("Folder. (default: explore-DATA)")] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Draw what a model has to cope with: coexisting dynamics, lags along edges, distant sensors that are alike."""
    panel, _ = files.load()
    with preparing_figures() as report:
        from candor.render.figures.explore import write_exploration
        from candor.research.explore import explore as explore_panel

        picture = explore_panel(panel, sensor, longest_lag, report)
        written = write_exploration(picture, out or Path(f"explore-{inputs.folder_name(panel.name)}"))
    lags = None if picture.lags is None else picture.lags.table
    facts = {
        "sensor": picture.dynamics.sensor,
        "edges": 0 if lags is None else len(lags),
        "edges_with_a_clear_peak": 0 if lags is None else int(lags["is_clear"].sum()),
        "edges_whose_target_follows": 0 if lags is None else int((lags["is_clear"] & (lags["lag_steps"] > 0)).sum()),
        "distant_pairs": len(picture.pairs.table),
        "most_alike": None if picture.similar is None else picture.similar.correlation,
        "least_alike": None if picture.opposite is None else picture.opposite.correlation,
    }
    if json:
        print_json(facts | {"files": [str(path) for path in written]})
    else:
        rows = [
            (name.replace("_", " "), number(fact) if fact is None or isinstance(fact, float) else escape(str(fact)))
            for name, fact in facts.items()
        ]
        show_table(f"Before any model: {escape(panel.name)}", ("what", "found"), rows)
    say_written(written)
