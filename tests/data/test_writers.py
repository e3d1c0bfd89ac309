"""What is exported can be read again as the very same panel."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.core.errors import InputError
from candor.data import writers
from candor.data.panel import Covariate, Edges, Panel, Sensor
from candor.data.panel_store import load_panel, save_panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import DAY, TimeAxis
from candor.data.writers import export_panel

HOUR = timedelta(hours=1)
IDS = st.from_regex(r"[A-Za-z0-9]{1,8}|0[0-9]{3}|S-[0-9]{2}", fullmatch=True)
NAMES = st.sampled_from(["", "Keno Dam, at Keno", 'the "old" weir', "Uiam Lake / 의암호", "NA"])
# Clocks of the axis: days live on a fixed offset, hours may change theirs (around the changes of 2020).
CLOCKS = st.sampled_from(
    [
        (datetime(2020, 3, 8), HOUR, "America/Los_Angeles"),
        (datetime(2020, 10, 31, 20), timedelta(minutes=30), "America/Los_Angeles"),
        (datetime(2020, 10, 24, 20), HOUR, "Europe/Dublin"),
        (datetime(2020, 4, 4, 12), timedelta(minutes=5), "Australia/Sydney"),
        (datetime(2020, 1, 1), timedelta(milliseconds=1500), "Asia/Kolkata"),
        (datetime(2020, 1, 1), timedelta(hours=6), "UTC"),
        (datetime(2020, 2, 20, 8), DAY, "UTC-08:00"),
        (datetime(2020, 2, 20), DAY, "UTC"),
        (datetime(2020, 2, 20), 7 * DAY, "UTC"),
    ]
)


@st.composite
def edges_among(draw: st.DrawFn, count: int) -> Edges:
    pairs = draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), unique=True, max_size=5))
    if not pairs:
        return Edges.none()
    source, target = np.array(pairs, np.int32).T
    lengths = arrays(np.float32, len(pairs), elements=st.floats(0, 1e6, width=32))
    weights = arrays(np.float32, len(pairs), elements=st.floats(2**-20, 1, width=32))
    has = draw(st.sampled_from(["distance", "weight", "both"]))
    distance = None if has == "weight" else draw(lengths) + np.float32(0)
    unit = "" if distance is None else draw(st.sampled_from(["", "km", "m", "mi"]))
    return Edges(source, target, distance, None if has == "distance" else draw(weights), unit)


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    """Draws panels that a reader could have made."""
    ids = draw(st.lists(IDS, unique_by=str.lower, min_size=1, max_size=4).filter(lambda ids: "time" not in ids))
    rows = draw(st.integers(3, 12))
    start, interval, zone = draw(CLOCKS)
    table = arrays(np.float32, (rows, len(ids)), elements=st.floats(width=32, allow_infinity=False))
    places = st.tuples(st.floats(-90, 90), st.floats(-180, 180)) | st.just((None, None))
    return Panel(
        values=draw(table.filter(lambda values: not np.isnan(values).all())),  # readers refuse an empty file
        times=TimeAxis(start.replace(tzinfo=UTC), interval, rows, zone),
        sensors=tuple(Sensor(i, draw(NAMES), *draw(places), draw(st.sampled_from(["", "mg/L"]))) for i in ids),
        edges=draw(edges_among(len(ids))),
    )


def read_again(panel: Panel, folder: Path, format: str) -> Panel:
    options = ReadOptions(missing=(), zone=panel.times.zone)
    return read_panel(*(folder / f"{name}.{format}" for name in ("readings", "edges", "sensors")), options)


@pytest.mark.parametrize("format", ["csv", "parquet"])
@settings(max_examples=15)
@given(panel=panels())
def test_reading_undoes_exporting(panel: Panel, format: str) -> None:
    with TemporaryDirectory() as folder:
        export_panel(panel, Path(folder), format)
        again = read_again(panel, Path(folder), format)
    np.testing.assert_array_equal(again.values, panel.values)
    assert (again.times, again.sensors) == (panel.times, panel.sensors)
    assert again.fingerprint == panel.fingerprint


def make_panel(rows: int = 30, **parts: Any) -> Panel:
    values = np.random.default_rng(0).normal(9, 1, (rows, 2)).astype(np.float32)
    times = TimeAxis(datetime(2020, 10, 31, 7, tzinfo=UTC), HOUR, rows, "America/Los_Angeles")
    panel = Panel(values, times, (Sensor("a", latitude=1 / 3, longitude=-200 / 3), Sensor("b")))
    return replace(panel, **parts)


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_every_part_has_a_file_and_covariates_stand_beside_the_readings(tmp_path: Path, format: str) -> None:
    panel = make_panel(covariates={"rain": Covariate(np.full((30, 2), 0.1), "mm/h")})
    paths = export_panel(panel, tmp_path / "new" / "folder", format)
    assert [path.name for path in paths] == [f"{name}.{format}" for name in ("readings", "rain", "edges", "sensors")]
    assert all(path.is_file() for path in paths)
    rain = read_panel(paths[1], options=ReadOptions(zone=panel.times.zone))
    np.testing.assert_array_equal(rain.values, panel.covariates["rain"].values)
    assert rain.times == panel.times


def test_nothing_of_others_is_replaced_and_an_earlier_export_is(tmp_path: Path) -> None:
    save_panel(make_panel(), tmp_path / "panel")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "readings.csv").write_text("by hand")
    for folder, format in (("panel", "parquet"), ("panel", "csv"), ("mine", "csv")):
        with pytest.raises(InputError, match=r"panel folder|not as an earlier export left it"):
            export_panel(make_panel(), tmp_path / folder, format)
    assert load_panel(tmp_path / "panel").fingerprint == make_panel().fingerprint
    assert (tmp_path / "mine" / "readings.csv").read_text() == "by hand"
    for rows in (30, 20):
        export_panel(make_panel(rows), tmp_path / "files", "csv")
    assert len(pd.read_csv(tmp_path / "files" / "readings.csv")) == 20


@pytest.mark.parametrize("name", ["readings.csv", "edges.csv", "sensors.csv"])
def test_files_that_were_changed_since_their_export_are_not_replaced(tmp_path: Path, name: str) -> None:
    export_panel(make_panel(), tmp_path, "csv")
    with (tmp_path / name).open("a") as file:
        file.write("by hand\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match=f"{name} is there already"):
        export_panel(make_panel(20), tmp_path, "csv")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_files_of_somebody_pass_for_no_export_and_an_export_that_was_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("readings", "edges", "sensors"):
        (tmp_path / f"{name}.csv").write_text("by hand")
    with pytest.raises(InputError, match=r"readings\.csv is there already"):
        export_panel(make_panel(), tmp_path, "csv")
    write, calls = writers.atomic_file, []

    def write_one(path: Path) -> Any:
        if calls:
            raise KeyboardInterrupt
        calls.append(path)
        return write(path)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(writers, "atomic_file", write_one)
        export_panel(make_panel(), tmp_path / "killed", "csv")
    assert len(export_panel(make_panel(), tmp_path / "killed", "csv")) == 3


def test_coordinates_keep_all_their_digits(tmp_path: Path) -> None:
    for format in ("csv", "parquet"):
        export_panel(make_panel(), tmp_path, format)
        assert read_again(make_panel(), tmp_path, format).sensors == make_panel().sensors


def test_the_repeated_hour_is_told_apart_by_its_offset(tmp_path: Path) -> None:
    export_panel(make_panel(), tmp_path, "csv")
    stamps = pd.read_csv(tmp_path / "readings.csv")["time"]
    assert stamps[25:27].tolist() == ["2020-11-01 01:00:00-07:00", "2020-11-01 01:00:00-08:00"]


@pytest.mark.parametrize("name", ["readings", "edges", "sensors", "../rain", "a/b"])
def test_a_covariate_whose_file_would_be_another_is_refused(tmp_path: Path, name: str) -> None:
    panel = make_panel(covariates={name: Covariate(np.ones((30, 2)))})
    with pytest.raises(InputError, match="covariate"):
        export_panel(panel, tmp_path / "folder", "csv")
    assert list(tmp_path.iterdir()) == []


def test_a_sensor_called_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="time"):
        export_panel(make_panel(sensors=(Sensor("time"), Sensor("b"))), tmp_path, "csv")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="xls"):
        export_panel(make_panel(), tmp_path, "xls")
    assert list(tmp_path.iterdir()) == []
