"""Judging forecasters on a task, all under the same rules."""

from candor.evaluation.judging import Evaluation, evaluate, evaluate_run, evaluate_simple
from candor.evaluation.refits import keeping_refits
from candor.evaluation.rolling import Backtest, Pace, Refits, backtest

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
