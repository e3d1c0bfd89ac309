"""Shock activity and rain: the tables and the figure of what `candor shock-rain` kept."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from candor.benchmark.tables import Table, TableCell
from candor.benchmark.writing import write_tables
from candor.errors import InputError
from candor.figures.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Drawing,
    add_legend,
    dress,
    new_figure,
)
from candor.files import read_json
from candor.forecasting.runs import RunRecord, load_record
from candor.progress import Report
from candor.report.paper_entry import Entry, Origin, Picture, ShownTable, in_dates, in_versions, table_files
from candor.report.paper_words import data_in_words, protocol_in_words
from candor.report.wording import NOTHING, counted

NAME = "shock-rain"
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY)
_KEYS = ("data", "rho", "null_mean", "excess", "p", "shifts", "horizons", "checkpoints", "stations", "lags_hours")
_CAPTION = (
    "Left: correlation of shock activity with rain over lags, the grey band holds 95 % of the shifted rains. Right: "
    "each run at the lag of its horizon."
)


@dataclass(frozen=True, eq=False)
class Kept:
    """What the command kept of a comparison: its JSON, and the curves over lags that it wrote beside it."""

    path: Path
    content: dict[str, Any]
    curves: pd.DataFrame | None

    @property
    def data(self) -> str:
        """The name of the data."""
        return str(self.content["data"])


def read_shock_rain(path: Path) -> Kept:
    """Returns what `candor shock-rain` wrote to a file and beside it."""
    content = read_json(path)
    if not isinstance(content, dict) or (lacking := [key for key in _KEYS if key not in content]):
        named = f" ({', '.join(lacking)} missing)" if isinstance(content, dict) else ""
        raise InputError(f"these are not results of `candor shock-rain`{named}", where=str(path))
    beside = path.with_suffix(".csv")
    return Kept(path, content, pd.read_csv(beside) if beside.is_file() else None)


def make_shock_rain(path: Path, folder: Path, report: Report) -> list[Entry]:
    """Writes the table and the figure of a comparison to a folder and returns its entry."""
    report("drawing shocks and rain", None)
    kept = read_shock_rain(path)
    tables = [association_table([kept]), run_table(kept)]
    write_tables(tables, folder, "tables")
    pictures: list[Picture] = []
    if kept.curves is not None:
        draw_kept(kept, kept.curves).write(folder, NAME)
        pictures.append(Picture(f"{folder.name}/{NAME}", _CAPTION))
    return [
        Entry(
            title=f"{kept.data}: does the learned shock know of rain it never saw?",
            shows=tuple(_findings(kept)),
            origin=_origin(kept),
            pictures=tuple(pictures),
            tables=(ShownTable(tables[0], "data"), ShownTable(tables[1], "run", is_folded=True)),
            files=table_files(folder.name),
        )
    ]


def association_table(all_kept: Sequence[Kept]) -> Table:
    """Returns the test on each data in a row, as the paper has it."""
    rows = []
    for kept in all_kept:
        content = kept.content
        texts = [f"{content[key]:.4f}" for key in ("rho", "null_mean", "excess")]
        texts += [f"{content['p']:.2g}", f"{content['shifts']:,}"]
        rows.append((f"candor on {kept.data}", tuple(TableCell(text) for text in texts)))
    return Table(
        title="Association of shock activity with rain that was not read",
        groups=(("against circular shifts of the rain", 5),),
        columns=("rho", "mean of shifts", "excess", "p", "shifts"),
        rows=tuple(rows),
        note="rho: mean over horizons of the largest correlation over lags (Spearman)",
    )


def run_table(kept: Kept) -> Table:
    """Returns horizon, seed, lag and correlation of every run."""
    lags = {row["horizon"]: float(row["lag_hours"]) for row in kept.content["horizons"]}
    rows = []
    for run in kept.content["checkpoints"]:
        rho = NOTHING if run["rho"] is None else f"{run['rho']:+.4f}"
        texts = (str(run["horizon"]), str(run["seed"]), f"{lags[run['horizon']]:+g}", rho)
        rows.append((str(run["run"]), tuple(TableCell(text) for text in texts)))
    return Table(
        title=f"Runs on {kept.data}",
        groups=(("at the lag of the horizon", 4),),
        columns=("horizon", "seed", "lag [h]", "rho"),
        rows=tuple(rows),
        note="A positive lag: activity follows rain",
    )


def draw_kept(kept: Kept, curves: pd.DataFrame) -> Drawing:
    """Returns the figure: correlation over lags with the band of shifts, and every run beside the mean of shifts.

    Args:
        kept: the comparison.
        curves: by lag, the correlation of each horizon and the band of shifts, as the command wrote them.
    """
    stations = counted(len(kept.content["stations"]), "station")
    note = f"Spearman's correlation, {stations}. Grey: {kept.content['shifts']:,} circular shifts of the rain."
    figure = new_figure(f"Shock activity and rain: {kept.data}", note)
    left, right = figure.subplots(1, 2, width_ratios=(4, 3))
    _draw_lags(left, kept, curves)
    _draw_runs(right, kept)
    return Drawing(figure, curves)


def _draw_lags(axes: Axes, kept: Kept, curves: pd.DataFrame) -> None:
    dress(axes, "lag [h]: activity after rain is positive", "correlation")
    lags = curves["lag_hours"].to_numpy(np.float64)
    low, high = (curves[name].to_numpy(np.float64) for name in ("shifts_lower_2.5", "shifts_upper_97.5"))
    axes.fill_between(lags, low, high, color=GREY, alpha=0.3, linewidth=0, label="95 % of shifts")
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    for place, row in enumerate(kept.content["horizons"]):
        colour = _COLOURS[place % len(_COLOURS)]
        curve = curves[f"correlation, {row['horizon']} steps ahead"].to_numpy(np.float64)
        axes.plot(lags, curve, color=colour, linewidth=1.6, label=f"{row['horizon']} steps ahead")
        axes.plot([row["lag_hours"]], [row["rho"]], "o", color=colour, markersize=6, zorder=4)
    add_legend(axes, 2)


def _draw_runs(axes: Axes, kept: Kept) -> None:
    horizons = [row["horizon"] for row in kept.content["horizons"]]
    dress(axes, "correlation", "steps ahead")
    for run in kept.content["checkpoints"]:
        if run["rho"] is not None:
            place = horizons.index(run["horizon"])
            axes.plot([run["rho"]], [place], "o", color=_COLOURS[place % len(_COLOURS)], markersize=6, alpha=0.7)
    axes.axvline(kept.content["null_mean"], color=GREY, linewidth=1.4, linestyle="--", label="mean of shifts")
    label = f"what happened, p = {kept.content['p']:.2g}"
    axes.axvline(kept.content["rho"], color=VERMILION, linewidth=2.0, label=label)
    axes.set_yticks(range(len(horizons)), [str(horizon) for horizon in horizons])
    axes.set_ylim(-0.6, len(horizons) - 0.4)
    axes.grid(visible=False, axis="y")
    add_legend(axes, 1)


def _findings(kept: Kept) -> list[str]:
    runs = kept.content["checkpoints"]
    positive = sum(bool(run["is_positive"]) for run in runs)
    said = [
        "Rank correlation of the shock activity that CANDOR learned with rain, which it was not given, over lags.",
        f"It is positive in {positive} of {counted(len(runs), 'run')}; p = {kept.content['p']:.2g}.",
    ]
    if floor := float(kept.content.get("p_floor") or 0.0):
        said.append(f"p is above about {floor:.2g} whatever happened: so many shifts leave the real lag within reach.")
    if kept.curves is None:
        said.append(f"There is no figure: {NAME}.csv, which the command writes beside its JSON, is not there.")
    return said


def _origin(kept: Kept) -> Origin:
    content = kept.content
    records = [record for run in content["checkpoints"] if (record := _record(Path(str(run["run"])))) is not None]
    span = f"{str(content.get('first', ''))[:10]} to {str(content.get('last', ''))[:10]}"
    tested = f"{content['shifts']:,} circular shifts of the rain, {counted(len(content['stations']), 'station')}"
    protocol = protocol_in_words(records[0].protocol.model_dump(mode="json")) if records else ""
    return Origin(
        source=str(kept.path),
        command=_command(kept),
        data=f"{data_in_words(kept.data)}; {span}",
        protocol=f"Runs at the hours of their test part; {tested}. {protocol}".strip(),
        made=in_dates(record.made.isoformat() for record in records if record.made is not None),
        versions=in_versions(dict(record.versions) for record in records),
    )


def _record(run: Path) -> RunRecord | None:
    try:
        return load_record(run)
    except InputError:  # the run may be elsewhere by now
        return None


def _command(kept: Kept) -> str:
    content, lags = kept.content, kept.content["lags_hours"]
    words = ["candor", "shock-rain", *(str(run["run"]) for run in content["checkpoints"])]
    gauges = [(str(row["station"]), str(row["gauge"])) for row in content["stations"]]
    if all(gauge.endswith(f" of {station}") for station, gauge in gauges):  # a covariate of the data
        station, gauge = gauges[0]
        words += ["--covariate", gauge.removesuffix(f" of {station}")]
    else:
        words += ["--rain", "FILE", "--gauges", "FILE"]
    words += ["--longest-lag", f"{max(lags):g}", "--lag-step", f"{lags[1] - lags[0]:g}"]
    words += ["--shifts", str(content["shifts"]), "--least-shift", f"{content.get('least_shift_hours', 0):g}"]
    return shlex.join([*words, "--out", str(kept.path.parent)])
