"""A synthetic network written chunk by chunk is the one made in memory."""

import json
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.panel_store import load_panel
from candor.data.synthetic import (
    COMPONENTS,
    generate_river,
    generate_road,
    load_truth,
    store,
    write_synthetic,
)
from candor.data.synthetic.generate import Chunk, chunks_of

GENERATORS = {"river": generate_river, "road": generate_road}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_synthetic(tmp_path / "river", "river", sensors=6, steps=120)
    return tmp_path / "river"


@pytest.mark.parametrize("kind", ["river", "road"])
@pytest.mark.parametrize("chunk_steps", [None, 77])
def test_what_is_written_is_what_is_generated(
    kind: str,
    chunk_steps: int | None,
    tmp_path: Path,
) -> None:
    panel, truth = GENERATORS[kind](sensors=17, steps=600, seed=5, missing_share=0.1)
    write_synthetic(tmp_path / "x", kind, 17, 600, 5, missing_share=0.1, chunk_steps=chunk_steps)
    loaded, known = load_panel(tmp_path / "x"), load_truth(tmp_path / "x")
    assert loaded.fingerprint == panel.fingerprint
    assert (loaded.name, loaded.provenance) == (panel.name, panel.provenance)
    for name in COMPONENTS:
        np.testing.assert_array_equal(known.components[name], truth.components[name])
    for name in ("delays", "attenuation", "storage_retention", "shock_retention"):
        np.testing.assert_array_equal(getattr(known, name), getattr(truth, name))
    for name in ("time", "sensor", "size"):
        np.testing.assert_array_equal(getattr(known.shocks, name), getattr(truth.shocks, name))
    assert len(truth.shocks) > 0 and len(truth.twins) > 0
    assert (known.twins, known.bounds) == (truth.twins, truth.bounds)


def test_memory_is_bounded_by_the_chunk_not_by_the_record(tmp_path: Path) -> None:
    def peak_of(steps: int) -> int:
        tracemalloc.start()
        write_synthetic(tmp_path / "x", "river", sensors=50, steps=steps, chunk_steps=100)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_of(100)  # what is imported and built once does not count
    assert peak_of(1600) < 1.5 * peak_of(400)


@pytest.mark.parametrize("name", ["truth.json", "storage.parquet", "shocks.parquet"])
@pytest.mark.parametrize("harm", ["gone", "empty", "cut short", "changed"])
def test_a_damaged_truth_is_refused(folder: Path, name: str, harm: str) -> None:
    file = folder / "truth" / name
    content = file.read_bytes()
    file.unlink()
    if harm == "changed":
        file.write_bytes(content.replace(b"1", b"2", 1) if b"1" in content else content + b"1")
    elif harm != "gone":
        file.write_bytes(content[: len(content) // 2 if harm == "cut short" else 0])
    with pytest.raises(InputError):
        load_truth(folder)


def test_a_changed_law_is_refused(folder: Path) -> None:
    path = folder / "truth" / "truth.json"
    laws = json.loads(path.read_text())
    laws["delays"][0] += 1
    path.write_text(json.dumps(laws))
    with pytest.raises(InputError, match="changed"):
        load_truth(folder)


def test_the_truth_about_another_panel_is_refused(folder: Path, tmp_path: Path) -> None:
    write_synthetic(tmp_path / "other", "river", sensors=6, steps=120, seed=1)
    shutil.rmtree(folder / "truth")
    shutil.copytree(tmp_path / "other" / "truth", folder / "truth")
    with pytest.raises(InputError, match="another panel"):
        load_truth(folder)


def test_a_truth_from_the_future_is_refused(folder: Path) -> None:
    path = folder / "truth" / "truth.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 99}))
    with pytest.raises(InputError, match="version 99"):
        load_truth(folder)


def test_writing_that_is_broken_off_leaves_the_old_folder_whole(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_off(world: object, chunk_steps: int | None) -> Iterator[Chunk]:
        yield next(chunks_of(world, chunk_steps))
        raise KeyboardInterrupt

    before = load_panel(folder).fingerprint
    monkeypatch.setattr(store, "chunks_of", break_off)
    with pytest.raises(KeyboardInterrupt):
        write_synthetic(folder, "road", sensors=6, steps=120, chunk_steps=50)
    assert load_panel(folder).fingerprint == before
    load_truth(folder)
    assert list(folder.parent.iterdir()) == [folder]


def test_an_unknown_kind_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="river"):
        write_synthetic(tmp_path / "x", "rivver", sensors=3, steps=10)
    assert not (tmp_path / "x").exists()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "x", "road", np.int64(3), np.int32(20), seed=np.int64(4))
    assert load_panel(tmp_path / "x").fingerprint == generate_road(3, 20, 4)[0].fingerprint
