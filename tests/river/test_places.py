"""Where a basin may be written: nothing else is ever removed, and a place that is no good is told of at once."""

import os
import signal
from multiprocessing import get_context
from pathlib import Path

import made_basin
import pytest

from candor.cli import run
from candor.core import files
from candor.core.errors import InputError
from candor.data.panel_store import load_panel
from candor.river.folder import export_archive, save_basin

BASIN = ("--huc", "180102", "--start", "2021-05-01", "--end", "2021-05-21", "--max-distance-km", "50")


def everything_under(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with somebody's own things."""
    (tmp_path / "work" / "thesis").mkdir(parents=True)
    (tmp_path / "work" / "thesis" / "chapter.tex").write_text("years of work")
    (tmp_path / "work" / "notes.txt").write_text("more")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--out", "work"), "holds other things"),
        (("--out", "work/notes.txt"), "a folder is needed"),
        (("--out", "work/notes.txt/basin"), "nothing can be written here"),
        (("--out", "/proc/basin"), "nothing can be written here"),
        (("--out", "."), "holds other things"),
        (("--archive", "work/notes.txt/basin.zip"), "nothing can be written here"),
        (("--archive", "/proc/basin.zip"), "nothing can be written here"),
        (("--archive", "folder.zip"), "this is a folder"),
        (("--archive", "basin/basin.zip"), "could then not be built again"),
        (("--out", "new", "--cache", "new/cache"), "is replaced as a whole"),
        (("--out", "new", "--cache", "new"), "is replaced as a whole"),
    ],
)
def test_a_place_that_is_no_good_is_refused_before_anybody_is_asked(usgs, build, work, options, words: str) -> None:
    made_basin.fill(usgs)
    Path("folder.zip").mkdir()
    before = everything_under(work.parent)
    code, _, err = build(*BASIN, *options)
    assert code == 2 and words in " ".join(err.split()), err
    assert "Traceback" not in err
    assert usgs.requests == []
    assert everything_under(work.parent) == before
    assert sorted(path.name for path in Path().iterdir()) == ["folder.zip", "work"]


def test_the_folder_that_the_command_was_started_in_is_not_taken_away(built, build, monkeypatch, tmp_path) -> None:
    assert build(*BASIN, "--cache", built.cache)[0] == 0
    monkeypatch.chdir("basin")
    code, _, err = build(*BASIN, "--cache", built.cache, "--out", ".")
    assert code == 2 and "was started in this folder" in err
    assert load_panel(tmp_path / "basin").fingerprint == built.basin.panel.fingerprint


def test_an_earlier_basin_and_an_empty_folder_are_taken(built, build) -> None:
    Path("basin").mkdir()
    for _ in range(2):
        code, _, err = build(*BASIN, "--cache", built.cache)
        assert code == 0, err
    assert load_panel(Path("basin")).fingerprint == built.basin.panel.fingerprint
    assert [path.name for path in Path().iterdir()] == ["basin"]


def test_other_things_that_came_during_the_work_stay(built, work) -> None:
    before = everything_under(work)
    with pytest.raises(InputError, match="holds other things"):
        save_basin(built.basin, work)
    assert everything_under(work) == before


@pytest.mark.parametrize("flushes", [1, 3, 5])  # while the panel is written, after it, and while the rest is
def test_a_kill_while_a_basin_is_written_leaves_the_old_one_whole_and_the_next_time_nothing_else(
    built, tmp_path, flushes: int
) -> None:
    place = tmp_path / "basin"
    save_basin(built.basin, place)
    (tmp_path / ".basin.notes").write_text("somebody's own")
    before = everything_under(place)

    def be_killed() -> None:
        flushed: list[Path] = []

        def flush(path: Path) -> None:
            flushed.append(path)
            if len(flushed) == flushes:
                os.kill(os.getpid(), signal.SIGKILL)

        files._flush_to_disk = flush
        save_basin(built.basin, place)

    job = get_context("fork").Process(target=be_killed, daemon=True)
    job.start()
    job.join(120)
    assert job.exitcode == -signal.SIGKILL
    assert everything_under(place) == before and len(list(tmp_path.iterdir())) > 2
    save_basin(built.basin, place)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".basin.notes", "basin"]
    assert load_panel(place).fingerprint == built.basin.panel.fingerprint


def test_a_disk_that_is_full_in_the_end_is_told_of(built, tmp_path, monkeypatch) -> None:
    def is_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    save_basin(built.basin, tmp_path / "basin")
    monkeypatch.setattr("candor.river.folder.dataset_card", is_full)
    with pytest.raises(InputError, match="No space left") as caught:
        save_basin(built.basin, tmp_path / "other")
    assert caught.value.where == str(tmp_path / "other")
    monkeypatch.setattr("candor.river.folder.sha256_of_file", is_full)
    with pytest.raises(InputError, match="No space left"):
        export_archive(tmp_path / "basin", tmp_path / "basin.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["basin"]


def test_bringing_in_files_removes_nothing_either(work, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("readings.csv").write_text("time,a\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n2024-01-01 02:00,3\n")
    command = ["data", "import", "readings.csv", "--zone", "UTC", "--out"]
    before = everything_under(tmp_path)
    for place, words in [("work", "holds other things"), ("readings.csv/basin", "nothing can be written here")]:
        assert run([*command, place]) == 2
        assert words in " ".join(capsys.readouterr().err.split())
    assert everything_under(tmp_path) == before
    assert run([*command, "panel"]) == 0
    assert len(load_panel(Path("panel")).sensors) == 1
