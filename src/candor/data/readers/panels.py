"""From files to a panel: readings, and if there are any, edges and descriptions of the sensors."""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import sha256_of_file
from candor.core.progress import Report, silent
from candor.core.text import duration, listed
from candor.data.findings import Findings
from candor.data.panel import Edges, Panel, Sensor
from candor.data.readers.cells import NumberReader
from candor.data.readers.classic import read_classic_hdf, read_npz
from candor.data.readers.columns import csv_columns, frame_columns, parquet_columns
from candor.data.readers.edges import read_edges
from candor.data.readers.grid import FileGrid, GridWriter, StampSurvey, chosen_zone, survey_stamps
from candor.data.readers.netcdf import read_netcdf
from candor.data.readers.options import ReadOptions
from candor.data.readers.readings import Readings
from candor.data.readers.sensors import read_sensors
from candor.data.readers.sources import find_source
from candor.data.readers.tables import TableReadings
from candor.data.times import TimeAxis

_ROWS_PER_TIME = 1.1  # of a wide table that has words too; more are rows of several sensors
_READINGS_AT_ONCE = 1.5  # of a sensor in a long table that has further columns; with more, these say what was read
_FEW_ROWS = 100
_TEXT_TABLES = {"csv", "txt", "tsv", "dat", ""}
File = Path | str


def read_panel(
    readings: File | pd.DataFrame,
    edges: File | pd.DataFrame | None = None,
    sensors: File | pd.DataFrame | None = None,
    options: ReadOptions | None = None,
    findings: Findings | None = None,
    name: str = "",
    report: Report = silent,
) -> Panel:
    """Return the panel that the files or data frames describe.

    Args:
        readings: a time column and a column per sensor, or the columns time, sensor and value; CSV, Parquet (each also
            packed as gz or zst), the classic HDF5 and npz benchmarks, NetCDF, or a data frame.
        edges: a list (from, to, distance and/or weight) or a square matrix.
        sensors: id, name, latitude, longitude, unit.
        options: what the files do not say about themselves.
        findings: a list to which everything noticed on the way is added.
        name: what to call the panel; the file's name by default.
        report: progress callback.

    Raises:
        InputError: if the files cannot be made into a panel.
    """
    options = options or ReadOptions()
    findings = findings if findings is not None else Findings()
    where = "data frame" if isinstance(readings, pd.DataFrame) else str(readings)
    source = open_readings(readings, options)
    values, times, ids = lay_on_grid(source, options, findings, where, report)
    zone = chosen_zone(source, options) or "UTC"
    described = tuple(Sensor(sensor_id, unit=options.unit) for sensor_id in ids)
    if sensors is not None:
        described = read_sensors(sensors, ids, options.unit, findings)
    network = Edges.none() if edges is None else read_edges(edges, ids, findings, source.matrix_rows)
    provenance = _provenance(options, readings=readings, edges=edges, sensors=sensors)
    if zone != times.zone:
        provenance["zone"] = zone
    file_name = "" if isinstance(readings, pd.DataFrame) else Path(readings).name.split(".")[0]
    return Panel(values, times, described, network, name=name or file_name, provenance=provenance)


def open_readings(readings: File | pd.DataFrame, options: ReadOptions) -> Readings:
    """Return the source of readings behind a file or data frame."""
    if isinstance(readings, pd.DataFrame):
        return TableReadings(frame_columns(readings), options)
    source = find_source(readings)
    if source.kind in {"nc", "nc4", "netcdf"}:
        return read_netcdf(source.path, options.variable)
    if options.variable is not None:
        what = "only NetCDF files have variables to choose from"
        raise InputError(what, where=str(readings), hint="leave --variable out")
    if source.kind in {"parquet", "pq"}:
        return TableReadings(parquet_columns(source), options)
    if source.kind in _TEXT_TABLES:
        return TableReadings(csv_columns(source), options)
    if source.kind in {"h5", "hdf", "hdf5"}:
        return read_classic_hdf(source.path)
    if source.kind == "npz":
        return read_npz(source.path, options.start, options.interval)
    hint = "give CSV, Parquet (each also as .gz or .zst), HDF5, npz or NetCDF"
    raise InputError(f"files of the type .{source.kind} are not known", where=str(readings), hint=hint)


def lay_on_grid(
    readings: Readings, options: ReadOptions, findings: Findings, where: str, report: Report = silent
) -> tuple[NDArray[np.float32], TimeAxis, tuple[str, ...]]:
    """Return the values on a regular time axis and the sensors that hold numbers."""
    report("reading times", None)
    survey = survey_stamps(readings, where)
    grid = FileGrid(readings, survey, options, findings, where)
    _refuse_empty_cells(readings, survey, grid, where)
    writer, numbers = GridWriter(grid, len(readings.ids)), NumberReader(options, readings.has_decimal_comma)
    rows = 0
    for block in readings.blocks(numbers):
        rows += len(block.stamps)
        report("reading values", rows / survey.rows)
        writer.write(block)
    values, times = writer.finish()
    numbers.report(findings, where)
    _report_times(readings, survey, grid, writer, findings, where)
    if writer.readings == 0:
        raise InputError("there is not a single reading", where=where, hint="one column of numbers per sensor")
    # Columns of text without one number, such as remarks or quality flags, are no sensors.
    texts = [i for i, one in enumerate(readings.ids) if numbers.text[one] and np.isnan(values[:, i]).all()]
    texts = [] if readings.is_long else texts
    _refuse_mixed_rows(readings, survey, writer, bool(texts), where)
    if not texts:
        return values, times, tuple(readings.ids)
    hint = "remove them from the file, or correct them if they are sensors"
    names = [readings.ids[i] for i in texts]
    findings.about(names, "columns hold text and no numbers: left out", hint, where=where)
    kept = sorted(set(range(len(readings.ids))) - set(texts))
    values = values[:, kept]
    values.flags.writeable = False
    return values, times, tuple(readings.ids[i] for i in kept)


def _refuse_empty_cells(readings: Readings, survey: StampSurvey, grid: FileGrid, where: str) -> None:
    """Refuse a long table so thin that its panel would be nearly all empty, and huge."""
    sensors, hint = len(readings.ids), "check that the column of sensors names sensors and not readings"
    if readings.is_long and survey.rows > _FEW_ROWS and sensors > survey.rows / 2 and len(survey.distinct) > 2:
        what = f"{survey.rows:,} readings would belong to {sensors:,} sensors"
        raise InputError(what, where=where, hint=f"{hint}, and call it sensor")
    if readings.is_long and grid.length * sensors > max(1_000_000, 1000 * survey.rows):
        raise InputError(
            f"{survey.rows:,} readings would fill less than a thousandth of {sensors:,} sensors times "
            f"{grid.length:,} steps of {duration(grid.interval)}",
            where=where,
            hint=f"{hint}, or give a longer --interval",
        )


def _refuse_mixed_rows(readings: Readings, survey: StampSurvey, writer: GridWriter, has_text: bool, where: str) -> None:
    """Refuse a long table that was taken for a wide one, because its columns have names of their own.

    So it does one whose sensors read several things at once: the last of them would stand for all. A coarse grid has
    several readings a cell too, but those have stamps of their own; rows without a reading share one.
    """
    rows_per_time = (survey.rows - survey.unreadable) / len(survey.distinct)
    if not readings.is_long and rows_per_time > (_ROWS_PER_TIME if has_text else 2):
        raise InputError(
            f"each time stands in {rows_per_time:.1f} rows on average: they seem to belong to different sensors",
            where=where,
            hint="call the columns time, sensor and value; if one holds the date and another the time of day, "
            "put both into one, such as 2020-10-08 06:00",
        )
    if not readings.is_long or not readings.unused:
        return
    per_cell = writer.readings / int(np.count_nonzero(~np.isnan(writer.values)))
    at_once = min(survey.rows_per_stamp, per_cell)
    if at_once > _READINGS_AT_ONCE:
        raise InputError(
            f"sensors have {at_once:.1f} readings at each moment on average; columns that were not read may tell them "
            f"apart: {listed(readings.unused)}",
            where=where,
            hint="keep the rows of one quantity, such as water temperature; or remove rows that are repeated",
        )


def _report_times(
    readings: Readings, survey: StampSurvey, grid: FileGrid, writer: GridWriter, findings: Findings, where: str
) -> None:
    hint = "write times like 2020-10-08 06:00"
    findings.warning("rows have no readable time: left out", where, survey.unreadable, hint)
    if readings.remark:
        findings.note(readings.remark, where, hint="name the column of times with --time-column if that is wrong")
    if readings.guess:
        findings.warning(readings.guess, where, hint="say --day-first or --month-first if that is wrong")
    findings.warning("rows name no sensor: left out", where, readings.rows_without_sensor)
    what, hint = "columns are neither time nor readings: left out", "give a column of readings a name of its own"
    findings.about(readings.unused, what, hint, where=where)
    what = f"times fall in the hour that the clock of {grid.zone} skips in spring: left out"
    hint = "if the clocks of the sensors do not change in summer, say e.g. --zone UTC-08:00"
    findings.warning(what, where, grid.skipped, hint)
    step, hint = duration(grid.interval), "choose another grid with --interval"
    if len(survey.sensor_intervals) > 1:
        usual = ", ".join(f"{count} every {duration(step)}" for step, count in sorted(survey.sensor_intervals.items()))
        what = f"sensors report at different intervals ({usual}): laid on one grid of {step}"
        findings.note(what, where, len(survey.sensor_intervals), hint)
    what = f"readings lie beside the grid of {step}: moved to its nearest moment"
    findings.note(what, where, grid.off_grid, hint)
    if writer.repeated_rows and not grid.off_grid:
        what = "rows repeat a time: the later row counts where it holds a reading"
        findings.warning(what, where, writer.repeated_rows, "remove the repeated rows")
    else:
        what = "readings share sensor and grid moment with another: the nearest counts, then the later"
        lost = writer.readings - int(np.count_nonzero(~np.isnan(writer.values)))
        findings.warning(what, where, max(lost, 0), "remove the repeated readings, or give a finer --interval")


def _provenance(options: ReadOptions, **parts: File | pd.DataFrame | None) -> dict[str, object]:
    """Return which files were read, and what counted as missing where that is not as usual."""
    usual, files = ReadOptions(), {}
    for role, part in parts.items():
        if part is not None and not isinstance(part, pd.DataFrame):
            files[role] = {"file": Path(part).name, "sha256": sha256_of_file(Path(part))}
    gaps: dict[str, object] = {"missing": list(options.missing), "minimum": options.minimum}
    is_usual = (options.missing, options.minimum) == (usual.missing, usual.minimum)
    return ({"files": files} if files else {}) | ({} if is_usual else {"gaps": gaps})
