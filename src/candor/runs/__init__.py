"""Judging forecasters on a task, all under the same rules."""

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
