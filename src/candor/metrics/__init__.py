"""Scores of forecasts, in the units of the sensors."""

from candor.metrics.hydrology import PeakTiming, kling_gupta, nash_sutcliffe, peak_timing
from candor.metrics.intervals import IntervalAccumulator
from candor.metrics.scores import ScoreAccumulator, as_json, skill

__all__ = [
    "IntervalAccumulator",
    "PeakTiming",
    "ScoreAccumulator",
    "as_json",
    "kling_gupta",
    "nash_sutcliffe",
    "peak_timing",
    "skill",
]
