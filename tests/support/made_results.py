"""Results of a grid with numbers that can be checked by eye."""

from collections.abc import Mapping

import pandas as pd

from candor.research.suites import Suite


def made_suite(**changes: object) -> Suite:
    """Returns a suite that ranks what results hold."""
    content = {"name": "made-up", "title": "", "tasks": [{"preset": "metr-la"}], "models": ["candor"]} | changes
    return Suite(**content)


def made_results(
    errors: Mapping[str, Mapping[str, list[float]]], places: Mapping[str, tuple[str, int]] | None = None
) -> pd.DataFrame:
    """Returns results in which all metrics of a model on a task are the same number per seed, and more at step 3.

    Args:
        errors: by task and model, one per seed; None where a seed has no result.
        places: dataset and horizon by task; a task is a dataset of its own if it has none.
    """
    rows = [
        {
            "task": task, "model": model, "seed": seed, "step": step, "metric": metric, "value": value + step,
            "unit": "mph", "windows": 10, "aggregation": "pooled; more", "mask": "observed", "split": "{}",
            "budget_minutes": None, "data": (places or {}).get(task, (task, 12))[0],
            "horizon": (places or {}).get(task, (task, 12))[1],
        }
        for task, by_model in errors.items()
        for model, values in by_model.items()
        for seed, value in enumerate(values)
        if value is not None
        for step in (0, 3)
        for metric in ("mae", "rmse", "mape", "mse")
    ]  # fmt: skip
    return pd.DataFrame(rows)
