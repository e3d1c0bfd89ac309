"""What the terminal shows: tables, progress with time left, and errors in plain words."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from candor.core.errors import InputError
from candor.core.progress import Report
from candor.core.text import number

LEVEL_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}
_SPEED_PERIOD = 3600.0  # seconds; with the default of 30, steps a minute apart have no speed
_SHORTEST_SILENCE, _LONGEST_SILENCE = 10.0, 600.0  # seconds between two lines in a log


class Screen(Console):
    """A console that exits quietly on a broken pipe, as with `| head`."""

    def on_broken_pipe(self) -> None:
        """Exit with 0."""
        _exit_quietly()


def _exit_quietly() -> None:
    """Exit with 0; what could not be printed is discarded."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0)


def console() -> Console:
    """Return the console for results; a pipe gets lines as wide as a table needs."""
    width = None if sys.stdout.isatty() else 160
    return Screen(width=width, highlight=False, soft_wrap=False, quiet=not is_main_process())


def errors(is_quiet: bool = False) -> Console:
    """Return the console for everything that is not a result."""
    return Console(stderr=True, highlight=False, quiet=is_quiet)


def count_processes() -> int:
    """Return how many processes torchrun or accelerate launched for this command."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def is_main_process() -> bool:
    """Return whether this is the one of several processes that prints."""
    return count_processes() == 1 or os.environ["RANK"] == "0"


def say(text: str, *, label: str = "", colour: str = "") -> None:
    """Print a status line to stderr without markup; a label may go before it in a colour."""
    mark = f"[{colour}]{escape(label)}[/]" if label else ""
    errors(is_quiet=not is_main_process()).print(f"{mark}{escape(text)}")


def say_written(files: Iterable[Path]) -> None:
    """Print to stderr which files were written."""
    say(f"written: {', '.join(str(file) for file in files)}")


def say_failed(failed: Iterable[tuple[str, object]], label: str = "failed") -> None:
    """Print to stderr what failed, by name, and why."""
    for name, why in failed:
        say(f" {name}: {why}", label=label, colour="red")


def tell(text: str) -> None:
    """Print a line of results to stdout, without markup and unbroken."""
    console().print(text, markup=False, soft_wrap=True)


def tell_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print facts to stdout, a line each, under bold names."""
    for name, fact in facts:
        console().print(f"[bold]{name}[/]: {escape(str(fact))}", soft_wrap=True)


def print_error(error: InputError) -> None:
    """Print what is wrong with the input, where, and how to correct it.

    Of several processes one on each machine does so: a file may be missing on one machine only.
    """
    screen = errors(is_quiet=count_processes() > 1 and os.environ.get("LOCAL_RANK", "0") != "0")
    place = f"[bold]{escape(error.where)}[/]: " if error.where else ""
    screen.print(f"[red]candor:[/] {place}{escape(error.what)}", soft_wrap=True)
    if error.hint:
        screen.print(f"  hint: {escape(error.hint)}", soft_wrap=True)


def print_bug(trace: str) -> None:
    """Print the traceback of a bug and asks for a report."""
    screen = errors()
    screen.print(escape(trace), soft_wrap=True)
    screen.print("[red]candor:[/] this is a bug in candor, not in your input. Please report the lines above.")


def print_json(content: Any, *, is_line: bool = False) -> None:
    """Print JSON for scripts; as one line where others follow."""
    if not is_main_process():
        return
    text = json.dumps(content, indent=None if is_line else 2, ensure_ascii=False, allow_nan=False)
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _exit_quietly()


def table(title: str, *columns: str, left: int = 1) -> Table:
    """Return an empty table whose first `left` columns are words and whose other columns are numbers."""
    result = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for place, column in enumerate(columns):
        result.add_column(column, justify="left" if place < left else "right", overflow="fold")
    return result


def show_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[str] | None], left: int = 1) -> None:
    """Print a table of cells with markup, of which the first `left` are words; None is a line between rows."""
    shown = table(title, *columns, left=left)
    for row in rows:
        if row is None:
            shown.add_section()
        else:
            shown.add_row(*row)
    console().print(shown)


def percentage(share: float | None) -> str:
    """Return a share as a percentage without its sign, for a table cell."""
    return number(None if share is None else 100 * share, 1)


@contextmanager
def progress(clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Yield a progress callback that shows one bar at a time: what is done, how much of it, the time spent and left.

    In a log or a pipe, long work prints a line now and then instead. The clock tells seconds since some moment.
    """
    screen = errors(is_quiet=not is_main_process())
    if screen.quiet or not screen.is_terminal:
        yield _PlainLines(screen, clock)
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        get_time=clock,
        speed_estimate_period=_SPEED_PERIOD,
    ) as bars:
        works, shown = _Works(clock), dict[str, TaskID]()

        def listen(what: str, share: float | None) -> None:
            name, _, detail = what.partition(" | ")
            before = works.current
            if works.update(name, share).is_new and name in shown:  # rich would not restart a bar that has ended
                bars.remove_task(shown.pop(name))
            if before in shown and before != name:
                bars.update(shown[before], visible=False)
            total = None if share is None else 1.0  # may be known later only
            if name not in shown:
                shown[name] = bars.add_task(detail or name, total=total)
            bars.update(shown[name], total=total, completed=share or 0.0, description=detail or name, visible=True)

        yield listen


@contextmanager
def preparing_figures() -> Iterator[Report]:
    """Yield a progress callback that has reported already: the first import of matplotlib looks for fonts."""
    with progress() as report:
        report("preparing figures", None)
        yield report


@dataclass
class _Work:
    """Work under one name: when it began and the share then, the share done, and the share printed last."""

    begun: float
    share_then: float
    share: float
    printed: float
    is_new: bool = True


class _Works:
    """Works by name; one whose share falls, or that is reported again after its end, starts anew."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._works, self.current = clock, dict[str, _Work](), ""

    def update(self, name: str, share: float | None) -> _Work:
        """Return the work that was reported."""
        work, done = self._works.get(name), share or 0.0
        if work is None or done < work.share or (work.share >= 1 and name != self.current):
            work = self._works[name] = _Work(self._clock(), done, done, done)
        else:
            work.share, work.is_new = done, False
        self.current = name
        return work


class _PlainLines:
    """Prints progress in lines: none in the first seconds, then one for every tenth or every ten minutes."""

    def __init__(self, screen: Console, clock: Callable[[], float]) -> None:
        self._screen, self._clock, self._works, self._last_line = screen, clock, _Works(clock), clock()

    def __call__(self, what: str, share: float | None) -> None:
        name, _, detail = what.partition(" | ")
        now, work = self._clock(), self._works.update(name, share)
        silence = now - self._last_line
        is_step = _tenths(work.share) > _tenths(work.printed)
        if silence < _SHORTEST_SILENCE or (not is_step and silence < _LONGEST_SILENCE):
            return
        self._last_line, work.printed = now, work.share
        done = [] if share is None else [f"{100 * work.share:.0f} %"]
        words = [detail or name, *done, *time_left(now - work.begun, work.share_then, work.share)]
        self._screen.print(escape(", ".join(words)), soft_wrap=True)


def time_left(spent: float, share_before: float, share: float) -> list[str]:
    """Return the time left in words, if it can be known from the seconds spent between two shares (0 to 1)."""
    if not share_before < share < 1:
        return []
    return [f"about {timedelta(seconds=round(spent * (1 - share) / (share - share_before)))} left"]


def _tenths(share: float) -> int:
    """Return how many whole tenths are done, allowing for the rounding of summed shares."""
    return int(10 * share + 1e-6)
