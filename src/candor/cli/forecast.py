"""`candor forecast`: what comes next, from a run and recent readings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from candor.cli import inputs
from candor.cli.inputs import option
from candor.cli.screen import console, print_json, progress, say, table, tell
from candor.core.errors import InputError
from candor.core.text import format_time, number, time_format

if TYPE_CHECKING:
    from candor.data.findings import Findings
    from candor.data.panel import Panel
    from candor.forecasting.forecast_table import ForecastOptions, ForecastTable
    from candor.runs.run import Run

_MOST_ROWS, _MOST_STEPS = 24, 6


@dataclass(frozen=True)
class ForecastChoices:
    """The options that commands which forecast share: what of a forecast is shown and written, and the present."""

    out: Annotated[Path | None, option("File for all steps and sensors: .csv or .parquet.")] = None
    coverage: Annotated[float, option("Probability that an interval holds the reading.")] = 0.9
    below: Annotated[float | None, option("Ask how likely readings are below this.")] = None
    above: Annotated[float | None, option("Ask how likely readings are above this.")] = None
    now: Annotated[str | None, option("The present, e.g. 2025-03-05T06:00. (default: the clock)")] = None
    json: inputs.JsonOption = False

    def options(self) -> "ForecastOptions":
        """Return intervals and probabilities; refuse what cannot be asked, and a file of another kind."""
        from candor.forecasting.forecast_table import ForecastOptions, check_table_path

        options = ForecastOptions(self.coverage, self.below, self.above)
        if self.out is not None:
            check_table_path(self.out)
        return options


@inputs.takes(
    inputs.DataFiles,
    ForecastChoices,
    defaults={"data": ""},
    data=Annotated[str, option("Recent readings. (default: the end of the run's own data)", "--readings")],
    edges=Annotated[Path | None, option("Accepted as in `candor train`; the model keeps the edges it knows.")],
    zone=Annotated[str | None, option("Local zone of the readings. (default: the run's)")],
)
def forecast(
    files: inputs.DataFiles,
    choices: ForecastChoices,
    run: inputs.RunArgument,
    allow_short: Annotated[
        bool, option("Forecast from too short a history; what lacks counts as silence.", "--allow-short")
    ] = False,
) -> None:
    """Forecast every sensor from recent readings: a table here, all of it in a file with --out."""
    from candor.data.alignment import align
    from candor.data.findings import Findings
    from candor.runs.bundle import open_run

    choices.options()  # refuses what cannot be asked
    _refuse_unused_options(files)
    if choices.out is not None:
        _refuse_to_replace_input(choices.out, files)
    opened, findings = open_run(run), Findings()
    known, now = opened.forecaster.trained_on_, choices.now
    aligned = align(
        # As it was measured: in a record that the protocol fills, no sensor would ever be silent.
        _read(files, opened, findings) if files.data else opened.measured(),
        known,
        opened.forecaster.rows_needed,
        now=None if now is None and not files.data else present(now, known.panel.times.zone),
        horizon=opened.record.protocol.horizon,
        allow_short=allow_short,
    )
    findings.extend(aligned.findings)
    # Scripts are given the path that was named: a bundle file is unpacked to a temporary folder.
    deliver(opened, aligned.panel, findings, choices, {"run": str(run)})


def _refuse_unused_options(files: inputs.DataFiles) -> None:
    """Refuse options on how a file is read where there is none: they would change nothing."""
    from candor.data.catalog import datasets

    given = [option for option in files.given_options() if option != "--edges"]
    if given and (not files.data or files.data in datasets or Path(files.data).is_dir()):
        what = f"{', '.join(given)} say how a file is read, and these readings are known as they are"
        where = files.data or "the run's own data"
        raise InputError(what, where=where, hint="leave that out, or name a file: --readings FILE")


def _refuse_to_replace_input(out: Path, files: inputs.DataFiles) -> None:
    """Refuse to write the forecast over a file that it is made from: the readings would be gone."""
    given = [Path(file) for file in (files.data, files.sensors, files.edges) if file]
    if out.exists() and any(file.exists() and out.samefile(file) for file in given):
        raise InputError("the forecast would take the place of its own input", where=str(out), hint="name another file")


def _read(files: inputs.DataFiles, opened: "Run", findings: "Findings") -> "Panel":
    """Return the readings that were named, a file by the rules that the training data were read by."""
    if not files.is_file():
        return inputs.DataFiles(files.data).load()[0]
    gaps = opened.record.gaps
    return replace(
        files,
        edges=None,  # the model keeps those it was trained on
        zone=files.zone or opened.forecaster.trained_on_.panel.times.zone,
        missing=list(gaps.missing) if gaps and files.missing is None else files.missing,
        minimum=gaps.minimum if gaps and files.minimum is None else files.minimum,
    ).read(findings, None if files.zone else opened.record.zone)


def deliver(
    opened: "Run",
    recent: "Panel",
    findings: "Findings",
    choices: ForecastChoices,
    more: Mapping[str, Any],
    *,
    is_line: bool = False,
) -> None:
    """Forecast what follows recent readings that fit the model, print the forecast, and write it if asked to.

    Findings are those about the readings; `more` is added to the JSON, which may have to be one line of many.
    """
    options = choices.options()
    with progress() as report:
        report(f"forecasting with {opened.record.label}", None)
        made = options.forecast(opened.forecaster, recent)
    if not made.has_intervals:
        say("no intervals: there was nothing the model could be calibrated on")
    options.report_short_intervals(opened.forecaster, findings)
    if choices.out is not None:
        made.write(choices.out)
        say(f"all {opened.record.protocol.horizon} steps of {len(recent.sensors):,} sensors: {choices.out}")
    if choices.json:
        print_json({**_content(opened, recent, made, findings, options), **more}, is_line=is_line)
    else:
        inputs.print_findings(findings)
        _show(opened.record.label, recent, made, options)


def present(text: str | None, zone: str) -> datetime:
    """Return the present that was named, on the clock of the zone if it names none, else that of the clock."""
    from candor.data.times import zone_from_name

    if text is None:
        return datetime.now(UTC)
    moment = inputs.parse_moment(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=zone_from_name(zone))


def _content(
    opened: "Run", recent: "Panel", made: "ForecastTable", findings: "Findings", options: "ForecastOptions"
) -> dict[str, Any]:
    """Return the forecast for scripts, with what it was made of."""
    has_event = "probability" in made.columns
    return {
        "run": str(opened.folder),
        "model": opened.record.model,
        "last_reading": recent.times.iso(recent.times.length - 1),
        "zone": recent.times.zone,
        "units": {sensor.id: sensor.unit for sensor in recent.sensors},
        "coverage": options.coverage if made.has_intervals else None,
        "probability_of": {"below": options.below, "above": options.above} if has_event else None,
        "findings": [asdict(finding) for finding in findings],
        "forecasts": made.to_json(),
    }


def _show(model: str, recent: "Panel", made: "ForecastTable", options: "ForecastOptions") -> None:
    """Print the first steps of every sensor, or of some if there are many."""
    horizon, sensors = made.times.length, recent.sensors[:_MOST_ROWS]
    steps = max(1, min(_MOST_ROWS // len(sensors), _MOST_STEPS, horizon))
    event = "above" if options.below is None else "below"
    heads = {
        "forecast": "forecast", "lower": f"{100 * options.coverage:g} % from", "upper": "to",
        "probability": f"{event} {options.threshold or 0:g}",
    }  # fmt: skip
    unit = escape(f" [{recent.unit}]") if recent.unit else ""
    has_names = any(sensor.name for sensor in sensors)
    places = ["sensor", "name", "time"] if has_names else ["sensor", "time"]
    title = f"{model} on {escape(recent.name)}{unit}"
    shown = table(title, *places, *(heads[name] for name in made.columns), left=len(places))
    form = f"%Y-%m-%d {time_format(recent.times.interval)}"
    for place, sensor in enumerate(sensors):
        names = [escape(sensor.id), escape(sensor.name)] if has_names else [escape(sensor.id)]
        for step in range(steps):
            numbers = {name: float(column[step, place]) for name, column in made.columns.items()}
            cells = (_probable(value) if name == "probability" else number(value) for name, value in numbers.items())
            shown.add_row(*names, format_time(made.times.at(step), form), *cells)
            names = [""] * len(names)
        if steps > 1:
            shown.add_section()
    console().print(shown)
    if len(sensors) < len(recent.sensors) or steps < horizon:
        tell(f"... of {len(recent.sensors):,} sensors and {horizon} steps; --out FILE writes all")


def _probable(probability: float) -> str:
    """Return a probability for a table cell; nothing is sure."""
    if probability < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if probability > 0.999 else f"{100 * probability:.1f} %"
