"""A grid at work tells how far it is: on a terminal all the time, in a log now and then."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from candor.cli import watching
from candor.core.files import write_json
from candor.core.progress import Report
from candor.research.engine import CELL, FAILURE, STATUS, CellState, run_cell
from candor.research.grid import GridCell, cells_of
from candor.research.suites import load_suite


@pytest.fixture
def cells(tmp_path: Path) -> list[GridCell]:
    """One that is done, and one of which a quarter is."""
    done, other = cells_of(load_suite("quick").chosen(["last-value", "linear"], tasks=["klamath-daily"]))
    assert run_cell(done, tmp_path) == CellState.DONE
    write_json(tmp_path / other.name / STATUS, {"what": "epoch [3]", "share": 0.25})
    return [done, other]


def test_the_screen_shows_cells_under_way_and_the_time_left_and_looks_at_a_done_cell_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cells: list[GridCell]
) -> None:
    done, other = cells
    looks = []
    state = GridCell.state

    def counted(cell: GridCell, grid: Path) -> CellState:
        looks.append(cell.name)
        return state(cell, grid)

    monkeypatch.setattr(GridCell, "state", counted)
    monkeypatch.setattr(watching, "errors", lambda: Console(file=text, force_terminal=True, width=100))
    clock = iter([100.0, *[160.0] * 5])
    # Of this module alone: threads of other tests read the clock, too.
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    text = StringIO()
    with watching.watching(cells, tmp_path) as watch:
        for _ in range(5):
            watch([other])
    assert looks.count(done.name) == 1 and looks.count(other.name) == 6
    # A quarter of a cell took a minute: three are left of the whole.
    for words in ("1 of 2 cells done, about 0:03:00 left", other.name, "epoch [3]", "25 %"):
        assert words in text.getvalue()


def test_a_log_is_told_how_much_of_all_cells_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cells: list[GridCell]
) -> None:
    told: list[tuple[str, float | None]] = []

    @contextmanager
    def listening() -> Iterator[Report]:
        yield lambda what, share: told.append((what, share))

    monkeypatch.setattr(watching, "progress", listening)
    with watching.watching(cells, tmp_path) as watch:
        watch(cells[1:])
        write_json(tmp_path / cells[1].name / CELL, cells[1].model_dump(mode="json"))
        write_json(tmp_path / cells[1].name / FAILURE, {"what": "it broke"})
        watch(cells[1:])
    assert told == [("cells | 1 of 2 cells done", 0.625), ("cells | 1 of 2 cells done, 1 failed", 1.0)]
