"""The files of the classic benchmarks give what pandas and numpy put into them, and nothing else."""

import io
import os
import zipfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.core.errors import InputError
from candor.data.readers.classic import read_classic_hdf, read_npz, stamps_from_numbers
from candor.data.times import zone_from_name

UNITS = ["s", "ms", "us", "ns"]
START, STEP = datetime(2012, 3, 1), timedelta(minutes=5)


def frame(columns: list[Any], rows: int = 4, unit: Any = "ns") -> pd.DataFrame:
    times = pd.date_range("2012-03-01", periods=rows, freq="5min").as_unit(unit)
    values = np.random.default_rng(7).normal(60, 9, (rows, len(columns)))
    values[0, 0] = np.nan
    return pd.DataFrame(values, index=times, columns=columns)


def stored(content: pd.DataFrame | pd.Series, folder: Path, **options: Any) -> Path:
    path = folder / "readings.h5"
    content.to_hdf(path, **({"key": "df", "mode": "w", "format": "fixed"} | options))
    return path


def write_old_layout(path: Path, content: pd.DataFrame, **changes: Any) -> None:
    """Writes a frame as pandas did under Python 2; a change replaces (or with None removes) a part."""
    names = np.array([str(name).encode() for name in content.columns])
    parts: dict[str, Any] = {
        "axis0": names,
        "axis1": content.index.as_unit("ns").asi8,
        "block0_items": names,
        "block0_values": content.to_numpy(),
    } | changes
    with h5py.File(path, "w") as file:
        group = file.create_group("df")
        for name, part in parts.items():
            if part is not None:
                group[name] = part
        if "axis1" in group and isinstance(group["axis1"], h5py.Dataset):
            group["axis1"].attrs["kind"] = np.bytes_(b"datetime64")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("columns", [[400001, 400017, 400030], ["773869", "767541", "717447"]])
@pytest.mark.parametrize("packing", [{}, {"complevel": 5}])
def test_a_fixed_file_gives_the_frame_that_pandas_reads(
    unit: str, columns: list[Any], packing: dict[str, Any], tmp_path: Path
) -> None:
    path = stored(frame(columns, unit=unit), tmp_path, **packing)
    readings, expected = read_classic_hdf(path), pd.read_hdf(path)
    assert readings.ids == tuple(str(column) for column in columns)
    assert not readings.has_zone and not readings.is_long
    assert readings.row_stamps.dtype == np.dtype("datetime64[us]")
    np.testing.assert_array_equal(readings.row_stamps, expected.index.to_numpy())
    assert readings.values.dtype == np.float32
    np.testing.assert_array_equal(readings.values, expected.to_numpy().astype(np.float32))


def test_blocks_of_several_types_are_put_back_in_the_order_of_the_columns(tmp_path: Path) -> None:
    mixed = frame(["d", "b", "c", "a"]).astype({"b": "float32"})
    mixed["c"] = [1, 2, 3, 4]
    mixed["a"] = [True, False, True, True]
    readings = read_classic_hdf(stored(mixed, tmp_path))
    assert readings.ids == ("d", "b", "c", "a")
    np.testing.assert_array_equal(readings.values, mixed.to_numpy(dtype=np.float32))


@pytest.mark.parametrize("rows", [2, 5])
def test_the_layout_of_python_2_is_read(rows: int, tmp_path: Path) -> None:
    content = frame(["773869", "767541"], rows)
    write_old_layout(tmp_path / "metr-la.h5", content)
    readings = read_classic_hdf(tmp_path / "metr-la.h5")
    assert readings.ids == ("773869", "767541")
    np.testing.assert_array_equal(readings.row_stamps, content.index.to_numpy())
    np.testing.assert_array_equal(readings.values, content.to_numpy().astype(np.float32))


def test_more_rows_than_are_read_at_a_time_stay_in_order(tmp_path: Path) -> None:
    content = frame(["a", "b"], rows=9000)
    np.testing.assert_array_equal(
        read_classic_hdf(stored(content, tmp_path)).values, content.to_numpy().astype(np.float32)
    )


@pytest.mark.parametrize("rows", [2, 3])
def test_blocks_that_lie_on_their_side_are_turned(rows: int, tmp_path: Path) -> None:
    content, path = frame(["a", "b", "c"], rows), tmp_path / "side.h5"
    write_old_layout(path, content, block0_values=content.to_numpy().T)
    with h5py.File(path, "a") as file:
        file["df/block0_values"].attrs["transposed"] = np.uint8(0)
    values = read_classic_hdf(path).values
    np.testing.assert_array_equal(values, content.to_numpy().astype(np.float32))


def test_times_with_a_zone_are_moments_in_utc(tmp_path: Path) -> None:
    content = frame(["a", "b"]).tz_localize("America/Los_Angeles")
    readings = read_classic_hdf(stored(content, tmp_path))
    assert readings.has_zone and readings.zones == ("America/Los_Angeles",)
    assert readings.row_stamps[0] == np.datetime64("2012-03-01T08:00")


@pytest.mark.parametrize("zone", ["UTC", "UTC-07:00", "UTC+05:30"])
def test_an_offset_that_pandas_pickled_is_read_without_unpickling(zone: str, tmp_path: Path) -> None:
    readings = read_classic_hdf(stored(frame(["a"]).tz_localize(zone_from_name(zone)), tmp_path))
    assert readings.has_zone and readings.zones == (zone,)


@given(counts=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), unit=st.sampled_from(UNITS))
@example(counts=[-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 1], unit="ns")
@example(counts=[-(2**63), 253_402_300_799, 253_402_300_800], unit="s")
def test_any_count_is_the_microsecond_it_falls_in_or_no_time(counts: list[int], unit: str) -> None:
    found = stamps_from_numbers(np.array(counts, np.int64), unit)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    for count, stamp in zip(counts, found, strict=True):
        is_time = count > -(2**63) and abs(count // per_second) < 253_402_300_000
        if is_time or not np.isnat(stamp):
            assert int(stamp.astype(np.int64)) == count * 10**6 // per_second


def test_a_missing_time_stays_missing(tmp_path: Path) -> None:
    content = frame(["a", "b"])
    content.index = content.index.insert(1, pd.NaT)[:4]
    stamps = read_classic_hdf(stored(content, tmp_path)).row_stamps
    assert np.isnat(stamps).tolist() == [False, True, False, False]


SMALL = frame(["a", "b"])


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        (SMALL, {"format": "table"}, 'the format "table"'),
        (SMALL["a"], {}, "no data frame"),
        (SMALL.iloc[:0], {}, "frame is empty"),
        (SMALL.set_axis([1.5, 2.5, 3.5, 4.5], axis=0), {}, "no times"),
        (SMALL.set_axis(["w", "x", "y", "z"], axis=0), {}, "no times"),
        (SMALL.assign(a=SMALL.index), {}, "does not hold numbers"),
    ],
)
def test_files_that_are_not_a_frame_of_readings_are_refused(
    content: Any, options: dict[str, Any], word: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=word) as caught:
        read_classic_hdf(stored(content, tmp_path, **options))
    assert caught.value.hint


def test_a_file_of_two_frames_is_refused_by_name(tmp_path: Path) -> None:
    stored(SMALL, tmp_path, key="speed")
    with pytest.raises(InputError, match=r"several frames.*flow.*speed"):
        read_classic_hdf(stored(SMALL, tmp_path, key="flow", mode="a"))


@pytest.mark.parametrize(
    "changes",
    [
        {"axis0": np.array([b"a", b"c"])},
        {"axis0": np.array([b"a", b"b", b"c"])},
        {"block0_values": np.zeros((4, 3))},
        {"block0_values": np.zeros(4)},
        {"block0_values": np.array([[b"1"] * 2] * 4)},
        {"axis1": np.arange(3)},
        {"axis1": np.zeros((4, 1), np.int64)},
        {"axis1": None},
        {"block0_values": h5py.ExternalLink("other.h5", "/df/block0_values")},
        {"block0_values": h5py.SoftLink("/elsewhere")},
        {"axis0": h5py.Empty("f8")},
        {"axis0": np.array([b"a", b""])},
        {"axis0": np.array([b"a", b"a"]), "block0_items": np.array([b"a", b"a"])},
        {"block1_items": np.array([b"a"]), "block1_values": np.zeros((4, 1))},
    ],
)
def test_parts_that_do_not_fit_together_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    write_old_layout(tmp_path / "other.h5", SMALL)
    write_old_layout(tmp_path / "broken.h5", SMALL, **changes)
    with pytest.raises(InputError):
        read_classic_hdf(tmp_path / "broken.h5")


def test_a_dataset_that_claims_more_than_the_file_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "claims.h5"
    write_old_layout(path, SMALL, block0_values=None)
    with h5py.File(path, "a") as file:
        file["df"].create_dataset("block0_values", (10**9, 10**6), "f8", chunks=(1000, 1000))
    with pytest.raises(InputError, match="more than the file can hold"):
        read_classic_hdf(path)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    changes=st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 255)), max_size=4),
    length=st.none() | st.integers(1, 9000),
)
def test_a_damaged_hdf5_file_gives_an_input_error_or_readings(
    changes: list[tuple[int, int]], length: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.h5"
    write_old_layout(path, SMALL)
    content = bytearray(path.read_bytes())
    for place, byte in changes:
        content[place % len(content)] = byte
    path.write_bytes(content[:length])
    try:
        readings = read_classic_hdf(path)
    except InputError:
        return
    assert readings.values.shape == (len(readings.row_stamps), len(readings.ids))


@given(
    record=arrays(np.float32, (12, 3), elements=st.sampled_from([np.nan, 0, 1, 2.5, 60])),
    length=st.integers(1, 4),
    horizon=st.integers(1, 4),
)
def test_windows_give_back_the_record_they_were_cut_from(
    record: np.ndarray, length: int, horizon: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    starts = range(len(record) - length - horizon + 1)
    past = np.stack([record[s : s + length] for s in starts])
    future = np.stack([record[s + length : s + length + horizon] for s in starts])
    path = tmp_path_factory.getbasetemp() / "windows.npz"
    clock = np.ones_like(past)
    np.savez(path, x=np.stack([past, clock], -1), y=np.stack([future, future * 0], -1))
    np.testing.assert_array_equal(read_npz(path, START, STEP).values, record)


@pytest.mark.parametrize("damage", ["order", "number", "future", "samples", "gap"])
def test_windows_that_do_not_follow_each_other_are_refused(damage: str, tmp_path: Path) -> None:
    record = np.random.default_rng(3).normal(size=(20, 2))
    past = np.stack([record[s : s + 4] for s in range(10)])[..., None]
    future = np.stack([record[s + 4 : s + 7] for s in range(10)])[..., None]
    if damage == "order":
        past, future = past[::-1], future[::-1]
    elif damage == "number":
        past[5, 2, 1] += 1
    elif damage == "future":
        future[5, 2, 1] += 1
    elif damage == "samples":
        future = future[1:]
    else:
        past, future = past[::2], future[::2]
    np.savez(tmp_path / "train.npz", x=past, y=future)
    with pytest.raises(InputError, match=r"follow each other|belong together"):
        read_npz(tmp_path / "train.npz", START, STEP)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_plain_array_gives_its_first_feature(save: Any, tmp_path: Path) -> None:
    data = np.random.default_rng(5).normal(size=(6, 3, 2))
    save(tmp_path / "both.npz", data=data)
    save(tmp_path / "first.npz", data=data[..., 0])
    both, first = (read_npz(tmp_path / f"{n}.npz", START, STEP) for n in ("both", "first"))
    expected = data[..., 0].astype(np.float32)
    np.testing.assert_array_equal(both.values, expected)
    np.testing.assert_array_equal(first.values, expected)
    assert both.ids == ("0", "1", "2")
    expected_stamps = pd.date_range(START, periods=6, freq="5min").to_numpy()
    np.testing.assert_array_equal(both.row_stamps, expected_stamps)
    assert both.row_stamps.dtype == np.dtype("datetime64[us]")


def test_a_start_with_a_zone_makes_moments_in_utc(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", data=np.ones((2, 2)))
    west = START.replace(tzinfo=timezone(timedelta(hours=-8)))
    readings = read_npz(tmp_path / "data.npz", west, STEP)
    assert readings.has_zone and readings.zones == ("UTC-08:00",)
    assert readings.row_stamps[0] == np.datetime64("2012-03-01T08:00")
    assert not read_npz(tmp_path / "data.npz", START, STEP).has_zone


@pytest.mark.parametrize(("start", "interval"), [(None, STEP), (START, None), (START, timedelta(0))])
def test_without_start_or_interval_the_options_that_mend_it_are_named(
    start: datetime | None, interval: timedelta | None, tmp_path: Path
) -> None:
    np.savez(tmp_path / "data.npz", data=np.ones((2, 2)))
    with pytest.raises(InputError, match="--start 2012-03-01 --interval 5min"):
        read_npz(tmp_path / "data.npz", start, interval)


@pytest.mark.parametrize("start", [datetime(9999, 12, 31), datetime(9999, 12, 31, tzinfo=UTC)])
def test_a_record_beyond_the_calendar_is_refused(start: datetime, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", data=np.ones((3, 2)))
    with pytest.raises(InputError, match="the year 9999"):
        read_npz(tmp_path / "data.npz", start, timedelta(days=1))


@pytest.mark.parametrize(
    "content",
    [
        {"speed": np.ones((2, 2))},
        {"data": np.ones(4)},
        {"data": np.ones((0, 3))},
        {"data": np.array([["a"]])},
        {"x": np.ones((3, 2, 2, 1))},
        {"x": np.ones((3, 2, 2, 1)), "y": np.ones((3, 2, 4, 1))},
    ],
)
def test_arrays_that_hold_no_readings_are_refused(content: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", **content)
    with pytest.raises(InputError):
        read_npz(tmp_path / "data.npz", START, STEP)


class Trap:
    """Runs a command when unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch MARK",)


def test_pickled_objects_in_an_archive_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "data.npz", data=np.array([[Trap()]], dtype=object))
    with pytest.raises(InputError):
        read_npz(tmp_path / "data.npz", START, STEP)
    assert not (tmp_path / "MARK").exists()


@pytest.mark.parametrize("shape", [(10**9, 10**4), (-5, -5)])
def test_an_array_that_claims_more_than_the_file_is_not_believed(shape: tuple[int, int], tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("data.npy", stream.getvalue() + b"\x00" * 800)
    with pytest.raises(InputError, match="an array claims more"):
        read_npz(tmp_path / "data.npz", START, STEP)


def test_an_archive_that_would_swell_beyond_measure_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.zeros((1000, 1000)))
    with zipfile.ZipFile(tmp_path / "data.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.write(tmp_path / "data.npy", "data.npy")
    with pytest.raises(InputError, match=r"data.npy claims more bytes"):
        read_npz(tmp_path / "data.npz", START, STEP)


@settings(max_examples=100, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=4),
    length=st.none() | st.integers(1, 600),
)
def test_a_damaged_archive_gives_an_input_error_or_readings(
    changes: list[tuple[int, int]], length: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    np.savez(path, data=np.ones((4, 3)))
    content = bytearray(path.read_bytes())
    for place, byte in changes:
        content[place % len(content)] = byte
    path.write_bytes(content[:length])
    try:
        readings = read_npz(path, START, STEP)
    except InputError:
        return
    assert readings.values.shape == (len(readings.row_stamps), len(readings.ids))
