"""Whatever happens to a bundle: it opens as it was exported, or it is refused in plain words."""

import errno
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_run
from safetensors.numpy import load_file, save_file

from candor.core.errors import InputError
from candor.core.files import WriteError
from candor.runs.bundle import manifest, open_bundle, write_bundle
from candor.runs.bundle.manifest import write_manifest
from candor.runs.run import MANIFEST, load_run

FILES = (
    "README.md", "data/edges.parquet", "data/panel.json", "data/readings.parquet", "manifest.json",
    "model/calibration.safetensors", "model/model.json", "model/state.safetensors", "run.json", "source/run.json",
)  # fmt: skip


class Trap:
    """Something that acts when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("sprung",)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle in good order, as a folder and as a file beside it."""
    place = tmp_path_factory.mktemp("whole")
    run = load_run(make_run(place / "run"))
    write_bundle(run, place / "bundle.zip")
    return write_bundle(run, place / "bundle")


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def refusal(path: Path) -> InputError:
    with pytest.raises(InputError) as refused:
        open_bundle(path)
    assert str(path) in refused.value.where
    return refused.value


def zipped(folder: Path, **more: bytes) -> Path:
    """Returns a ZIP archive of a folder, whatever is in it, and of further entries."""
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            archive.write(file, file.relative_to(folder))
        for name, content in more.items():
            archive.writestr(name, content)
    return path


def test_the_files_of_a_bundle_are_these(whole: Path) -> None:
    assert sorted(path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()) == sorted(FILES)
    open_bundle(whole)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["first bit", "middle bit", "last bit", "cut", "emptied", "longer", "removed"])
def test_a_damaged_file_is_noticed(bundle: Path, file: str, damage: str) -> None:
    path = bundle / file
    content = bytearray(path.read_bytes())
    place = {"first bit": 0, "middle bit": len(content) // 2, "last bit": len(content) - 1}.get(damage)
    if place is not None:
        content[place] ^= 1
    path.write_bytes({"cut": content[:-1], "emptied": b"", "longer": content + b" "}.get(damage, content))
    if damage == "removed":
        path.unlink()
    assert "bundle" in refusal(bundle).what
    if (file, damage) != (MANIFEST, "removed"):  # then it is no bundle any more, and no claim to be one
        assert "bundle" in refusal(zipped(bundle)).what


@given(data=st.data())
def test_no_flipped_byte_of_the_manifest_goes_unnoticed(whole: Path, data: st.DataObject) -> None:
    content = bytearray((whole / MANIFEST).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    folder = whole.parent / "flipped"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    (folder / MANIFEST).write_bytes(content)
    refusal(folder)


@given(data=st.data())
def test_a_flipped_byte_of_the_file_is_refused_or_harmless(whole: Path, data: st.DataObject) -> None:
    content = bytearray(whole.with_suffix(".zip").read_bytes())
    place = data.draw(st.one_of(st.integers(0, len(content) - 1), st.integers(len(content) - 900, len(content) - 1)))
    content[place] ^= data.draw(st.integers(1, 255))
    path = whole.parent / "flipped.zip"
    path.write_bytes(content)
    try:
        opened = open_bundle(path)
    except InputError as refused:
        assert str(path) in refused.where
        return
    for file in FILES:
        assert (opened.folder / file).read_bytes() == (whole / file).read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_cut_short_is_refused(whole: Path, tmp_path: Path, share: float) -> None:
    content = whole.with_suffix(".zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(content[: int(share * len(content))])
    assert "bundle" in refusal(tmp_path / "cut.zip").what


def test_foreign_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff" + bytes(100))
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mother.txt").write_text("all is well")
    for path in (tmp_path / "photo.jpg", tmp_path / "letters", zipped(tmp_path / "letters"), tmp_path / "nowhere"):
        assert "not a bundle" in refusal(path).what or "no place in a bundle" in refusal(path).what


@pytest.mark.parametrize(
    "name", ["notes.txt", "model/optimiser.pt", "model/state.pkl", ".hidden", "data/covariates/deep/rain.parquet"]
)
def test_a_file_too_many_is_refused(bundle: Path, name: str) -> None:
    (bundle / name).parent.mkdir(parents=True, exist_ok=True)
    (bundle / name).write_bytes(b"hello")
    assert name in refusal(bundle).what
    assert name in refusal(zipped(bundle)).what


def test_a_renamed_file_is_refused(bundle: Path) -> None:
    (bundle / "data" / "readings.parquet").rename(bundle / "data" / "readings.old.parquet")
    assert "readings.old.parquet" in refusal(bundle).what


def test_a_manifest_that_names_what_has_no_place_is_refused(bundle: Path) -> None:
    for name in ("../escape.json", "/etc/passwd", "model/../../up.json", "C:\\up.json", "script.py"):
        content = json.loads((bundle / MANIFEST).read_text())
        content["files"][name] = {"bytes": 1, "sha256": "0" * 64}
        (bundle / MANIFEST).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
        assert "no place in a bundle" in refusal(bundle).what
    with pytest.raises(InputError, match="no place"):
        (bundle / "script.py").write_text("print('hello')")
        write_manifest(bundle)


@pytest.mark.parametrize("version", [0, 2, 99, "1", None, 1.5])
def test_a_format_of_another_version_is_refused(bundle: Path, version: object) -> None:
    content = json.loads((bundle / MANIFEST).read_text()) | {"format_version": version}
    (bundle / MANIFEST).write_text(json.dumps(content))
    assert f"format version {version}" in refusal(bundle).what


@pytest.mark.parametrize(
    "name", ["../escaped.json", "/tmp/escaped.json", "model/../../escaped.json", "..\\escaped.json", "a/../run.json"]
)
def test_no_file_leaves_the_place_it_is_unpacked_to(bundle: Path, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert "no place in a bundle" in refusal(zipped(bundle, **{name: b"{}"})).what
    assert sorted(tmp_path.rglob("*")) == sorted([*before, bundle.with_suffix(".zip")])


def test_links_are_not_followed(bundle: Path, tmp_path: Path) -> None:
    (bundle / "run.json").rename(tmp_path / "outside.json")
    (bundle / "run.json").symlink_to(tmp_path / "outside.json")
    assert "run.json" in refusal(bundle).what
    (bundle / "run.json").unlink()
    (tmp_path / "outside.json").rename(bundle / "run.json")
    shutil.move(bundle / "data", tmp_path / "data")
    (bundle / "data").symlink_to(tmp_path / "data")
    assert "data" in refusal(bundle).what


def test_a_file_listed_twice_is_refused(bundle: Path) -> None:
    path = zipped(bundle)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("run.json", "{}")
    assert "twice" in refusal(path).what


def test_an_encrypted_file_is_refused(bundle: Path) -> None:
    path = zipped(bundle)
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of the last entry in the directory
    path.write_bytes(content)
    assert "encrypted" in refusal(path).what


@pytest.mark.parametrize("file", ["README.md", "model/state.safetensors"])
def test_a_bomb_is_not_unpacked(bundle: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    size = sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())
    monkeypatch.setattr(manifest, "MOST_BYTES", 2 * size)
    monkeypatch.setattr(manifest, "MOST_BYTES_OF_TEXT", size)
    open_bundle(bundle)
    (bundle / file).write_bytes(bytes(2 * size))
    write_manifest(remade(bundle))
    packed = zipped(bundle)
    assert packed.stat().st_size < size
    for path in (bundle, packed):
        assert "too large" in refusal(path).what


def test_an_entry_that_holds_more_than_it_says_is_refused(bundle: Path) -> None:
    path = zipped(bundle)
    content = bytearray(path.read_bytes())
    size = (bundle / "source" / "run.json").stat().st_size
    place = content.rindex(b"PK\x01\x02") + 24  # the size of the last entry in the directory
    assert int.from_bytes(content[place : place + 4], "little") == size
    content[place : place + 4] = (size - 1).to_bytes(4, "little")
    path.write_bytes(content)
    assert "bundle" in refusal(path).what


def test_a_full_disk_is_not_called_damage_of_the_bundle(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(bundle)

    def be_full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "touch", be_full)
    with pytest.raises(WriteError, match="No space left on device") as refused:
        open_bundle(path)
    assert "damaged" not in refused.value.what and "make room" in refused.value.hint


def remade(bundle: Path) -> Path:
    """Returns the bundle with its manifest taken away: one who changes files can write another."""
    (bundle / MANIFEST).unlink()
    return bundle


def forged(bundle: Path, name: str, change: Callable[[Any], Any]) -> InputError:
    """Returns how a bundle is refused whose JSON file was changed and whose manifest was written anew."""
    content = json.loads((bundle / name).read_text())
    (bundle / name).write_text(json.dumps(change(content)))
    write_manifest(remade(bundle))
    return refusal(bundle)


def test_a_pickle_is_never_opened(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("model/state.safetensors", "model/calibration.safetensors"):
        kept = (bundle / name).read_bytes()
        (bundle / name).write_bytes(pickle.dumps(Trap()))
        write_manifest(remade(bundle))
        refusal(bundle)
        buffer = io.BytesIO()
        np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
        (bundle / name).write_bytes(buffer.getvalue())
        write_manifest(remade(bundle))
        refusal(bundle)
        (bundle / name).write_bytes(kept)
    assert not (tmp_path / "sprung").exists()


def test_weights_of_another_model_are_refused(bundle: Path) -> None:
    path = bundle / "model" / "state.safetensors"
    good = load_file(path)
    for change in (
        {"weights": good["weights"][:-1]},
        {"weights": good["weights"][:, :, :-1]},
        {"weights": np.full_like(good["weights"], np.nan)},
        {"mean": good["mean"][:2]},
    ):
        save_file({name: np.ascontiguousarray(array) for name, array in (good | change).items()}, path)
        write_manifest(remade(bundle))
        assert "do not fit" in refusal(bundle).what


def test_a_record_that_speaks_of_another_model_is_refused(bundle: Path) -> None:
    assert "not the one its record speaks of" in forged(bundle, "run.json", lambda own: own | {"model": "candor"}).what


def test_a_model_nobody_knows_is_refused(bundle: Path) -> None:
    assert "no model" in forged(bundle, "model/model.json", lambda own: own | {"name": "os.system"}).what


def test_readings_that_claim_to_be_endless_are_refused(bundle: Path) -> None:
    def stretch(content: Any) -> Any:
        content["times"]["length"] = 10**12
        return content

    assert "too large" in forged(bundle, "data/panel.json", stretch).what


@pytest.mark.parametrize("content", ["[]", "{}", '{"times": 3, "sensors": [], "covariates": {}}', "NaN"])
def test_a_panel_that_is_none_is_refused(bundle: Path, content: str) -> None:
    (bundle / "data" / "panel.json").write_text(content)
    write_manifest(remade(bundle))
    assert "damaged" in refusal(bundle).what


@pytest.mark.parametrize("name", ["run.json", "model/model.json", "data/panel.json"])
def test_json_made_to_exhaust_the_reader_is_refused(bundle: Path, name: str) -> None:
    (bundle / name).write_text("[" * 200_000)
    write_manifest(remade(bundle))
    assert "not readable JSON" in refusal(bundle).what
