"""A text file as strangers write it becomes the right panel, or plain words about what is wrong with it."""

import gzip
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.findings import Level
from candor.data.readers import columns

PLAIN = "time,a,b\n2020-05-01 00:00,1,10\n2020-05-01 01:00,2,20\n2020-05-01 02:00,3,30\n"
VALUES = [[1, 10], [2, 20], [3, 30]]
ROWS = PLAIN.split("\n", 1)[1]

# Other ways to write the same file, which must not be told from it.
SAME = {
    "byte order mark": "\ufeff" + PLAIN,
    "crlf": PLAIN.replace("\n", "\r\n"),
    "old macintosh": PLAIN.replace("\n", "\r"),
    "no newline at the end": PLAIN.rstrip("\n"),
    "blank lines": "\n\n" + PLAIN.replace("\n", "\n\n"),
    "blanks around cells": PLAIN.replace(",", " , "),
    "quoted": "\n".join(",".join(f'"{cell}"' for cell in line.split(",")) for line in PLAIN.splitlines()),
    "remarks on top": "# made by a logger\n#, with, many, commas\n" + PLAIN,
    "semicolons": PLAIN.replace(",", ";"),
    "tabs": PLAIN.replace(",", "\t"),
    "bars": PLAIN.replace(",", "|"),
    "time last": "\n".join(",".join([*line.split(",")[1:], line.split(",")[0]]) for line in PLAIN.splitlines()),
    "time in the middle": "\n".join(",".join(line.split(",")[i] for i in (1, 0, 2)) for line in PLAIN.splitlines()),
    "time by another name": PLAIN.replace("time", "Measured at"),
    "numbers with zeros": PLAIN.replace(",1,", ",1.000,"),
}


@pytest.mark.parametrize("way", SAME)
def test_the_same_file_in_other_clothes(read: Any, way: str) -> None:
    panel, findings = read(SAME[way], zone="UTC")
    assert panel.sensor_ids == ("a", "b") and findings == []
    np.testing.assert_array_equal(panel.values, VALUES)
    assert panel.fingerprint == read(PLAIN, zone="UTC")[0].fingerprint


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.replace("time", ""),  # the index of pandas, without a name
        "\n".join(f"{i or ''},{line}" for i, line in enumerate(PLAIN.splitlines())),  # row numbers of pandas
        PLAIN.replace("\n", ",\n"),  # a comma at the end of each line
        "Unnamed: 0," + PLAIN.replace("\n", "\n7,", 3),
    ],
)
def test_columns_that_only_number_the_rows_are_no_sensors(read: Any, content: str) -> None:
    panel, findings = read(content, zone="UTC")
    assert panel.sensor_ids == ("a", "b")
    np.testing.assert_array_equal(panel.values, VALUES)
    assert all("neither time nor readings" in finding.what for finding in findings)


@pytest.mark.parametrize(
    "name",
    ["Flow (m³/s)", "의암호", 'the "old" weir', "a,b", "12345", "-1", "x" * 300, "#1", "12-34-5678", "2019-05-01 new"],
)
def test_names_of_sensors_are_kept_as_they_are(read: Any, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    panel, _ = read(PLAIN.replace(",a,", f",{quoted},"))
    assert panel.sensor_ids == (name, "b")


def test_commas_in_unquoted_names_do_not_hide_the_semicolons(read: Any) -> None:
    panel, _ = read("time;Flow, m3/s;Temperature, C\n" + ROWS.replace(",", ";"))
    assert panel.sensor_ids == ("Flow, m3/s", "Temperature, C")
    np.testing.assert_array_equal(panel.values, VALUES)
    one, _ = read("time;Keno, at Keno\n2020-05-01 00:00;1,5\n2020-05-01 01:00;2,5\n")
    assert one.sensor_ids == ("Keno, at Keno",) and one.values[:, 0].tolist() == [1.5, 2.5]


def test_commas_are_decimal_only_where_no_number_has_a_point(read: Any) -> None:
    german = "time;a;b\n2020-05-01 00:00;1,5;1,234\n2020-05-01 01:00;2;-0,25\n"
    panel, findings = read(german)
    np.testing.assert_array_equal(panel.values, np.array([[1.5, 1.234], [2, -0.25]], np.float32))
    assert any("comma" in finding.what and finding.count == 3 for finding in findings)
    mixed, findings = read(german.replace("1,5", "1.5"))  # then 1,234 may be a thousand
    assert mixed.sensor_ids == ("a",) and any("hold text" in finding.what for finding in findings)


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize(
    ("cells", "is_doubtful"),
    [
        (["987", "1,234", "999"], True),
        (["987", "12,345", "1,234,567"], True),
        (["7,125", "7,250", "7,375"], True),  # three decimals throughout: nobody can know
        (["987", "1,2345", "1,234"], False),
        (["0,987", "1,234", "-0,125"], False),
        (["987", "1,5", "1,234"], False),
        (["987", "1234", "999"], False),
    ],
)
def test_commas_that_may_divide_thousands_are_warned_of(
    read: Any, mark: str, cells: list[str], is_doubtful: bool
) -> None:
    rows = "".join(f"2020-05-01 0{hour}:00{mark}{cell}\n" for hour, cell in enumerate(cells))
    _, findings = read(f"time{mark}a\n{rows}", zone="UTC")
    assert any("thousands" in finding.what for finding in findings if finding.level is Level.WARNING) == is_doubtful


def test_a_column_of_remarks_is_left_out_with_a_warning(read: Any) -> None:
    panel, findings = read(PLAIN.replace("b\n", "b,remark\n").replace("0\n", "0,Ice\n"))
    assert panel.sensor_ids == ("a", "b")
    left_out = [finding for finding in findings if "left out" in finding.what]
    assert [(finding.level, finding.count) for finding in left_out] == [(Level.WARNING, 1)]
    assert "remark" in left_out[0].where


def test_an_empty_sensor_is_kept_as_missing(read: Any) -> None:
    panel, _ = read("time,a,b\n2020-05-01 00:00,1,\n2020-05-01 01:00,2,\n")
    assert panel.sensor_ids == ("a", "b") and np.isnan(panel.values[:, 1]).all()


def test_rows_without_a_readable_time_are_counted_and_left_out(read: Any) -> None:
    panel, findings = read(PLAIN + "soon,9,90\n,8,80\n2020-05-01 03:00,4,40\n,,\n", zone="UTC")
    np.testing.assert_array_equal(panel.values, [*VALUES, [4, 40]])
    (finding,) = findings
    assert "no readable time" in finding.what and finding.count == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("time,a,b\n", "no rows"),
        ("time,a,b", "no rows"),
        ("\n\n", "no table"),
        ("time\n2020-05-01\n2020-05-02\n", "no readings beside"),
        ("2020-05-01 00:00,1,2\n2020-05-01 01:00,2,3\n", "not column names"),
        ("sensor,2020-05-01,2020-05-02\na,1,2\nb,2,3\n", "times must stand in a column"),
        ("a,b\n1,2\n3,4\n", "no column holds times"),
        ("index,a\n0,2\n1,4\n", "no column holds times"),
        ("time,a\nmorning,2\nevening,4\n", "no known form of time"),
        ("time,a\n12:00,2\n13:00,4\n", "no known form of time"),
        ("time,a\n2020-05-01,2\n", "same time"),
        ("time,a,a\n2020-05-01,2,3\n2020-05-02,2,3\n", "more than once: a"),
        ("time,a, a \n2020-05-01,2,3\n2020-05-02,2,3\n", "more than once: a"),
        ("time,1,1.0\n2020-05-01,2,3\n2020-05-02,2,3\n", "more than once: 1"),
        ("time,a\n2020-05-01,Ice\n2020-05-02,Snow\n", "not a single reading"),
        ("time,a\n2020-05-01,-9999\n2020-05-02,\n", "not a single reading"),
        (PLAIN + "2020-05-01 03:00,4\n", "row 5 (blank lines not counted) has 2 cells where the first row has 3"),
        (PLAIN + "2020-05-01 03:00,4,5,6\n", "row 5 (blank lines not counted) has 4 cells"),
        (PLAIN + "# remark\n", "row 5 (blank lines not counted) has 1 cells"),
        (PLAIN + "2020-05-01 0", "row 5 (blank lines not counted) has 1 cells"),
        (PLAIN.replace(",2,", ',"2,'), "row 3 (blank lines not counted) has 2 cells"),
        (PLAIN.replace(",20", ',"20'), "several lines"),
        (PLAIN.replace("2,20", '2,"20\n"'), "several lines"),
        ("time,station,flow,depth\n2020-05-01,a,2,3\n2020-05-02,b,2,3\n", "may hold its readings: flow, depth"),
        ("Station: weir\nSerial: 7\n\n" + PLAIN, "'Station: weir', has 1 cell where the next ones have 3"),
        ("Serial,7\n" + PLAIN, "'Serial, 7', has 2 cells where the next ones have 3"),
        ("time,sensor,value\n2020-05-01,,2\n2020-05-02,,2\n", "no row names its sensor"),
        ("time,place,flow\n2020-05-01,x,2\n2020-05-01,y,2\n2020-05-02,x,2\n2020-05-02,y,2\n", "different sensors"),
        ("time,place,flow\n" + "".join(f"2020-05-0{i % 3 + 1},{i},{i}\n" for i in range(9)), "different sensors"),
    ],
)
def test_a_file_that_is_no_record_is_refused_in_words(read: Any, content: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        read(content)
    assert words in refusal.value.what
    assert "readings.csv" in refusal.value.where and refusal.value.hint


@pytest.mark.parametrize("size", [40, 80, 4 << 20])
def test_the_row_that_is_ragged_is_named(read: Any, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(columns, "_BLOCK_BYTES", size)
    for ragged in ("x", "\udce9,\udce9"):  # the second in no known encoding
        with pytest.raises(InputError, match=r"row 6 .* has \d cells"):
            read(("# remark\n" + PLAIN + f"{ragged}\n" + ROWS).encode(errors="surrogateescape"))


@pytest.mark.parametrize("size", [40, 80, 4 << 20])
def test_an_open_quote_never_swallows_rows_unnoticed(read: Any, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(columns, "_BLOCK_BYTES", size)
    long = "time,sensor,value,remark\n" + "".join(f"2020-05-01 0{i}:00,a,{i},\n" for i in range(9))
    for broken in (PLAIN.replace(",10", ',"10'), long.replace(",3,", ',3,"ice'), long.replace("a,3", '"a,3')):
        with pytest.raises(InputError):
            read(broken)


def test_a_line_longer_than_a_block_is_refused_in_words(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_BLOCK_BYTES", 50)
    with pytest.raises(InputError, match="a line is longer"):
        read(PLAIN + f"2020-05-01 03:00,4,{'5' * 100}\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PLAIN.encode("utf-16"), "UTF-16"),
        (PLAIN.encode("utf-16-le"), "no table"),
        (PLAIN.replace("a", "Gewässer").encode("latin-1"), "UTF-8"),
        (PLAIN.replace(",2,", ",Glätte,").encode("latin-1"), "cannot be read"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a picture"),
        (b"PK\x03\x04" + bytes(100), "a spreadsheet"),
        (gzip.compress(PLAIN.encode(), mtime=0), "packed with gzip"),
        (bytes(1000), "no table"),
        (b"\x00\xff" * 100, "no table"),
    ],
)
def test_what_is_no_text_is_refused_in_words(read: Any, content: bytes, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        read(content)
    assert words in refusal.value.what and refusal.value.hint


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-9],
        lambda packed: packed[: len(packed) // 2],
        lambda packed: packed + b"more",
        lambda packed: PLAIN.encode(),
    ],
)
def test_a_damaged_packing_is_noticed(read: Any, damage: Any) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(damage(gzip.compress(PLAIN.encode() * 50, mtime=0)), "readings.csv.gz")


def test_nul_bytes_in_a_cell_are_text(read: Any) -> None:
    panel, findings = read(PLAIN.replace("2,20", "2,2\x000"))
    np.testing.assert_array_equal(panel.values, [[1, 10], [2, np.nan], [3, 30]])
    assert any("hold text" in finding.what for finding in findings)


def test_a_place_that_is_no_file_is_refused_in_words(read: Any, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "empty.csv").touch()
    for name, words in {"absent.csv": "no such file", "folder.csv": "a folder", "empty.csv": "empty"}.items():
        with pytest.raises(InputError, match=words):
            read(None, name)
    with pytest.raises(InputError):
        read(None, "a\0b.csv")
    with pytest.raises(InputError, match=r"type \.docx"):
        read(PLAIN, "readings.docx")


def test_a_file_without_ending_is_taken_for_text(read: Any) -> None:
    assert read(PLAIN, "readings")[0].fingerprint == read(PLAIN)[0].fingerprint
    assert read(gzip.compress(PLAIN.encode(), mtime=0), "readings.gz")[0].fingerprint == read(PLAIN)[0].fingerprint


def test_the_time_column_can_be_named(read: Any) -> None:
    content = PLAIN.replace("time,a", "time,seen").replace("1,10", "20200501,10").replace("2,20", "20200502,20")
    panel, _ = read(content.replace("3,30", "20200503,30"), time_column=" Seen ")
    assert panel.sensor_ids == ("b",) and panel.times.interval.days == 1
    with pytest.raises(InputError, match="no column called 'when'"):
        read(PLAIN, time_column="when")


def test_of_two_columns_of_times_the_better_name_counts(read: Any) -> None:
    content = "logged,timestamp,a\n2020-05-01 00:07,2020-05-01 00:00,1\n2020-05-01 01:07,2020-05-01 01:00,2\n"
    panel, findings = read(content)
    assert panel.times.start.minute == 0 and panel.sensor_ids == ("a",)
    assert any("logged" in finding.where for finding in findings)


def test_a_time_column_of_row_numbers_is_passed_over(read: Any) -> None:
    panel, _ = read("index,when,a\n0,2020-05-01 00:00,1\n1,2020-05-01 01:00,2\n")
    assert panel.sensor_ids == ("a",) and panel.times.start.year == 2020


def test_long_rows_without_a_sensor_are_counted(read: Any) -> None:
    rows = "2020-05-01,a,1\n2020-05-02,a,2\n1970-01-01,,3\n2020-05-02,NA,3\n2020-05-02, b ,4\n"
    panel, findings = read("time,sensor,value\n" + rows, zone="UTC")
    assert panel.sensor_ids == ("a", "b")
    (finding,) = findings
    assert "name no sensor" in finding.what and finding.count == 2


def test_numbers_as_ids_are_one_sensor_however_they_are_written(read: Any) -> None:
    panel, _ = read("time,sensor,value\n2020-05-01,7,1\n2020-05-02,7.0,2\n2020-05-02,007,3\n")
    assert panel.sensor_ids == ("007", "7")
    np.testing.assert_array_equal(panel.values, [[np.nan, 1], [3, 2]])


def test_what_sensors_read_beside_their_readings_is_not_mixed_with_them(read: Any) -> None:
    moments = [f"2020-05-01 {hour:02}:{minute:02}" for hour in range(3) for minute in (0, 10)]
    rows = {what: "".join(f"{time},a,{what},{i}\n" for i, time in enumerate(moments)) for what in ("flow", "heat")}
    head = "time,site,parameter,value\n"
    with pytest.raises(InputError, match="may tell them apart: parameter"):
        read(head + rows["flow"] + rows["heat"], interval=timedelta(minutes=10))
    late = "2020-05-01 03:00:07,a,flow,6\n"  # one stamp beside the grid
    with pytest.raises(InputError, match="may tell them apart: parameter"):
        read(head + rows["flow"] + rows["heat"] + late, interval=timedelta(minutes=10))
    # One quantity alone, on its own grid or on a coarser one, and readings that are merely repeated.
    for content, minutes in ((head + rows["flow"], 10), (head + rows["flow"] + late, 60)):
        assert read(content, interval=timedelta(minutes=minutes))[0].values[0, 0] == 0
    repeated = (head + 2 * rows["flow"]).replace(",parameter", "").replace(",flow", "")
    assert "share sensor and grid moment" in read(repeated, zone="UTC", interval=timedelta(minutes=10))[1][-1].what


def test_columns_beside_a_long_table_are_named_as_unused(read: Any) -> None:
    _, findings = read("time,sensor,value,quality\n2020-05-01,a,1,P\n2020-05-02,a,2,P\n", zone="UTC")
    (finding,) = findings
    assert finding.level is Level.WARNING and "quality" in finding.where


@pytest.mark.parametrize("clock", ["{:02}:00", "{}:00:00", "{:02}:00:00.000"])
def test_date_and_time_of_day_may_stand_in_two_columns(read: Any, clock: str) -> None:
    rows = [(day, hour) for day in (1, 2) for hour in range(24)]
    whole = "time,a\n" + "".join(f"2020-05-0{day} {hour:02}:00,{hour}\n" for day, hour in rows)
    apart = "Date,Time,a\n" + "".join(f"2020-05-0{day},{clock.format(hour)},{hour}\n" for day, hour in rows)
    long = "Date,Time,sensor,value\n" + "".join(f"1.5.2020,{clock.format(hour)},a,{hour}\n" for _, hour in rows[:24])
    panel, findings = read(apart, zone="UTC")
    assert [finding.level for finding in findings] == [Level.NOTE] and "'Date' and 'Time'" in findings[0].what
    assert panel.fingerprint == read(whole, zone="UTC")[0].fingerprint
    np.testing.assert_array_equal(read(long, zone="UTC")[0].values[:, 0], range(24))


def test_half_days_of_two_columns_are_understood_and_an_empty_clock_is_no_midnight(read: Any) -> None:
    clocks = {"11:00 AM": 1, "12:00 PM": 2, "": 3, "1:00 PM": 4}
    rows = "".join(f"{clock},5/1/2020,{number}\n" for clock, number in clocks.items())
    panel, findings = read("Time,Date,a\n" + rows, zone="UTC", day_first=False)
    np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 4])
    assert any("no readable time" in finding.what for finding in findings)


def test_a_date_with_an_hour_beside_it_is_not_to_lose_its_readings(read: Any) -> None:
    rows = "".join(f"2020-05-0{day},{hour},{hour}\n" for day in (1, 2) for hour in range(24))
    with pytest.raises(InputError) as caught:
        read("Date,Hour,Stage\n" + rows)
    assert "put both into one" in caught.value.hint and "remove" not in caught.value.hint


def test_a_sensor_called_node_is_no_column_of_ids(read: Any) -> None:
    panel, _ = read("time,node,value\n2020-05-01,1.5,3\n2020-05-02,2.5,4\n")
    assert panel.sensor_ids == ("node", "value")


def test_a_guess_about_dates_is_told(read: Any) -> None:
    rows = [f"0{day}/04/2020 {hour:02}:00,{hour}" for day in (3, 4) for hour in range(24)]
    panel, findings = read("time,a\n" + "\n".join(rows), zone="UTC")
    (finding,) = findings
    assert finding.level is Level.WARNING
    assert panel.times.start.month == 4 and "day first" in finding.what and "--month-first" in finding.hint
