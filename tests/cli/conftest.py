"""A way to run the command in this process and see what it prints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from candor.cli import run
from candor.research import engine
from candor.research.engine import Cell, run_cell


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code and the two streams."""

    code: int
    out: str
    err: str


@pytest.fixture
def candor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Outcome]:
    """The command line, run in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        streams = capsys.readouterr()
        return Outcome(code, streams.out, streams.err)

    return call


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are worked on in this process, where what they do can be replaced."""

    def work(cells: list[Cell], root: Path, *_: object, **__: object) -> None:
        for cell in cells:
            run_cell(cell, root)

    monkeypatch.setattr(engine, "run_locally", work)


@pytest.fixture
def two_files(tmp_path: Path) -> tuple[Path, Path]:
    """A stranger's two files: hourly readings of three sensors, and edges."""
    chance = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=500, freq="h")
    cycle = np.sin(np.arange(500) / 24 * 2 * np.pi)[:, None]
    readings = pd.DataFrame(8 + cycle + 0.1 * chance.standard_normal((500, 3)), columns=["a", "b", "c"]).round(3)
    readings.insert(0, "time", times)
    readings.to_csv(tmp_path / "readings.csv", index=False)
    (tmp_path / "edges.csv").write_text("from,to,distance_km\na,b,2.5\nb,c,4\n")
    return tmp_path / "readings.csv", tmp_path / "edges.csv"
