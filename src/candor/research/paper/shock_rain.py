"""What is said of a comparison that `candor shock-rain` kept: its tables, findings and origin."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from candor.core.text import NOTHING, counted
from candor.research.paper.origins import Origin, data_in_words, in_dates, in_versions, protocol_in_words, record_in
from candor.research.shock_rain_runs import NAME, SHIFTS_NAME, RainComparison
from candor.research.tables import PaperTable, TableCell


def _label(comparison: RainComparison) -> str:
    """Return the data, how many runs there are of which horizons, and whether they were given rain."""
    horizons = " and ".join(str(row["horizon"]) for row in comparison.content["horizons"])
    runs = counted(len(comparison.content["checkpoints"]), "run")
    given = ", given rain" if comparison.given_rain else ""
    return f"candor on {comparison.data}, {horizons} steps, {runs}{given}"


def association_table(comparisons: Sequence[RainComparison]) -> PaperTable:
    """Return the test on each data in a row, as the paper has it."""
    rows = []
    for comparison in comparisons:
        content = comparison.content
        texts = [f"{content[key]:.4f}" for key in ("rho", "null_mean", "excess")]
        texts += [f"{content['p']:.2g}", f"{content['shifts']:,}"]
        rows.append((_label(comparison), tuple(TableCell(text) for text in texts)))
    return PaperTable(
        title="Association of shock activity with rain",
        groups=(("against circular shifts of the rain", 5),),
        columns=("rho", "mean of shifts", "excess", "p", "shifts"),
        rows=tuple(rows),
        note="rho: mean over horizons of the largest correlation over lags (Spearman)",
    )


def run_table(comparison: RainComparison) -> PaperTable:
    """Return horizon, seed, lag and correlation of every run."""
    lags = {row["horizon"]: float(row["lag_hours"]) for row in comparison.content["horizons"]}
    rows = []
    for run in comparison.content["checkpoints"]:
        rho = NOTHING if run["rho"] is None else f"{run['rho']:+.4f}"
        texts = (str(run["horizon"]), str(run["seed"]), f"{lags[run['horizon']]:+g}", rho)
        rows.append((str(run["run"]), tuple(TableCell(text) for text in texts)))
    return PaperTable(
        title=f"Runs on {comparison.data}",
        groups=(("at the lag of the horizon", 4),),
        columns=("horizon", "seed", "lag [h]", "rho"),
        rows=tuple(rows),
        note="A positive lag: activity follows rain",
    )


def findings_of(comparison: RainComparison) -> list[str]:
    """Return what the comparison found, in sentences."""
    runs = comparison.content["checkpoints"]
    known = [run["is_positive"] for run in runs if run["is_positive"] is not None]
    given = "which some of the runs were given" if comparison.given_rain else "which it was not given"
    said = [
        f"Rank correlation of the shock activity that CANDOR learned with rain, {given}, over lags.",
        f"At the lag where the mean of its horizon is largest it is positive in {sum(known)} of "
        f"{counted(len(known), 'run')}, which chance alone makes likely; p, which counts the choice of the lag, is "
        f"{comparison.content['p']:.2g}.",
    ]
    if floor := float(comparison.content.get("p_floor") or 0.0):
        said.append(f"p is above about {floor:.2g} whatever happened: so many shifts leave the real lag within reach.")
    if comparison.curves.empty or comparison.null.empty:
        lacking = f"{NAME}.csv" if comparison.curves.empty else SHIFTS_NAME
        said.append(f"There is no figure: {lacking}, which the command writes beside its JSON, is not there.")
    return said


def origin_of_shock_rain(comparison: RainComparison) -> Origin:
    """Return where the numbers of a comparison come from."""
    content = comparison.content
    records = [record for run in content["checkpoints"] if (record := record_in(Path(str(run["run"])))) is not None]
    span = f"{str(content.get('first', ''))[:10]} to {str(content.get('last', ''))[:10]}"
    tested = f"{content['shifts']:,} circular shifts of the rain, {counted(comparison.stations, 'station')}"
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


def _command(comparison: RainComparison) -> str:
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
