"""Judging forecasters on the test part of a task, all under the same rules."""

from candor.evaluation.judging import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]
