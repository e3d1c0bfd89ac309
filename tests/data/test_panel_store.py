"""A saved panel comes back as it was, or not at all."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.core.errors import InputError
from candor.data import panel_store
from candor.data.panel import Covariate, Edges, Panel, Sensor
from candor.data.panel_store import (
    MatrixWriter,
    is_panel_folder,
    load_panel,
    read_matrix,
    save_panel,
)
from candor.data.times import TimeAxis

ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata", "UTC-08:00")
NUMBERS = st.floats(width=32, allow_infinity=False)
LENGTHS = st.floats(0, 1000, width=32)
WEIGHTS = st.floats(0.015625, 1, width=32)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
DEGREES = st.none() | st.floats(-90, 90)


@st.composite
def edges_among(draw: st.DrawFn, count: int) -> Edges:
    """Draws edges with or without distance and weight, possibly none."""
    ends = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), unique=True, max_size=6))
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T
    distance = draw(st.none() | arrays(np.float32, len(pairs), elements=LENGTHS))
    weight = draw(st.none() | arrays(np.float32, len(pairs), elements=WEIGHTS))
    return Edges(source, target, distance, weight, draw(st.sampled_from(["", "km"])))


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    """Draws small panels of every shape, NaN and odd names included."""
    ids = draw(st.lists(WORDS | st.just("time"), unique=True, min_size=1, max_size=4))
    shape = (draw(st.integers(0, 9)), len(ids))
    series = arrays(np.float32, shape, elements=NUMBERS)
    start = draw(st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1)))
    minutes = draw(st.integers(1, 100_000))
    names = draw(st.lists(st.sampled_from(["rain", "time", "water level"]), unique=True))
    return Panel(
        values=draw(series),
        times=TimeAxis(
            start.replace(tzinfo=UTC),
            timedelta(minutes=minutes),
            shape[0],
            draw(st.sampled_from(ZONES)),
        ),
        sensors=tuple(Sensor(i, draw(WORDS), draw(DEGREES), draw(DEGREES), "mph") for i in ids),
        edges=draw(edges_among(len(ids))),
        covariates={name: Covariate(draw(series), draw(WORDS)) for name in names},
        name=draw(WORDS),
        provenance=draw(st.dictionaries(WORDS, st.integers() | WORDS, max_size=2)),
    )


@given(panels())
def test_loading_undoes_saving(panel: Panel) -> None:
    with TemporaryDirectory() as folder:
        save_panel(panel, Path(folder) / "panel")
        loaded = load_panel(Path(folder) / "panel")
    np.testing.assert_array_equal(loaded.values, panel.values)
    assert loaded.times == panel.times
    assert loaded.sensors == panel.sensors
    assert (loaded.name, loaded.provenance) == (panel.name, panel.provenance)
    assert loaded.edges.distance_unit == panel.edges.distance_unit
    for part in ("source", "target", "distance", "weight"):
        was, now = getattr(panel.edges, part), getattr(loaded.edges, part)
        assert (was is None) == (now is None)
        if was is not None:
            np.testing.assert_array_equal(now, was)
    assert list(loaded.covariates) == list(panel.covariates)
    for name, covariate in panel.covariates.items():
        assert loaded.covariates[name].unit == covariate.unit
        np.testing.assert_array_equal(loaded.covariates[name].values, covariate.values)
    assert loaded.fingerprint == panel.fingerprint


@pytest.fixture
def panel() -> Panel:
    generator = np.random.default_rng(0)
    readings = generator.normal(9, 1, (30, 3)).astype(np.float32)
    readings[4:7, 1] = np.nan
    return Panel(
        values=readings,
        times=TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1), 30, "UTC-08:00"),
        sensors=(Sensor("a", latitude=45.0, longitude=-122.0), Sensor("b"), Sensor("c", unit="m")),
        edges=Edges([0, 1], [1, 2], distance=[2.5, 4.0], distance_unit="km"),
        covariates={"rain": Covariate(generator.random((30, 3)), "mm/h")},
    )


@pytest.fixture
def folder(panel: Panel, tmp_path: Path) -> Path:
    save_panel(panel, tmp_path / "panel")
    return tmp_path / "panel"


def edit_header(folder: Path, change: Callable[[dict], None]) -> None:
    header = json.loads((folder / "panel.json").read_text())
    change(header)
    (folder / "panel.json").write_text(json.dumps(header))


def test_a_changed_byte_is_refused_or_changes_nothing(folder: Path, panel: Panel) -> None:
    generator = np.random.default_rng(1)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    refused = 0
    for _ in range(200):
        file = files[generator.integers(len(files))]
        whole = file.read_bytes()
        broken = bytearray(whole)
        broken[generator.integers(len(whole))] ^= int(generator.integers(1, 256))
        file.write_bytes(broken)
        try:
            assert load_panel(folder).fingerprint == panel.fingerprint
        except InputError:
            refused += 1
        file.write_bytes(whole)
    assert refused > 100  # padding and comments of a file may change unnoticed, the rest may not


@pytest.mark.parametrize(
    "name",
    ["panel.json", "readings.parquet", "edges.parquet", "covariates/rain.parquet"],
)
@pytest.mark.parametrize("harm", ["gone", "cut short", "empty", "a folder"])
def test_a_damaged_file_is_refused(folder: Path, name: str, harm: str) -> None:
    file = folder / name
    content = file.read_bytes()
    file.unlink()
    if harm == "cut short":
        file.write_bytes(content[: len(content) // 2])
    elif harm == "empty":
        file.write_bytes(b"")
    elif harm == "a folder":
        file.mkdir()
    with pytest.raises(InputError):
        load_panel(folder)


def test_one_changed_reading_is_refused(folder: Path) -> None:
    table = pq.read_table(folder / "readings.parquet")
    values = table["b"].to_numpy().copy()
    values[20] += 0.5
    changed = table.set_column(2, table.schema.field(2), [values])
    pq.write_table(changed, folder / "readings.parquet")
    with pytest.raises(InputError, match="fingerprint"):
        load_panel(folder)


def test_readings_moved_in_time_are_refused(folder: Path) -> None:
    table = pq.read_table(folder / "readings.parquet")
    later = table["time"].to_numpy() + np.timedelta64(1, "h")
    pq.write_table(table.set_column(0, "time", [later]), folder / "readings.parquet")
    with pytest.raises(InputError, match="times"):
        load_panel(folder)


def test_swapped_sensors_are_refused(folder: Path) -> None:
    edit_header(folder, lambda header: header["sensors"].reverse())
    with pytest.raises(InputError, match="sensors"):
        load_panel(folder)


def test_a_claim_of_more_edges_than_there_can_be_is_refused_before_they_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pq.read_table(folder / "edges.parquet")
    pq.write_table(pa.concat_tables([table] * 100), folder / "edges.parquet")
    read = pq.read_table

    def read_but_no_edges(path: Path, *more: object) -> object:
        assert Path(path).name != "edges.parquet"
        return read(path, *more)

    monkeypatch.setattr(pq, "read_table", read_but_no_edges)
    with pytest.raises(InputError, match="edges are more than"):
        load_panel(folder)


def test_a_moved_sensor_is_refused(folder: Path) -> None:
    edit_header(folder, lambda header: header["sensors"][0].update(latitude=46.0))
    with pytest.raises(InputError, match="fingerprint"):
        load_panel(folder)


def test_a_header_without_a_part_is_refused(folder: Path) -> None:
    whole = json.loads((folder / "panel.json").read_text())
    for part in whole:
        edit_header(folder, lambda header, part=part: header.pop(part))
        with pytest.raises(InputError):
            load_panel(folder)
        (folder / "panel.json").write_text(json.dumps(whole))
    load_panel(folder)


def test_a_format_from_the_future_is_refused(folder: Path) -> None:
    edit_header(folder, lambda header: header.update(format_version=99))
    with pytest.raises(InputError, match="version 99"):
        load_panel(folder)


@pytest.mark.parametrize("stage", ["MatrixWriter", "write_header"])
def test_a_save_that_is_broken_off_leaves_the_old_folder_whole(
    folder: Path, panel: Panel, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    other = Panel(panel.values + 1, panel.times, panel.sensors)
    monkeypatch.setattr(panel_store, stage, break_off)
    with pytest.raises(KeyboardInterrupt):
        save_panel(other, folder)
    monkeypatch.undo()
    assert load_panel(folder).fingerprint == panel.fingerprint
    assert list(folder.parent.iterdir()) == [folder]


def test_saving_again_leaves_nothing_of_the_old_panel(folder: Path, panel: Panel) -> None:
    other = Panel(panel.values + 1, panel.times, panel.sensors)
    save_panel(other, folder)
    assert load_panel(folder).fingerprint == other.fingerprint
    assert not (folder / "covariates").exists()


def test_a_covariate_cannot_escape_from_its_folder(folder: Path, panel: Panel) -> None:
    stray = Covariate(panel.values, "")
    with pytest.raises(InputError, match="file"):
        save_panel(replace(panel, covariates={"../x": stray}), folder)
    assert load_panel(folder).fingerprint == panel.fingerprint


def test_only_a_folder_with_a_header_is_a_panel_folder(folder: Path) -> None:
    assert is_panel_folder(folder)
    assert not is_panel_folder(folder / "covariates")
    assert not is_panel_folder(folder / "panel.json")


def test_the_blocks_that_a_matrix_is_written_in_do_not_show(tmp_path: Path, panel: Panel) -> None:
    ids = panel.sensor_ids
    with MatrixWriter(tmp_path / "whole", panel.times, ids) as whole:
        whole.write(panel.values)
    with MatrixWriter(tmp_path / "pieces", panel.times, ids) as pieces:
        for start in range(0, 30, 7):
            pieces.write(panel.values[start : start + 7])
    assert whole.digest == pieces.digest
    for name in ("whole", "pieces"):
        read = read_matrix(tmp_path / name, panel.times, ids)
        np.testing.assert_array_equal(read, panel.values)


def test_a_matrix_of_too_few_rows_is_not_finished(tmp_path: Path, panel: Panel) -> None:
    with (
        pytest.raises(ValueError, match="29 rows"),
        MatrixWriter(tmp_path / "short", panel.times, panel.sensor_ids) as writer,
    ):
        writer.write(panel.values[1:])


def test_a_copied_folder_is_the_same_panel(folder: Path, panel: Panel, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    assert load_panel(tmp_path / "copy").fingerprint == panel.fingerprint
