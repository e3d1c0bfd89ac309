"""What a grid at work shows: the cells under way, how many are done, and the time left."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.markup import escape

from candor.cli.screen import errors, progress, table, time_left

if TYPE_CHECKING:
    from candor.research.cells import Cell
    from candor.research.local import Watch


@contextmanager
def watching(cells: "Sequence[Cell]", grid: Path) -> "Iterator[Watch]":
    """Yields a listener that is told every moment which cells are being worked on, and shows how far they are.

    Where nobody watches, in a log or a pipe, it leaves a line now and then.

    Args:
        cells: all of them, done or not.
        grid: their folder.
    """
    screen, onlooker = errors(), _Onlooker(cells, grid)
    if not screen.is_terminal:
        with progress() as report:

            def tell(running: "Sequence[Cell]") -> None:
                onlooker.look()
                report(f"cells | {', '.join(onlooker.words())}", onlooker.share(running))

            yield tell
        return
    onlooker.look()
    begun, share_before = time.monotonic(), onlooker.share([])
    with Live(console=screen, auto_refresh=False, transient=True) as live:

        def show(running: "Sequence[Cell]") -> None:
            onlooker.look()
            share = onlooker.share(running)
            title = ", ".join([*onlooker.words(), *time_left(time.monotonic() - begun, share_before, share)])
            shown = table(title, "cell", "now", "done", left=2)
            for cell in running:
                status = onlooker.status(cell)
                part = "" if status.get("share") is None else f"{100 * status['share']:.0f} %"
                shown.add_row(escape(cell.name), escape(str(status.get("what", "starting"))), part)
            live.update(shown, refresh=True)

        yield show


class _Onlooker:
    """Looks at the files of cells; those that are done are not looked at again."""

    def __init__(self, cells: "Sequence[Cell]", grid: Path) -> None:
        self._cells, self._grid = cells, grid
        self._done: set[str] = set()
        self._failed: set[str] = set()

    def look(self) -> None:
        """Finds out which cells are done and failed by now."""
        from candor.research.cells import CellState

        states = {cell.name: cell.state(self._grid) for cell in self._cells if cell.name not in self._done}
        self._done.update(name for name, state in states.items() if state == CellState.DONE)
        self._failed = {name for name, state in states.items() if state == CellState.FAILED}

    def status(self, cell: "Cell") -> dict[str, Any]:
        """Returns what a cell says of its work."""
        from candor.research.cells import status_of

        return status_of(cell, self._grid)

    def words(self) -> list[str]:
        """Returns how many cells are done and failed."""
        failed = [f"{len(self._failed)} failed"] if self._failed else []
        return [f"{len(self._done)} of {len(self._cells)} cells done", *failed]

    def share(self, running: "Sequence[Cell]") -> float:
        """Returns the share of all work that is done, 0 to 1, given the cells that are being worked on."""
        over = self._done | self._failed
        under_way = sum(self.status(cell).get("share") or 0.0 for cell in running if cell.name not in over)
        return (len(over) + under_way) / max(len(self._cells), 1)
