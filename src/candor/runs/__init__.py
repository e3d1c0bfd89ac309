"""Run directories: fitting, resuming, evaluating and backtesting models, and bundles to give away."""

from pathlib import Path

from candor.forecasting.forecaster import Forecaster, openers
from candor.runs.backtesting import Backtest, Pace, Refits, backtest
from candor.runs.evaluation import Evaluation, evaluate, evaluate_run, evaluate_simple
from candor.runs.refits import keeping_refits

__all__ = [
    "Backtest",
    "Evaluation",
    "Pace",
    "Refits",
    "backtest",
    "evaluate",
    "evaluate_run",
    "evaluate_simple",
    "keeping_refits",
]


def _open_forecaster(path: Path) -> Forecaster:
    """Return the fitted forecaster in a run directory or a bundle, for `Forecaster.load`."""
    from candor.runs.bundle.bundle import open_run  # its cards of models load torch

    return open_run(path).forecaster


openers.append(_open_forecaster)
