"""Scores of forecasts, in the units of the sensors."""

from candor.metrics.intervals import IntervalAccumulator
from candor.metrics.peaks import PeakTiming, peak_timing
from candor.metrics.scores import ScoreAccumulator, as_json, skill

__all__ = ["IntervalAccumulator", "PeakTiming", "ScoreAccumulator", "as_json", "peak_timing", "skill"]
