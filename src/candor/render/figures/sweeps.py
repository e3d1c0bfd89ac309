"""Errors over the values of one setting."""

from collections.abc import Mapping, Sequence

import pandas as pd

from candor.render.figures.style import BLUE, GREY, Drawing, dress, in_unit, new_figure


def draw_sweep(errors: Mapping[str, Sequence[float]], setting: str, title: str, unit: str) -> Drawing:
    """Returns the figure of the error by value of a setting: a point per seed, a line through the means."""
    seeds = count_seeds([len(found) for found in errors.values()])
    figure = new_figure(title, f"Test part, all steps together; {seeds} of each value.")
    axes = figure.subplots()
    dress(axes, setting, in_unit("mean absolute error", unit))
    places = range(len(errors))
    means = [sum(found) / len(found) for found in errors.values()]
    axes.plot(places, means, "o-", color=BLUE, markersize=5)
    for place, found in zip(places, errors.values(), strict=True):
        axes.plot([place] * len(found), list(found), "o", color=GREY, markersize=3)
    axes.set_xticks(places, list(errors))
    table = pd.DataFrame([{setting: value, "mae": error} for value, found in errors.items() for error in found])
    return Drawing(figure, table)


def count_seeds(counts: Sequence[int]) -> str:
    """Returns how many seeds each of several things has, such as `3 seeds` or `1 to 3 seeds`."""
    fewest, most = min(counts), max(counts)
    return f"{most} seed{'s' if most > 1 else ''}" if fewest == most else f"{fewest} to {most} seeds"
