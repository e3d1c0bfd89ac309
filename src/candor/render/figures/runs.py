"""All figures of a run of CANDOR."""

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from candor.core.progress import Report, silent
from candor.core.text import sensor_label
from candor.data.panel import Panel
from candor.data.protocol import Task
from candor.data.times import DAY
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import find_origin, find_sensor
from candor.forecasting.forecaster import Forecaster
from candor.render.figures.components import ComponentPicture, draw_components
from candor.render.figures.edges import EdgePicture, draw_edges
from candor.render.figures.forecast import ForecastPicture, draw_forecast
from candor.render.figures.fusion import FusionPicture, draw_fusion
from candor.render.figures.map_points import known_places
from candor.render.figures.style import Drawing
from candor.render.figures.survey import Survey, choose_windows, survey
from candor.render.figures.training import Epoch, draw_training
from candor.runs.run import TRAINING, Run
from candor.training.checkpoint import Checkpoint

FIGURES = "figures"
_LONGEST_IN_KEY = 52
_PAST_HORIZONS = 3  # readings shown before a forecast, in horizons


def draw_run(
    run: Run,
    folder: Path,
    sensor: str | None = None,
    time: datetime | str | None = None,
    report: Report = silent,
) -> list[Path]:
    """Draws all figures of a run of CANDOR and returns the files that were written.

    Args:
        run: the run.
        folder: where the figures are written.
        sensor: whose forecast and components are drawn; None means the one with most readings in the test part.
        time: of the first forecast step; None means the last one whose whole outcome is known.
        report: is told how far it has come.
    """
    candor, task = run.candor(), run.as_measured(run.task())
    column = _liveliest(task) if sensor is None else find_sensor(task.panel, sensor)
    length = task.panel.times.length
    known = max(candor.history, length - candor.horizon)
    origin = known if time is None else find_origin(task.panel, time, candor.history)
    epochs = read_epochs(run.folder)
    surveyed = survey(candor, task.panel, choose_windows(task.split, length), report)
    drawings: dict[str, Callable[[], Drawing]] = {
        "forecast": lambda: draw_forecast(picture_forecast(candor, task.panel, column, origin)),
        "forecast-next": lambda: draw_forecast(picture_forecast(candor, task.panel, column, length)),
        "fusion": lambda: draw_fusion(picture_fusion(surveyed, task.panel)),
    }
    if (parts := picture_components(candor, task.panel, column, origin)) is not None:
        drawings["components"] = lambda: draw_components(parts)
    if surveyed.edges:
        drawings["edges"] = lambda: draw_edges(picture_edges(surveyed, task.panel))
    if epochs:
        drawings["training"] = lambda: draw_training(epochs, task.panel.unit)
    written: list[Path] = []
    for done, (name, draw) in enumerate(drawings.items()):
        report("drawing", done / len(drawings))
        written += draw().write(folder, name)
    return written


def read_epochs(folder: Path) -> list[Epoch]:
    """Returns the epochs of the training in a run directory."""
    lines = Checkpoint(folder / TRAINING).read_log()
    return [
        Epoch(
            line["epoch"],
            line["train_error"],
            math.nan if line["validation_error"] is None else line["validation_error"],
            line["prefix"],
        )
        for line in lines
    ]


def picture_forecast(forecaster: Forecaster, panel: Panel, column: int, origin: int) -> ForecastPicture:
    """Returns the forecast of one sensor from a row on, with intervals if the forecaster knows its errors."""
    horizon, rows = forecaster.horizon, np.array([origin])
    begin = max(0, origin - max(forecaster.history, _PAST_HORIZONS * horizon))
    times = panel.times.slice(begin, origin + horizon).local.to_pydatetime()
    happened = np.full(horizon, np.nan, np.float32)
    known = panel.values[origin : origin + horizon, column]
    happened[: len(known)] = known
    lower = upper = None
    if forecaster.calibration_ is None:
        forecast = forecaster.predict(panel, rows)
    else:
        made = forecaster.predict_interval(panel, rows, coverage=0.9)
        forecast, lower, upper = made.forecast, made.lower[0, :, column], made.upper[0, :, column]
    return ForecastPicture(
        sensor=_name(panel, column),
        unit=panel.sensors[column].unit,
        past_times=list(times[: origin - begin]),
        past=panel.values[begin:origin, column],
        times=list(times[origin - begin :]),
        forecast=forecast[0, :, column],
        lower=lower,
        upper=upper,
        coverage=0.9,
        happened=happened,
    )


def picture_components(candor: Candor, panel: Panel, column: int, origin: int) -> ComponentPicture | None:
    """Returns what the history of one sensor before a row was split into; None if the network does not decompose."""
    time = panel.times.start + origin * panel.times.interval
    found = candor.explain(panel, panel.sensor_ids[column], time)
    if found.gates is None:
        return None
    gates = {
        "accumulation": found.gates.accumulation,
        "release": found.gates.release,
        "shock, against this background": found.gates.shock_current,
        "shock, against the next": found.gates.shock_following,
    }
    return ComponentPicture(
        sensor=_name(panel, column),
        starts=[patch.start for patch in found.patches],
        ends=[patch.end for patch in found.patches],
        strengths={name: component.raw_strength for name, component in found.components.items()},
        gates={name: values for name, values in gates.items() if values is not None},
    )


def picture_fusion(surveyed: Survey, panel: Panel) -> FusionPicture:
    """Returns the fusion weights of a survey over the horizon."""
    word, size = _natural_unit(panel.times.interval)
    steps = panel.times.interval / size
    return FusionPicture(
        ahead=[steps * (first + last) / 2 for first, last in surveyed.steps],
        ahead_unit=word,
        horizon=steps * surveyed.steps[-1][1],
        weights={branch: weights.reshape(-1, weights.shape[-1]) for branch, weights in surveyed.fusion.items()},
        note=f"Lines: means over {len(panel.sensors):,} sensors and {surveyed.windows:,} windows, at the middle of "
        "each target patch. Bands: from 10 % to 90 %.",
    )


def picture_edges(surveyed: Survey, panel: Panel) -> EdgePicture:
    """Returns the mean weights of a survey on the map of the panel, or without one where places are unknown."""
    return EdgePicture(
        sensors=panel.sensor_ids,
        names=[sensor_label(sensor.id, sensor.name, longest=_LONGEST_IN_KEY) for sensor in panel.sensors],
        places=known_places(panel),
        edges=surveyed.edges,
        note=f"Width: share among all a sensor hears from, mean over {surveyed.windows:,} windows.",
    )


def _liveliest(task: Task) -> int:
    tested = task.panel.mask[task.split.test[0] :] if len(task.split.test) else task.panel.mask
    return int(tested.sum(axis=0).argmax())


def _name(panel: Panel, column: int) -> str:
    return sensor_label(panel.sensors[column].id, panel.sensors[column].name)


def _natural_unit(interval: timedelta) -> tuple[str, timedelta]:
    """Returns the unit people would count steps of this interval in."""
    for word, size in (("days", DAY), ("hours", timedelta(hours=1)), ("minutes", timedelta(minutes=1))):
        if interval >= size:
            return word, size
    return "seconds", timedelta(seconds=1)
