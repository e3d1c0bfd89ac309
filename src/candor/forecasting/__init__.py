"""Everything that predicts, under one contract; the registry of models by name."""

from candor.forecasting.forecaster import Forecaster, forecasters, load_forecaster
from candor.forecasting.simple import HistoricalAverage, LastValue, Linear, SeasonalNaive

forecasters.announce("candor", "candor.forecasting.candor")  # needs PyTorch, which the simple rules do not

__all__ = [
    "Forecaster",
    "HistoricalAverage",
    "LastValue",
    "Linear",
    "SeasonalNaive",
    "forecasters",
    "load_forecaster",
]
