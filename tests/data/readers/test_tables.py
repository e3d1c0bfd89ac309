"""One table, however it is written, is one panel."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from candor.core.errors import InputError
from candor.data.findings import Findings
from candor.data.panel import Panel, Sensor
from candor.data.readers import columns
from candor.data.readers import tables as tables_module
from candor.data.readers.cells import EMPTY_CELLS
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import TimeAxis

INTERVALS = [timedelta(seconds=1), timedelta(minutes=5), timedelta(hours=1), timedelta(days=1), timedelta(days=7)]
NAMES = (*tables_module._TIME_NAMES, *tables_module._SENSOR_NAMES, *tables_module._VALUE_NAMES, *EMPTY_CELLS)
WORDS = {name.lower() for name in NAMES}  # what means something else than a sensor
IDS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=8).map(str.strip)
IDS = IDS.filter(lambda text: text and text.lower() not in WORDS and not text.endswith(".0"))
IDS |= st.sampled_from(["773869", "Uiam Lake / 의암호", 'the "old" weir', "Keno, at Keno", "a;b", "pH|2", "0012", "-1"])


@dataclass(frozen=True)
class Table:
    """Numbers and text to write, with the axis they stand on."""

    ids: tuple[str, ...]
    values: NDArray[np.float64]
    times: TimeAxis

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.values, index=pd.DatetimeIndex(self.times.utc, name="time"), columns=list(self.ids))

    def long(self) -> pd.DataFrame:
        stacked = self.frame().rename_axis("sensor", axis=1).stack(future_stack=True)  # keeps what is missing
        return stacked.rename("value").reset_index()

    def panel(self, ids: tuple[str, ...] | None = None) -> Panel:
        ids = ids or self.ids
        columns = [self.ids.index(sensor_id) for sensor_id in ids]
        values = self.values[:, columns].astype(np.float32)
        return Panel(values, self.times, tuple(Sensor(sensor_id) for sensor_id in ids))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(2, 12))
    ids = tuple(draw(st.lists(IDS, unique=True, min_size=1, max_size=5)))
    # Any double that a float32 can stand for, often one half-way between two: rounding is the same on every way in.
    numbers = st.floats(-1e38, 1e38, allow_subnormal=False) | st.just(np.nan)
    values = draw(arrays(np.float64, (rows, len(ids)), elements=numbers).filter(lambda v: not np.isnan(v).all()))
    values[0, 0] = 1 + 2**-24 if draw(st.booleans()) else values[0, 0]
    start = draw(st.datetimes(datetime(1971, 1, 1), datetime(2090, 1, 1))).replace(microsecond=0, tzinfo=UTC)
    return Table(ids, values, TimeAxis(start, draw(st.sampled_from(INTERVALS)), rows, "UTC"))


def packed(path: Path, packing: str) -> Path:
    target = path.with_name(f"{path.name}.{packing}")
    with pa.CompressedOutputStream(str(target), {"gz": "gzip", "zst": "zstd"}[packing]) as stream:
        stream.write(path.read_bytes())
    return target


def text(frame: pd.DataFrame, folder: Path, name: str = "readings.csv", **style: str) -> Path:
    frame.to_csv(folder / name, index=False, **style)
    return folder / name


def parquet(frame: pd.DataFrame, folder: Path, **style: bool) -> Path:
    frame.to_parquet(folder / "readings.parquet", **style)
    return folder / "readings.parquet"


Way = Callable[[Table, Path], Path | pd.DataFrame]
WIDE: dict[str, Way] = {
    "csv": lambda table, folder: text(table.frame().reset_index(), folder),
    "csv of aware times": lambda table, folder: text(table.frame().tz_localize("UTC").reset_index(), folder),
    "csv with crlf": lambda table, folder: text(table.frame().reset_index(), folder, lineterminator="\r\n"),
    "csv all quoted": lambda table, folder: text(table.frame().reset_index(), folder, quoting=1),
    "csv.gz": lambda table, folder: packed(text(table.frame().reset_index(), folder), "gz"),
    "csv.zst": lambda table, folder: packed(text(table.frame().reset_index(), folder), "zst"),
    "semicolons and decimal commas": lambda table, folder: text(
        table.frame().reset_index(), folder, sep=";", decimal=","
    ),
    "tabs": lambda table, folder: text(table.frame().reset_index(), folder, "readings.tsv", sep="\t"),
    "bars": lambda table, folder: text(table.frame().reset_index(), folder, "readings.txt", sep="|"),
    "parquet": lambda table, folder: parquet(table.frame().reset_index(), folder),
    "parquet with index": lambda table, folder: parquet(table.frame().rename_axis(None), folder),
    "parquet.gz": lambda table, folder: packed(parquet(table.frame().reset_index(), folder), "gz"),
    "frame": lambda table, folder: table.frame(),
    "frame with time last": lambda table, folder: (
        table.frame().assign(timestamp=lambda f: f.index).reset_index(drop=True)
    ),
}
LONG: dict[str, Way] = {
    "csv": lambda table, folder: text(table.long(), folder),
    "tabs": lambda table, folder: text(table.long()[["value", "sensor", "time"]], folder, sep="\t"),
    "csv.zst": lambda table, folder: packed(text(table.long(), folder), "zst"),
    "parquet": lambda table, folder: parquet(table.long(), folder),
    "parquet of categories": lambda table, folder: parquet(table.long().astype({"sensor": "category"}), folder),
    "frame": lambda table, folder: table.long().rename(columns={"sensor": "Station_ID ", "value": "flow in m3/s"}),
    "frame with two indexes": lambda table, folder: table.long().set_index(["time", "sensor"]),
}


def read(given: Path | pd.DataFrame) -> Panel:
    return read_panel(given, options=ReadOptions(missing=()))


@pytest.mark.parametrize("way", WIDE)
@settings(max_examples=8)
@given(table=tables())
def test_a_wide_table_is_the_same_panel_in_every_form(table: Table, way: str) -> None:
    with TemporaryDirectory() as folder:
        panel = read(WIDE[way](table, Path(folder)))
    assert panel.sensor_ids == table.ids
    np.testing.assert_array_equal(panel.values, table.panel().values)
    assert panel.fingerprint == table.panel().fingerprint


@pytest.mark.parametrize("way", LONG)
@settings(max_examples=8)
@given(table=tables())
def test_a_long_table_is_the_same_panel_with_its_sensors_sorted(table: Table, way: str) -> None:
    with TemporaryDirectory() as folder:
        panel = read(LONG[way](table, Path(folder)))
    assert panel.sensor_ids == tuple(sorted(table.ids))
    assert panel.fingerprint == table.panel(tuple(sorted(table.ids))).fingerprint


@settings(max_examples=30)
@given(table=tables(), data=st.data())
def test_the_order_of_rows_does_not_matter(table: Table, data: st.DataObject) -> None:
    frame, long = table.frame(), table.long()
    assert read(frame.iloc[data.draw(st.permutations(range(len(frame))))]).fingerprint == table.panel().fingerprint
    assert read(long.iloc[data.draw(st.permutations(range(len(long))))]).fingerprint == read(long).fingerprint


@pytest.mark.parametrize("form", ["wide", "long"])
@settings(max_examples=8)
@given(table=tables(), word=st.sampled_from([None, "Ice", "1,5", "<0.1"]), data=st.data())
def test_the_size_of_blocks_does_not_matter(table: Table, form: str, word: str | None, data: st.DataObject) -> None:
    frame = (table.frame().reset_index() if form == "wide" else table.long()).astype(object)
    if word is not None:  # often in the last block, after many of numbers only
        row = data.draw(st.sampled_from([0, len(frame) // 2, len(frame) - 1]))
        frame.iloc[row, -1] = word
    expected = table.values.copy() if word is None else without_cell(table, form, row)
    if np.isnan(expected).all():
        return
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = text(frame, Path(folder))
        in_one_block = Findings()
        read_panel(path, options=ReadOptions(missing=()), findings=in_one_block)
        patch.setattr(columns, "_BLOCK_BYTES", 2 * max(map(len, path.read_bytes().splitlines())) + 2)
        in_many_blocks = Findings()
        from_text = read_panel(path, options=ReadOptions(missing=()), findings=in_many_blocks)
        assert in_one_block == in_many_blocks
        patch.setattr(columns, "_NUMBERS_PER_BATCH", 3)
        from_parquet = read(parquet(frame.astype(dict.fromkeys(frame.columns[1:], "str")), Path(folder)))
    ids = table.ids if form == "wide" else tuple(sorted(table.ids))
    kept = [table.ids.index(sensor_id) for sensor_id in ids if sensor_id in from_text.sensor_ids]
    np.testing.assert_array_equal(from_text.values, expected[:, kept].astype(np.float32))
    assert from_text.fingerprint == from_parquet.fingerprint


def without_cell(table: Table, form: str, row: int) -> NDArray[np.float64]:
    values = table.values.copy()
    place = (row, values.shape[1] - 1) if form == "wide" else np.unravel_index(row, values.shape)
    values[place] = np.nan
    return values


def test_thousands_of_sensors_are_read_in_both_forms(tmp_path: Path) -> None:
    ids = tuple(f"S{number:04}" for number in range(2000))
    values = np.random.default_rng(1).normal(size=(20, 2000)).astype(np.float32).astype(np.float64)
    table = Table(ids, values, TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1), 20))
    assert read(text(table.frame().reset_index(), tmp_path)).fingerprint == table.panel().fingerprint
    assert read(text(table.long(), tmp_path)).fingerprint == table.panel().fingerprint


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_fewer_than_two_times_is_refused(rows: int) -> None:
    table = Table(("a", "b"), np.ones((3, 2)), TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1), 3))
    for frame in (table.frame().iloc[:rows], table.long().iloc[: 2 * rows]):
        with pytest.raises(InputError, match=r"no rows|same time"):
            read(frame)


def test_a_gap_that_is_no_number_needs_no_mention_and_a_minimum_must_be_one() -> None:
    assert ReadOptions(missing=(math.nan, -9999.0, math.inf)).missing == (-9999.0,)
    with pytest.raises(InputError, match="a minimum of nan is none"):
        ReadOptions(minimum=math.nan)
