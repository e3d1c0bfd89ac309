"""Where one forecast of one sensor came from. One window is read, so this takes no longer than a few forecasts."""

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import torch

from candor.core.arrays import Doubles, Floats
from candor.core.text import NOTHING, amount, counted, date_time, rounded_percent, sensor_label, significant
from candor.data.panel import Panel
from candor.explain.analyses.fusion import BRANCH_WORDS
from candor.explain.analyses.reconstruction import EmbeddingInverse, picture_reconstruction
from candor.explain.analyses.relations import connected_within
from candor.explain.analyses.states import WindowStates, window_states
from candor.explain.explanation import Explanation, ModelFinding, Table
from candor.explain.pictures import (
    AnyPicture,
    ArrivalPicture,
    BranchPicture,
    ComponentPicture,
    ForecastPicture,
    PeerPicture,
    Senders,
)
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import ForecastExplanation, Span, network_states
from candor.forecasting.forecaster import Forecaster
from candor.nets.trainable import tensors_of

COVERAGE = 0.9
PAST_HORIZONS = 3  # readings shown before a forecast, in horizons
_MOST_DIGITS = 7  # of a reading in single precision
_WAYS = {"forward": "Along the edges", "reverse": "Against the edges"}
_MOST_NAMED = 3
_LONGEST_IN_FIGURE = 44


@dataclass(frozen=True, eq=False)
class OneForecast:
    """One forecast of one sensor with all that is known of it."""

    panel: Panel
    column: int  # of the sensor
    origin: int  # row of the first forecast step
    found: ForecastExplanation  # what the network did
    forecast: ForecastPicture  # with intervals, what was read before, and what happened
    following: ForecastPicture | None  # of the steps after the last reading, if that is another forecast
    states: WindowStates  # of its window
    alone: dict[str, Floats]  # what each branch by itself would forecast, by step, in the sensor's unit

    @property
    def name(self) -> str:
        """What people call the sensor."""
        return self.forecast.sensor

    def label(self, sensor: str, longest: int = 200) -> str:
        """Return what people call a sensor."""
        return sensor_label(sensor, self.panel.sensors[self.panel.sensor_ids.index(sensor)].name, longest)

    @property
    def happened(self) -> Floats:
        """The readings of the forecast steps, NaN where they are not known."""
        known = self.forecast.happened
        return np.full(len(self.forecast.times), np.nan) if known is None else known

    @property
    def digits(self) -> int:
        """How many significant digits readings are given: so many that the ends of the narrowest interval differ.

        Levels above the sea differ by a ten-thousandth of what they are: three digits would make them all the same.
        """
        values, lower, upper = self.forecast.forecast, self.forecast.lower, self.forecast.upper
        apart = np.ptp(values) if lower is None or upper is None else np.min(upper - lower)
        largest = float(np.abs(values).max())
        if not 0 < apart < largest:
            return 3
        needed = math.floor(math.log10(largest)) - math.floor(math.log10(apart)) + 2
        return min(max(needed, 3), _MOST_DIGITS)

    def when(self, moment: datetime) -> str:
        """Return a time in words, with the clock where readings are not daily."""
        return date_time(moment, self.panel.times.interval)

    def span(self, span: Span) -> str:
        """Return a stretch of time in words."""
        return f"{self.when(span.start)} to {self.when(span.end)}"


@torch.no_grad()
def look_into(candor: Candor, panel: Panel, column: int, origin: int) -> OneForecast:
    """Return all that is known of the forecast of one sensor from a row on."""
    trainable, windows = candor.trained(), candor.windows(panel, np.array([origin]))
    batch = tensors_of(windows.batch(np.array([0])))
    states, _ = network_states(trainable, batch)
    _, anchor = trainable.anchored(batch)
    scaler, length = trainable.scaler, panel.times.length
    return OneForecast(
        panel=panel,
        column=column,
        origin=origin,
        found=candor.explain(panel, panel.sensor_ids[column], panel.times.start + origin * panel.times.interval),
        forecast=picture_forecast(candor, panel, column, origin),
        following=None if origin == length else picture_forecast(candor, panel, column, length),
        states=window_states(trainable, windows),
        alone={
            branch: ((forecast + anchor) * scaler.deviation + scaler.mean)[0, :, column].numpy()
            for branch, forecast in states.branch_forecasts().items()
        },
    )


def picture_forecast(forecaster: Forecaster, panel: Panel, column: int, origin: int) -> ForecastPicture:
    """Return the forecast of one sensor from a row on, with intervals if the forecaster knows its errors."""
    horizon = forecaster.horizon
    begin = max(0, origin - max(forecaster.history, PAST_HORIZONS * horizon))
    times = panel.times.slice(begin, origin + horizon).local.to_pydatetime()
    happened = np.full(horizon, np.nan, np.float32)
    known = panel.values[origin : origin + horizon, column]
    happened[: len(known)] = known
    forecast, *ends = (part[:, column] for part in forecast_all(forecaster, panel, origin))
    lower, upper = ends or (None, None)
    return ForecastPicture(
        sensor=sensor_label(panel.sensors[column].id, panel.sensors[column].name),
        unit=panel.sensors[column].unit,
        past_times=list(times[: origin - begin]),
        past=panel.values[begin:origin, column],
        times=list(times[origin - begin :]),
        forecast=forecast,
        lower=lower,
        upper=upper,
        coverage=COVERAGE,
        happened=happened,
    )


def forecast_all(forecaster: Forecaster, panel: Panel, origin: int) -> list[Floats]:
    """Return the forecast of all sensors from a row on, step x sensor, and the ends of its intervals if known."""
    rows = np.array([origin])
    if forecaster.calibration_ is None:
        return [forecaster.predict(panel, rows)[0]]
    made = forecaster.predict_interval(panel, rows, COVERAGE)
    return [made.forecast[0], made.lower[0], made.upper[0]]


def picture_components(found: ForecastExplanation, sensor: str) -> ComponentPicture | None:
    """Return what the history before a forecast was split into; None if the network does not decompose."""
    if found.gates is None:
        return None
    return ComponentPicture(
        sensor=sensor,
        starts=[patch.start for patch in found.patches],
        ends=[patch.end for patch in found.patches],
        strengths={name: component.raw_strength for name, component in found.components.items()},
        gates=found.gates.by_name(),
    )


def explain_forecast(candor: Candor, panel: Panel, column: int, origin: int, subtitle: str = "") -> Explanation:
    """Return where the forecast of one sensor from a row on came from."""
    one = look_into(candor, panel, column, origin)
    findings = (find_forecast(one), find_past(one), find_arrivals(one), find_peers(one), find_branches(one))
    return Explanation(f"{one.name}, from {one.when(one.found.time)}", subtitle, findings)


def find_forecast(one: OneForecast) -> ModelFinding:
    """Return the forecast itself, in words."""
    picture = one.forecast
    values, times, digits = picture.forecast, picture.times, one.digits

    def in_words(value: float) -> str:
        return amount(float(value), picture.unit, digits)

    highest, lowest = int(np.argmax(values)), int(np.argmin(values))
    sentences = [
        f"From {one.when(times[0])} to {one.when(times[-1])}, {one.name} is forecast to go from "
        f"{in_words(values[0])} to {in_words(values[-1])}; the highest value is {in_words(values[highest])} on "
        f"{one.when(times[highest])}, the lowest {in_words(values[lowest])} on {one.when(times[lowest])}."
    ]
    if picture.lower is None or picture.upper is None:
        sentences.append("The model does not know how far its forecasts are off, so there are no intervals.")
    else:
        sentences.append(
            f"Intervals made to hold {rounded_percent(picture.coverage)} of the readings put the first one between "
            f"{significant(float(picture.lower[0]), digits)} and {in_words(picture.upper[0])}, the last between "
            f"{significant(float(picture.lower[-1]), digits)} and {in_words(picture.upper[-1])}."
        )
    sentences.append(_outcome(one))
    pictures: dict[str, AnyPicture] = {"forecast-readings": picture}
    if one.following is not None:
        pictures["forecast-next"] = one.following
    return ModelFinding("forecast-readings", "The forecast", tuple(sentences), {}, pictures, _steps(one))


def _outcome(one: OneForecast) -> str:
    picture, happened = one.forecast, one.happened
    known = ~np.isnan(happened)
    if not known.any():
        return "What happened is not known."
    off = float(np.abs(happened - picture.forecast)[known].mean())
    words = f"What happened is known for {known.sum()} of {len(known)} steps: the forecast was off by "
    words += f"{amount(off, picture.unit)} on average"
    if picture.lower is None or picture.upper is None:
        return f"{words}."
    inside = int(((happened >= picture.lower) & (happened <= picture.upper))[known].sum())
    return f"{words}, and {inside} readings lie within their intervals."


def _steps(one: OneForecast) -> Table:
    picture, unit = one.forecast, f" [{one.forecast.unit}]" if one.forecast.unit else ""
    digits = max(4, one.digits)
    columns = {"forecast": picture.forecast, "from": picture.lower, "to": picture.upper, "reading": picture.happened}
    known = {name: values for name, values in columns.items() if values is not None}
    rows = [
        [one.when(moment), *(significant(float(values[step]), digits) for values in known.values())]
        for step, moment in enumerate(picture.times)
    ]
    return Table("All steps", ["time", *(f"{name}{unit}" for name in known)], rows)


def find_past(one: OneForecast) -> ModelFinding:
    """Return what the past was made of."""
    name, title, found, states = "forecast-past", "What the past was made of", one.found, one.states
    observed = states.observed[0, :, one.column]
    first = one.panel.times.slice(one.origin - len(observed), one.origin).local[0]
    missing = int((~observed).sum())
    filled = f"; {missing} of {len(observed)} readings were missing and filled" if missing else ""
    steps, patches = f"{len(observed)} steps", f"{len(found.patches)} patches"
    read = f"The network read {steps}, from {one.when(first)} on, in {patches}{filled}."
    if found.gates is None:
        return ModelFinding(name, title, (read, "It does not split the past into components: it takes it as it is."))
    sentences = [read, _strongest(one)]
    if (activity := found.gates.shock_activity) is not None:
        most = int(activity.argmax())
        sentences.append(
            f"The shock gates were most open, at {activity[most]:.2f} (0 shut, 1 open), from "
            f"{one.span(found.patches[most])}; on average at {activity.mean():.2f}."
        )
    else:
        sentences.append("It has no shock gates: rain stands for shocks.")
    pictures: dict[str, AnyPicture] = {}
    if EmbeddingInverse(states.network.embedding).is_exact:
        rebuilt = picture_reconstruction(states, one.panel, one.column)
        covered = np.flatnonzero(~np.isnan(rebuilt.current))
        newest = {part: amount(float(values[covered[-1]]), rebuilt.unit) for part, values in rebuilt.parts.items()}
        added = ", ".join(f"{part} {value if value.startswith('-') else f'+{value}'}" for part, value in newest.items())
        sentences.append(f"Read back into the unit, on {one.when(rebuilt.times[covered[-1]])} they add: {added}.")
        pictures["forecast-past"] = rebuilt
    if (split := picture_components(found, one.name)) is not None:
        pictures["forecast-components"] = split
    return ModelFinding(name, title, tuple(sentences), {}, pictures)


def _strongest(one: OneForecast) -> str:
    """Return when each component was strongest, compared with itself: two components have no common measure."""
    parts = []
    for name, component in one.found.components.items():
        strength = component.raw_strength
        most = int(strength.argmax())
        if strength.mean() > 0:
            times = float(strength[most] / strength.mean())
            parts.append(f"{name} from {one.span(one.found.patches[most])} ({times:.1f} times its mean)")
    return f"Each compared with itself, components were strongest: {'; '.join(parts)}."


def find_arrivals(one: OneForecast) -> ModelFinding:
    """Return what arrived along which edge, and from when."""
    name, title = "forecast-arrivals", "What arrived along the edges"
    directions = one.states.network.settings.directions
    if not directions:
        return ModelFinding(name, title, ("This network has no physical branch: nothing travels along edges.",))
    found: dict[str, Senders | None] = {direction: _senders(one, direction) for direction in directions}
    sentences = [
        _from_whom(one, direction, senders)
        if senders is not None
        else f"{_WAYS[direction]} nothing arrives: there is no edge that leads here this way."
        for direction, senders in found.items()
    ]
    if found.get("reverse") is not None:
        sentences.append("What comes against the edges is context for the forecast; nothing is carried backwards.")
    arrived = {
        direction: Senders([one.label(sensor, _LONGEST_IN_FIGURE) for sensor in senders.names], senders.shares)
        for direction, senders in found.items()
        if senders is not None
    }
    if not arrived:
        return ModelFinding(name, title, tuple(sentences))
    spans = {step.position: step.patch for step in one.found.contributions}
    patches = [one.span(spans[position]) for position in sorted(spans)]
    picture = ArrivalPicture(one.name, patches, arrived)
    return ModelFinding(name, title, tuple(sentences), {}, {name: picture}, _arrival_table(one))


def _senders(one: OneForecast, direction: str) -> Senders | None:
    """Return the ids of senders, the largest first, and what part of all that arrived is theirs by position."""
    sizes: dict[str, Doubles] = {}
    span = one.states.network.settings.temporal_span
    for arrived in one.found.contributions:
        if arrived.direction == direction:
            sizes.setdefault(arrived.sensor, np.zeros(span))[arrived.position] += arrived.size
    if not sizes:
        return None
    total = float(sum(size.sum() for size in sizes.values())) or 1.0
    order = sorted(sizes, key=lambda sensor: float(sizes[sensor].sum()), reverse=True)
    return Senders(order, np.array([sizes[sensor] for sensor in order]) / total)


def _from_whom(one: OneForecast, direction: str, senders: Senders) -> str:
    """Return the sentence about the largest senders; when it left them is unknown, since positions mix patches."""
    named = [
        f"{rounded_percent(float(shares.sum()))} from {one.label(sensor)}"
        for sensor, shares in list(zip(senders.names, senders.shares, strict=True))[:_MOST_NAMED]
    ]
    others = len(senders.names) - len(named)
    rest = f"; {counted(others, 'more sensor')} sent the rest" if others else ""
    return f"{_WAYS[direction]} arrived: {'; '.join(named)}{rest}."


def _arrival_table(one: OneForecast) -> Table:
    head = ["from", "way", "position of", "weight", "shared score", "score of this window", "size"]
    rows = [
        [
            one.label(arrived.sensor),
            _WAYS[arrived.direction].lower(),
            one.span(arrived.patch),
            f"{arrived.weight:.3f}",
            *(NOTHING if score is None else f"{score:+.3f}" for score in (arrived.shared_score, arrived.sample_score)),
            f"{arrived.size:.4f}",
        ]
        for arrived in one.found.contributions
    ]
    return Table("All that arrived", head, rows, words=3)


def find_peers(one: OneForecast) -> ModelFinding:
    """Return the sensors that the functional branch relates to this one, wherever they stand."""
    name, title = "forecast-peers", "Which sensors it listens to"
    if one.states.functional is None:
        return ModelFinding(
            name, title, ("This network has no functional branch: it listens to nobody beyond the edges.",)
        )
    if not one.found.peers:
        lacking = "There are no peers: this network relates no sensors, or there is only this one."
        return ModelFinding(name, title, (lacking,))
    weights: dict[str, float] = {}
    alike = {peer.sensor: peer.resemblance for peer in one.found.peers}
    for peer in one.found.peers:
        weights[peer.sensor] = weights.get(peer.sensor, 0.0) + peer.weight
    order = sorted(weights, key=weights.__getitem__, reverse=True)
    orders, ids = one.states.network.settings.spatial_orders, one.panel.sensor_ids
    joined = connected_within(one.panel, orders)[one.column]
    is_beyond = [not joined[ids.index(sensor)] for sensor in order]
    beyond = sum(weights[sensor] for sensor, is_far in zip(order, is_beyond, strict=True) if is_far)
    named = "; ".join(f"{rounded_percent(weights[sensor])} to {one.label(sensor)}" for sensor in order[:_MOST_NAMED])
    most = max(alike, key=alike.__getitem__)
    sentences = (
        f"It listens to {counted(len(order), 'sensor')}, by weight {named}.",
        f"Of them, the background of {one.label(most)} resembles its own most: {alike[most]:.2f}, of 1 at most.",
        f"{rounded_percent(beyond)} goes to sensors that no walk of up to {counted(orders, 'edge')} joins to it.",
    )
    picture = PeerPicture(
        sensor=one.name,
        names=[one.label(sensor, _LONGEST_IN_FIGURE) for sensor in order],
        weights=np.array([weights[sensor] for sensor in order]),
        resemblance=np.array([alike[sensor] for sensor in order]),
        is_beyond=is_beyond,
        orders=orders,
    )
    return ModelFinding(name, title, sentences, {}, {name: picture})


def find_branches(one: OneForecast) -> ModelFinding:
    """Return how much each branch counted."""
    name, title, found, unit = "forecast-branches", "How much each branch counted", one.found, one.forecast.unit
    weights = {branch: np.array([getattr(patch, branch) for patch in found.fusion]) for branch in one.alone}
    if len(weights) == 1:
        (only,) = weights
        sentence = f"There is one branch, {only}: the forecast rests on {BRANCH_WORDS[only]} alone."
        return ModelFinding(name, title, (sentence,))
    sentences = [
        f"{branch.capitalize()} ({BRANCH_WORDS[branch]}) counts {rounded_percent(float(own.mean()))} on average, "
        f"{rounded_percent(float(own[0]))} at the beginning of the horizon and {rounded_percent(float(own[-1]))} at "
        "its end."
        for branch, own in weights.items()
    ]
    last = ", ".join(f"{branch} {amount(float(own[-1]), unit, one.digits)}" for branch, own in one.alone.items())
    together = amount(float(one.forecast.forecast[-1]), unit, one.digits)
    sentences.append(f"Alone they would say of the last step: {last}; together {together}.")
    picture = BranchPicture(
        sensor=one.name,
        unit=unit,
        times=one.forecast.times,
        forecast=one.forecast.forecast,
        alone=one.alone,
        weights={branch: _by_step(found, own) for branch, own in weights.items()},
        happened=one.happened,
    )
    return ModelFinding(name, title, tuple(sentences), {}, {name: picture})


def _by_step(found: ForecastExplanation, weights: Floats) -> Doubles:
    """Return weights of target patches as means over the patches that cover each step."""
    times = np.array([moment.timestamp() for moment in found.times])
    spans = [(patch.span.start.timestamp(), patch.span.end.timestamp()) for patch in found.fusion]
    covers = np.array([(times >= start) & (times <= end) for start, end in spans], np.float64)  # patch step
    return np.asarray(weights @ covers / covers.sum(axis=0))
