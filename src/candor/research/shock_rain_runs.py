"""Runs of CANDOR against rain: the activity of their shock gates, and its comparison with rain, computed or read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.core.progress import Report, silent, within
from candor.core.text import duration, listed
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.readers.small_tables import read_small_table
from candor.research.encodings import encode_histories
from candor.research.shock_rain import SHIFTS, ModelActivity, ShockRain, compare_with_rain, lags_in_steps
from candor.runs.bundle import open_run
from candor.runs.run import Run

_HOUR = timedelta(hours=1)
NAME = "shock-rain"
"""Of the files with the figure, its numbers and the JSON."""
SHIFTS_NAME = f"{NAME}-shifts.csv"
"""The statistic of every shift."""
_KEYS = ("data", "rho", "null_mean", "excess", "p", "shifts", "horizons", "checkpoints", "stations", "lags_hours")


@dataclass(frozen=True)
class RainChoice:
    """Where rain comes from: a covariate of the panel, or a file of rainfall with the gauge of each station."""

    covariate: str = "rain"
    rainfall: Path | None = None
    gauges: Path | None = None


@dataclass(frozen=True)
class LagChoice:
    """Lags and shifts; times in hours."""

    longest: float = 120.0  # lags go from minus this to this
    step: float = 2.0  # from one lag to the next
    shifts: int = SHIFTS  # how many rotations of the rain are drawn
    least_shift: float = 0.0  # the smallest shift, either way; at least one reading


@dataclass(frozen=True, eq=False)
class RainComparison:
    """A comparison of runs with rain; tables that were not found are empty."""

    content: dict[str, Any]  # of shock-rain.json; lags in hours
    curves: pd.DataFrame  # of shock-rain.csv: by lag, the correlation of each horizon and the band of shifts
    null: pd.DataFrame  # of shock-rain-shifts.csv: the statistic of every shift
    path: Path = Path()  # the JSON file that it was read from

    @property
    def data(self) -> str:
        """The name of the data."""
        return str(self.content["data"])

    @property
    def given_rain(self) -> list[str]:
        """The runs that were given rain, and so have seen what they are asked about."""
        return [str(run["run"]) for run in self.content["checkpoints"] if run.get("reads_rain", False)]

    @property
    def left_out(self) -> list[str]:
        """The stations that count at no lag: rain or activity is unknown there, or never changes."""
        return [str(row["station"]) for row in self.content["stations"] if set(row["rho_by_lag"]) <= {None}]

    @property
    def stations(self) -> int:
        """How many stations count."""
        return len(self.content["stations"]) - len(self.left_out)


def read_comparison(path: Path) -> RainComparison:
    """Return what `candor shock-rain` wrote to a file and beside it."""
    content = read_json(path)
    if not isinstance(content, dict) or (lacking := [key for key in _KEYS if key not in content]):
        named = f" ({', '.join(lacking)} missing)" if isinstance(content, dict) else ""
        raise InputError(f"these are not results of `candor shock-rain`{named}", where=str(path))
    curves, null = (
        pd.read_csv(file) if file.is_file() else pd.DataFrame()
        for file in (path.with_suffix(".csv"), path.with_name(SHIFTS_NAME))
    )
    return RainComparison(content, curves, null, path)


def compare_runs(
    folders: Sequence[Path],
    rain: RainChoice | None = None,
    lags: LagChoice | None = None,
    report: Report = silent,
) -> RainComparison:
    """Return the comparison of the shock activity of runs of CANDOR with rain.

    The runs must be of the same stations and hours; runs with the same horizon are its checkpoints.
    """
    rain, lags, count = rain or RainChoice(), lags or LagChoice(), len(folders)
    if len({folder.resolve() for folder in folders}) < count:
        raise InputError("a run is named twice", hint="name every run once")
    panel: Panel | None = None
    checkpoints, reads_rain = [], []
    for place, folder in enumerate(folders):
        run = open_run(folder)
        task = run.task()
        panel = panel or task.panel
        if (panel.sensor_ids, panel.times) != (task.panel.sensor_ids, task.panel.times):
            raise InputError(
                f"this run is of other stations or hours than {folders[0]}",
                where=str(folder),
                hint="compare runs on the same data and the same dates",
            )
        part = within(report, "reading all runs", f"run {place + 1} of {count}", place / count, (place + 1) / count)
        activity = activity_of(run, task, part)
        reads_rain.append(run.candor().trained().network.settings.reads_rain)
        checkpoints.append(ModelActivity(str(folder), run.record.protocol.horizon, run.record.seed, activity))
    if panel is None:
        raise ValueError("at least one run is needed")
    hours = panel.times.interval / _HOUR
    steps = lags_in_steps(lags.longest, lags.step, hours)
    rows = _rows_compared(checkpoints, max(steps))
    cut = [ModelActivity(c.name, c.horizon, c.seed, c.activity[rows]) for c in checkpoints]
    values, gauges = rain_of(panel, rain)
    report("shifting the rain", None)
    least = max(1, round(lags.least_shift / hours))
    found = compare_with_rain(cut, values[rows], steps, lags.shifts, least_shift=least)
    times = panel.times.slice(rows.start, rows.stop)
    content = {
        "data": panel.name,
        "first": times.local[0].isoformat(),
        "last": times.local[-1].isoformat(),
        "steps": times.length,
        **_results(found, hours),
        "checkpoints": [
            {
                "run": checkpoint.name,
                "horizon": checkpoint.horizon,
                "seed": checkpoint.seed,
                "reads_rain": reads,
                "rho": _or_none(rho),
                "is_positive": None if np.isnan(rho) else bool(rho > 0),
            }
            for checkpoint, reads, rho in zip(checkpoints, reads_rain, found.at_selected, strict=True)
        ],
        "stations": [
            {"station": station, "gauge": gauge, "rho_by_lag": [_or_none(rho) for rho in curve]}
            for station, gauge, curve in zip(panel.sensor_ids, gauges, found.by_station, strict=True)
        ],
        "lags_hours": [float(lag * hours) for lag in found.lags],
    }
    curves = {
        f"correlation, {horizon} steps ahead": curve
        for horizon, curve in zip(found.horizons, found.curves, strict=True)
    }
    lower, upper = np.nanquantile(found.null_curves, (0.025, 0.975), axis=0)
    band = {"shifts_lower_2.5": lower, "shifts_upper_97.5": upper}
    return RainComparison(
        content,
        pd.DataFrame({"lag_hours": content["lags_hours"], **curves, **band}),
        pd.DataFrame({"largest_correlation": found.null}),
    )


def _results(found: ShockRain, hours: float) -> dict[str, Any]:
    """Return the test and what was found by horizon, of a record with so many hours from one reading to the next."""
    null_mean = float(found.null.mean())
    return {
        "rho": found.rho,
        "null_mean": null_mean,
        "excess": found.rho - null_mean,
        "p": found.p,
        "p_floor": found.p_floor,
        "shifts": len(found.null),
        "least_shift_hours": found.least_shift * hours,
        "horizons": [
            {"horizon": horizon, "lag_hours": float(lag * hours), "rho": float(np.nanmax(curve))}
            for horizon, lag, curve in zip(found.horizons, found.selected, found.curves, strict=True)
        ],
    }


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def _rows_compared(checkpoints: Sequence[ModelActivity], margin: int) -> slice:
    """Return the rows that patches cover, and before and after them as many as lags reach, if the record has them."""
    covered = np.flatnonzero(np.any([~np.isnan(c.activity).all(axis=1) for c in checkpoints], axis=0))
    if not len(covered):
        what = "the test part is empty: no window covers any hour"
        raise InputError(what, hint="train with a protocol whose shares leave one")
    length = len(checkpoints[0].activity)
    return slice(max(int(covered[0]) - margin, 0), min(int(covered[-1]) + 1 + margin, length))


def activity_of(run: Run, task: Task, report: Report = silent) -> NDArray[np.float64]:
    """Return the shock activity (g_U + g_V)/2 of a run of CANDOR from 0 to 1, time x sensor on the axis of its task.

    A reading gets the mean over all history patches of all windows of the test part that cover it, NaN if none does.
    """
    candor = run.candor()
    settings = candor.trained().network.settings
    if not settings.gates_shocks:
        what, hint = "this variant of CANDOR has no shock gates", "give a run of the full model"
        raise InputError(what, where=str(run.folder), hint=hint)
    length, sensors = task.panel.times.length, len(task.panel.sensors)
    total, covering = np.zeros((length, sensors)), np.zeros((length, 1))
    begun, patches = np.zeros_like(total), np.zeros_like(covering)  # sums over patches by their first reading
    for rows, encoding in encode_histories(candor, task.panel, task.split.test, report, "reading the shock gates"):
        found = encoding.components.shock_activity
        assert found is not None  # variants without were refused
        np.add.at(begun, rows, found.transpose(1, 2).double().numpy())
        np.add.at(patches, rows, 1)
    for offset in range(min(settings.patch_length, length)):
        total[offset:] += begun[: length - offset]
        covering[offset:] += patches[: length - offset]
    mean: NDArray[np.float64] = np.where(covering > 0, total / np.maximum(covering, 1), np.nan)
    return mean


def rain_of(panel: Panel, choice: RainChoice) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Return the rain of a panel's stations, time x station, and the gauge that serves each of them.

    The gauge of a station is the covariate of the same sensor, or a column of the file of rainfall: at the interval of
    the panel, and of the name that a small table with the columns `station` and `gauge` gives, or else the station's.
    """
    if choice.rainfall is not None:
        return _rain_in_file(panel, choice.rainfall, choice.gauges)
    if choice.gauges is not None:
        raise InputError(
            "a file of gauges says which column of a file of rainfall serves a station, and no such file is given",
            where=str(choice.gauges),
            hint="give it: --rain FILE",
        )
    if choice.covariate not in panel.covariates:
        raise InputError(
            f"there is no covariate called {choice.covariate!r}; there is {listed(panel.covariates) or 'none'}",
            where=panel.name,
            hint="name another with --covariate, or give a file of rainfall: --rain FILE",
        )
    gauges = tuple(f"{choice.covariate} of {sensor}" for sensor in panel.sensor_ids)
    return panel.covariates[choice.covariate].values, gauges


def _rain_in_file(panel: Panel, rainfall: Path, gauges: Path | None) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    rain = read_panel(rainfall, options=ReadOptions(zone=panel.times.zone, interval=None))
    gauge_of = {sensor: sensor for sensor in panel.sensor_ids} if gauges is None else _read_gauges(gauges)
    if lacking := [station for station in panel.sensor_ids if station not in gauge_of]:
        hint = "give every station a row; several may share a gauge"
        raise InputError(f"no gauge is named for {listed(lacking)}", where=str(gauges), hint=hint)
    wanted = tuple(gauge_of[station] for station in panel.sensor_ids)
    if unknown := [gauge for gauge in dict.fromkeys(wanted) if gauge not in rain.sensor_ids]:
        raise InputError(
            f"the file of rainfall has no column called {listed(unknown)}; it has {listed(rain.sensor_ids)}",
            where=str(rainfall),
            hint="say which gauge serves which station: --gauges FILE with the columns station and gauge",
        )
    axis, times = rain.times, panel.times
    shift, beside = divmod(axis.start - times.start, times.interval)
    if axis.interval != times.interval or beside:
        raise InputError(
            f"rain is measured every {duration(axis.interval)} from {axis.start}, readings every "
            f"{duration(times.interval)} from {times.start}: the moments do not meet",
            where=str(rainfall),
            hint="sum the rain to the moments of the readings first",
        )
    values = np.full((times.length, len(wanted)), np.nan, np.float32)
    first, last = max(shift, 0), min(shift + axis.length, times.length)
    if first < last:
        columns = [rain.sensor_ids.index(gauge) for gauge in wanted]
        values[first:last] = rain.values[first - shift : last - shift, columns]
    return values, wanted


def _read_gauges(path: Path) -> dict[str, str]:
    """Return the gauge of each station, from a small table with the columns `station` and `gauge`."""
    table = read_small_table(path)
    names = table.names
    if not {"station", "gauge"} <= set(names):
        found = listed(table.header or []) or "none"
        hint = "begin the file with the line station,gauge"
        raise InputError(f"the columns station and gauge are needed; found: {found}", where=str(path), hint=hint)
    station, gauge = names.index("station"), names.index("gauge")
    gauge_of: dict[str, str] = {}
    for row, number in zip(table.rows, table.numbers, strict=True):
        name, serves = row[station].strip(), row[gauge].strip()
        if gauge_of.setdefault(name, serves) != serves:
            raise InputError(
                f"two gauges are named for station {name}: {gauge_of[name]} and {serves}",
                where=f"{path}, {table.place} {number}",
                hint="keep one row for each station",
            )
    return gauge_of
