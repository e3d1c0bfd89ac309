"""How the errors fell while the model learned."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.ticker import MaxNLocator

from candor.render.figures.style import BLACK, BLUE, VERMILION, Drawing, add_legend, dress, in_unit, new_figure, plain


@dataclass(frozen=True)
class Epoch:
    """One pass over the training windows.

    Args:
        number: of the epoch, 0 is the first.
        train_error: mean absolute error in training, over the steps that were supervised.
        validation_error: mean absolute error over all steps of the validation windows; NaN where nothing was observed.
        steps: forecast steps that were supervised.
    """

    number: int
    train_error: float
    validation_error: float
    steps: int


def kept_epoch(epochs: Sequence[Epoch]) -> int:
    """Returns the place of the epoch whose weights were kept: the best, or the latest where nothing was validated."""
    judged = [place for place, epoch in enumerate(epochs) if not math.isnan(epoch.validation_error)]
    return min(judged, key=lambda place: epochs[place].validation_error) if judged else len(epochs) - 1


def draw_training(epochs: Sequence[Epoch], unit: str) -> Drawing:
    """Returns the figure of both errors by epoch, with the epoch whose weights were kept; errors are in the unit."""
    note = "Training: over the steps supervised in that epoch, with dropout. Validation: over all steps."
    figure = new_figure("Training", note)
    axes = figure.subplots()
    dress(axes, "epoch", in_unit("mean absolute error", unit))
    numbers = [epoch.number + 1 for epoch in epochs]
    errors = [epoch.validation_error for epoch in epochs]
    best = kept_epoch(epochs)
    axes.plot(numbers, [epoch.train_error for epoch in epochs], "o-", color=BLUE, markersize=4, label="training")
    axes.plot(numbers, errors, "o-", color=VERMILION, markersize=4, label="validation")
    is_judged = not math.isnan(errors[best])
    kept = f"weights kept: epoch {numbers[best]}" + (f", {errors[best]:.4g} {unit}".rstrip() if is_judged else "")
    axes.plot(
        numbers[best],
        errors[best] if is_judged else epochs[best].train_error,
        "o",
        color=BLACK,
        fillstyle="none",
        markersize=10,
        linestyle="none",
        label=plain(kept),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    add_legend(axes, 3)
    table = pd.DataFrame(
        {
            "epoch": numbers,
            "train_error": [epoch.train_error for epoch in epochs],
            "validation_error": errors,
            "supervised_steps": [epoch.steps for epoch in epochs],
        }
    )
    return Drawing(figure, table)
