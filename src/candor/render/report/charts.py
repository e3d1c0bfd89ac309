"""The charts of a report, made by plotly from what the report says.

Names are escaped here: plotly takes texts for a small kind of HTML, in which a name could otherwise make a link. Charts
of one sensor hold the numbers of all sensors; the page shows those of the sensor that is chosen.
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
from candor.core.text import significant
from candor.explain.learned import Learned
from candor.explain.outlook import Forecasts, Outlook
from candor.explain.pictures import ComponentPicture, TrainingPicture
from candor.explain.scores import ClockErrors, Scores
from candor.render.figures.style import BLUE, BRANCHES, COMPONENTS, GATE_COLOURS, ORANGE, VERMILION, in_unit
from candor.render.report.time_axis import use_moments, use_patches

INK = "ink"  # stands for the colour of the text, which differs by day and by night
_ROOM = {"l": 8, "r": 12, "t": 8, "b": 8}  # pixels; labels make their own
_ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom", "traceorder": "normal"}


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart.

    Args:
        figure: what plotly draws, with numbers of the first sensor where it is of one sensor.
        height: in pixels.
        says: what it shows, for those who cannot see it.
        choices: by place of the trace, the heights of all sensors, sensor x point.
        has_unit: whether the vertical axis is in the unit of the chosen sensor.
        aspect: width through height of what is drawn, for maps, which are less high where there is little width.
    """

    figure: go.Figure
    height: int
    says: str
    choices: Mapping[int, Floats] = field(default_factory=dict)
    has_unit: bool = False
    aspect: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns plain content, with arrays as the bytes of 32-bit numbers in base64."""
        content: dict[str, Any] = self.figure.to_dict()
        content["layout"].pop("template", None)
        content["choices"] = {str(trace): _packed(heights) for trace, heights in self.choices.items()}
        return content | {"has_unit": self.has_unit}


def _packed(heights: Floats) -> dict[str, Any]:
    numbers = np.ascontiguousarray(heights, dtype="<f4")
    return {"points": numbers.shape[1], "bytes": b64encode(numbers.tobytes()).decode("ascii")}


def plain(text: str) -> str:
    """Returns a text as plotly draws it letter by letter; it knows no entity for quotation marks."""
    return escape(text, quote=False)


def new_figure(across: str = "", up: str = "", **layout: Any) -> go.Figure:
    """Returns an empty figure with quiet axes; colours that depend on day and night are left to the page."""
    figure = go.Figure(layout={"margin": _ROOM, "legend": _ABOVE, "hovermode": "closest", "dragmode": False} | layout)
    figure.update_xaxes(title={"text": plain(across)}, automargin=True, fixedrange=True, zeroline=False)
    figure.update_yaxes(title={"text": plain(up)}, automargin=True, fixedrange=True, zeroline=False)
    return figure


def draw_outlook(outlook: Outlook, first: int) -> Chart:
    """Returns the chart of readings, the last known and the next forecast of the sensor that is chosen."""
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

    add_forecast(outlook.known, "last forecast with known outcome", ORANGE, "rgba(230,159,0,0.2)")
    add_forecast(outlook.ahead, "next forecast", BLUE, "rgba(0,114,178,0.2)")
    add(outlook.times, outlook.readings, name="readings", mode="lines+markers", meta=INK, marker={"size": 3})
    band = f" with {100 * outlook.coverage:g} % intervals" if outlook.ahead.lower is not None else ""
    says = f"Recent readings of the chosen sensor, the last forecast whose outcome is known and the next one{band}"
    return Chart(figure, 380, says, choices, has_unit=True)


def draw_steps(scores: Scores, unit: str, interval: str) -> Chart:
    """Returns the chart of errors by forecast step."""
    figure = new_figure(f"steps ahead, each of {interval}", in_unit("error", unit), hovermode="x unified")
    for name, colour in (("mae", BLUE), ("rmse", ORANGE)):
        heights = _numbers(scores.by_step[name])
        steps = np.arange(1, len(heights) + 1, dtype=np.int32)
        label = {"mae": "mean absolute error", "rmse": "root mean square error"}[name]
        figure.add_scatter(x=steps, y=heights, name=label, mode="lines+markers", line={"color": colour})
    figure.update_yaxes(rangemode="tozero")
    figure.update_traces(hovertemplate="%{y:.4~g}")
    return Chart(figure, 300, "Errors by forecast step")


def draw_sensors(errors: Sequence[float | None], labels: Sequence[str], names: Sequence[str], unit: str) -> Chart:
    """Returns the chart of mean absolute errors by sensor, the largest first; labels are left out where many."""
    known = [place for place in np.argsort(-_numbers(errors)) if errors[place] is not None]
    heights = _numbers([errors[place] for place in known])
    hover = [plain(names[place]) for place in known]
    template = "%{customdata}<br>%{x:.4~g}<extra></extra>"
    if len(known) > 40:
        figure = new_figure("sensors, the hardest first", in_unit("mean absolute error", unit))
        template = template.replace("%{x", "%{y")
        figure.add_bar(y=heights, customdata=hover, marker={"color": BLUE}, hovertemplate=template)
        return Chart(figure, 320, "Mean absolute error of every sensor, the largest first")
    figure = new_figure(in_unit("MAE", unit))
    figure.add_bar(x=heights, customdata=hover, orientation="h", marker={"color": BLUE}, hovertemplate=template)
    ticks = [plain(labels[place]) for place in known]
    figure.update_yaxes(autorange="reversed", tickvals=list(range(len(known))), ticktext=ticks, showgrid=False)
    return Chart(figure, 90 + 24 * len(known), "Mean absolute error of every sensor, the largest first")


def draw_clock(clock: ClockErrors, unit: str) -> Chart:
    """Returns the chart of errors by hour of the day or day of the week."""
    figure = new_figure(f"{clock.word} that was forecast", in_unit("mean absolute error", unit))
    names = [name[:3] if clock.word == "day of the week" else name for name in clock.names]
    figure.add_bar(x=names, y=clock.mae.astype(np.float32), marker={"color": BLUE})
    figure.update_traces(hovertemplate="%{x}: %{y:.4~g}<extra></extra>")
    figure.update_xaxes(type="category", nticks=9)
    return Chart(figure, 280, f"Mean absolute error by {clock.word}")


def draw_coverage(intervals: Mapping[str, Any], interval: str) -> Chart:
    """Returns the chart of the share of readings held by intervals, by forecast step."""
    held = 100 * _numbers(intervals["by_step"]["coverage"])
    asked = 100 * float(intervals["asked_coverage"])
    steps = np.arange(1, len(held) + 1, dtype=np.int32)
    figure = new_figure(f"steps ahead, each of {interval}", "readings held [%]", hovermode="x unified")
    figure.add_scatter(x=steps, y=held, name="held", mode="lines+markers", line={"color": BLUE})
    figure.add_scatter(
        x=[1, len(held)], y=[asked, asked], name="asked", mode="lines", line={"dash": "dash", "color": VERMILION}
    )
    figure.update_traces(hovertemplate="%{y:.1f} %")
    lowest = min(float(np.nanmin(held, initial=100.0)), asked)
    figure.update_yaxes(range=[max(0.0, np.floor((lowest - 5) / 10) * 10), 101])
    return Chart(figure, 300, "Share of readings inside the intervals, by forecast step")


def draw_training(training: TrainingPicture) -> Chart:
    """Returns the chart of errors by epoch, with the epoch whose weights were kept."""
    epochs, best = training.epochs, training.kept
    figure = new_figure("epoch", in_unit("mean absolute error", training.unit), hovermode="x unified")
    numbers = np.array([epoch.number + 1 for epoch in epochs], np.int32)
    trained, validated = (
        _numbers([getattr(epoch, name) for epoch in epochs]) for name in ("train_error", "validation_error")
    )
    figure.add_scatter(x=numbers, y=trained, name="training", mode="lines+markers", line={"color": BLUE})
    figure.add_scatter(x=numbers, y=validated, name="validation", mode="lines+markers", line={"color": VERMILION})
    ring = {"symbol": "circle-open", "size": 14, "line": {"width": 2}}
    is_known = not np.isnan(validated[best])
    kept = f"weights kept: epoch {numbers[best]}" + (f", {significant(float(validated[best]))}" if is_known else "")
    ringed = validated if is_known else trained
    figure.add_scatter(
        x=numbers[best : best + 1], y=ringed[best : best + 1], name=kept, mode="markers", marker=ring, meta=INK
    )
    figure.update_traces(hovertemplate="%{y:.4~g}")
    if len(numbers) <= 12:
        figure.update_xaxes(tickvals=numbers.tolist())
    return Chart(figure, 300, "Errors in training and validation by epoch")


def draw_strengths(found: ComponentPicture, first: int) -> Chart:
    """Returns the chart of the components of the chosen sensor's recent past.

    Each is a line of its own: sizes of states do not add up, so that the height of a stack would say nothing.
    """
    figure = new_figure("", "strength, without unit", hovermode="x unified")
    patches = use_patches(figure, found.starts, found.ends)
    for name, heights in found.strengths.items():
        line, marker = {"color": COMPONENTS[name].colour}, {"symbol": COMPONENTS[name].symbol}
        look: dict[str, Any] = {"mode": "lines+markers", "line": line, "marker": marker}
        figure.add_scatter(x=patches, y=heights[first].astype(np.float32), name=name, **look)
    figure.update_traces(hovertemplate="%{y:.3~g}", marker={"size": 8})
    figure.update_yaxes(rangemode="tozero")
    says = "Strength of background, accumulation, release and shock in the recent past of the chosen sensor"
    return Chart(figure, 320, says, dict(enumerate(found.strengths.values())))


def draw_gates(found: ComponentPicture, first: int) -> Chart:
    """Returns the chart of how far the gates of the chosen sensor were open."""
    figure = new_figure("", "gate: 0 shut, 1 open", hovermode="x unified")
    patches = use_patches(figure, found.starts, found.ends)
    for (name, heights), colour in zip(found.gates.items(), GATE_COLOURS, strict=False):
        shown, line = heights[first].astype(np.float32), {"color": colour}
        figure.add_scatter(x=patches, y=shown, name=name, mode="lines+markers", line=line)
    figure.update_traces(hovertemplate="%{y:.2f}")
    figure.update_yaxes(range=[-0.03, 1.03])
    return Chart(figure, 320, "How far the gates of the chosen sensor were open", dict(enumerate(found.gates.values())))


def draw_fusion(learned: Learned, first: int) -> Chart:
    """Returns the chart of what the next forecast of the chosen sensor rests on, beside what is usual."""
    figure = new_figure(f"{learned.ahead_unit} after the last reading", "weight in the forecast", hovermode="x unified")
    choices: dict[int, Floats] = {}
    ahead = np.array(learned.ahead, np.float32)
    for branch, weights in learned.fusion.items():
        words, colour = BRANCHES[branch].words, BRANCHES[branch].colour
        choices[len(figure.data)] = weights
        shown, usual = weights[first].astype(np.float32), learned.usual_fusion[branch].astype(np.float32)
        figure.add_scatter(x=ahead, y=shown, name=words, mode="lines+markers", line={"color": colour, "width": 2.5})
        figure.add_scatter(x=ahead, y=usual, name="usual", mode="lines", line={"color": colour, "dash": "dot"})
        figure.data[-1].update(showlegend=False)
    figure.update_traces(hovertemplate="%{y:.2f}")
    figure.update_yaxes(range=[-0.03, 1.03])
    return Chart(figure, 320, "Weights of the branches in the next forecast of the chosen sensor", choices)


def _numbers(values: Sequence[float | None]) -> NDArray[np.float32]:
    return np.array([np.nan if value is None else value for value in values], np.float32)
