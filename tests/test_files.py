"""Writing is all or nothing."""

import hashlib
import json
from pathlib import Path

import pytest

from candor.errors import InputError
from candor.files import atomic_file, atomic_folder, read_json, sha256_of_file, write_json


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
    assert path.stat().st_mode & 0o444 == 0o444


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
