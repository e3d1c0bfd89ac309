"""Forecast a network of sensors, and see why.

The names below are imported when they are first used, so that `import candor` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from candor.core.errors import InputError
    from candor.data.catalog import load_dataset
    from candor.data.checks import check_panel
    from candor.data.findings import Findings
    from candor.data.panel import Covariate, Edges, Panel, Sensor
    from candor.data.panel_store import load_panel, save_panel
    from candor.data.protocol import Protocol, Task, make_task
    from candor.data.readers.options import ReadOptions
    from candor.data.readers.panels import read_panel
    from candor.data.times import TimeAxis
    from candor.forecasting import Forecaster, HistoricalAverage, LastValue, Linear, SeasonalNaive, load_forecaster
    from candor.forecasting.candor import Candor
    from candor.runs import evaluate

_HOMES = {
    "candor.data.catalog": ("load_dataset",),
    "candor.data.checks": ("check_panel",),
    "candor.data.findings": ("Findings",),
    "candor.data.panel": ("Covariate", "Edges", "Panel", "Sensor"),
    "candor.data.panel_store": ("load_panel", "save_panel"),
    "candor.data.protocol": ("Protocol", "Task", "make_task"),
    "candor.data.readers.options": ("ReadOptions",),
    "candor.data.readers.panels": ("read_panel",),
    "candor.data.times": ("TimeAxis",),
    "candor.core.errors": ("InputError",),
    "candor.runs": ("evaluate",),
    "candor.forecasting": (
        *("Forecaster", "HistoricalAverage", "LastValue", "Linear", "SeasonalNaive", "load_forecaster"),
    ),
    "candor.forecasting.candor": ("Candor",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022 - in the order of use
    "read_panel",
    "ReadOptions",
    "Findings",
    "check_panel",
    "load_dataset",
    "load_panel",
    "save_panel",
    "Panel",
    "TimeAxis",
    "Sensor",
    "Edges",
    "Covariate",
    "Protocol",
    "Task",
    "make_task",
    "Forecaster",
    "LastValue",
    "SeasonalNaive",
    "HistoricalAverage",
    "Linear",
    "Candor",
    "load_forecaster",
    "evaluate",
    "InputError",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'candor' has no attribute {name!r}")
    if _HOME_OF[name].startswith("candor.forecasting"):
        import_module("candor.runs")  # lets forecasters be loaded from run directories and bundles
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
