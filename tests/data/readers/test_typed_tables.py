"""Parquet files and data frames of every type become the panel that the same cells as text become."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from candor.core.errors import InputError
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel

HOURS = pd.date_range("2020-05-01", periods=3, freq="h")


def read(given: Any, **options: Any) -> tuple[Panel, Findings]:
    findings = Findings()
    return read_panel(given, options=ReadOptions(**options), findings=findings), findings


def read_columns(folder: Path, **columns: Any) -> Panel:
    pq.write_table(pa.table(columns), folder / "readings.parquet")
    return read(folder / "readings.parquet")[0]


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"time": HOURS, **columns})


@pytest.mark.parametrize(
    "time",
    [
        pa.array(HOURS.as_unit("s")),
        pa.array(HOURS.as_unit("ms")),
        pa.array(HOURS.as_unit("us")),
        pa.array(HOURS.as_unit("ns")),
        pa.array(HOURS.tz_localize("UTC").tz_convert("Asia/Seoul")),
        pa.array(HOURS.astype(str)),
        pa.array(HOURS.astype(str)).dictionary_encode(),
        pa.array([text.encode() for text in HOURS.astype(str)]),
        pa.array(HOURS.as_unit("s").astype("int64")),
        pa.array(HOURS.as_unit("s").astype("int64").astype("float64")),
        pa.array(HOURS.as_unit("ns").astype("int64")),
    ],
)
def test_times_of_any_type_are_the_same_times(tmp_path: Path, time: pa.Array) -> None:
    panel = read_columns(tmp_path, time=time, a=pa.array([1.0, 2.0, 3.0]))
    assert panel.times.start == datetime(2020, 5, 1, tzinfo=UTC) and panel.times.length == 3
    np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 3])


def test_date_and_time_of_day_may_stand_in_two_typed_columns(tmp_path: Path) -> None:
    columns = {"Date": pa.array([date(2020, 5, 1)] * 3), "Time": pa.array(HOURS.time), "a": pa.array([1.0, 2.0, 3.0])}
    panel = read_columns(tmp_path, **columns)
    assert panel.times.start == datetime(2020, 5, 1, tzinfo=UTC) and panel.times.length == 3
    np.testing.assert_array_equal(read(pa.table(columns).to_pandas())[0].values, panel.values)


def test_dates_are_days(tmp_path: Path) -> None:
    days = [date(2020, 2, day) for day in (28, 29)] + [date(2020, 3, 1)]
    for kind in (pa.date32(), pa.date64()):
        panel = read_columns(tmp_path, day=pa.array(days, kind), a=pa.array([1, 2, 3]))
        assert panel.times.local.date.tolist() == days


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3], pa.int64()),
        pa.array([1, None, 3], pa.uint8()),
        pa.array([Decimal("1.0"), None, Decimal("3.0")]),
        pa.array(["1", None, "3"]),
        pa.array(["1", "", "3.0"]).dictionary_encode(),
        pa.array([b"1", b"NA", b"3"]),
        pa.array([1.0, float("nan"), 3.0], pa.float32()),
        pa.array([1.0, -9999.0, 3.0]),
        pa.array([1.0, float("inf"), 3.0]),
    ],
)
def test_readings_of_any_type_are_the_same_readings(tmp_path: Path, column: pa.Array) -> None:
    panel = read_columns(tmp_path, time=pa.array(HOURS), a=column)
    np.testing.assert_array_equal(panel.values[:, 0], [1, np.nan, 3])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0], [2.0], None]),
        pa.array([{"x": 1}, None, {"x": 2}]),
        pa.array([True, False, True]),
        pa.array(HOURS),
        pa.array(["good", "bad", None]),
    ],
)
def test_columns_of_something_else_are_left_out_with_a_warning(tmp_path: Path, column: pa.Array) -> None:
    pq.write_table(
        pa.table({"time": pa.array(HOURS), "extra": column, "a": pa.array([1, 2, 3])}), tmp_path / "r.parquet"
    )
    panel, findings = read(tmp_path / "r.parquet")
    assert panel.sensor_ids == ("a",)
    assert any("left out" in finding.what and "extra" in finding.where for finding in findings)


def test_a_column_without_any_type_is_an_empty_sensor(tmp_path: Path) -> None:
    panel = read_columns(tmp_path, time=pa.array(HOURS), a=pa.array([1, 2, 3]), b=pa.nulls(3))
    assert panel.sensor_ids == ("a", "b") and np.isnan(panel.values[:, 1]).all()


def test_the_index_that_pandas_stored_is_the_time_wherever_it_stands(tmp_path: Path) -> None:
    wide = pd.DataFrame(np.arange(30.0).reshape(3, 10), index=HOURS, columns=[f"s{i}" for i in range(10)])
    wide.to_parquet(tmp_path / "r.parquet")
    assert pq.read_schema(tmp_path / "r.parquet").names[-1] == "__index_level_0__"
    assert read(tmp_path / "r.parquet")[0].fingerprint == read(wide)[0].fingerprint


def test_row_numbers_that_pandas_stored_are_no_sensor(tmp_path: Path) -> None:
    frame(a=[1, 2, 3]).iloc[[2, 0, 1]].to_parquet(tmp_path / "r.parquet")
    panel, findings = read(tmp_path / "r.parquet", zone="UTC")
    assert panel.sensor_ids == ("a",) and [finding.count for finding in findings] == [1]
    np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 3])


def test_names_with_points_are_whole_names(tmp_path: Path) -> None:
    panel = read_columns(tmp_path, **{"time": pa.array(HOURS), "a.b": pa.array([1, 2, 3]), "a": pa.array([4, 5, 6])})
    np.testing.assert_array_equal(panel.values, [[1, 4], [2, 5], [3, 6]])
    assert panel.sensor_ids == ("a.b", "a")


def test_long_ids_of_any_type_are_the_same_sensors(tmp_path: Path) -> None:
    times, values = pa.array(HOURS.repeat(2)), pa.array([1, 2, 3, 4, 5, 6])
    whole = pa.array([7, 12] * 3)
    for ids in (whole, whole.cast(pa.float64()), whole.cast(pa.string()), whole.cast(pa.string()).dictionary_encode()):
        panel = read_columns(tmp_path, time=times, site_no=ids, value=values)
        assert panel.sensor_ids == ("12", "7")
        np.testing.assert_array_equal(panel.values, [[2, 1], [4, 3], [6, 5]])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_ids_are_no_sensor(tmp_path: Path, missing: float | None) -> None:
    ids = pa.array([7.0, missing, 7.0])
    panel = read_columns(tmp_path, time=pa.array(HOURS), sensor=ids, value=pa.array([1, 2, 3]))
    assert panel.sensor_ids == ("7",)
    np.testing.assert_array_equal(panel.values[:, 0], [1, 3])


@pytest.mark.parametrize("content", [b"time,a\n2020-05-01,1\n2020-05-02,2\n", b"PAR1", b"PAR1 and more PAR1"])
def test_what_is_no_parquet_is_refused_in_words(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.parquet").write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "r.parquet")


def test_a_parquet_file_called_csv_is_recognized(tmp_path: Path) -> None:
    frame(a=[1, 2, 3]).to_parquet(tmp_path / "r.parquet")
    (tmp_path / "r.parquet").rename(tmp_path / "r.csv")
    with pytest.raises(InputError, match="this is a Parquet file"):
        read(tmp_path / "r.csv")


def test_two_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    columns = [pa.array(HOURS), pa.array([1, 2, 3]), pa.array([1, 2, 3])]
    pq.write_table(pa.Table.from_arrays(columns, names=["time", "a", "a"]), tmp_path / "r.parquet")
    with pytest.raises(InputError):
        read(tmp_path / "r.parquet")


@pytest.mark.parametrize(
    "given",
    [
        frame(a=[1, 2, 3]).set_index("time"),
        frame(a=[1, 2, 3]).set_index("time").to_period("h"),
        frame(a=[1, 2, 3]).set_index("time").tz_localize("UTC"),
        frame(a=[1, 2, 3]).assign(time=HOURS.astype(str)).set_index("time"),
        frame(a=[1, 2, 3]).assign(time=list(HOURS.to_pydatetime())).set_index("time").rename_axis(None),
        frame(a=["1", "2", "3"]),
        frame(a=pd.array([1, 2, 3], "Int64")),
        frame(a=pd.Categorical([1, 2, 3])),
        frame(a=pd.Series([1, "2", 3.0], dtype=object)),
        frame(a=pd.Series([Decimal(1), Decimal(2), Decimal(3)], dtype=object)),
        frame(a=pd.Series([1, 2, 3], dtype="int64[pyarrow]")),
        frame(a=[1, 2, 3]).iloc[[2, 1, 0]],
        frame(a=[1, 2, 3]).sort_values("a", ascending=False).reset_index(),
    ],
)
def test_a_data_frame_of_any_make_is_the_same_panel(given: pd.DataFrame) -> None:
    panel, _ = read(given)
    assert panel.sensor_ids == ("a",) and panel.times.start == datetime(2020, 5, 1, tzinfo=UTC)
    np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 3])


def test_numbers_and_texts_may_be_mixed_in_a_column_of_a_frame() -> None:
    panel, findings = read(frame(a=pd.Series([1.5, "Ice", None], dtype=object)))
    np.testing.assert_array_equal(panel.values[:, 0], [1.5, np.nan, np.nan])
    assert [finding.count for finding in findings if "hold text" in finding.what] == [1]


def test_an_index_of_times_beside_a_column_called_time() -> None:
    panel, _ = read(frame(a=[1, 2, 3]).assign(time=[4, 5, 6]).set_axis(HOURS))
    np.testing.assert_array_equal(panel.values, [[4, 1], [5, 2], [6, 3]])


@pytest.mark.parametrize("given", [pd.DataFrame(), pd.DataFrame({"time": []}), pd.DataFrame(index=HOURS), frame()])
def test_a_frame_without_readings_is_refused(given: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"no rows|no readings"):
        read(given)


def test_columns_named_by_numbers_are_sensors_named_by_numbers() -> None:
    panel, _ = read(pd.DataFrame([[1, 2], [3, 4]], index=HOURS[:2], columns=[773869, 767541.0]))
    assert panel.sensor_ids == ("773869", "767541")
    with pytest.raises(InputError, match="more than once"):
        read(pd.DataFrame([[1, 2], [3, 4]], index=HOURS[:2], columns=[1, "1"]))
