"""Runs of CANDOR against rain: the activity of their shock gates, and what its comparison with rain found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.progress import Report, silent, within
from candor.data.panel import Panel
from candor.research.encodings import encode_histories
from candor.research.rain_files import Rain, covariate_rain, gauge_rain
from candor.research.rotation import Numbers
from candor.research.shock_rain import SHIFTS, ModelActivity, ShockRain, compare_with_rain, lags_in_steps
from candor.runs.bundle import open_run
from candor.runs.run import Run

HOUR = timedelta(hours=1)
NAME = "shock-rain"
"""Of the files with the figure, its numbers and the JSON."""
SHIFTS_NAME = f"{NAME}-shifts.csv"
"""The statistic of every shift."""


@dataclass(frozen=True)
class RainChoice:
    """Where rain comes from: a covariate of the panel, or a file of rainfall with the gauge of each station."""

    covariate: str = "rain"
    rainfall: Path | None = None
    gauges: Path | None = None

    def of(self, panel: Panel) -> Rain:
        """Returns the rain of a panel's stations."""
        if self.rainfall is not None:
            return gauge_rain(panel, self.rainfall, self.gauges)
        if self.gauges is not None:
            raise InputError(
                "a file of gauges says which column of a file of rainfall serves a station, and no such file is given",
                where=str(self.gauges),
                hint="give it: --rain FILE",
            )
        return covariate_rain(panel, self.covariate)


@dataclass(frozen=True)
class LagChoice:
    """Lags and shifts; times in hours.

    Args:
        longest: lags go from minus this to this.
        step: from one lag to the next.
        shifts: how many times the rain is turned.
        least_shift: the smallest shift, either way; at least one reading.
    """

    longest: float = 120.0
    step: float = 2.0
    shifts: int = SHIFTS
    least_shift: float = 0.0


@dataclass(frozen=True, eq=False)
class ShockRainPicture:
    """What the figure of a comparison shows.

    Args:
        data: name of the data.
        lags: in hours, positive where activity follows rain.
        curves: by horizon (steps), by lag: mean correlation over stations and seeds.
        selected: by horizon, the lag in hours at which the curve is largest.
        band: 2 x lag: the 2.5th and the 97.5th percentile of the mean curve of shifted rain.
        null: the statistic of every shift.
        rho: the statistic of what happened.
        p: its chance without any association.
        checkpoints: how many trained models there are.
        stations: how many stations count.
    """

    data: str
    lags: NDArray[np.floating]
    curves: Mapping[int, NDArray[np.floating]]
    selected: Mapping[int, float]
    band: NDArray[np.floating]
    null: NDArray[np.floating]
    rho: float
    p: float
    checkpoints: int
    stations: int


@dataclass(frozen=True, eq=False)
class RunsAgainstRain:
    """The comparison of some runs with rain.

    Args:
        found: the numbers.
        names: of the runs.
        reads_rain: which of them were given rain, and so have seen what they are asked about.
        data: name of the data.
        stations: ids of the stations.
        gauges: which gauge serves each station.
        hours_per_step: hours from one reading to the next.
        steps: readings of the axis that was compared.
        first: local time of the first of them.
        last: local time of the last one.
        least_shift: of the rain, either way, in hours.
    """

    found: ShockRain
    names: tuple[str, ...]
    reads_rain: tuple[bool, ...]
    data: str
    stations: tuple[str, ...]
    gauges: tuple[str, ...]
    hours_per_step: float
    steps: int
    first: str
    last: str
    least_shift: float

    @property
    def left_out(self) -> list[str]:
        """The stations that count at no lag: rain or activity is unknown there, or never changes."""
        return [
            station
            for station, curve in zip(self.stations, self.found.by_station, strict=True)
            if np.isnan(curve).all()
        ]

    @property
    def p_floor(self) -> float:
        """The share of shifts after which every horizon finds its own lag again, and p is above that."""
        lags, selected = set(self.found.lags.tolist()), self.found.selected.tolist()
        least = round(self.least_shift / self.hours_per_step)
        ring = self.steps + max(lags)
        reached = [
            shift
            for shift in (selected[0] - lag for lag in lags)
            if abs(shift) >= least and all(lag - shift in lags for lag in selected)
        ]
        return float(len(reached) / (ring - 2 * least + 1))

    def to_json(self) -> dict[str, Any]:
        """Returns everything as content of a JSON file; lags in hours."""
        found, hours = self.found, self.hours_per_step
        checkpoints = zip(self.names, self.reads_rain, found.checkpoints, found.at_selected, strict=True)
        return {
            "data": self.data,
            "first": self.first,
            "last": self.last,
            "steps": self.steps,
            "rho": found.rho,
            "null_mean": found.null_mean,
            "excess": found.excess,
            "p": found.p,
            "p_floor": self.p_floor,
            "shifts": len(found.null),
            "least_shift_hours": self.least_shift,
            "horizons": [
                {"horizon": horizon, "lag_hours": float(lag * hours), "rho": float(np.nanmax(curve))}
                for horizon, lag, curve in zip(found.horizons, found.selected, found.curves, strict=True)
            ],
            "checkpoints": [
                {
                    "run": name,
                    "horizon": horizon,
                    "seed": seed,
                    "reads_rain": reads,
                    "rho": _or_none(rho),
                    "is_positive": None if np.isnan(rho) else bool(rho > 0),
                }
                for name, reads, (horizon, seed), rho in checkpoints
            ],
            "stations": [
                {"station": station, "gauge": gauge, "rho_by_lag": [_or_none(rho) for rho in curve]}
                for station, gauge, curve in zip(self.stations, self.gauges, found.by_station, strict=True)
            ],
            "lags_hours": [float(lag * hours) for lag in found.lags],
        }

    def picture(self) -> ShockRainPicture:
        """Returns what the figure shows."""
        found = self.found
        return ShockRainPicture(
            data=self.data,
            lags=found.lags * self.hours_per_step,
            curves=dict(zip(found.horizons, found.curves, strict=True)),
            selected={
                horizon: float(lag * self.hours_per_step)
                for horizon, lag in zip(found.horizons, found.selected, strict=True)
            },
            band=_band(found.null_curves),
            null=found.null,
            rho=found.rho,
            p=found.p,
            checkpoints=len(found.checkpoints),
            stations=len(self.stations) - len(self.left_out),
        )


def compare_runs(
    folders: Sequence[Path],
    rain: RainChoice | None = None,
    lags: LagChoice | None = None,
    report: Report = silent,
) -> RunsAgainstRain:
    """Returns the comparison of the shock activity of runs of CANDOR with rain.

    The runs must be of the same stations and hours; runs with the same horizon are its checkpoints.
    """
    rain, lags = rain or RainChoice(), lags or LagChoice()
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise InputError("a run is named twice", hint="name every run once")
    panel: Panel | None = None
    checkpoints, reads_rain = [], []
    count = len(folders)
    for place, folder in enumerate(folders):
        run = open_run(folder)
        own = run.task().panel
        panel = panel or own
        _check_same_ground(panel, own, folder, folders[0])
        part = within(report, "asking all runs", f"run {place + 1} of {count}", place / count, (place + 1) / count)
        activity = activity_of(run, part)
        reads_rain.append(run.candor().trained().network.settings.reads_rain)
        checkpoints.append(ModelActivity(folder.name, run.record.protocol.horizon, run.record.seed, activity))
    if panel is None:
        raise ValueError("at least one run is needed")
    hours = panel.times.interval / HOUR
    steps = lags_in_steps(lags.longest, lags.step, hours)
    rows = _rows_compared(checkpoints, max(steps))
    cut = [ModelActivity(c.name, c.horizon, c.seed, c.activity[rows]) for c in checkpoints]
    served = rain.of(panel)
    report("turning the rain", None)
    least = max(1, round(lags.least_shift / hours))
    found = compare_with_rain(cut, served.values[rows], steps, lags.shifts, least_shift=least)
    times = panel.times.slice(rows.start, rows.stop)
    return RunsAgainstRain(
        found=found,
        names=tuple(str(folder) for folder in folders),
        reads_rain=tuple(reads_rain),
        data=panel.name,
        stations=panel.sensor_ids,
        gauges=served.gauges,
        hours_per_step=hours,
        steps=times.length,
        first=times.local[0].isoformat(),
        last=times.local[-1].isoformat(),
        least_shift=least * hours,
    )


def _check_same_ground(panel: Panel, other: Panel, folder: Path, first: Path) -> None:
    if (panel.sensor_ids, panel.times) != (other.sensor_ids, other.times):
        raise InputError(
            f"this run is of other stations or hours than {first}",
            where=str(folder),
            hint="compare runs on the same data and the same dates",
        )


def _rows_compared(checkpoints: Sequence[ModelActivity], margin: int) -> slice:
    """Returns the rows that patches cover, and before and after them as many as lags reach, if the record has them."""
    covered = np.flatnonzero(np.any([~np.isnan(c.activity).all(axis=1) for c in checkpoints], axis=0))
    if not len(covered):
        hint = "train with a protocol whose shares leave one"
        raise InputError("the test part is empty: no window covers any hour", hint=hint)
    length = len(checkpoints[0].activity)
    return slice(max(int(covered[0]) - margin, 0), min(int(covered[-1]) + 1 + margin, length))


def _band(curves: Numbers) -> Numbers:
    """Returns the 2.5th and the 97.5th percentile of the shifts at each lag."""
    return np.nanquantile(curves, (0.025, 0.975), axis=0)


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def activity_of(run: Run, report: Report = silent) -> NDArray[np.float64]:
    """Returns the shock activity (g_U + g_V)/2 from 0 to 1, time x sensor on the axis of the run's task.

    A reading gets the mean over all history patches of all windows of the test part that cover it, NaN if none does.

    Args:
        run: of CANDOR.
        report: is told how far it has come.
    """
    candor, task = run.candor(), run.task()
    settings = candor.trained().network.settings
    if not settings.gates_shocks:
        raise InputError(
            "this variant of CANDOR has no shock gates",
            where=str(run.folder),
            hint="give a run of the full model",
        )
    begun = np.zeros((task.panel.times.length, len(task.panel.sensors)))  # sum over patches by first reading
    patches = np.zeros(task.panel.times.length)
    for rows, encoding in encode_histories(candor, task.panel, task.split.test, report, "asking the shock gates"):
        found = encoding.components.shock_activity
        assert found is not None  # variants without were refused
        np.add.at(begun, rows, found.transpose(1, 2).double().numpy())
        np.add.at(patches, rows, 1)
    return _spread(begun, patches, settings.patch_length)


def _spread(begun: NDArray[np.float64], patches: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Returns the mean over the patches that cover each row, from sums over the patches that begin there."""
    total, covering = np.zeros_like(begun), np.zeros_like(patches)
    for offset in range(min(length, len(begun))):
        total[offset:] += begun[: len(begun) - offset]
        covering[offset:] += patches[: len(patches) - offset]
    mean: NDArray[np.float64] = np.where(covering[:, None] > 0, total / np.maximum(covering, 1)[:, None], np.nan)
    return mean
