"""Everything that predicts, under one contract; the registry of models by name."""

from importlib.resources import files

from candor.forecasting.forecaster import Forecaster, forecasters, load_forecaster
from candor.forecasting.simple import HistoricalAverage, LastValue, Linear, SeasonalNaive

# Networks need PyTorch, which the simple rules do not: they are imported when they are asked for.
forecasters.announce("candor", "candor.forecasting.candor")
forecasters.announce("lightgbm", "candor.forecasting.lightgbm")
for _file in files("candor.nets.baselines").iterdir():
    _module, _, _ending = _file.name.partition(".")
    if _ending == "py" and not _module.startswith("_"):
        forecasters.announce(_module.replace("_", "-"), f"candor.nets.baselines.{_module}")

__all__ = [
    "Forecaster",
    "HistoricalAverage",
    "LastValue",
    "Linear",
    "SeasonalNaive",
    "forecasters",
    "load_forecaster",
]
