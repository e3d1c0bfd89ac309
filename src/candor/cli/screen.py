"""What the terminal shows: tables, progress with time left, and errors in plain words."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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

from candor.errors import InputError
from candor.progress import Report


class Screen(Console):
    """A console that leaves in peace when the reader of its output, such as `head`, has had enough."""

    def on_broken_pipe(self) -> None:
        """Ends the program without complaint; what could not be printed is thrown away."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)


def console() -> Console:
    """Returns the console for results; a pipe gets lines as wide as a table needs."""
    width = None if sys.stdout.isatty() else 160
    return Screen(width=width, highlight=False, soft_wrap=False, quiet=not is_main_process())


def errors(is_quiet: bool = False) -> Console:
    """Returns the console for everything that is not a result."""
    return Console(stderr=True, highlight=False, quiet=is_quiet)


def count_processes() -> int:
    """Returns how many processes torchrun or accelerate launched for this command."""
    return int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1


def is_main_process() -> bool:
    """Returns whether this is the one of several processes that speaks for all of them."""
    return count_processes() == 1 or os.environ["RANK"] == "0"


def say(text: str) -> None:
    """Prints a line about what is going on, beside the results."""
    errors(is_quiet=not is_main_process()).print(text)


def say_wrong(error: InputError) -> None:
    """Prints what is wrong with the input, where, and how to mend it.

    Of several processes one on each machine does so: a file may lack on one machine only.
    """
    screen = errors(is_quiet=count_processes() > 1 and os.environ.get("LOCAL_RANK", "0") != "0")
    place = f"[bold]{escape(error.where)}[/]: " if error.where else ""
    screen.print(f"[red]candor:[/] {place}{escape(error.what)}", soft_wrap=True)
    if error.mend:
        screen.print(f"  to mend it: {escape(error.mend)}", soft_wrap=True)


def say_bug(trace: str) -> None:
    """Prints the trace of a bug and asks for a report."""
    screen = errors()
    screen.print(escape(trace), soft_wrap=True)
    screen.print("[red]candor:[/] this is a bug in candor, not in your input. Please report the lines above.")


def print_json(content: Any) -> None:
    """Prints JSON for scripts."""
    if not is_main_process():
        return
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def table(title: str, *columns: str, left: int = 1) -> Table:
    """Returns an empty table whose first `left` columns are words and whose other columns are numbers."""
    result = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for place, column in enumerate(columns):
        result.add_column(column, justify="left" if place < left else "right", overflow="fold")
    return result


def number(value: float | None, digits: int = 3) -> str:
    """Returns a number for a table cell, and a dash where there is none."""
    return "–" if value is None or value != value else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Returns a share as a percentage for a table cell."""
    return number(None if share is None else 100 * share, 1)


@contextmanager
def progress() -> Iterator[Report]:
    """Yields a listener that shows one bar at a time: what is done, how much of it, the time spent and left."""
    screen = errors(is_quiet=not is_main_process())
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=screen.quiet or not screen.is_terminal,
    ) as bars:
        shown: dict[str, TaskID] = {}

        def listen(what: str, share: float | None) -> None:
            name, _, detail = what.partition(" | ")
            if name not in shown:
                for done in shown.values():
                    bars.update(done, visible=False)
                shown[name] = bars.add_task(detail or name, total=None if share is None else 1.0)
            bars.update(shown[name], completed=share or 0.0, description=detail or name)

        yield listen
