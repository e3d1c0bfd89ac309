"""What `candor shock-rain` kept of a comparison: its JSON, and the numbers of its figure beside it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.core.text import NOTHING, counted
from candor.research.paper.origins import Origin, data_in_words, in_dates, in_versions, protocol_in_words
from candor.research.shock_rain_runs import NAME, SHIFTS_NAME, ShockRainPicture
from candor.research.tables import Table, TableCell
from candor.runs.run import RunRecord, load_record

_KEYS = ("data", "rho", "null_mean", "excess", "p", "shifts", "horizons", "checkpoints", "stations", "lags_hours")


@dataclass(frozen=True, eq=False)
class StoredComparison:
    """What the command kept of a comparison: its JSON, and what the two sides of its figure show, written beside it."""

    path: Path
    content: dict[str, Any]
    curves: pd.DataFrame | None
    null: pd.DataFrame | None

    @property
    def data(self) -> str:
        """The name of the data."""
        return str(self.content["data"])

    @property
    def reads_rain(self) -> bool:
        """Whether any of the runs was given rain."""
        return any(run.get("reads_rain", False) for run in self.content["checkpoints"])

    @property
    def label(self) -> str:
        """The data, how many runs there are of which horizons, and whether they were given rain."""
        horizons = " and ".join(str(row["horizon"]) for row in self.content["horizons"])
        runs = counted(len(self.content["checkpoints"]), "run")
        return f"candor on {self.data}, {horizons} steps, {runs}{', given rain' if self.reads_rain else ''}"


def read_shock_rain(path: Path) -> StoredComparison:
    """Returns what `candor shock-rain` wrote to a file and beside it."""
    content = read_json(path)
    if not isinstance(content, dict) or (lacking := [key for key in _KEYS if key not in content]):
        named = f" ({', '.join(lacking)} missing)" if isinstance(content, dict) else ""
        raise InputError(f"these are not results of `candor shock-rain`{named}", where=str(path))
    curves, null = (
        pd.read_csv(file) if file.is_file() else None
        for file in (path.with_suffix(".csv"), path.with_name(SHIFTS_NAME))
    )
    return StoredComparison(path, content, curves, null)


def association_table(comparisons: Sequence[StoredComparison]) -> Table:
    """Returns the test on each data in a row, as the paper has it."""
    rows = []
    for comparison in comparisons:
        content = comparison.content
        texts = [f"{content[key]:.4f}" for key in ("rho", "null_mean", "excess")]
        texts += [f"{content['p']:.2g}", f"{content['shifts']:,}"]
        rows.append((comparison.label, tuple(TableCell(text) for text in texts)))
    return Table(
        title="Association of shock activity with rain",
        groups=(("against circular shifts of the rain", 5),),
        columns=("rho", "mean of shifts", "excess", "p", "shifts"),
        rows=tuple(rows),
        note="rho: mean over horizons of the largest correlation over lags (Spearman)",
    )


def run_table(comparison: StoredComparison) -> Table:
    """Returns horizon, seed, lag and correlation of every run."""
    lags = {row["horizon"]: float(row["lag_hours"]) for row in comparison.content["horizons"]}
    rows = []
    for run in comparison.content["checkpoints"]:
        rho = NOTHING if run["rho"] is None else f"{run['rho']:+.4f}"
        texts = (str(run["horizon"]), str(run["seed"]), f"{lags[run['horizon']]:+g}", rho)
        rows.append((str(run["run"]), tuple(TableCell(text) for text in texts)))
    return Table(
        title=f"Runs on {comparison.data}",
        groups=(("at the lag of the horizon", 4),),
        columns=("horizon", "seed", "lag [h]", "rho"),
        rows=tuple(rows),
        note="A positive lag: activity follows rain",
    )


def picture_of(comparison: StoredComparison, curves: pd.DataFrame, null: pd.DataFrame) -> ShockRainPicture:
    """Returns what the command drew, from what it wrote.

    Args:
        comparison: the comparison.
        curves: by lag, the correlation of each horizon and the band of shifts.
        null: the statistic of every shift.
    """
    content = comparison.content
    counting = _counting(content)
    horizons = [row["horizon"] for row in content["horizons"]]
    return ShockRainPicture(
        data=comparison.data,
        lags=curves["lag_hours"].to_numpy(np.float64),
        curves={steps: curves[f"correlation, {steps} steps ahead"].to_numpy(np.float64) for steps in horizons},
        selected={row["horizon"]: float(row["lag_hours"]) for row in content["horizons"]},
        band=curves[["shifts_lower_2.5", "shifts_upper_97.5"]].to_numpy(np.float64).T,
        null=null["largest_correlation"].to_numpy(np.float64),
        rho=float(content["rho"]),
        p=float(content["p"]),
        checkpoints=len(content["checkpoints"]),
        stations=len(counting),
    )


def _counting(content: Mapping[str, Any]) -> list[Any]:
    """Returns the stations that entered the test: rain and activity are known there, and change."""
    return [row for row in content["stations"] if any(rho is not None for rho in row["rho_by_lag"])]


def findings_of(comparison: StoredComparison) -> list[str]:
    runs = comparison.content["checkpoints"]
    known = [run["is_positive"] for run in runs if run["is_positive"] is not None]
    given = "which some of the runs were given" if comparison.reads_rain else "which it was not given"
    said = [
        f"Rank correlation of the shock activity that CANDOR learned with rain, {given}, over lags.",
        f"At the lag where the mean of its horizon is largest it is positive in {sum(known)} of "
        f"{counted(len(known), 'run')}, which chance alone makes likely; p, which counts the choice of the lag, is "
        f"{comparison.content['p']:.2g}.",
    ]
    if floor := float(comparison.content.get("p_floor") or 0.0):
        said.append(f"p is above about {floor:.2g} whatever happened: so many shifts leave the real lag within reach.")
    if comparison.curves is None or comparison.null is None:
        lacking = f"{NAME}.csv" if comparison.curves is None else SHIFTS_NAME
        said.append(f"There is no figure: {lacking}, which the command writes beside its JSON, is not there.")
    return said


def origin_of_shock_rain(comparison: StoredComparison) -> Origin:
    content = comparison.content
    records = [record for run in content["checkpoints"] if (record := _record(Path(str(run["run"])))) is not None]
    span = f"{str(content.get('first', ''))[:10]} to {str(content.get('last', ''))[:10]}"
    tested = f"{content['shifts']:,} circular shifts of the rain, {counted(len(_counting(content)), 'station')}"
    protocol = protocol_in_words(records[0].protocol.model_dump(mode="json")) if records else ""
    dates = [str(content["made"])] if "made" in content else [r.made.isoformat() for r in records if r.made is not None]
    found = [content["versions"]] if "versions" in content else [dict(record.versions) for record in records]
    return Origin(
        source=str(comparison.path),
        command=_command(comparison),
        data=f"{data_in_words(comparison.data)}; {span}",
        protocol=f"Runs at the hours of their test part; {tested}. {protocol}".strip(),
        made=in_dates(dates),
        versions=in_versions(found),
    )


def _record(run: Path) -> RunRecord | None:
    try:
        return load_record(run)
    except InputError:  # the run may be elsewhere by now
        return None


def _command(comparison: StoredComparison) -> str:
    content, lags = comparison.content, comparison.content["lags_hours"]
    words = ["candor", "shock-rain", *(str(run["run"]) for run in content["checkpoints"])]
    gauges = [(str(row["station"]), str(row["gauge"])) for row in content["stations"]]
    if all(gauge.endswith(f" of {station}") for station, gauge in gauges):  # a covariate of the data
        station, gauge = gauges[0]
        words += ["--covariate", gauge.removesuffix(f" of {station}")]
    else:
        words += ["--rain", "FILE", "--gauges", "FILE"]
    words += ["--longest-lag", f"{max(lags):g}"]
    words += ["--lag-step", f"{lags[1] - lags[0]:g}"] if len(lags) > 1 else []
    words += ["--shifts", str(content["shifts"]), "--least-shift", f"{content.get('least_shift_hours', 0):g}"]
    return shlex.join([*words, "--out", str(comparison.path.parent)])
