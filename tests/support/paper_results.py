"""Results as commands leave them in folders, made up: grids, truth, shock against rain, costs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from candor.core.files import write_json
from candor.render.paper.truth import write_truth as write_scored
from candor.research.grid import GridCell
from candor.research.measuring import ModelProfile
from candor.research.profiling import Circumstances, Profile
from candor.research.truth.cells import Scored, TruthCell
from candor.research.truth.pulses import Curve
from candor.research.truth.scores import Score

VERSIONS = {"python": "3.11", "torch": "2.13.0"}


def results(errors: Mapping[str, list[float]], task: str = "made-up", data: str = "made-up") -> pd.DataFrame:
    """Returns results of models with one error per seed; each metric is another multiple of it."""
    protocol = {
        "history": 12, "horizon": 3, "split": "time", "shares": [0.6, 0.2, 0.2], "first": None, "last": None,
        "fill": "last", "targets": "observed", "steps": [], "is_river": False,
    }  # fmt: skip
    split = {"kind": "time", "shares": [0.6, 0.2, 0.2], "windows": {"train": 60, "validation": 20, "test": 20}}
    rows = [
        {
            "task": task, "data": data, "horizon": 3, "model": model, "seed": seed, "step": step, "metric": metric,
            "value": factor * value + step, "unit": "mg/L", "windows": 20, "aggregation": "pooled; more",
            "mask": "observed targets only", "split": json.dumps(split), "protocol": json.dumps(protocol),
            "settings": "{}", "data_sha256": "d" * 64, "model_sha256": "m" * 64, "versions": json.dumps(VERSIONS),
            "budget_minutes": 0.5,
        }
        for model, values in errors.items()
        for seed, value in enumerate(values)
        for step in (0, 3)
        for metric, factor in (("mae", 1.0), ("rmse", 2.0), ("mape", 10.0), ("mse", 4.0))
    ]  # fmt: skip
    return pd.DataFrame(rows)


def save(found: pd.DataFrame, grid: Path, cells: list[GridCell] | None = None) -> Path:
    grid.mkdir(parents=True, exist_ok=True)
    found.to_parquet(grid / "results.parquet")
    for cell in cells or []:
        write_json(grid / cell.name / "cell.json", cell.model_dump(mode="json"))
    return grid


def write_truth(folder: Path) -> list[Path]:
    scores = {"gates": (True, 0.9), "largest residual": (False, 0.7), "random": (False, None)}
    circumstances: dict[str, Any] = {
        "epochs": 3, "train_seconds": 90.0, "mae": 0.5, "unit": "mg/L", "data_sha256": "d" * 64,
        "model_sha256": "m" * 64, "made": "2026-01-02T03:04:05+00:00", "versions": VERSIONS,
    }  # fmt: skip
    cells = [
        Scored(
            TruthCell(dataset=dataset, seed=seed),
            tuple(
                Score("shocks", "AUROC", answer, is_ours, None if value is None else value + seed / 20)
                for answer, (is_ours, value) in scores.items()
            ),
            (Curve("candor", True, 2, 5, (0.1, 0.3, 0.2)),),
            circumstances,
        )
        for dataset in ("synthetic-river", "synthetic-road")
        for seed in (0, 1)
    ]
    return write_scored(cells, folder, "candor truth --seeds 0,1")


def write_shock_rain(folder: Path, data: str = "river") -> pd.DataFrame:
    lags = [-2.0, 0.0, 2.0]
    curves = pd.DataFrame(
        {
            "lag_hours": lags, "correlation, 4 steps ahead": [0.1, 0.2, 0.3], "shifts_lower_2.5": [-0.1] * 3,
            "shifts_upper_97.5": [0.1] * 3,
        }
    )  # fmt: skip
    content = {
        "data": data, "first": "2020-01-01T00:00", "last": "2020-02-01T00:00", "steps": 700, "rho": 0.3,
        "null_mean": 0.0123, "excess": 0.2877, "p": 0.02, "p_floor": 0.0, "shifts": 1000, "least_shift_hours": 1.0,
        "horizons": [{"horizon": 4, "lag_hours": 2.0, "rho": 0.3}], "lags_hours": lags,
        "checkpoints": [{"run": "runs/one", "horizon": 4, "seed": 0, "rho": 0.3, "is_positive": True}],
        "stations": [{"station": "a", "gauge": "rain of a", "rho_by_lag": [0.1, 0.2, 0.3]}],
    }  # fmt: skip
    write_json(folder / "shock-rain.json", content)
    curves.to_csv(folder / "shock-rain.csv", index=False)
    shifts = pd.DataFrame({"largest_correlation": np.random.default_rng(0).normal(0.0123, 0.1, 1000)})
    shifts.to_csv(folder / "shock-rain-shifts.csv", index=False)
    return curves


def write_profile(folder: Path, preset: str = "metr-la") -> Profile:
    at = Circumstances(
        preset=preset, graph="random", nodes=5, edges=4, history=12, horizon=12, batch=8, warm_ups=1, passes=2,
        machine={"processor": "one", "cores": 2, "threads": 1, "torch": "2.13.0"},
    )  # fmt: skip
    costs = {"stid": (1000, 0.001), "linear": (20, 0.0005), "candor": (5000, 0.01)}
    models = tuple(
        ModelProfile(
            name=name, parameters=count, operations=10 * count, inference_seconds=seconds,
            training_seconds=3 * seconds, peak_megabytes=None,
        )
        for name, (count, seconds) in costs.items()
    )  # fmt: skip
    profile = Profile(circumstances=at, models=models)
    profile.save(folder)
    return profile
