"""Scores of explanations against the truth, beside those of simple rules and the goals; answers to pulses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from candor.render.figures import style
from candor.render.figures.style import Drawing, add_legend, dress, new_figure, plain
from candor.research.truth.results import OURS, Row, score_frame

_ROW_HEIGHT = 0.19  # inches
_HEAD_HEIGHT = 1.5
_GAP = 0.7  # rows between two questions
_SHOWN = frozenset({"AUROC", "average precision", "rank correlation", "precision of the first", "correlation"})


def draw_truth(rows: Sequence[Row]) -> Drawing:
    """Return the figure: a panel per dataset, a group of lines per question, a line per answer.

    The table beside it holds all rows, the figure those whose measures share a scale.
    """
    scores = [row for row in rows if row.measure in _SHOWN]
    seeds = max((len(row.by_seed) for row in rows), default=0)
    note = f"Held-out test part, mean over {seeds} seed{'s' if seeds > 1 else ''}; bars: standard deviation over seeds."
    datasets = list(dict.fromkeys(score.dataset for score in scores))
    heights = _heights(scores)
    lowest = max(heights.values())
    figure = new_figure("Are the explanations true?", note, height=_HEAD_HEIGHT + _ROW_HEIGHT * (lowest + 1))
    panels = figure.subplots(1, len(datasets), sharex=True, sharey=True, squeeze=False)[0]
    for axes, dataset in zip(panels, datasets, strict=True):
        dress(axes, "score", title=dataset)
        _draw_scores(axes, [score for score in scores if score.dataset == dataset], heights)
        axes.axvline(0, color=style.GREY, linewidth=0.8)
    first = panels[0]
    names = [plain(answer or question) for question, answer in heights]
    first.set_yticks(list(heights.values()), names, fontsize=style.SMALL)
    for label, (_, answer) in zip(first.get_yticklabels(), heights, strict=True):
        label.set_fontweight("normal" if answer else "bold")
    first.set_ylim(lowest + 0.8, -0.8)
    mark: dict[str, Any] = {"linestyle": "", "markersize": 5}
    key = [
        Line2D([], [], color=style.BLUE, marker="o", label=OURS[rows[0].model] if rows else OURS["candor"], **mark),
        Line2D([], [], color=style.GREY, marker="D", label="simple rules", **mark),
        Line2D([], [], color=style.VERMILION, linewidth=1.6, label="goal"),
    ]
    add_legend(first, 3, key, loc="lower right", bbox_to_anchor=(1.0, 1.04))
    return Drawing(figure, score_frame(rows))


def _heights(scores: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Return the height of each question's answers, and under an empty answer that of its heading above them."""
    answers: dict[str, dict[str, None]] = {}
    for score in scores:
        answers.setdefault(_question(score), {"": None})[score.answer] = None
    rows = [(question, answer, rank) for rank, (question, found) in enumerate(answers.items()) for answer in found]
    return {(question, answer): place + _GAP * rank for place, (question, answer, rank) in enumerate(rows)}


def _question(score: Row) -> str:
    return f"{score.question}: {score.measure}"


def _draw_scores(axes: Axes, scores: Sequence[Row], heights: dict[tuple[str, str], float]) -> None:
    for score in scores:
        height = heights[_question(score), score.answer]
        if score.mean is not None:
            look: dict[str, Any] = (
                {"color": style.BLUE, "fmt": "o"} if score.is_ours else {"color": style.GREY, "fmt": "D"}
            )
            axes.errorbar(score.mean, height, xerr=score.spread, markersize=5, linewidth=1.2, capsize=2, **look)
        if score.goal is not None:
            axes.plot([score.goal] * 2, [height - 0.5, height + 0.5], color=style.VERMILION, linewidth=1.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0, labelcolor=style.BLACK)


def draw_pulses(curves: pd.DataFrame) -> Drawing:
    """Return the figure of what arrives downstream of a pulse: a panel per dataset and answer, a line per true delay.

    Args:
        curves: with columns dataset, seed, answer, delay, edges, lag and response.
    """
    note = "Mean over seeds and edges with this delay, which is marked by a dot; a pulse has the size 1."
    datasets, answers = (list(dict.fromkeys(curves[name])) for name in ("dataset", "answer"))
    figure = new_figure("What arrives of a pulse upstream", note, height=max(len(datasets), 1) * 2.6 + 1)
    if curves.empty:
        return Drawing(figure, curves)
    panels = figure.subplots(len(datasets), len(answers), sharex=True, sharey="row", squeeze=False)
    delays = sorted(set(curves["delay"]))
    colours = dict(zip(delays, colormaps["viridis"](np.linspace(0, 0.9, len(delays))), strict=True))
    for row, dataset in zip(panels, datasets, strict=True):
        for axes, answer in zip(row, answers, strict=True):
            dress(axes, "steps after the pulse", "response", f"{dataset}, {answer}")
            shown = curves[(curves["dataset"] == dataset) & (curves["answer"] == answer)]
            for delay, of_delay in shown.groupby("delay"):
                weighed = (of_delay["response"] * of_delay["edges"]).groupby(of_delay["lag"]).sum()
                means = weighed / of_delay["edges"].groupby(of_delay["lag"]).sum()
                axes.plot(means.index, means, color=colours[delay], linewidth=1.4)
                axes.plot(means.index[means.index == delay], means[means.index == delay], "o", color=colours[delay])
    keys = [Line2D([], [], color=colours[delay], linewidth=1.4, label=f"{delay}") for delay in delays]
    look: dict[str, Any] = {"title": "true delay in steps", "title_fontsize": style.SMALL, "fontsize": style.SMALL}
    figure.legend(handles=keys, loc="outside upper right", ncols=min(len(keys), 12), frameon=False, **look)
    return Drawing(figure, curves)
