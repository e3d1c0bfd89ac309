"""The charts of a report, made by plotly from what the report says.

Names are escaped here: plotly takes texts for a small kind of HTML, in which a name could otherwise make a link. Charts
of one sensor hold the numbers of all sensors; the page shows those of the sensor that is chosen.

Plotly reads dates as a clock that never changes: given local times, lines would fold back where the clock is set back,
and break off where it is set forward. So moments are names in the order of time, which are as far apart as the moments.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from candor.core.arrays import Floats
from candor.core.text import distinct_times, shared_time_format, significant
from candor.explain.overview import Forecasts, Learned, Outlook
from candor.explain.pictures import ComponentPicture, TrainingPicture
from candor.explain.scores import ClockErrors, Scores
from candor.render.figures import style
from candor.render.figures.style import at_tick, every, in_unit, round_times, time_label

INK = "ink"  # stands for the colour of the text, which differs by day and by night
_ROOM = {"l": 8, "r": 12, "t": 8, "b": 8}  # pixels; labels make their own
_MOST_LABELS = 40  # sensors that are named beside their bars
_MOST_TICKS = 6  # of times, that a narrow screen has room for
_BESIDE = 0.015  # of the width of an axis of times, left free at both ends
_ASIDE = 0.00025  # of the width; nearer to a tick plotly shows the text of the tick to a mouse, not the name
_ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "traceorder": "normal"}


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart."""

    figure: go.Figure  # with numbers of the first sensor where it is of one sensor
    height: int  # in pixels
    says: str  # what it shows, for those who cannot see it
    choices: Mapping[int, Floats] = field(default_factory=dict)  # by place of the trace: of all sensors, sensor x point
    has_unit: bool = False  # whether the vertical axis is in the unit of the chosen sensor
    aspect: float | None = None  # width through height, for maps, which are less high where there is little width

    def to_json(self) -> dict[str, Any]:
        """Return plain content, with arrays as the bytes of 32-bit numbers in base64."""
        content: dict[str, Any] = self.figure.to_dict()
        content["layout"].pop("template", None)
        content["choices"] = {str(trace): _packed(heights) for trace, heights in self.choices.items()}
        return content | {"has_unit": self.has_unit}


def _packed(heights: Floats) -> dict[str, Any]:
    content = np.ascontiguousarray(heights, dtype="<f4").tobytes()
    return {"points": heights.shape[1], "bytes": b64encode(content).decode("ascii")}


def plain(text: str) -> str:
    """Return a text as plotly draws it letter by letter; it knows no entity for quotation marks."""
    return escape(text, quote=False)


def new_figure(across: str = "", up: str = "", **layout: Any) -> go.Figure:
    """Return an empty figure with quiet axes; colours that depend on day and night are left to the page."""
    figure = go.Figure(layout={"margin": _ROOM, "legend": _ABOVE, "hovermode": "closest", "dragmode": False} | layout)
    figure.update_xaxes(title={"text": plain(across)}, automargin=True, fixedrange=True, zeroline=False)
    figure.update_yaxes(title={"text": plain(up)}, automargin=True, fixedrange=True, zeroline=False)
    return figure


def use_moments(figure: go.Figure, moments: Sequence[datetime]) -> dict[float, str]:
    """Set the horizontal axis, which spans equally distant moments; return its names of them by their seconds."""
    seconds = [moment.timestamp() for moment in moments]
    names = distinct_times(moments, f"%d %b %Y {shared_time_format(moments)}")
    step = seconds[1] - seconds[0] if len(seconds) > 1 else 1.0
    ticks, texts = round_times(moments[0], moments[-1], _MOST_TICKS)
    _set_axis(figure, names, [(tick.timestamp() - seconds[0]) / step for tick in ticks], texts)
    room = _BESIDE * (len(names) - 1) or 0.5
    figure.update_xaxes(range=[-room, len(names) - 1 + room], title={"text": time_label(moments[0], moments[-1])})
    return dict(zip(seconds, names, strict=True))


def use_patches(figure: go.Figure, starts: Sequence[datetime], ends: Sequence[datetime]) -> list[str]:
    """Return what patches are called on the horizontal axis, and set that axis, which names some by their starts."""
    clock = shared_time_format((*starts, *ends))
    first, last = (distinct_times(moments, f"%d %b {clock}") for moments in (starts, ends))
    names = [f"{start} – {end}" for start, end in zip(first, last, strict=True)]
    shown = every(len(names), _MOST_TICKS)
    _set_axis(figure, names, [float(place) for place in shown], [at_tick(starts[i], f"%d %b\n{clock}") for i in shown])
    figure.update_xaxes(title={"text": "patch of the past, by its first reading"})
    return names


def _set_axis(figure: go.Figure, names: list[str], places: list[float], texts: list[str]) -> None:
    figure.update_xaxes(
        type="category",
        categoryorder="array",
        categoryarray=names,
        tickvals=[place + _ASIDE * len(names) for place in places],
        ticktext=[text.replace("\n", "<br>") for text in texts],
        tickangle=0,
    )


def draw_outlook(outlook: Outlook, first: int) -> Chart:
    """Return the chart of readings, the last known and the next forecast of the sensor that is chosen."""
    figure = new_figure(hovermode="x unified")
    names = use_moments(figure, [*outlook.times, *outlook.ahead.times])
    choices: dict[int, Floats] = {}

    def add(times: Sequence[datetime], heights: Floats, **look: Any) -> None:
        choices[len(figure.data)] = heights.T
        shown = heights[:, first].astype(np.float32)
        # Six digits: readings such as levels above the sea differ by little for their size.
        at = [names[moment.timestamp()] for moment in times]
        figure.add_scatter(x=at, y=shown, hovertemplate="%{y:.6~g}", **look)

    def add_forecast(made: Forecasts, name: str, colour: str, veil: str) -> None:
        if made.lower is not None and made.upper is not None:
            edge: dict[str, Any] = {"mode": "lines", "line": {"width": 0, "color": colour}, "showlegend": False}
            add(made.times, made.lower, name="at least", **edge)
            add(made.times, made.upper, name="at most", fill="tonexty", fillcolor=veil, **edge)
        add(made.times, made.forecast, name=name, mode="lines", line={"color": colour, "width": 2.5})

    add_forecast(outlook.known, "last forecast with known outcome", style.ORANGE, "rgba(230,159,0,0.2)")
    add_forecast(outlook.ahead, "next forecast", style.BLUE, "rgba(0,114,178,0.2)")
    add(outlook.times, outlook.readings, name="readings", mode="lines+markers", meta=INK, marker={"size": 3})
    band = f" with {100 * outlook.coverage:g} % intervals" if outlook.ahead.lower is not None else ""
    says = f"Recent readings of the chosen sensor, the last forecast whose outcome is known and the next one{band}"
    return Chart(figure, 380, says, choices, has_unit=True)


def draw_steps(scores: Scores, unit: str, interval: str) -> Chart:
    """Return the chart of errors by forecast step."""
    figure = new_figure(f"steps ahead, each of {interval}", in_unit("error", unit), hovermode="x unified")
    for name, colour in (("mae", style.BLUE), ("rmse", style.ORANGE)):
        heights = _numbers(scores.by_step[name])
        steps = np.arange(1, len(heights) + 1, dtype=np.int32)
        label = {"mae": "mean absolute error", "rmse": "root mean square error"}[name]
        figure.add_scatter(x=steps, y=heights, name=label, mode="lines+markers", line={"color": colour})
    figure.update_yaxes(rangemode="tozero")
    figure.update_traces(hovertemplate="%{y:.4~g}")
    return Chart(figure, 300, "Errors by forecast step")


def draw_sensors(errors: Sequence[float | None], labels: Sequence[str], names: Sequence[str], unit: str) -> Chart:
    """Return the chart of mean absolute errors by sensor, the largest first; labels are left out where many."""
    known = [place for place in np.argsort(-_numbers(errors)) if errors[place] is not None]
    heights = _numbers([errors[place] for place in known])
    hover = [plain(names[place]) for place in known]
    look: dict[str, Any] = {"customdata": hover, "marker": {"color": style.BLUE}}
    height, says = 320, "Mean absolute error of every sensor, the largest first"
    if len(known) > _MOST_LABELS:
        figure = new_figure("sensors, the hardest first", in_unit("mean absolute error", unit))
        figure.add_bar(y=heights, hovertemplate="%{customdata}<br>%{y:.4~g}<extra></extra>", **look)
    else:
        figure, height = new_figure(in_unit("MAE", unit)), 90 + 24 * len(known)
        figure.add_bar(x=heights, orientation="h", hovertemplate="%{customdata}<br>%{x:.4~g}<extra></extra>", **look)
        ticks = [plain(labels[place]) for place in known]
        figure.update_yaxes(autorange="reversed", tickvals=list(range(len(known))), ticktext=ticks, showgrid=False)
    return Chart(figure, height, says)


def draw_clock(clock: ClockErrors, unit: str) -> Chart:
    """Return the chart of errors by hour of the day or day of the week."""
    figure = new_figure(f"{clock.word} that was forecast", in_unit("mean absolute error", unit))
    names = [name[:3] if clock.word == "day of the week" else name for name in clock.names]
    figure.add_bar(x=names, y=clock.mae.astype(np.float32), marker={"color": style.BLUE})
    figure.update_traces(hovertemplate="%{x}: %{y:.4~g}<extra></extra>")
    figure.update_xaxes(type="category", nticks=9)
    return Chart(figure, 280, f"Mean absolute error by {clock.word}")


def draw_coverage(intervals: Mapping[str, Any], interval: str) -> Chart:
    """Draw the coverage of intervals by forecast step, beside what was asked for."""
    found, asked = 100 * _numbers(intervals["by_step"]["coverage"]), 100 * float(intervals["asked_coverage"])
    steps, line = np.arange(1, len(found) + 1, dtype=np.int32), {"dash": "dash", "color": style.VERMILION}
    figure = new_figure(f"steps ahead, each of {interval}", "coverage [%]", hovermode="x unified")
    figure.add_scatter(x=steps, y=found, name="coverage", mode="lines+markers", line={"color": style.BLUE})
    figure.add_scatter(x=[1, len(found)], y=[asked, asked], name="asked", mode="lines", line=line)
    figure.update_traces(hovertemplate="%{y:.1f} %")
    lowest = min(float(np.nanmin(found, initial=100.0)), asked)
    figure.update_yaxes(range=[max(0.0, np.floor((lowest - 5) / 10) * 10), 101])
    return Chart(figure, 300, "Share of readings inside the intervals, by forecast step")


def draw_training(training: TrainingPicture) -> Chart:
    """Draw errors by epoch, with the epoch whose weights were kept."""
    epochs, best = training.epochs, training.kept
    figure = new_figure("epoch", in_unit("mean absolute error", training.unit), hovermode="x unified")
    numbers = np.array([epoch.number + 1 for epoch in epochs], np.int32)
    trained, validated = _numbers([[epoch.train_error, epoch.validation_error] for epoch in epochs]).T
    figure.add_scatter(x=numbers, y=trained, name="training", mode="lines+markers", line={"color": style.BLUE})
    figure.add_scatter(x=numbers, y=validated, name="validation", mode="lines+markers", line={"color": style.VERMILION})
    is_known, kept = not np.isnan(validated[best]), f"weights kept: epoch {numbers[best]}"
    kept += f", {significant(float(validated[best]))}" if is_known else ""
    ring, at = {"symbol": "circle-open", "size": 14, "line": {"width": 2}}, slice(best, best + 1)
    ringed = (validated if is_known else trained)[at]
    figure.add_scatter(x=numbers[at], y=ringed, name=kept, mode="markers", marker=ring, meta=INK)
    figure.update_traces(hovertemplate="%{y:.4~g}")
    if len(numbers) <= 12:
        figure.update_xaxes(tickvals=numbers.tolist())
    return Chart(figure, 300, "Errors in training and validation by epoch")


def draw_strengths(found: ComponentPicture, first: int) -> Chart:
    """Draw the components of the chosen sensor's recent past.

    Each is a line of its own: sizes of states do not add up, so that the height of a stack would say nothing.
    """
    figure = new_figure("", "strength, without unit", hovermode="x unified")
    patches = use_patches(figure, found.starts, found.ends)
    for name, heights in found.strengths.items():
        look = style.COMPONENTS[name]
        line, marker = {"color": look.colour}, {"symbol": look.symbol, "size": 8}
        shown = heights[first].astype(np.float32)
        figure.add_scatter(x=patches, y=shown, name=name, mode="lines+markers", line=line, marker=marker)
    figure.update_traces(hovertemplate="%{y:.3~g}")
    figure.update_yaxes(rangemode="tozero")
    says = "Strength of background, accumulation, release and shock in the recent past of the chosen sensor"
    return Chart(figure, 320, says, dict(enumerate(found.strengths.values())))


def draw_gates(found: ComponentPicture, first: int) -> Chart:
    """Draw how far the gates of the chosen sensor were open."""
    figure = new_figure("", "gate: 0 shut, 1 open", hovermode="x unified")
    patches = use_patches(figure, found.starts, found.ends)
    for (name, heights), colour in zip(found.gates.items(), style.GATE_COLOURS, strict=False):
        shown, line = heights[first].astype(np.float32), {"color": colour}
        figure.add_scatter(x=patches, y=shown, name=name, mode="lines+markers", line=line)
    figure.update_traces(hovertemplate="%{y:.2f}")
    figure.update_yaxes(range=[-0.03, 1.03])
    return Chart(figure, 320, "How far the gates of the chosen sensor were open", dict(enumerate(found.gates.values())))


def draw_fusion(learned: Learned, first: int) -> Chart:
    """Return the chart of what the next forecast of the chosen sensor rests on, beside what is usual."""
    figure = new_figure(f"{learned.ahead_unit} after the last reading", "weight in the forecast", hovermode="x unified")
    choices: dict[int, Floats] = {}
    ahead = np.array(learned.ahead, np.float32)
    for branch, weights in learned.fusion.items():
        words, colour = style.BRANCHES[branch].words, style.BRANCHES[branch].colour
        choices[len(figure.data)] = weights
        shown, usual = weights[first].astype(np.float32), learned.usual_fusion[branch].astype(np.float32)
        figure.add_scatter(x=ahead, y=shown, name=words, mode="lines+markers", line={"color": colour, "width": 2.5})
        figure.add_scatter(x=ahead, y=usual, name="usual", mode="lines", line={"color": colour, "dash": "dot"})
        figure.data[-1].update(showlegend=False)
    figure.update_traces(hovertemplate="%{y:.2f}")
    figure.update_yaxes(range=[-0.03, 1.03])
    return Chart(figure, 320, "Weights of the branches in the next forecast of the chosen sensor", choices)


def _numbers(values: Any) -> NDArray[np.float32]:
    """Return numbers for plotly; what is None is not a number."""
    return np.array(values, np.float32)
