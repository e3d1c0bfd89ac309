"""The paper's table of models without and with rain: a row each, and of each pair the better in bold.

Errors are means over seeds and horizons, over those that both of a pair have.
"""

from collections.abc import Iterator
from math import isfinite
from statistics import mean

import pandas as pd

from candor.research.grid import ALL_STEPS
from candor.research.suites import Contender, Suite
from candor.research.table_notes import protocol_of, unit_of
from candor.research.tables import NOTHING, Table, TableCell

_RAIN = "rain"
_METRICS = {"mae": "MAE", "mse": "MSE"}
Trial = tuple[str, int]
"""A task and a seed."""


def rain_table_of(results: pd.DataFrame, suite: Suite) -> Table | None:
    """Returns errors without and with rain by dataset; None if no model has results of both.

    Args:
        results: as `collect` gives them.
        suite: whose contenders say which of them read rain.
    """
    datasets = [str(data) for data in results["data"].unique()]
    rows, missing, shown = [], [], []
    for without, with_rain in _pairs(suite):
        cells: list[tuple[TableCell, TableCell]] = []
        for data in datasets:
            for metric in _METRICS:
                dry, wet = (_errors(results, contender.name, data, metric) for contender in (without, with_rain))
                shared = sorted(dry.keys() & wet.keys())
                if dry.keys() ^ wet.keys() and without.name not in missing:
                    missing.append(without.name)
                cells.append(_compare([dry[trial] for trial in shared], [wet[trial] for trial in shared]))
        if any(dry.text != NOTHING for dry, _ in cells):
            rows.append((without.name, (TableCell("No"), *(dry for dry, _ in cells))))
            rows.append((without.name, (TableCell("Yes"), *(wet for _, wet in cells))))
            shown += [without.name, with_rain.name]
    if not rows:
        return None
    return Table(
        title="Models without and with rain",
        groups=(("", 1), *((data, len(_METRICS)) for data in datasets)),
        columns=("Rainfall", *(_METRICS[metric] for _ in datasets for metric in _METRICS)),
        rows=tuple(rows),
        note=_note(results[results["model"].isin(shown)], missing),
    )


def _pairs(suite: Suite) -> Iterator[tuple[Contender, Contender]]:
    """Yields contenders that differ in nothing but that the second reads rain."""
    for wet in suite.contenders:
        covariates = wet.settings.get("covariates") or []
        if _RAIN not in covariates:
            continue
        left = [name for name in covariates if name != _RAIN]
        rest = {key: value for key, value in wet.settings.items() if key != "covariates"}
        settings = rest | ({"covariates": left} if left else {})
        yield from ((dry, wet) for dry in suite.contenders if dry.model == wet.model and dry.settings == settings)


def _errors(results: pd.DataFrame, model: str, data: str, metric: str) -> dict[Trial, float]:
    """Returns the errors over all steps by task and seed, of those that are numbers."""
    chosen = results[
        (results["model"] == model)
        & (results["data"] == data)
        & (results["metric"] == metric)
        & (results["step"] == ALL_STEPS)
    ]
    columns = (chosen[name].tolist() for name in ("task", "seed", "value"))
    return {(task, seed): value for task, seed, value in zip(*columns, strict=True) if isfinite(value)}


def _compare(dry: list[float], wet: list[float]) -> tuple[TableCell, TableCell]:
    """Returns the means of both, the smaller one marked."""
    if not dry:
        return TableCell(NOTHING), TableCell(NOTHING)
    without, with_rain = mean(dry), mean(wet)
    return (
        TableCell(f"{without:.4f}", is_best=without < with_rain),
        TableCell(f"{with_rain:.4f}", is_best=with_rain < without),
    )


def _note(results: pd.DataFrame, missing: list[str]) -> str:
    """Returns over what means were taken and under which protocol, from the results of the models that are shown."""
    horizons = ", ".join(str(horizon) for horizon in sorted(set(results["horizon"].tolist())))
    seeds = ", ".join(str(seed) for seed in sorted(set(results["seed"].tolist())))
    unit = f"{unit_of(results)} (MSE in its square)"
    means = f"Errors in {unit} over all steps, mean over seeds {seeds} and horizons {horizons}"
    lacking = [f"results that only one of a pair has are left out ({', '.join(missing)})"] if missing else []
    return "; ".join([means, *protocol_of(results), *lacking])
