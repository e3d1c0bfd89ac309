"""Horizontal axes of charts over time.

Plotly reads dates as a clock that never changes: given local times, lines would fold back where the clock is set back,
and break off where it is set forward. So moments are names in the order of time, which are as far apart as the moments.
"""

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from candor.core.text import distinct_times, shared_time_format
from candor.render.figures.style import at_tick, round_times, time_label

_MOST_TICKS = 6  # that a narrow screen has room for
_ROOM = 0.015  # of the width, at both ends
_ASIDE = 0.00025  # of the width; nearer to a tick plotly shows the text of the tick to a mouse, not the name


def use_moments(figure: go.Figure, moments: Sequence[datetime]) -> dict[float, str]:
    """Returns what moments are called on the horizontal axis, by their seconds since 1970, and sets that axis.

    Args:
        figure: of the axis.
        moments: all that it spans, equally far apart.
    """
    seconds = [moment.timestamp() for moment in moments]
    names = distinct_times(moments, f"%d %b %Y {shared_time_format(moments)}")
    step = seconds[1] - seconds[0] if len(seconds) > 1 else 1.0
    ticks, texts = round_times(moments[0], moments[-1], _MOST_TICKS)
    _set_axis(figure, names, [(tick.timestamp() - seconds[0]) / step for tick in ticks], texts)
    room = _ROOM * (len(names) - 1) or 0.5
    figure.update_xaxes(range=[-room, len(names) - 1 + room], title={"text": time_label(moments[0], moments[-1])})
    return dict(zip(seconds, names, strict=True))


def use_patches(figure: go.Figure, starts: Sequence[datetime], ends: Sequence[datetime]) -> list[str]:
    """Returns what patches are called on the horizontal axis, and sets that axis, which names some by their starts."""
    clock = shared_time_format((*starts, *ends))
    first, last = (distinct_times(moments, f"%d %b {clock}") for moments in (starts, ends))
    names = [f"{start} – {end}" for start, end in zip(first, last, strict=True)]
    shown = range(0, len(names), -(-len(names) // _MOST_TICKS))
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
