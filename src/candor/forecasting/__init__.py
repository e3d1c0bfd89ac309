"""Everything that predicts, under one contract; the registry of models by name."""

from candor.forecasting.forecaster import Forecaster, forecasters, load_forecaster
from candor.forecasting.simple import HistoricalAverage, LastValue, Linear, SeasonalNaive
from candor.nets.baselines import baselines


def _announce_baseline(name: str) -> None:
    def make() -> type[Forecaster]:
        from candor.forecasting.baseline import baseline_forecaster

        return baseline_forecaster(name)

    forecasters.announce(name, make)


# Networks need PyTorch, which the simple rules do not: they are imported when they are first used.
forecasters.announce("candor", "candor.forecasting.candor")
forecasters.announce("account", "candor.forecasting.account")
forecasters.announce("lightgbm", "candor.forecasting.lightgbm")
for _name in baselines:
    _announce_baseline(_name)

__all__ = [
    "Forecaster",
    "HistoricalAverage",
    "LastValue",
    "Linear",
    "SeasonalNaive",
    "forecasters",
    "load_forecaster",
]
