"""Figures of one forecast of one sensor: the forecast, what its past was made of, and what each branch says of it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from candor.core.arrays import Floats
from candor.core.text import shared_time_format
from candor.explain.pictures import BranchPicture, ComponentPicture, ForecastPicture, ReconstructionPicture
from candor.render.figures.style import (
    BLACK,
    BLUE,
    BRANCHES,
    COMPONENTS,
    GATE_COLOURS,
    GREY,
    PURPLE,
    SMALL,
    VERMILION,
    Drawing,
    add_legend,
    at_tick,
    dress,
    in_unit,
    new_figure,
    on_axis,
    use_local_times,
)

_MOST_MARKS, _MOST_DOTS = 60, 150  # of forecast steps and of readings that carry a mark
_MOST_DAYS, _MOST_CLOCKS = 8, 6  # labels of patches there is room for


def draw_forecast(picture: ForecastPicture) -> Drawing:
    """Returns the figure of a forecast: what was read before, what is forecast with its interval, what happened."""
    figure = new_figure(f"Forecast for {picture.sensor}")
    axes = figure.subplots()
    dress(axes, "", in_unit("reading", picture.unit))
    before, ahead = on_axis(picture.past_times), on_axis(picture.times)
    axes.plot(before, picture.past, "o-", color=BLACK, linewidth=1.6, markersize=3, label="readings")
    if picture.lower is not None and picture.upper is not None:
        band = f"{100 * picture.coverage:g} % interval"
        axes.fill_between(ahead, picture.lower, picture.upper, color=BLUE, alpha=0.18, linewidth=0, label=band)
    axes.plot(ahead, picture.forecast, "o-", color=BLUE, linewidth=2.0, markersize=3, label="forecast")
    unknown = np.full(len(ahead), np.nan)
    happened = unknown if picture.happened is None else picture.happened
    if not np.isnan(happened).all():
        axes.plot(ahead, happened, "o--", color=VERMILION, linewidth=1.2, markersize=3, label="what happened")
    axes.axvline(ahead[0], color=GREY, linewidth=0.8, linestyle=":")
    times = [*picture.past_times, *picture.times]
    use_local_times(axes, times)
    add_legend(axes, 4)

    def after(values: Floats | None) -> Floats:
        return np.concatenate([np.full(len(before), np.nan), unknown if values is None else values])

    table = {
        "time": [moment.isoformat() for moment in times],
        "reading": np.concatenate([picture.past, happened]),
        "forecast": after(picture.forecast),
        "lower": after(picture.lower),
        "upper": after(picture.upper),
    }
    return Drawing(figure, pd.DataFrame(table))


def draw_components(picture: ComponentPicture) -> Drawing:
    """Returns the figure of strengths above the gates.

    Each component is a line of its own: sizes of states do not add up, so that the height of a stack would say nothing.
    """
    note = (
        "Strengths are root mean squares of the network's states before they are normalised. They do not add up: "
        "compare\na component with itself."
    )
    figure = new_figure(f"Recent past of {picture.sensor}", note, height=6.0)
    strengths, gates = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = np.arange(len(picture.starts))
    dress(strengths, "", "strength, without unit")
    for name, values in picture.strengths.items():
        look = COMPONENTS[name]
        strengths.plot(places, values, look.line, color=look.colour, markersize=4, linewidth=1.6, label=name)
    strengths.set_ylim(bottom=0)
    add_legend(strengths, len(picture.strengths))
    dress(gates, "history patch (first to last reading)", "gate: 0 shut, 1 open")
    for (name, values), colour in zip(picture.gates.items(), GATE_COLOURS, strict=False):
        gates.plot(places, values, color=colour, marker="o", markersize=4, linewidth=1.6, label=name)
    gates.set_ylim(0, 1)
    add_legend(gates, len(picture.gates))
    _label_patches(gates, picture)
    table = {
        "start": [moment.isoformat() for moment in picture.starts],
        "end": [moment.isoformat() for moment in picture.ends],
        **{f"{name} strength": values for name, values in picture.strengths.items()},
        **{f"{name} gate": values for name, values in picture.gates.items()},
    }
    return Drawing(figure, pd.DataFrame(table))


def _label_patches(axes: Axes, picture: ComponentPicture) -> None:
    """Writes beginning and end of patches in two lines, of so many patches as there is room for."""
    clock = shared_time_format((*picture.starts, *picture.ends))
    shown = range(0, len(picture.starts), -(-len(picture.starts) // (_MOST_CLOCKS if clock else _MOST_DAYS)))
    starts, ends = ([at_tick(moment, f"%d %b {clock}") for moment in row] for row in (picture.starts, picture.ends))
    axes.set_xticks(list(shown), [f"{starts[place]}\nto {ends[place]}" for place in shown], fontsize=SMALL)


def draw_reconstruction(picture: ReconstructionPicture) -> Drawing:
    """Returns the figure: readings and both reconstructions above, what the components add below."""
    figure = new_figure(f"History rebuilt: {picture.sensor}", picture.note, height=6.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = on_axis(picture.times)
    dots = {"marker": "o", "markersize": 3} if len(places) <= _MOST_DOTS else {}
    dress(above, "", in_unit("reading", picture.unit))
    above.plot(places, picture.readings, color=BLACK, linewidth=1.6, label="readings", **dots)
    above.plot(places, picture.current, color=BLUE, linewidth=1.6, label="background + accumulation + shock")
    above.plot(places, picture.following, "--", color=PURPLE, linewidth=1.6, label="next background + release + shock")
    add_legend(above, 3)
    dress(below, "", in_unit("what is added", picture.unit))
    below.axhline(0, color=GREY, linewidth=0.8)
    for name, values in picture.parts.items():
        look = COMPONENTS[name]
        below.plot(places, values, look.line[1:], color=look.colour, linewidth=1.6, label=name)
    add_legend(below, 3)
    _mark_breaks((above, below), picture)
    use_local_times(below, picture.times)
    table = {
        "time": [moment.isoformat() for moment in picture.times],
        "reading": picture.readings,
        "current_reference": picture.current,
        "next_reference": picture.following,
        **picture.parts,
    }
    return Drawing(figure, pd.DataFrame(table))


def _mark_breaks(both: Sequence[Axes], picture: ReconstructionPicture) -> None:
    for axes in both:
        for place in on_axis(picture.breaks) if picture.breaks else ():
            axes.axvline(place, color=GREY, linewidth=0.8, linestyle=":")


def draw_branches(picture: BranchPicture) -> Drawing:
    """Returns the figure: forecasts of single branches above, their weights below."""
    note = (
        "What is decoded is the weighted sum of their states, so that the forecast of all need not lie between theirs."
    )
    figure = new_figure(f"Branches for {picture.sensor}", note, height=5.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = on_axis(picture.times)
    size = 4 if len(places) <= _MOST_MARKS else 0
    dress(above, "", in_unit("forecast", picture.unit))
    for name, values in picture.alone.items():
        look = BRANCHES[name]
        above.plot(places, values, look.line, color=look.colour, linewidth=1.4, markersize=size, label=f"{name} alone")
    above.plot(places, picture.forecast, color=BLACK, linewidth=2.4, label="together")
    if not np.isnan(picture.happened).all():
        above.plot(places, picture.happened, "o:", color=VERMILION, linewidth=1.2, markersize=3, label="what happened")
    add_legend(above, 5)
    dress(below, "", "weight, stacked")
    colours = [BRANCHES[name].colour for name in picture.weights]
    below.stackplot(
        places, np.stack(list(picture.weights.values())), colors=colours, labels=list(picture.weights), alpha=0.8
    )
    below.set_ylim(0, 1)
    add_legend(below, 3)
    use_local_times(below, picture.times)
    table = {
        "time": [moment.isoformat() for moment in picture.times],
        "forecast": picture.forecast,
        "reading": picture.happened,
        **{f"{name} alone": values for name, values in picture.alone.items()},
        **{f"{name} weight": values for name, values in picture.weights.items()},
    }
    return Drawing(figure, pd.DataFrame(table))
