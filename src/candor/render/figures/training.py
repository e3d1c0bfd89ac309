"""How the errors fell while the model learned."""

import math

import pandas as pd
from matplotlib.ticker import MaxNLocator

from candor.explain.pictures import TrainingPicture
from candor.render.figures.style import BLACK, BLUE, VERMILION, Drawing, add_legend, dress, in_unit, new_figure, plain


def draw_training(picture: TrainingPicture) -> Drawing:
    """Returns the figure of both errors by epoch, with the epoch whose weights were kept."""
    epochs, unit = picture.epochs, picture.unit
    note = "Training: over the steps supervised in that epoch, with dropout. Validation: over all steps."
    figure = new_figure("Training", note)
    axes = figure.subplots()
    dress(axes, "epoch", in_unit("mean absolute error", unit))
    numbers = [epoch.number + 1 for epoch in epochs]
    errors = [epoch.validation_error for epoch in epochs]
    best = picture.kept
    axes.plot(numbers, [epoch.train_error for epoch in epochs], "o-", color=BLUE, markersize=4, label="training")
    axes.plot(numbers, errors, "o-", color=VERMILION, markersize=4, label="validation")
    is_known = not math.isnan(errors[best])
    kept = f"weights kept: epoch {numbers[best]}" + (f", {errors[best]:.4g} {unit}".rstrip() if is_known else "")
    ringed = errors[best] if is_known else epochs[best].train_error
    axes.plot(numbers[best], ringed, "o", color=BLACK, fillstyle="none", markersize=10, linestyle="none",
              label=plain(kept))  # fmt: skip
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
