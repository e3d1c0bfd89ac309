"""Judging forecasters on a task, all under the same rules."""

from candor.evaluation.judging import Evaluation, evaluate, evaluate_run, evaluate_simple
from candor.evaluation.rolling import Backtest, Pace, backtest

__all__ = ["Backtest", "Evaluation", "Pace", "backtest", "evaluate", "evaluate_run", "evaluate_simple"]
