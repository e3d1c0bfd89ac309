"""Figures of one forecast of one sensor: what was read and forecast, what its past was made of, where it came from."""

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from candor.core.arrays import Floats
from candor.core.text import shared_time_format
from candor.explain.pictures import (
    ArrivalPicture,
    BranchPicture,
    BreakdownPicture,
    ComponentPicture,
    ForecastPicture,
    PeerPicture,
    ReconstructionPicture,
)
from candor.render.figures import style
from candor.render.figures.style import (
    Drawing,
    add_key,
    add_legend,
    at_tick,
    dress,
    every,
    in_unit,
    name_rows,
    new_axes,
    new_figure,
    on_axis,
    use_local_times,
)

_MOST_MARKS, _MOST_DOTS = 60, 150  # of forecast steps and of readings that carry a mark
_MOST_DAYS, _MOST_CLOCKS = 8, 6  # labels of patches there is room for
_MOST_PARTS = 8  # of a forecast that are told apart
_SENDER, _PEER = 0.42, 0.3  # inches of height


def draw_forecast(picture: ForecastPicture) -> Drawing:
    """Draw what was read before, what is forecast with its interval, and what happened."""
    figure, axes = new_axes(f"Forecast for {picture.sensor}", up=in_unit("reading", picture.unit))
    before, ahead = on_axis(picture.past_times), on_axis(picture.times)
    axes.plot(before, picture.past, "o-", color=style.BLACK, linewidth=1.6, markersize=3, label="readings")
    if picture.lower is not None and picture.upper is not None:
        band = f"{100 * picture.coverage:g} % interval"
        axes.fill_between(ahead, picture.lower, picture.upper, color=style.BLUE, alpha=0.18, linewidth=0, label=band)
    axes.plot(ahead, picture.forecast, "o-", color=style.BLUE, linewidth=2.0, markersize=3, label="forecast")
    unknown = np.full(len(ahead), np.nan)
    happened = unknown if picture.happened is None else picture.happened
    _draw_happened(axes, ahead, happened, "o--")
    axes.axvline(ahead[0], color=style.GREY, linewidth=0.8, linestyle=":")
    times = [*picture.past_times, *picture.times]
    use_local_times(axes, times)
    add_legend(axes, 4)

    def after(values: Floats | None) -> Floats:
        return np.concatenate([np.full(len(before), np.nan), unknown if values is None else values])

    columns = {name: after(getattr(picture, name)) for name in ("forecast", "lower", "upper")}
    return _timed(figure, times, {"reading": np.concatenate([picture.past, happened])} | columns)


def _draw_happened(axes: Axes, at: Floats, happened: Floats, line: str) -> None:
    if not np.isnan(happened).all():
        axes.plot(at, happened, line, color=style.VERMILION, linewidth=1.2, markersize=3, label="what happened")


def _timed(figure: Any, times: list[datetime], columns: dict[str, Floats]) -> Drawing:
    """Return a figure with a table whose first column are the times of its rows."""
    return Drawing(figure, pd.DataFrame({"time": [moment.isoformat() for moment in times], **columns}))


def draw_breakdown(picture: BreakdownPicture) -> Drawing:
    """Draw parts of a forecast as a stack of changes from the last reading, rises above zero and falls below it."""
    title = f"What the forecast for {picture.sensor} is made of"
    figure = new_figure(title, height=6.5)
    key, axes = figure.subplots(2, 1, height_ratios=(1, 3))
    dress(axes, "", in_unit("change from the last reading", picture.unit))
    ahead, sizes = on_axis(picture.times), np.abs(picture.changes).sum(axis=1)
    largest = np.argsort(-sizes, kind="stable")[:_MOST_PARTS]
    others = np.setdiff1d(np.arange(len(sizes)), largest)
    shown = [(picture.names[place], picture.changes[place], style.PARTS[picture.kinds[place]]) for place in largest]
    if others.size:
        shown.append((f"{len(others)} smaller parts", picture.changes[others].sum(axis=0), style.GREY))
    width = 0.8 * float(np.diff(ahead).min()) if len(ahead) > 1 else 0.02
    above, below = np.zeros(len(ahead)), np.zeros(len(ahead))
    seen: dict[str, int] = {}
    for name, changes, colour in shown:
        hatch = ("", "//", "..", "xx")[seen.get(colour, 0) % 4]  # several edges share a colour
        seen[colour] = seen.get(colour, 0) + 1
        base = np.where(changes >= 0, above, below)
        axes.bar(
            ahead, changes, width, bottom=base, color=colour, hatch=hatch, edgecolor="white", linewidth=0.4, label=name
        )
        above, below = above + np.maximum(changes, 0), below + np.minimum(changes, 0)
    axes.plot(
        ahead, picture.forecast - picture.last, "o-", color=style.BLACK, linewidth=1.8, markersize=3, label="forecast"
    )
    axes.axhline(0, color=style.GREY, linewidth=0.8)
    use_local_times(axes, list(picture.times))
    add_key(key, axes.get_legend_handles_labels()[0], 2)
    columns = {name: picture.changes[place] for place, name in enumerate(picture.names)}
    return _timed(figure, list(picture.times), {**columns, "forecast": picture.forecast})


def draw_components(picture: ComponentPicture) -> Drawing:
    """Draw strengths above the gates.

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
        look = style.COMPONENTS[name]
        strengths.plot(places, values, look.line, color=look.colour, markersize=4, linewidth=1.6, label=name)
    strengths.set_ylim(bottom=0)
    add_legend(strengths, len(picture.strengths))
    dress(gates, "history patch (first to last reading)", "gate: 0 shut, 1 open")
    for (name, values), colour in zip(picture.gates.items(), style.GATE_COLOURS, strict=False):
        gates.plot(places, values, "o-", color=colour, markersize=4, linewidth=1.6, label=name)
    gates.set_ylim(0, 1)
    add_legend(gates, len(picture.gates))
    clock = shared_time_format((*picture.starts, *picture.ends))
    starts, ends = ([at_tick(moment, f"%d %b {clock}") for moment in row] for row in (picture.starts, picture.ends))
    shown = every(len(starts), _MOST_CLOCKS if clock else _MOST_DAYS)
    gates.set_xticks(shown, [f"{starts[place]}\nto {ends[place]}" for place in shown], fontsize=style.SMALL)
    table = {
        "start": [moment.isoformat() for moment in picture.starts],
        "end": [moment.isoformat() for moment in picture.ends],
        **{f"{name} strength": values for name, values in picture.strengths.items()},
        **{f"{name} gate": values for name, values in picture.gates.items()},
    }
    return Drawing(figure, pd.DataFrame(table))


def draw_reconstruction(picture: ReconstructionPicture) -> Drawing:
    """Draw readings and both reconstructions above, what the components add below."""
    figure = new_figure(f"History rebuilt: {picture.sensor}", picture.note, height=6.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = on_axis(picture.times)
    dots = {"marker": "o", "markersize": 3} if len(places) <= _MOST_DOTS else {}
    dress(above, "", in_unit("reading", picture.unit))
    above.plot(places, picture.readings, color=style.BLACK, linewidth=1.6, label="readings", **dots)
    above.plot(places, picture.current, color=style.BLUE, linewidth=1.6, label="background + accumulation + shock")
    above.plot(
        places, picture.following, "--", color=style.PURPLE, linewidth=1.6, label="next background + release + shock"
    )
    add_legend(above, 3)
    dress(below, "", in_unit("what is added", picture.unit))
    below.axhline(0, color=style.GREY, linewidth=0.8)
    for name, values in picture.parts.items():
        look = style.COMPONENTS[name]
        below.plot(places, values, look.line[1:], color=look.colour, linewidth=1.6, label=name)
    add_legend(below, 3)
    for axes in (above, below):
        for place in on_axis(picture.breaks):
            axes.axvline(place, color=style.GREY, linewidth=0.8, linestyle=":")
    use_local_times(below, picture.times)
    references = {"current_reference": picture.current, "next_reference": picture.following}
    return _timed(figure, list(picture.times), {"reading": picture.readings} | references | dict(picture.parts))


def draw_branches(picture: BranchPicture) -> Drawing:
    """Draw forecasts of single branches above, their weights below."""
    note = (
        "What is decoded is the weighted sum of their states, so that the forecast of all need not lie between theirs."
    )
    figure = new_figure(f"Branches for {picture.sensor}", note, height=5.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    places = on_axis(picture.times)
    size = 4 if len(places) <= _MOST_MARKS else 0
    dress(above, "", in_unit("forecast", picture.unit))
    for name, values in picture.alone.items():
        look = style.BRANCHES[name]
        above.plot(places, values, look.line, color=look.colour, linewidth=1.4, markersize=size, label=f"{name} alone")
    above.plot(places, picture.forecast, color=style.BLACK, linewidth=2.4, label="together")
    _draw_happened(above, places, picture.happened, "o:")
    add_legend(above, 5)
    dress(below, "", "weight, stacked")
    names, weights = list(picture.weights), list(picture.weights.values())
    below.stackplot(places, weights, colors=[style.BRANCHES[name].colour for name in names], labels=names, alpha=0.8)
    below.set_ylim(0, 1)
    add_legend(below, 3)
    use_local_times(below, picture.times)
    columns = {"forecast": picture.forecast, "reading": picture.happened}
    columns |= {f"{name} alone": values for name, values in picture.alone.items()}
    columns |= {f"{name} weight": values for name, values in picture.weights.items()}
    return _timed(figure, list(picture.times), columns)


def draw_arrivals(picture: ArrivalPicture) -> Drawing:
    """Draw a bar for every sender along edges and patch, one direction above the other."""
    drawn = {direction: min(len(found.names), picture.most) for direction, found in picture.directions.items()}
    heights = [_SENDER * rows + 0.55 for rows in drawn.values()]
    note = (
        "Shares of all that arrived in one direction, by the size of states; longer ways than one edge are left out.\n"
        "Positions mix the patches that they are named after: no delay can be read from them."
    )
    if any(rows < len(picture.directions[direction].names) for direction, rows in drawn.items()):
        note += f"\nOf each direction the {picture.most} largest senders are shown."
    words = 0.25 * -(-len(picture.patches) // 2)
    figure = new_figure(f"What arrived at {picture.sensor}", note, height=1.6 + words + sum(heights))
    key, *panels = figure.subplots(1 + len(heights), 1, height_ratios=(words, *heights))
    for axes, (direction, rows) in zip(panels, drawn.items(), strict=True):
        found = picture.directions[direction]
        dress(axes, f"{style.BRANCHES[direction].words}, from these: share of what arrived [%]")
        width = 0.8 / len(picture.patches)
        for position, (patch, colour) in enumerate(zip(picture.patches, style.POSITION_COLOURS, strict=False)):
            bars = np.arange(rows) + width * (position - (len(picture.patches) - 1) / 2)
            label, shares = f"position of {patch}", 100 * found.shares[:rows, position]
            axes.barh(bars, shares, height=0.9 * width, color=colour, label=label)
        name_rows(axes, found.names[:rows])
    add_key(key, panels[0].containers, 2, loc="center right")  # names are on the left
    table = [
        (direction, name, patch, share)
        for direction, found in picture.directions.items()
        for name, shares in zip(found.names, found.shares, strict=True)
        for patch, share in zip(picture.patches, shares, strict=True)
    ]
    return Drawing(figure, pd.DataFrame(table, columns=["direction", "from", "position_of", "share"]))


def draw_peers(picture: PeerPicture) -> Drawing:
    """Draw a bar for every peer of the functional branch."""
    rows = min(len(picture.names), picture.most)
    note = f"The {rows} heaviest of {len(picture.names)} peers are shown." if rows < len(picture.names) else ""
    height = 1.9 + _PEER * max(rows, 2)
    figure, axes = new_axes(f"Peers of {picture.sensor}", note, "weight among peers [%]", height=height)
    colours = [style.PURPLE if is_beyond else style.GREY for is_beyond in picture.is_beyond[:rows]]
    axes.barh(range(rows), 100 * picture.weights[:rows], height=0.7, color=colours)
    name_rows(axes, picture.names[:rows])
    walk = f"a walk of up to {picture.orders} edge{'' if picture.orders == 1 else 's'}"
    add_legend(
        axes,
        2,
        [Patch(color=style.GREY, label=f"joined by {walk}"), Patch(color=style.PURPLE, label="not joined by any")],
    )
    table = {
        "peer": list(picture.names),
        "share": picture.weights,
        "resemblance": picture.resemblance,
        "is_beyond_edges": list(picture.is_beyond),
    }
    return Drawing(figure, pd.DataFrame(table))
