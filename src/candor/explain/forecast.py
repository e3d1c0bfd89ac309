"""Where one forecast of one sensor came from, told in sentences and pictures a person can follow."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import torch
from numpy.typing import NDArray

from candor.core.text import amount, date_time, rounded_percent, sensor_label, significant
from candor.data.panel import Panel
from candor.explain.finding import digits_for
from candor.explain.reconstruction import EmbeddingInverse, picture_reconstruction
from candor.explain.states import Reading, read_windows
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import ForecastExplanation, Span, network_states
from candor.render.explanation_page import PageSection, PageTable
from candor.render.figures.branches import BranchPicture, draw_branches
from candor.render.figures.components import draw_components
from candor.render.figures.forecast import ForecastPicture, draw_forecast
from candor.render.figures.reconstruction import draw_reconstruction
from candor.render.figures.runs import picture_components, picture_forecast
from candor.render.figures.style import Drawing

_WORDS = {"functional": "its own past and sensors alike", "forward": "what comes along the edges",
          "reverse": "what comes against the edges"}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Told:
    """One forecast of one sensor with all that is known of it.

    Args:
        panel: the readings.
        column: of the sensor.
        origin: row of the first forecast step.
        found: what the network did.
        forecast: the forecast with its intervals, what was read before, and what happened.
        reading: the states of the window.
        alone: what each branch by itself would forecast, by step, in the sensor's unit.
    """

    panel: Panel
    column: int
    origin: int
    found: ForecastExplanation
    forecast: ForecastPicture
    reading: Reading
    alone: dict[str, NDArray[np.float32]]

    @property
    def name(self) -> str:
        """What people call the sensor."""
        sensor = self.panel.sensors[self.column]
        return sensor_label(sensor.id, sensor.name)

    @property
    def digits(self) -> int:
        """How many digits readings are told with: so many that the ends of the narrowest interval differ."""
        values, lower, upper = self.forecast.forecast, self.forecast.lower, self.forecast.upper
        apart = np.ptp(values) if lower is None or upper is None else np.min(upper - lower)
        return digits_for(values, float(apart))

    def when(self, moment: datetime) -> str:
        """Returns a time in words, with the clock where readings are not daily."""
        return date_time(moment, self.panel.times.interval)

    def span(self, span: Span) -> str:
        """Returns a stretch of time in words."""
        return f"{self.when(span.start)} to {self.when(span.end)}"


@torch.no_grad()
def look_into(candor: Candor, panel: Panel, column: int, origin: int) -> Told:
    """Returns all that is known of the forecast of one sensor from a row on."""
    trainable, windows = candor.trained(), candor.windows(panel, np.array([origin]))
    batch = windows.batch(np.array([0])).tensors()
    states, _ = network_states(trainable, batch)
    _, anchor = trainable.anchored(batch)
    scaler = trainable.scaler
    alone = {
        branch: ((forecast + anchor) * scaler.deviation + scaler.mean)[0, :, column]
        for branch, forecast in states.branch_forecasts().items()
    }
    return Told(
        panel=panel,
        column=column,
        origin=origin,
        found=candor.explain(panel, panel.sensor_ids[column], panel.times.start + origin * panel.times.interval),
        forecast=picture_forecast(candor, panel, column, origin),
        reading=read_windows(trainable, windows),
        alone={branch: values.numpy() for branch, values in alone.items()},
    )


def tell_forecast(told: Told) -> PageSection:
    """Returns the section about the forecast itself."""
    picture, unit = told.forecast, told.forecast.unit
    values, times, digits = picture.forecast, picture.times, told.digits

    def written(value: float) -> str:
        return amount(float(value), unit, digits)

    highest, lowest = int(np.argmax(values)), int(np.argmin(values))
    sentences = [
        f"From {told.when(times[0])} to {told.when(times[-1])}, {told.name} is forecast to go from "
        f"{written(values[0])} to {written(values[-1])}; the highest value is {written(values[highest])} on "
        f"{told.when(times[highest])}, the lowest {written(values[lowest])} on {told.when(times[lowest])}."
    ]
    if picture.lower is None or picture.upper is None:
        sentences.append("The model does not know how far its forecasts are off, so there are no intervals.")
    else:
        sentences.append(
            f"Intervals made to hold {rounded_percent(picture.coverage)} of the readings put the first one between "
            f"{significant(float(picture.lower[0]), digits)} and {written(picture.upper[0])}, the last between "
            f"{significant(float(picture.lower[-1]), digits)} and {written(picture.upper[-1])}."
        )
    sentences.append(_what_happened(picture))
    return PageSection("The forecast", sentences, {"forecast-readings": draw_forecast(picture)}, _steps(told))


def _what_happened(picture: ForecastPicture) -> str:
    happened = np.full(len(picture.times), np.nan) if picture.happened is None else picture.happened
    known = ~np.isnan(happened)
    if not known.any():
        return "What happened is not known."
    off = float(np.abs(happened - picture.forecast)[known].mean())
    words = f"What happened is known for {known.sum()} of {len(known)} steps: the forecast was off by "
    words += f"{amount(off, picture.unit)} on average"
    if picture.lower is None or picture.upper is None:
        return f"{words}."
    held = int(((happened >= picture.lower) & (happened <= picture.upper))[known].sum())
    return f"{words}, and {held} readings lie within their intervals."


def _steps(told: Told) -> PageTable:
    picture, unit = told.forecast, f" [{told.forecast.unit}]" if told.forecast.unit else ""
    digits = max(4, told.digits)
    columns = {"forecast": picture.forecast, "from": picture.lower, "to": picture.upper, "reading": picture.happened}
    known = {name: values for name, values in columns.items() if values is not None}
    rows = [
        [told.when(moment), *(_cell(values[step], digits) for values in known.values())]
        for step, moment in enumerate(picture.times)
    ]
    return PageTable("All steps", ["time", *(f"{name}{unit}" for name in known)], rows)


def _cell(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else significant(float(value), digits)


def tell_past(candor: Candor, told: Told) -> PageSection:
    """Returns the section about what the past was made of."""
    title, found, reading = "What the past was made of", told.found, told.reading
    observed = reading.observed[0, :, told.column]
    first = told.panel.times.slice(told.origin - len(observed), told.origin).local[0]
    missing = int((~observed).sum())
    filled = f"; {missing} of {len(observed)} readings were missing and filled" if missing else ""
    read = (
        f"The network read {len(observed)} steps, from {told.when(first)} on, in {len(found.patches)} patches{filled}."
    )
    if found.gates is None:
        return PageSection(title, [read, "It does not split the past into components: it takes it as it is."])
    sentences = [read, _strongest(told)]
    if (activity := found.gates.shock_activity) is not None:
        most = int(activity.argmax())
        sentences.append(
            f"The shock gates were most open, at {activity[most]:.2f} (0 shut, 1 open), from "
            f"{told.span(found.patches[most])}; on average at {activity.mean():.2f}."
        )
    else:
        sentences.append("It has no shock gates: rain stands for shocks.")
    drawings: dict[str, Drawing] = {}
    if EmbeddingInverse(reading.network.embedding).is_exact:
        rebuilt = picture_reconstruction(reading, told.panel, told.column)
        covered = np.flatnonzero(~np.isnan(rebuilt.current))
        newest = {name: amount(float(values[covered[-1]]), rebuilt.unit) for name, values in rebuilt.parts.items()}
        added = ", ".join(f"{name} {value if value.startswith('-') else f'+{value}'}" for name, value in newest.items())
        sentences.append(f"Read back into the unit, on {told.when(rebuilt.times[covered[-1]])} they add: {added}.")
        drawings["forecast-past"] = draw_reconstruction(rebuilt)
    if (split := picture_components(candor, told.panel, told.column, told.origin)) is not None:
        drawings["forecast-components"] = draw_components(split)
    return PageSection(title, sentences, drawings)


def _strongest(told: Told) -> str:
    """Returns when each component was strongest, held against itself: two components have no common measure."""
    parts = []
    for name, component in told.found.components.items():
        strength = component.raw_strength
        most = int(strength.argmax())
        if strength.mean() > 0:
            times = float(strength[most] / strength.mean())
            parts.append(f"{name} from {told.span(told.found.patches[most])} ({times:.1f} times its mean)")
    return f"Each held against itself, components were strongest: {'; '.join(parts)}."


def tell_branches(told: Told) -> PageSection:
    """Returns the section about how much each branch counted."""
    title, found, unit = "How much each branch counted", told.found, told.forecast.unit
    branches = list(told.alone)
    weights = {branch: np.array([getattr(patch, branch) for patch in found.fusion]) for branch in branches}
    if len(branches) == 1:
        (only,) = branches
        return PageSection(title, [f"There is one branch, {only}: the forecast rests on {_WORDS[only]} alone."])
    sentences = [
        f"{branch.capitalize()} ({_WORDS[branch]}) counts {rounded_percent(float(own.mean()))} on average, "
        f"{rounded_percent(float(own[0]))} at the beginning of the horizon and {rounded_percent(float(own[-1]))} at "
        "its end."
        for branch, own in weights.items()
    ]
    ends = {branch: amount(float(values[-1]), unit, told.digits) for branch, values in told.alone.items()}
    last = ", ".join(f"{branch} {value}" for branch, value in ends.items())
    together = amount(float(told.forecast.forecast[-1]), unit, told.digits)
    sentences.append(f"Alone they would say of the last step: {last}; together {together}.")
    by_step = {branch: _by_step(told, own) for branch, own in weights.items()}
    happened = told.forecast.happened
    picture = BranchPicture(
        sensor=told.name,
        unit=unit,
        times=told.forecast.times,
        forecast=told.forecast.forecast,
        alone=told.alone,
        weights=by_step,
        happened=np.full(len(told.forecast.times), np.nan) if happened is None else happened,
    )
    return PageSection(title, sentences, {"forecast-branches": draw_branches(picture)})


def _by_step(told: Told, weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """Returns weights of target patches as means over the patches that cover each step."""
    times = np.array([moment.timestamp() for moment in told.found.times])
    spans = [(patch.span.start.timestamp(), patch.span.end.timestamp()) for patch in told.found.fusion]
    covers = np.array([(times >= start) & (times <= end) for start, end in spans], np.float64)  # patch step
    return np.asarray(weights @ covers / covers.sum(axis=0))
