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
    """Works on all cells that are not done, with so many workers here or on a cluster, and shows how far they are.

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
            engine.run_on_cluster(left, root, ray, watch)
        else:
            engine.run_locally(left, root, workers, watch, lambda: say(_STOPPING), **options)


@contextmanager
def watching(cells: "Sequence[Cell]", root: Path) -> "Iterator[Watch]":
    """Yields what shows how far all cells are, called again and again with those that are being worked on.

    In a log or a pipe it leaves a line now and then.
    """
    screen, board = errors(), _Board(cells, root)
    if not screen.is_terminal:
        with progress() as report:

            def report_on(running: "Sequence[Cell]") -> None:
                board.look()
                report(f"cells | {', '.join(board.words())}", board.share(running))

            yield report_on
        return
    board.look()
    begun, share_before = time.monotonic(), board.share([])
    with Live(console=screen, auto_refresh=False, transient=True) as live:

        def show(running: "Sequence[Cell]") -> None:
            board.look()
            share = board.share(running)
            title = ", ".join([*board.words(), *time_left(time.monotonic() - begun, share_before, share)])
            shown = table(title, "cell", "now", "done", left=2)
            for cell in running:
                status = board.status(cell)
                part = "" if status.get("share") is None else f"{100 * status['share']:.0f} %"
                shown.add_row(escape(cell.name), escape(str(status.get("what", "starting"))), part)
            live.update(shown, refresh=True)

        yield show


class _Board:
    """Reads how far cells are from their files; of those that are done nothing is read again."""

    def __init__(self, cells: "Sequence[Cell]", root: Path) -> None:
        self._cells, self._root = cells, root
        self._done: set[str] = set()
        self._failed: set[str] = set()

    def look(self) -> None:
        """Finds out which cells are done and failed by now."""
        from candor.research.engine import CellState

        states = {cell.name: cell.state(self._root) for cell in self._cells if cell.name not in self._done}
        self._done.update(name for name, state in states.items() if state == CellState.DONE)
        self._failed = {name for name, state in states.items() if state == CellState.FAILED}

    def status(self, cell: "Cell") -> dict[str, Any]:
        """Returns what a cell says of its work."""
        from candor.research.engine import status_of

        return status_of(cell, self._root)

    def words(self) -> list[str]:
        """Returns how many cells are done and failed."""
        failed = [f"{len(self._failed)} failed"] if self._failed else []
        return [f"{len(self._done)} of {len(self._cells)} cells done", *failed]

    def share(self, running: "Sequence[Cell]") -> float:
        """Returns the share of all work that is done, 0 to 1, given the cells that are being worked on."""
        over = self._done | self._failed
        under_way = sum(self.status(cell).get("share") or 0.0 for cell in running if cell.name not in over)
        return (len(over) + under_way) / max(len(self._cells), 1)
