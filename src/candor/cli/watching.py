"""Cells of work from the command line: handed to the engine, and watched until they are done."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.markup import escape

from candor.cli.screen import errors, progress, say, table, time_left

if TYPE_CHECKING:
    from candor.research.engine import Cell, Watch

_STOPPING = "saving and stopping; models fitted in one go are finished first. Ctrl-C once more ends all at once"


def work_on(
    cells: "Sequence[Cell]",
    root: Path,
    *,
    workers: int = 1,
    ray: str | None = None,
    look: Callable[[Any], None] = lambda cell: None,
    **options: int,
) -> None:
    """Work on all cells that are not done, with so many workers here or on a cluster, and show how far they are.

    `look` is called again and again with each cell that is being worked on; options are those of `run_locally`.
    """
    from candor.research import engine

    left = [cell for cell in cells if cell.state(root) != engine.CellState.DONE]
    with engine.stopped_by_sigterm(), watching(cells, root) as show:

        def watch(running: "Sequence[Cell]") -> None:
            for cell in running:
                look(cell)
            show(running)

        if ray is not None:
            from candor.research.ray_cluster import run_on_cluster

            run_on_cluster(left, root, ray, watch)
        else:
            engine.run_locally(left, root, workers, watch, lambda: say(_STOPPING), **options)


@contextmanager
def watching(cells: "Sequence[Cell]", root: Path) -> "Iterator[Watch]":
    """Yield what shows how far all cells are, called again and again with those that are being worked on.

    In a log or a pipe it leaves a line now and then.
    """
    from candor.research.engine import status_of

    screen, board = errors(), _Board(cells, root)
    if not screen.is_terminal:
        with progress() as report:

            def report_on(running: "Sequence[Cell]") -> None:
                words, share = board.look(running)
                report(f"cells | {', '.join(words)}", share)

            yield report_on
        return
    begun, (_, share_before) = time.monotonic(), board.look([])
    with Live(console=screen, auto_refresh=False, transient=True) as live:

        def show(running: "Sequence[Cell]") -> None:
            words, share = board.look(running)
            title = ", ".join([*words, *time_left(time.monotonic() - begun, share_before, share)])
            shown = table(title, "cell", "now", "done", left=2)
            for cell in running:
                status = status_of(cell, root)
                part = "" if status.get("share") is None else f"{100 * status['share']:.0f} %"
                shown.add_row(escape(cell.name), escape(str(status.get("what", "starting"))), part)
            live.update(shown, refresh=True)

        yield show


class _Board:
    """Reads how far cells are from their files; of those that are done nothing is read again."""

    def __init__(self, cells: "Sequence[Cell]", root: Path) -> None:
        self._cells, self._root, self._done = cells, root, set[str]()

    def look(self, running: "Sequence[Cell]") -> tuple[list[str], float]:
        """Return how many cells are done and failed by now, and the share of all work that is done, 0 to 1."""
        from candor.research.engine import CellState, status_of

        states = {cell.name: cell.state(self._root) for cell in self._cells if cell.name not in self._done}
        self._done.update(name for name, state in states.items() if state == CellState.DONE)
        failed = {name for name, state in states.items() if state == CellState.FAILED}
        over = self._done | failed
        left = [cell for cell in running if cell.name not in over]
        share = len(over) + sum(status_of(cell, self._root).get("share") or 0.0 for cell in left)
        words = [f"{len(self._done)} of {len(self._cells)} cells done", *([f"{len(failed)} failed"] if failed else [])]
        return words, share / max(len(self._cells), 1)
