"""Descriptions of sensors come out one per sensor, in order, with everything doubtful reported."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.findings import Finding, Findings, Level
from candor.data.panel import Sensor
from candor.data.readers import small_tables
from candor.data.readers.sensors import read_sensors

IDS = ("773869", "767541", "717447")
TABLE = "sensor_id,name,latitude,longitude,unit\n"


def read(folder: Path, text: str, ids: tuple[str, ...] = IDS) -> tuple[tuple[Sensor, ...], Findings]:
    path, findings = folder / "sensors.csv", Findings()
    path.write_text(text, encoding="utf-8")
    return read_sensors(path, ids, "mph", findings), findings


def only(findings: Findings) -> Finding:
    (finding,) = findings
    return finding


def test_every_column_finds_its_place(tmp_path: Path) -> None:
    text = TABLE + "717447,Hill,34.1,-118.2,km/h\n773869,Bridge,34.5,-118.0,\n767541,,34,-118,\n"
    sensors, findings = read(tmp_path, text)
    assert sensors == (
        Sensor("773869", "Bridge", 34.5, -118.0, "mph"),
        Sensor("767541", "", 34.0, -118.0, "mph"),
        Sensor("717447", "Hill", 34.1, -118.2, "km/h"),
    )
    (finding,) = findings
    assert "different units" in finding.what


@pytest.mark.parametrize(
    "header",
    [
        "index,sensor_id,latitude,longitude",
        "ID;Site_No;LAT;LON",
        "no.\tStation\ty\tx",
        "agency|siteNo|dec_lat_va|dec_long_va",
        " a , Detector ID , Lat , Lng ",
        "id,sid,lat,long",
    ],
)
def test_columns_are_found_under_many_names(header: str, tmp_path: Path) -> None:
    mark = next(mark for mark in ",;\t|" if mark in header)
    rows = [["0", "773869", "1", "2"], ["1", "767541", "3", "4"], ["2", "717447", "5", "6"]]
    sensors, findings = read(tmp_path, "\n".join([header, *map(mark.join, rows)]))
    assert [(s.latitude, s.longitude) for s in sensors] == [(1, 2), (3, 4), (5, 6)]
    assert not findings


def test_a_table_without_header_is_id_latitude_longitude(tmp_path: Path) -> None:
    sensors, findings = read(tmp_path, "773869,34.1,-118.1\n767541,34.2,-118.2\n717447,34.3,-118.3\n")
    assert [s.latitude for s in sensors] == [34.1, 34.2, 34.3]
    assert only(findings).level is Level.NOTE


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(3)))
def test_the_order_of_the_rows_does_not_matter(order: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = ["773869,Bridge,1,2,a", "767541,Hill,3,4,b", "717447,Mill,5,6,c"]
    text = TABLE + "\n".join(rows[i] for i in order)
    sensors, _ = read(tmp_path_factory.getbasetemp(), text)
    assert [s.name for s in sensors] == ["Bridge", "Hill", "Mill"]


def test_sensors_that_are_not_described_keep_their_id(tmp_path: Path) -> None:
    sensors, findings = read(tmp_path, TABLE + "773869,Bridge,1,2,\n")
    assert sensors[1:] == (Sensor("767541", unit="mph"), Sensor("717447", unit="mph"))
    assert only(findings).level is Level.NOTE
    assert only(findings).count == 2 and "767541" in only(findings).where


def test_rows_about_strangers_are_ignored_with_a_note(tmp_path: Path) -> None:
    sensors, findings = read(tmp_path, TABLE + "773869,,1,2,\n999,,1,2,\n", ids=IDS[:1])
    assert len(sensors) == 1
    assert only(findings).level is Level.NOTE
    assert "999" in only(findings).where


def test_a_table_about_strangers_alone_is_warned_of(tmp_path: Path) -> None:
    sensors, findings = read(tmp_path, TABLE + "0773869,Bridge,1,2,\n")
    assert sensors == tuple(Sensor(sensor, unit="mph") for sensor in IDS)
    assert findings[0].level is Level.WARNING and "773869, 767541, 717447" in findings[0].what
    assert findings[0].where.endswith("0773869") and "alike" in findings[0].hint


def test_an_id_with_a_point_means_the_whole_number_unless_it_is_an_id_itself(tmp_path: Path) -> None:
    text = TABLE + "773869.0,pointed,,,\n"
    assert read(tmp_path, text)[0][0].name == "pointed"
    sensors, _ = read(tmp_path, text, ids=("773869", "773869.0"))
    assert [s.name for s in sensors] == ["", "pointed"]


@pytest.mark.parametrize(
    "place", ["-118.2,34.1", "91,0", "0,-180.5", "north,west", "34.1,", ",34.1", "inf,0", "1e999,0"]
)
def test_an_impossible_place_counts_as_unknown_with_a_warning(place: str, tmp_path: Path) -> None:
    sensors, findings = read(tmp_path, TABLE + f"773869,Bridge,{place},\n", ids=IDS[:1])
    assert sensors == (Sensor("773869", "Bridge", unit="mph"),)
    assert only(findings).level is Level.WARNING
    assert "773869" in only(findings).where and "swapped" in only(findings).hint


@pytest.mark.parametrize("place", [",", "NA,NA", " , "])
def test_an_empty_place_is_unknown_without_a_word(place: str, tmp_path: Path) -> None:
    sensors, findings = read(tmp_path, TABLE + f"773869,,{place},\n", ids=IDS[:1])
    assert sensors[0].latitude is None and sensors[0].longitude is None
    assert not findings


def test_a_row_said_twice_counts_once_and_a_contradiction_is_refused(tmp_path: Path) -> None:
    row = "773869,Bridge,1,2,\n"
    assert read(tmp_path, TABLE + row + row, ids=IDS[:1])[0][0].name == "Bridge"
    with pytest.raises(InputError, match="differently: 773869"):
        read(tmp_path, TABLE + row + "773869,Bridge,1,3,\n", ids=IDS[:1])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("where,latitude\nx,1\n", "sensor_id"),
        ("773869,34.1\n767541,34.2\n", "no header"),
        ("1,2,3\n", "no header"),
        (TABLE + "773869,Bridge,1\n", "line 2 has 3 cells"),
        (TABLE + '773869,"Bridge,1,2,\n', "line 2"),
        (TABLE + '773869,Bridge,1,2,"m\n767541,Hill,1,2,\n', "line 3"),
        ("\n\n", "no table"),
    ],
)
def test_tables_that_cannot_be_read_say_why(text: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word):
        read(tmp_path, text)


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(TABLE.encode() + "773869,Brücke,1,2,\n".encode("latin1"))
    with pytest.raises(InputError, match="UTF-8"):
        read_sensors(tmp_path / "latin.csv", IDS, "mph", Findings())


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_CELLS"])
@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_a_table_that_unpacks_too_large_is_refused(
    limit: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"sensor_id": ["773869"] * 1000, "name": ["Bridge"] * 1000})
    path = tmp_path / f"sensors.{ending}"
    frame.to_csv(path, index=False) if "csv" in ending else frame.to_parquet(path)
    assert read_sensors(path, IDS, "mph", Findings())[0].name == "Bridge"
    monkeypatch.setattr(small_tables, limit, 1500 if limit == "MOST_CELLS" else 100)
    with pytest.raises(InputError, match="too large"):
        read_sensors(path, IDS, "mph", Findings())


FRAME = pd.DataFrame(
    {
        "sensor_id": [773869, 767541, 717447],
        "latitude": [34.25, 34.5, None],
        "longitude": [-118.25, -118.5, None],
        "name": ["Bridge", None, "Hill"],
    }
)
EXPECTED = (
    Sensor("773869", "Bridge", 34.25, -118.25, "mph"),
    Sensor("767541", "", 34.5, -118.5, "mph"),
    Sensor("717447", "Hill", None, None, "mph"),
)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "parquet", "txt"])
def test_all_forms_of_a_table_say_the_same(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"sensors.{ending}"
    FRAME.to_parquet(path) if ending == "parquet" else FRAME.to_csv(path, index=False)
    assert read_sensors(path, IDS, "mph", Findings()) == EXPECTED


@pytest.mark.parametrize(
    "frame",
    [
        FRAME,
        FRAME.set_index("sensor_id"),
        FRAME.astype({"sensor_id": float}),
        FRAME.astype({"sensor_id": str}),
        FRAME.astype({"sensor_id": object}),
        FRAME.astype({"sensor_id": str}).astype({"sensor_id": "category"}),
        FRAME.assign(sensor_id=[773869, "767541", 717447.0]),
    ],
)
def test_a_frame_says_the_same_as_a_file(frame: Any) -> None:
    assert read_sensors(frame, IDS, "mph", Findings()) == EXPECTED


def test_places_may_have_decimal_commas_where_commas_divide_nothing(tmp_path: Path) -> None:
    path, findings = tmp_path / "sensors.csv", Findings()
    path.write_text("id;latitude;longitude\n773869;34,25;-118,25\n", encoding="utf-8")
    found = read_sensors(path, IDS[:1], "mph", findings)
    assert (found[0].latitude, found[0].longitude) == (34.25, -118.25) and not findings


def test_different_units_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "sensors.csv"
    path.write_text("id,unit\n773869,mg/L\n767541,degC\n717447,\n", encoding="utf-8")
    for unit, named in (("mg/L", "mg/L, degC"), ("", "mg/L, degC, none")):
        findings = Findings()
        read_sensors(path, IDS, unit, findings)
        (finding,) = findings
        assert finding.level is Level.WARNING and "different units" in finding.what and finding.where.endswith(named)
