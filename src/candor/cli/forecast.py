"""`candor forecast`: what comes next, from a run and recent readings."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from candor.cli import inputs
from candor.cli.evaluate import RunArgument
from candor.cli.screen import console, print_json, progress, say, table
from candor.core.errors import InputError
from candor.core.text import number

if TYPE_CHECKING:
    import pandas as pd

    from candor.data.findings import Findings
    from candor.data.panel import Panel
    from candor.forecasting.questions import Question
    from candor.runs.run import Run

_MOST_ROWS, _MOST_STEPS = 24, 6

ReadingsOption = Annotated[
    str | None, typer.Option("--readings", help="Recent readings. (default: the end of the run's own data)")
]
EdgesOption = Annotated[
    Path | None, typer.Option("--edges", help="Accepted as in `candor train`; the model keeps the edges it knows.")
]
ZoneOption = Annotated[str | None, typer.Option("--zone", help="Local zone of the readings. (default: the run's)")]
OutOption = Annotated[Path | None, typer.Option("--out", help="File for all steps and sensors: .csv or .parquet.")]
CoverageOption = Annotated[float, typer.Option("--coverage", help="Chance that an interval holds the reading.")]
BelowOption = Annotated[float | None, typer.Option("--below", help="Ask how likely readings are below this.")]
AboveOption = Annotated[float | None, typer.Option("--above", help="Ask how likely readings are above this.")]
NowOption = Annotated[
    str | None, typer.Option("--now", help="The present, e.g. 2025-03-05T06:00. (default: the clock)")
]
AllowShortOption = Annotated[
    bool, typer.Option("--allow-short", help="Forecast from too short a history; what lacks counts as silence.")
]


def forecast(
    run: RunArgument,
    readings: ReadingsOption = None,
    edges: EdgesOption = None,
    sensors: inputs.SensorsOption = None,
    zone: ZoneOption = None,
    unit: inputs.UnitOption = "",
    missing: inputs.MissingOption = None,
    minimum: inputs.MinimumOption = None,
    interval: inputs.IntervalOption = None,
    start: inputs.StartOption = None,
    time_column: inputs.TimeColumnOption = None,
    day_first: inputs.DayFirstOption = None,
    variable: inputs.VariableOption = None,
    out: OutOption = None,
    coverage: CoverageOption = 0.9,
    below: BelowOption = None,
    above: AboveOption = None,
    now: NowOption = None,
    allow_short: AllowShortOption = False,
    json: inputs.JsonOption = False,
) -> None:
    """Forecast every sensor from recent readings: a table here, all of it in a file with --out."""
    from candor.data.alignment import align
    from candor.data.findings import Findings
    from candor.data.writers import check_table_path
    from candor.forecasting.questions import Question
    from candor.runs.bundle import open_run

    question = Question(coverage, below, above)
    how = {
        "--sensors": sensors, "--zone": zone, "--unit": unit or None, "--missing": missing, "--minimum": minimum,
        "--interval": interval, "--start": start, "--time-column": time_column, "--day-first": day_first,
        "--variable": variable,
    }  # fmt: skip
    _refuse_idle(readings, [option for option, value in how.items() if value is not None])
    if out is not None:
        check_table_path(out)
        _refuse_to_replace_input(out, readings, sensors, edges)
    opened, findings = open_run(run), Findings()
    known, protocol = opened.forecaster.trained_on_, opened.record.protocol
    if (gaps := opened.record.gaps) is not None:  # new readings have the gaps of those the model was trained on
        missing = list(gaps.missing) if missing is None else missing
        minimum = gaps.minimum if minimum is None else minimum
    understood = (zone or known.panel.times.zone, unit, missing, minimum, interval, start, time_column)
    options = (*understood, day_first, variable)
    files = None if readings is None else inputs.DataFiles(readings, None, sensors, *options)
    aligned = align(
        # As it was measured: in a record that the protocol fills, no sensor would ever be silent.
        opened.measured() if files is None else _read(files, findings, None if zone else opened.record.zone),
        known,
        opened.forecaster.rows_needed,
        now=None if now is None and files is None else present(now, known.panel.times.zone),
        horizon=protocol.horizon,
        allow_short=allow_short,
    )
    findings.extend(aligned.findings)
    # What was unpacked of a bundle file lies where nobody will find it: scripts are told what was named.
    deliver(opened, aligned.panel, findings, question, out, is_json=json, more={"run": str(run)})


def deliver(
    opened: "Run",
    recent: "Panel",
    findings: "Findings",
    question: "Question",
    out: Path | None,
    *,
    is_json: bool,
    is_line: bool = False,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Makes the forecast after the last row of readings that fit a run, prints it, and writes it if a file is named.

    Args:
        opened: whose model forecasts.
        recent: the readings.
        findings: what was noticed about them, to be told.
        question: what is asked besides the forecast.
        out: file for all steps and sensors.
        is_json: whether to print JSON instead of a table.
        is_line: whether that is one line, for others follow.
        more: goes into the JSON too.
    """
    from candor.data.writers import write_table

    with progress() as report:
        report(f"forecasting with {opened.record.label}", None)
        made = question.answer(opened.forecaster, recent)
    if "lower" not in made:
        say("no intervals: there was nothing the model could be calibrated on")
    question.report_short_intervals(opened.forecaster, findings)
    if out is not None:
        write_table(out, made)
        say(f"all {opened.record.protocol.horizon} steps of {len(recent.sensors):,} sensors: {out}")
    if is_json:
        print_json(_content(opened, recent, made, findings, question) | dict(more or {}), is_line=is_line)
    else:
        inputs.tell_findings(findings)
        _show(opened.record.label, recent, made, question)


def _refuse_idle(readings: str | None, given: list[str]) -> None:
    """Refuses to be told how a file is read where there is none: it would change nothing."""
    from candor.data.catalog import datasets

    if given and (readings is None or readings in datasets or Path(readings).is_dir()):
        where = "the run's own data" if readings is None else readings
        what = f"{', '.join(given)} say how a file is read, and these readings are known as they are"
        raise InputError(what, where=where, hint="leave that out, or name a file: --readings FILE")


def _refuse_to_replace_input(out: Path, *given: Path | str | None) -> None:
    """Refuses to write the forecast over a file that it is made from: the readings would be gone."""
    if out.exists() and any(file is not None and Path(file).exists() and out.samefile(file) for file in given):
        raise InputError("the forecast would take the place of its own input", where=str(out), hint="name another file")


def _read(files: inputs.DataFiles, findings: "Findings", wall_zone: str | None) -> "Panel":
    """Returns the readings that were named in whatever way; what was noticed on the way goes to the findings."""
    if files.is_file():
        return files.read(findings, wall_zone)
    return inputs.DataFiles(files.data).load()[0]


def present(text: str | None, zone: str) -> datetime:
    """Returns the present that was named, on the clock of the zone if it names none, else that of the clock."""
    from candor.data.times import zone_from_name

    if text is None:
        return datetime.now(UTC)
    moment = inputs.parse_moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=zone_from_name(zone))


def _content(
    opened: "Run", recent: "Panel", made: "pd.DataFrame", findings: "Findings", question: "Question"
) -> dict[str, Any]:
    """Returns the forecast for scripts, with what it was made of."""
    from candor.forecasting.questions import forecast_rows

    return {
        "run": str(opened.folder),
        "model": opened.record.model,
        "last_reading": recent.times.local[-1].isoformat(),
        "zone": recent.times.zone,
        "units": {sensor.id: sensor.unit for sensor in recent.sensors},
        "coverage": question.coverage if "lower" in made else None,
        "probability_of": {"below": question.below, "above": question.above} if "probability" in made else None,
        "findings": [asdict(finding) for finding in findings],
        "forecasts": forecast_rows(made),
    }


def _show(model: str, recent: "Panel", made: "pd.DataFrame", question: "Question") -> None:
    """Prints the first steps of every sensor, or of some if there are many."""
    from rich.markup import escape

    from candor.core.text import format_time, time_format

    horizon, sensors = int(made["step"].max()), recent.sensors[:_MOST_ROWS]
    steps = max(1, min(_MOST_ROWS // len(sensors), _MOST_STEPS, horizon))
    heads = ["forecast"]
    if "lower" in made:
        heads += [f"{100 * question.coverage:g} % from", "to"]
    if "probability" in made:
        heads.append(f"above {question.above:g}" if question.below is None else f"below {question.below:g}")
    unit = escape(f" [{recent.unit}]") if recent.unit else ""
    has_names = any(sensor.name for sensor in sensors)
    places = ["sensor", "name", "time"] if has_names else ["sensor", "time"]
    shown = table(f"{model} on {escape(recent.name)}{unit}", *places, *heads, left=len(places))
    form = f"%Y-%m-%d {time_format(recent.times.interval)}"
    for sensor in sensors:
        names = [escape(sensor.id), escape(sensor.name)] if has_names else [escape(sensor.id)]
        for row in made[made["sensor"] == sensor.id].head(steps).to_dict("records"):
            numbers = [number(row[name]) for name in ("forecast", "lower", "upper") if name in row]
            chance = [_chance(row["probability"])] if "probability" in row else []
            shown.add_row(*names, format_time(row["time"].to_pydatetime(), form), *numbers, *chance)
            names = [""] * len(names)
        if steps > 1:
            shown.add_section()
    console().print(shown)
    if len(sensors) < len(recent.sensors) or steps < horizon:
        console().print(f"... of {len(recent.sensors):,} sensors and {horizon} steps; --out FILE writes all")


def _chance(probability: float) -> str:
    """Returns a probability for a table cell; nothing is sure."""
    if probability < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if probability > 0.999 else f"{100 * probability:.1f} %"
