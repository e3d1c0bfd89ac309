"""Writing is all or nothing."""

import hashlib
import json
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors import SafetensorError

import candor.core.files
from candor.core.errors import InputError
from candor.core.files import (
    WriteError,
    atomic_file,
    atomic_folder,
    read_json,
    remove_leftovers,
    sha256_of_file,
    write_json,
)


class KilledError(Exception):
    """Stands for whatever stops a program in the middle of writing."""


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "a.txt"
    with pytest.raises(KilledError), atomic_file(path) as temporary:
        temporary.write_text("half")
        raise KilledError
    assert list(path.parent.iterdir()) == []
    with atomic_file(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"


def test_what_is_written_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[int, bool]] = []

    def note(descriptor: int) -> None:
        flushed.append((os.fstat(descriptor).st_ino, any((tmp_path / name).exists() for name in ("a.txt", "f"))))

    monkeypatch.setattr(os, "fsync", note)
    with atomic_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("whole")
    assert flushed == [((tmp_path / "a.txt").stat().st_ino, False)]
    (tmp_path / "a.txt").unlink()
    with atomic_folder(tmp_path / "f") as temporary:
        (temporary / "deep").mkdir()
        for name in ("x", "deep/y"):
            (temporary / name).write_text(name)
    assert sorted(flushed[1:]) == sorted(((tmp_path / "f" / name).stat().st_ino, False) for name in ("x", "deep/y"))


def test_an_interrupted_writer_leaves_the_old_file_and_folder(tmp_path: Path) -> None:
    file, folder = tmp_path / "a.txt", tmp_path / "f"
    file.write_text("old")
    with atomic_folder(folder) as temporary:
        (temporary / "x").write_text("old")
    with pytest.raises(KilledError), atomic_file(file) as temporary:
        temporary.write_text("new")
        raise KilledError
    with pytest.raises(KilledError), atomic_folder(folder) as temporary:
        (temporary / "x").write_text("new")
        raise KilledError
    assert file.read_text() == "old"
    assert (folder / "x").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "f"]


def test_a_folder_is_replaced_as_a_whole(tmp_path: Path) -> None:
    for names in (["a", "b"], ["c"]):
        with atomic_folder(tmp_path / "f") as temporary:
            for name in names:
                (temporary / name).write_text(name)
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["c"]
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.fixture(params=[0o002, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """What the user takes away from the rights of everything new."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize(("writer", "all_rights"), [(atomic_file, 0o666), (atomic_folder, 0o777)])
def test_new_things_have_the_rights_the_user_gives_and_others_keep_theirs(
    tmp_path: Path, umask: int, writer, all_rights: int
) -> None:
    path = tmp_path / "place"
    for rights in (None, 0o700, 0o750, 0o550):
        if rights is not None:
            path.chmod(rights)
        with writer(path) as temporary:
            assert rights is None or stat.S_IMODE(temporary.stat().st_mode) & 0o077 == rights & 0o077  # never wider
            (temporary / "x" if writer is atomic_folder else temporary).write_text("new")
        assert stat.S_IMODE(path.stat().st_mode) == (all_rights & ~umask if rights is None else rights)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets two folders change places in one step")
def test_the_old_folder_is_never_away_on_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *paths: pytest.fail("a folder was renamed in a step of its own"))
    with atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("new")
    assert (tmp_path / "f" / "x").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


_WRITER = """
import sys
from pathlib import Path
from candor.core.files import atomic_folder
for number in range(1_000_000):
    with atomic_folder(Path(sys.argv[1])) as temporary:
        for name in ("a", "b"):
            (temporary / name).write_text(str(number))
    print(number, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets two folders change places in one step")
@pytest.mark.parametrize("lines", [1, 4, 9, 16])
def test_a_killed_writer_leaves_a_whole_folder(tmp_path: Path, lines: int) -> None:
    folder = tmp_path / "f"
    with subprocess.Popen([sys.executable, "-c", _WRITER, folder], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        last = [int(writer.stdout.readline()) for _ in range(lines)][-1]
        writer.kill()
    first, second = ((folder / name).read_text() for name in ("a", "b"))
    assert first == second
    assert int(first) >= last


def _cannot_exchange(one: Path, other: Path) -> bool:
    return False


def test_a_folder_is_replaced_where_the_system_needs_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candor.core.files, "_exchange", _cannot_exchange)
    test_a_folder_is_replaced_as_a_whole(tmp_path)


def test_the_old_folder_comes_back_if_the_second_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("old")
    rename = Path.replace

    def fail_for_the_new(path: Path, target: Path) -> Path:
        if (path / "is-new").exists():
            raise OSError("no room")
        return rename(path, target)

    monkeypatch.setattr(candor.core.files, "_exchange", _cannot_exchange)
    monkeypatch.setattr(Path, "replace", fail_for_the_new)
    with pytest.raises(OSError, match="no room"), atomic_folder(tmp_path / "f") as temporary:
        (temporary / "is-new").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert [path.name for path in (tmp_path / "f").iterdir()] == ["x"]


def test_the_only_copy_is_kept_and_told_if_it_cannot_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("old")
    rename, steps = Path.replace, iter([True])

    def rename_once(path: Path, target: Path) -> Path:
        if next(steps, False):
            return rename(path, target)
        raise OSError("no room")

    monkeypatch.setattr(candor.core.files, "_exchange", _cannot_exchange)
    monkeypatch.setattr(Path, "replace", rename_once)
    with pytest.raises(WriteError) as caught, atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("new")
    (kept,) = tmp_path.glob(".f.old.*/was")
    assert (kept / "x").read_text() == "old"
    assert str(kept) in str(caught.value) and "nothing was changed" not in str(caught.value)


@pytest.mark.parametrize(("whole_steps", "stands"), [(0, "old"), (1, "old"), (2, "new")])
def test_an_interruption_between_the_steps_leaves_a_whole_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_steps: int, stands: str
) -> None:
    with atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("old")
    rename = Path.replace
    done: list[Path] = []

    def interrupted(path: Path, target: Path) -> Path:
        if whole_steps == 0:
            raise KeyboardInterrupt
        done.append(rename(path, target))
        if len(done) == whole_steps:
            raise KeyboardInterrupt
        return target

    monkeypatch.setattr(candor.core.files, "_exchange", _cannot_exchange)
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "f") as temporary:
        (temporary / "x").write_text("new")
    assert (tmp_path / "f" / "x").read_text() == stands


@pytest.mark.parametrize("can_exchange", [True, False])
@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_a_folder_takes_the_place_of_whatever_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(candor.core.files, "_exchange", _cannot_exchange)
    aim, path = tmp_path / "aim", tmp_path / "f"
    if kind == "file":
        path.write_text("old")
    else:
        path.symlink_to(aim)
    if kind == "link":
        aim.mkdir()
    with atomic_folder(path) as temporary:
        (temporary / "x").write_text("new")
    assert (path / "x").read_text() == "new"
    assert not path.is_symlink()
    assert {place.name for place in tmp_path.iterdir()} - {"aim"} == {"f"}


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def broken(*_: object) -> None:
    raise SafetensorError("I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize("trouble", [full, broken])
@pytest.mark.parametrize("writer", [atomic_file, atomic_folder])
def test_a_full_disk_is_said_in_plain_words_and_what_was_there_stays(tmp_path: Path, writer, trouble) -> None:
    path = tmp_path / "place"
    with writer(path) as temporary:
        (temporary / "x" if writer is atomic_folder else temporary).write_text("old")
    with pytest.raises(WriteError, match=r"place: .*No space left on device(.|\n)*make room"), writer(path):
        trouble()
    with pytest.raises(InputError, match="refused"), writer(path):
        raise InputError("refused")  # what is in plain words already stays as it is
    assert (path / "x" if writer is atomic_folder else path).read_text() == "old"
    assert [place.name for place in tmp_path.iterdir()] == ["place"]


def test_a_place_that_cannot_be_written_is_said_in_plain_words_also_to_other_processes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WriteError) as caught:
        write_json(tmp_path / "file" / "a.json", {})
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert str(again) == str(caught.value) and isinstance(again, InputError) and isinstance(again, OSError)
    assert caught.value.strerror in ("Not a directory", "File exists")


def test_only_what_a_killed_writer_of_a_path_left_is_removed(tmp_path: Path) -> None:
    kept = [
        "a.txt",
        ".a.txt",
        ".a.txt.tmp",
        ".a.txt.old.12345678",
        ".ab.txt.12345678",
        "a.txt.12345678",
        ".A.txt.abcdefgh",
    ]
    for name in (*kept, ".a.txt.abc_1234"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".a.txt.00000000").mkdir()
    remove_leftovers(tmp_path / "a.txt")
    assert sorted(place.name for place in tmp_path.iterdir()) == sorted(kept)
    remove_leftovers(tmp_path / "nowhere" / "a.txt")
    for writer in (atomic_file, atomic_folder):
        with writer(tmp_path / "b.txt") as made:  # as the writer names them
            remove_leftovers(tmp_path / "b.txt")
            assert not made.exists()
            made.mkdir() if writer is atomic_folder else made.touch()


def test_json_comes_back_and_nan_is_refused(tmp_path: Path) -> None:
    content = {"a": [1, 2.5, None, "ö"], "b": {"c": True}}
    write_json(tmp_path / "a.json", content)
    assert read_json(tmp_path / "a.json") == content
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert json.loads((tmp_path / "a.json").read_text()) == content


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"{'a': 1}"])
def test_damaged_json_is_an_input_error(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(InputError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_missing_json_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not there"):
        read_json(tmp_path / "a.json")


def test_checksum_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc" * 100_000)
    assert sha256_of_file(tmp_path / "a") == hashlib.sha256(b"abc" * 100_000).hexdigest()
