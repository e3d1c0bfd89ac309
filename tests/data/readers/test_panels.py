"""The three files of a stranger together: what fits becomes one panel, what does not is said."""

import hashlib
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray

from candor.core.errors import InputError
from candor.data.findings import Findings, Level
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import zone_from_name

HOURS = pd.date_range("2020-05-01", periods=4, freq="h")
READINGS = pd.DataFrame({"time": HOURS, "a": [1, 2, 3, 4], "b": [5, 6, 7, 8], "c": [9, 10, 11, 12]})
EDGES = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "distance": [1.5, 2.5]})
SENSORS = pd.DataFrame({"id": ["c", "a"], "name": ["Keno", "Uiam"], "unit": ["mg/L", ""]})


def read(*given: Any, **options: Any) -> tuple[Panel, Findings]:
    findings = Findings()
    return read_panel(*given, options=ReadOptions(**options), findings=findings), findings


def test_files_and_frames_make_the_same_panel(tmp_path: Path) -> None:
    frames = {"readings": READINGS, "edges": EDGES, "sensors": SENSORS}
    paths = {role: tmp_path / f"{role}.csv" for role in frames}
    for role, frame in frames.items():
        frame.to_csv(paths[role], index=False)
    from_files, from_frames = read_panel(**paths), read_panel(**frames)
    assert from_files.fingerprint == from_frames.fingerprint
    assert from_files.name == "readings" and from_frames.name == ""
    assert read_panel(paths["readings"], name="river").name == "river"


def test_the_panel_says_which_files_it_came_from(tmp_path: Path) -> None:
    READINGS.to_csv(tmp_path / "r.csv", index=False)
    panel = read_panel(tmp_path / "r.csv", edges=EDGES)
    digest = hashlib.sha256((tmp_path / "r.csv").read_bytes()).hexdigest()
    assert panel.provenance == {"files": {"readings": {"file": "r.csv", "sha256": digest}}}
    assert read_panel(READINGS).provenance == {}


def test_sensors_without_edges_and_edges_without_sensors_are_both_allowed() -> None:
    panel, findings = read(READINGS, pd.concat([EDGES, pd.DataFrame({"from": ["a"], "to": ["z"], "distance": [1]})]))
    assert panel.sensor_ids == ("a", "b", "c") and len(panel.edges) == 2
    assert any(finding.level is Level.WARNING and "z" in finding.where for finding in findings)
    assert len(read(READINGS)[0].edges) == 0


def test_a_sensor_left_out_for_text_takes_its_edges_with_it() -> None:
    panel, findings = read(READINGS.assign(b=["x"] * 4), EDGES.assign(to=["b", "a"], **{"from": ["a", "c"]}))
    assert panel.sensor_ids == ("a", "c") and len(panel.edges) == 1
    assert [finding.count for finding in findings if "edges name sensors" in finding.what] == [1]


def test_units_come_from_the_table_of_sensors_first() -> None:
    panel, _ = read(READINGS, None, SENSORS, unit="m")
    assert [sensor.unit for sensor in panel.sensors] == ["m", "m", "mg/L"]
    assert {sensor.unit for sensor in read(READINGS, unit="m")[0].sensors} == {"m"}


@pytest.mark.parametrize("zone", ["Mars/Phobos", "../etc", "UTC+99", "europe", "\0"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(InputError, match="no time zone"):
        read(READINGS, zone=zone)


def test_a_zone_is_asked_for_only_where_times_carry_none() -> None:
    def asks(*given: Any, **options: Any) -> bool:
        return any("carry no zone" in finding.what for finding in read(*given, **options)[1])

    assert asks(READINGS) and not asks(READINGS, zone="UTC")
    assert not asks(READINGS.assign(time=HOURS.tz_localize("UTC")))


@pytest.mark.parametrize("carried", ["America/Los_Angeles", "UTC-07:00", "UTC"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_the_one_zone_that_times_carry_is_the_zone(carried: str, kind: str, tmp_path: Path) -> None:
    times = pd.date_range("2024-07-01", periods=4, freq="h", tz=zone_from_name(carried))
    given: Any = pd.DataFrame({"time": times, "a": [1.0, 2, 3, 4]})
    if kind != "frame":
        (given.to_csv if kind == "csv" else given.to_parquet)(tmp_path / f"r.{kind}", index=False)
        given = tmp_path / f"r.{kind}"
    panel, findings = read(given)
    # Texts tell the offset, not the place.
    assert panel.times.zone == ("UTC-07:00" if (kind, carried) == ("csv", "America/Los_Angeles") else carried)
    assert panel.times.local[0].isoformat() == times[0].isoformat() and findings == []
    other, _ = read(given, zone="Asia/Seoul")
    assert other.times.zone == "Asia/Seoul" and other.times.start == panel.times.start


def test_different_offsets_are_no_zone_and_a_warning_says_so() -> None:
    times = pd.date_range("2024-03-09", periods=72, freq="h", tz="America/Los_Angeles")  # summer time begins
    frame = pd.DataFrame({"time": [str(time) for time in times], "a": np.arange(72.0)})
    panel, findings = read(frame)
    (finding,) = findings
    assert panel.times.zone == "UTC" and finding.level is Level.WARNING
    assert "(UTC-08:00, UTC-07:00)" in finding.what and "--zone" in finding.hint
    named, findings = read(frame, zone="America/Los_Angeles")
    assert findings == [] and named.times.start == panel.times.start


def test_a_panel_of_days_remembers_the_zone_of_its_file() -> None:
    days = pd.DataFrame({"time": pd.date_range("2023-03-20", periods=9, tz="Europe/Berlin"), "a": np.arange(9.0)})
    for said in (None, "Europe/Berlin"):
        panel, _ = read(days, zone=said)
        assert panel.times.zone == "UTC+01:00" and panel.provenance == {"zone": "Europe/Berlin"}
    again, _ = read(days, zone="UTC+01:00", wall_zone="Europe/Berlin")
    assert again.fingerprint == panel.fingerprint and again.provenance == {}


def test_a_zone_that_nobody_knows_is_told(tmp_path: Path) -> None:
    times = pa.array([0, 3600, 7200], pa.timestamp("ms", "Pacific Standard Time"))
    pq.write_table(pa.table({"time": times, "a": [1.0, 2.0, 3.0]}), tmp_path / "r.parquet")
    panel, (finding,) = read(tmp_path / "r.parquet")
    assert panel.times.zone == "UTC" and "unknown zone (Pacific Standard Time)" in finding.what


def test_all_that_is_not_a_reading_is_missing_and_said_once() -> None:
    cells = ["1.5", "-9999", "-1", "inf", "Ice", "", None, "2.5"]
    frame = pd.DataFrame({"time": pd.date_range("2020-05-01", periods=8, freq="h"), "a": cells})
    panel, findings = read(frame, minimum=0.0, zone="UTC")
    np.testing.assert_array_equal(panel.values[:, 0], [1.5, *[np.nan] * 6, 2.5])
    assert {finding.what.split(":")[0]: finding.count for finding in findings} == {
        "cells hold text, not numbers": 1,
        "infinite numbers": 1,
        "readings below 0": 1,
        "cells hold a number that stands for missing (-9999, -99999, -999999)": 1,
    }


def test_archives_and_frames_of_the_same_numbers_are_the_same_panel(tmp_path: Path) -> None:
    values = np.array([[1, -9999], [2, 3], [np.inf, 4]], np.float32)
    np.savez(tmp_path / "r.npz", data=values)
    start, hour = datetime(2020, 3, 29), timedelta(hours=1)
    archive, _ = read(tmp_path / "r.npz", start=start, interval=hour, zone="UTC+01:00", minimum=0.0)
    frame = pd.DataFrame(values, pd.date_range(start, periods=3, freq="h"), ["0", "1"])
    table, _ = read(frame, zone="UTC+01:00", minimum=0.0)
    assert archive.fingerprint == table.fingerprint
    assert archive.times.start == datetime(2020, 3, 28, 23, tzinfo=UTC)


def long_table(ids: list[str]) -> pd.DataFrame:
    """Readings of the sensors at two times, a row each."""
    times = pd.to_datetime(["2020-05-01 00:00", "2020-05-01 01:00"]).repeat(len(ids))
    return pd.DataFrame({"time": times, "sensor": ids * 2, "value": range(2 * len(ids))})


def with_one_edge(ids: list[str], frame: pd.DataFrame) -> tuple[str, str]:
    """Returns the sensors that an edge from the second to the third row of a bare matrix joins."""
    matrix = np.zeros((len(ids), len(ids)))
    matrix[1, 2] = 1
    panel, _ = read(frame, pd.DataFrame(matrix))
    (source,), (target,) = panel.edges.source, panel.edges.target
    return panel.sensor_ids[source], panel.sensor_ids[target]


@pytest.mark.parametrize("order", [str, int, lambda sensor_id: -int(sensor_id)])
@pytest.mark.parametrize("first", [0, 1])
def test_a_bare_matrix_is_that_of_counted_sensors_however_a_long_table_is_sorted(first: int, order: Any) -> None:
    ids = [str(number) for number in range(first, first + 12)]
    assert with_one_edge(ids, long_table(sorted(ids, key=order))) == (ids[1], ids[2])


def test_a_bare_matrix_is_that_of_a_long_table_whose_sensors_come_as_people_sort_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("candor.data.readers.columns._NUMBERS_PER_BATCH", 4)
    for ids in ([f"S{number}" for number in range(8, 15)], ["717446", "717447", "1000000"], ["a", "b", "c"]):
        assert with_one_edge(ids, long_table(ids)) == (ids[1], ids[2])


@pytest.mark.parametrize("ids", [["b", "a", "c"], ["S1", "S10", "S2"], ["773869", "767541", "717447"]])
def test_a_bare_matrix_is_refused_where_the_order_of_a_long_table_is_in_doubt(ids: list[str]) -> None:
    with pytest.raises(InputError, match=r"which row is whose(.|\n)*ids around the matrix"):
        with_one_edge(ids, long_table(ids))
    labelled = pd.DataFrame(np.eye(3), ids, ids)
    assert len(read(long_table(ids), labelled)[0].edges) == 3
    wide = long_table(ids).pivot(index="time", columns="sensor", values="value")[ids]
    assert with_one_edge(ids, wide) == (ids[1], ids[2])


@pytest.mark.parametrize(
    ("distances", "is_doubtful"),
    [(("987", "1,234"), True), (("2,500", "1,234"), True), (("0,987", "1,234"), False), (("98,5", "1,234"), False)],
)
def test_commas_that_may_divide_thousands_of_kilometres_are_told(
    tmp_path: Path, distances: tuple[str, str], is_doubtful: bool
) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("from;to;distance\na;b;{}\nb;c;{}\n".format(*distances))
    panel, findings = read(READINGS, path, zone="UTC")
    assert panel.edges.distance is not None and panel.edges.distance[1] == np.float32(1.234)
    assert [("thousands" in finding.what, finding.level) for finding in findings] == [
        (True, Level.WARNING)
    ] * is_doubtful


@pytest.mark.parametrize("kind", ["csv", "parquet", "h5", "npz", "nc"])
def test_infinite_readings_are_missing_and_counted_in_every_kind_of_file(kind: str, tmp_path: Path) -> None:
    path, values = tmp_path / f"r.{kind}", np.array([[1.0, np.inf], [-np.inf, 2.0], [1e300, 3.0], [4.0, np.nan]])
    frame = pd.DataFrame(values, HOURS.rename("time"), ["0", "1"])
    if kind == "csv":
        frame.to_csv(path)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "h5":
        frame.to_hdf(path, key="df", format="fixed")
    elif kind == "npz":
        np.savez(path, data=values)
    else:
        xarray.Dataset({"level": (("time", "site"), values)}, {"time": HOURS}).to_netcdf(path, format="NETCDF3_64BIT")
    said = {"start": datetime(2020, 5, 1), "interval": timedelta(hours=1)} if kind == "npz" else {}
    panel, findings = read(path, zone="UTC", **said)
    nan = np.nan
    np.testing.assert_array_equal(panel.values, np.array([[1, nan], [nan, 2], [nan, 3], [4, nan]], np.float32))
    (finding,) = findings
    assert finding.what == "infinite numbers: read as missing" and finding.count == 3


def test_progress_rises_to_the_whole() -> None:
    told: list[tuple[str, float | None]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("candor.data.readers.columns._NUMBERS_PER_BATCH", 4)
        read_panel(READINGS, report=lambda what, share: told.append((what, share)))
    shares = [share for what, share in told if what == "reading values" and share is not None]
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) == 4


def test_nothing_can_write_to_a_panel_that_was_read() -> None:
    for frame in (READINGS, READINGS.assign(remark="x")):
        panel, _ = read(frame)
        assert panel.sensor_ids == ("a", "b", "c")
        with pytest.raises(ValueError, match="read-only"):
            panel.values[0, 0] = 1


def test_reading_in_batches_takes_little_more_memory_than_the_panel(tmp_path: Path) -> None:
    values = np.arange(1_000_000, dtype=np.float32).reshape(20_000, 50)
    times = pd.date_range("2020-05-01", periods=20_000, freq="min", name="time")
    frame = pd.DataFrame(values, times, [f"s{column}" for column in range(50)])
    frame.reset_index().to_parquet(tmp_path / "r.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("candor.data.readers.columns._NUMBERS_PER_BATCH", 10_000)
        tracemalloc.start()
        panel = read_panel(tmp_path / "r.parquet")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1.7 * panel.values.nbytes
