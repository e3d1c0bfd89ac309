"""How all figures look, and how they are written.

Everything is set on the figure itself, never in matplotlib's global state, so that figures can be drawn in any thread.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import date2num
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.core.files import atomic_file
from candor.core.text import format_time

# The colours of Okabe and Ito, which people with any kind of colour vision can tell apart.
BLACK, GREY, BROWN = "#222222", "#8a8a8a", "#8c6d1f"
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"


@dataclass(frozen=True)
class Look:
    """How a component or a branch is drawn wherever it is: lines that lie on one another differ in dashes and marks."""

    colour: str
    line: str  # of matplotlib, its mark first
    symbol: str  # the mark, as plotly calls it
    words: str = ""  # what it stands for

    @property
    def mark(self) -> str:
        """The mark of the line alone."""
        return self.line[0]

    def label(self, name: str) -> str:
        """Return what a key says of it."""
        return f"{name}: {self.words}"


COMPONENTS = {
    "background": Look(BLUE, "o-", "circle"),
    "accumulation": Look(ORANGE, "s-", "square"),
    "release": Look(GREEN, "^--", "triangle-up"),
    "shock": Look(VERMILION, "D-.", "diamond"),
}
PARTS = {
    "usual": BLUE, "storage": GREEN, "shock": VERMILION, "arrived": BROWN, "own": PURPLE, "arrivals": ORANGE,
    "rest": GREY, "alike": SKY, "learned": BLACK, "blend": GREY,
}  # fmt: skip
"""Colours of the parts of a forecast by kind, see `candor.forecasting.breakdown`."""
BRANCHES = {
    "functional": Look(BLUE, "o-", "circle", "own past and sensors alike"),
    "forward": Look(ORANGE, "s-", "square", "along the edges"),
    "reverse": Look(GREEN, "^--", "triangle-up", "against the edges"),
}
DIRECTIONS = {name: BRANCHES[name].label(name.capitalize()) for name in ("forward", "reverse")}
DIRECTION_COLOURS = {"forward": BLUE, "reverse": VERMILION}  # on maps
GATE_COLOURS = (ORANGE, GREEN, VERMILION, PURPLE)
POSITION_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)  # of the patches in a window, oldest first

WIDTH, HEIGHT, DOTS_PER_INCH = 8.0, 4.5, 150  # inches; 1200 dots wide
TITLE, LABEL, SMALL = 12.0, 10.0, 8.5  # points
_LEGEND: dict[str, Any] = {"fontsize": SMALL, "frameon": False}
_MOST_TICKS = 8
_LETTERS = 118  # in a line of a note
# Steps between ticks and what pandas calls them.
_STEPS = (
    *((timedelta(seconds=seconds), f"{seconds}s") for seconds in (1, 2, 5, 10, 15, 30)),
    *((timedelta(minutes=minutes), f"{minutes}min") for minutes in (1, 2, 5, 10, 15, 30)),
    *((timedelta(hours=hours), f"{hours}h") for hours in (1, 3, 6, 12)),
    *((timedelta(days=days), f"{days}D") for days in (1, 2, 7, 14)),
    *((timedelta(days=28 * months), f"{months}MS") for months in (1, 3, 12)),
)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure and the numbers it shows."""

    figure: Figure
    table: pd.DataFrame

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write NAME.png, NAME.svg and NAME.csv, each all or nothing, and return their paths."""
        paths = [folder / f"{name}.{ending}" for ending in ("png", "svg", "csv")]
        if paths[2].exists() and not all(path.exists() for path in paths[:2]):
            raise InputError(
                f"a figure called {name} would replace {paths[2].name}, which belongs to no figure",
                where=str(paths[2]),
                hint="choose another place or name with --out, or move that file away",
            )
        for path in paths[:2]:
            self._write_figure(path)
        write_table(self.table, paths[2])
        return paths

    def _write_figure(self, path: Path) -> None:
        ending = path.suffix[1:]
        # The same figure gives the same bytes: no date, and names of parts of an SVG that do not depend on chance.
        metadata = {"Date": None} if ending == "svg" else {"Software": None}
        with atomic_file(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "candor"}):
            self.figure.savefig(temporary, format=ending, dpi=DOTS_PER_INCH, metadata=metadata)


def write_table(table: pd.DataFrame, path: Path) -> Path:
    """Write a table as CSV, all or nothing, and return its path."""
    with atomic_file(path) as temporary:
        table.to_csv(temporary, index=False)
    return path


def new_figure(title: str, note: str = "", height: float = HEIGHT) -> Figure:
    """Return a figure with a title and a line of small print under it; its axes are made by `figure.subplots`."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)  # inches
    figure = Figure(figsize=(WIDTH, height), dpi=DOTS_PER_INCH, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle(plain(title), fontsize=TITLE, fontweight="bold", color=BLACK, x=0.01, ha="left")
    if note:
        lines = "\n".join(fill(line, _LETTERS) for line in note.splitlines())
        figure.supxlabel(plain(lines), fontsize=SMALL, color=GREY, x=0.01, ha="left")
    return figure


def new_axes(title: str, note: str = "", across: str = "", up: str = "", height: float = HEIGHT) -> tuple[Figure, Axes]:
    """Return a figure with its only axes, dressed."""
    figure = new_figure(title, note, height)
    axes = figure.subplots()
    dress(axes, across, up)
    return figure, axes


def dress(axes: Axes, across: str = "", up: str = "", title: str = "") -> None:
    """Give axes their labels, quiet lines and a light grid."""
    axes.set_title(plain(title), fontsize=LABEL, loc="left", color=BLACK)
    axes.set_xlabel(plain(across), fontsize=LABEL, color=BLACK)
    axes.set_ylabel(plain(up), fontsize=LABEL, color=BLACK)
    axes.tick_params(labelsize=SMALL, color=GREY, labelcolor=BLACK)
    # Whole numbers at the ticks: what matplotlib takes off or divides by would stand small above, under the legend.
    axes.ticklabel_format(axis="y", style="plain", useOffset=False)
    axes.grid(visible=True, color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GREY)


def add_legend(axes: Axes, columns: int, handles: Iterable[Artist] | None = None, **look: Any) -> None:
    """Put the legend above the axes, where it covers nothing."""
    shown = axes.get_legend_handles_labels()[0] if handles is None else handles
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.3}
    axes.legend(handles=shown, ncols=columns, **(_LEGEND | place | look))


def add_key(axes: Axes, handles: Iterable[Artist | tuple[Artist, ...]], columns: int, **look: Any) -> None:
    """Make of axes a row of their own for a key, which draws nothing else."""
    axes.set_axis_off()
    axes.legend(handles=handles, ncols=columns, **(_LEGEND | {"loc": "center left"} | look))


def name_rows(axes: Axes, names: Sequence[str], size: float = SMALL, *, has_lines: bool = False) -> None:
    """Name the rows of horizontal bars or marks at 0, 1, ..., the first on top, with grid lines where they help."""
    axes.set_yticks(range(len(names)), [plain(name) for name in names], fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=has_lines, axis="y")


def every(count: int, most: int) -> range:
    """Return places at equal distances among so many, at most a few of them."""
    return range(0, count, -(-count // most))


def on_axis(times: Sequence[datetime]) -> NDArray[np.float64]:
    """Return times as the numbers that an axis of `use_local_times` counts in."""
    numbers: NDArray[np.float64] = date2num(list(times))  # type: ignore[no-untyped-call]
    return numbers


def use_local_times(axes: Axes, times: Sequence[datetime]) -> None:
    """Write the times of the horizontal axis as the clock of their zone shows them; `times` are all that it spans."""
    ticks, texts = round_times(times[0], times[-1], _MOST_TICKS)
    axes.set_xticks(on_axis(ticks) if ticks else [], texts)
    axes.set_xlabel(time_label(times[0], times[-1]), fontsize=LABEL, color=BLACK)
    first, last = (moment.astimezone(UTC) for moment in (times[0], times[-1]))  # sums of local times forget the fold
    room = 0.015 * (last - first) or timedelta(hours=1)
    axes.set_xlim(*on_axis([first - room, last + room]))


def time_label(first: datetime, last: datetime) -> str:
    """Return the label of an axis of local times between two: their zone and their years."""
    years = f"{first.year}" if first.year == last.year else f"{first.year}–{last.year}"
    return f"local time ({first.tzinfo}), {years}"


def round_times(first: datetime, last: datetime, most: int) -> tuple[list[datetime], list[str]]:
    """Return a few round moments between two, counted on the local clock, and how they are written at an axis.

    Of an hour that the clock shows twice both are there, with their offsets. One that it leaves out is not.
    """
    begin, end = (moment.astimezone(UTC) for moment in (first, last))
    step, frequency = next(((s, f) for s, f in _STEPS if end - begin <= most * s), _STEPS[-1])
    early, late = sorted(pd.Timestamp(moment.replace(tzinfo=None)) for moment in (first, last))
    is_fine = step <= timedelta(hours=1)
    # Some hours more, since the clock may be set back before the last moment.
    local = pd.date_range(early.floor("h") if is_fine else early.normalize(), late + timedelta(hours=3), freq=frequency)
    turns = [
        local.tz_localize(first.tzinfo, ambiguous=np.full(len(local), is_first), nonexistent="shift_forward")
        for is_first in ((True, False) if is_fine else (True,))
    ]
    found = {tick.astimezone(UTC): tick for ticks in turns for tick in ticks.to_pydatetime()}
    shown = [found[moment] for moment in sorted(found) if begin <= moment <= end]
    return shown, [at_tick(tick, _tick_form(step)) for tick in shown]


def at_tick(moment: datetime, form: str) -> str:
    """Return a moment as it is written under an axis, where an offset has a line of its own."""
    return format_time(moment, form).replace(" UTC", "\nUTC")


def _tick_form(step: timedelta) -> str:
    if step < timedelta(days=1):
        return "%d %b\n%H:%M:%S" if step < timedelta(minutes=1) else "%d %b\n%H:%M"
    return "%d %b" if step < timedelta(days=28) else "%b %Y"


def plain(text: str) -> str:
    """Return a text as it can be drawn: without formulas, and without words in a script that the font lacks.

    A single letter that it lacks is a question mark; so are all of a text that would not leave anything else.
    """
    font = get_font(findfont("DejaVu Sans"))  # the one that comes with matplotlib

    def is_known(letter: str) -> bool:
        return letter == "\n" or bool(font.get_char_index(ord(letter)))

    words: list[str] = []
    for word in text.split(" "):
        if not word or any(map(is_known, word)):
            words.append(word)
        elif words and words[-1] == "/":  # which stood between a name and the same name in another script
            words.pop()
    known = "".join(letter if is_known(letter) else "?" for letter in " ".join(words).removeprefix("/ ") or text)
    return known.replace("$", r"\$")


def cut(text: str, longest: int) -> str:
    """Return a text, or its beginning where it is too long."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def in_unit(what: str, unit: str) -> str:
    """Return the label of an axis with its unit."""
    return f"{what} [{unit}]" if unit else what
