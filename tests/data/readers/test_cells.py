"""Every cell is the number it says or missing, and what was not a number is counted by reason and column."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.data.findings import Findings, Level
from candor.data.readers.cells import EMPTY_CELLS, NumberReader
from candor.data.readers.options import ReadOptions


def reader(has_decimal_comma: bool = False, **options: Any) -> NumberReader:
    return NumberReader(ReadOptions(**options), has_decimal_comma)


def read(cells: list[Any], kind: pa.DataType | None = None, **options: Any) -> list[float]:
    return reader(**options).read(pa.array(cells, kind), "a").tolist()


def same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


@settings(max_examples=200)
@given(numbers=st.lists(st.floats(allow_subnormal=False), min_size=1), word=st.sampled_from([None, "", "Ice", " NA "]))
def test_a_column_reads_the_same_beside_text_and_without(numbers: list[float], word: str | None) -> None:
    with np.errstate(over="ignore"):
        expected = np.array(numbers).astype(np.float32).tolist()
    as_text = read([*(repr(number) for number in numbers), word], pa.string())
    as_number = read([*numbers, None], pa.float64())
    assert all(map(same, as_text[:-1], expected)) and math.isnan(as_text[-1])
    assert all(map(same, as_number[:-1], expected)) and math.isnan(as_number[-1])


@pytest.mark.parametrize(
    ("cell", "number"),
    [("5", 5), (" 5.25 ", 5.25), ("+5", 5), ("-.5", -0.5), ("5.", 5), ("1e3", 1000), ("1E-2", 0.01), ("007", 7)],
)
def test_numbers_are_read_in_all_their_spellings(cell: str, number: float) -> None:
    for cells in ([cell], [cell, "Ice"]):  # the quick way, and the way past a text
        assert read(cells)[0] == np.float32(number)


@pytest.mark.parametrize(
    "cell", ["1,234.5", "1 234", "0x10", "1_000", "5 mg/L", "<0.1", "--5", "1e", "１２", "Ice", "True"]
)
def test_text_is_missing_and_counted(cell: str) -> None:
    numbers = reader()
    assert math.isnan(numbers.read(pa.array(["1", cell, None, "2"]), "a")[1])
    assert numbers.text == {"a": 1} and numbers.examples == {"a": cell}


@pytest.mark.parametrize("cell", [*EMPTY_CELLS, " ", "\t", " NA "])
def test_words_for_nothing_are_missing_without_a_complaint(cell: str) -> None:
    numbers = reader()
    assert math.isnan(numbers.read(pa.array([cell, "1"]), "a")[0])
    assert not numbers.text


@pytest.mark.parametrize("cell", ["inf", "-inf", "Infinity", "1e400", "-1e39"])
def test_infinite_numbers_are_missing_and_counted(cell: str) -> None:
    for cells in ([cell, "1"], [cell, "1", "Ice"]):
        numbers = reader()
        cleaned = numbers.clean(numbers.read(pa.array(cells), "a"), ["a"])
        assert math.isnan(cleaned[0]) and cleaned[1] == 1
        assert numbers.infinite == {"a": 1}


def test_a_decimal_comma_counts_only_where_it_can_be_one() -> None:
    cells = ["1,5", "-0,25", ",5", "1,5e-3", "1.234,5", "1,2,3"]
    numbers = reader(has_decimal_comma=True)
    values = numbers.read(pa.array(cells), "a").tolist()
    assert values[:4] == [1.5, -0.25, 0.5, np.float32(0.0015)]
    assert numbers.text == {"a": 2} and numbers.decimal_commas == 4
    assert all(map(math.isnan, read(cells)))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, None, -3], pa.int8()),
        ([1, None, 3], pa.uint64()),
        ([1.5, None, -2.5], pa.float16()),
        ([1.5, None, -2.5], pa.float32()),
        ([Decimal("1.5"), None, Decimal("-2.25")], pa.decimal128(6, 2)),
        ([Decimal("1.5"), None, Decimal("-2.25")], pa.decimal256(6, 2)),
        (["1.5", None, "-2.5"], pa.large_string()),
        ([None, None], pa.null()),
    ],
)
def test_typed_columns_are_read_as_the_numbers_they_hold(cells: list[Any], kind: pa.DataType) -> None:
    numbers = reader()
    expected = [math.nan if cell is None else float(cell) for cell in cells]
    assert all(map(same, numbers.read(pa.array(cells, kind), "a").tolist(), expected))
    assert not numbers.text


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([True, None, False], pa.bool_()),
        ([[1.0], None, [2.0, 3.0]], pa.list_(pa.float64())),
        ([{"x": 1}, None, {"x": 2}], pa.struct([("x", pa.int64())])),
        ([1, None, 2], pa.timestamp("us")),
        ([1, None, 2], pa.duration("s")),
        ([1, None, 2], pa.date32()),
    ],
)
def test_typed_columns_of_something_else_are_text(cells: list[Any], kind: pa.DataType) -> None:
    numbers = reader()
    assert np.isnan(numbers.read(pa.array(cells, kind), "a")).all()
    assert numbers.text == {"a": 2}


@settings(max_examples=100)
@given(
    values=st.lists(
        st.lists(st.sampled_from([-9999.0, -1.0, 0.0, 0.1, 5.0, math.inf, math.nan]), min_size=2, max_size=2)
    ),
    missing=st.sets(st.sampled_from([-9999.0, 0.0, 0.1])),
    minimum=st.sampled_from([None, 0.0, 0.1]),
)
def test_every_cell_is_kept_or_counted_once(
    values: list[list[float]], missing: set[float], minimum: float | None
) -> None:
    numbers = reader(missing=tuple(missing), minimum=minimum)
    cleaned = numbers.clean(np.array(values, np.float32).reshape(-1, 2), ["a", "b"])
    counts = {"infinite": 0, "sentinel": 0, "impossible": 0}
    for row, cells in enumerate(values):
        for column, cell in enumerate(cells):
            reason = "infinite" if math.isinf(cell) else "sentinel" if cell in missing else None
            if reason is None and minimum is not None and cell < minimum:
                reason = "impossible"
            if reason is not None:
                counts[reason] += 1
            assert same(cleaned[row, column], math.nan if reason else np.float32(cell))
    assert counts == {name: getattr(numbers, name).total() for name in counts}


def test_the_usual_sentinels_are_missing_unless_told_otherwise() -> None:
    values = np.array([-9999, -99999, -999999, -998, 0], np.float32)
    assert np.isnan(reader().clean(values, ["a"])).tolist() == [True, True, True, False, False]
    assert not np.isnan(reader(missing=()).clean(values, ["a"])).any()
    assert np.isnan(reader(missing=(0.0,)).clean(values, ["a"])).tolist() == [False] * 4 + [True]


def test_options_beyond_all_readings_are_no_trouble() -> None:
    values = np.array([1, 2], np.float32)
    assert reader(missing=(1e300, math.nan), minimum=-1e300).clean(values, ["a"]).tolist() == [1, 2]
    assert np.isnan(reader(minimum=1e300).clean(values, ["a"])).all()


def test_cleaning_leaves_the_numbers_it_was_given_alone() -> None:
    values = np.array([-9999, 1], np.float32)
    reader().clean(values, ["a"])
    assert values.tolist() == [-9999, 1]


def test_the_report_says_how_many_cells_of_which_columns() -> None:
    numbers, findings = reader(minimum=0.0), Findings()
    numbers.clean(numbers.read(pa.array(["Ice", "-9999", "-1", "inf", "Ice", "3"]), "north")[:, None], ["north"])
    numbers.report(findings, "file.csv")
    assert {(finding.level, finding.count) for finding in findings} == {
        (Level.WARNING, 2),
        (Level.WARNING, 1),
        (Level.NOTE, 1),
    }
    assert all("file.csv: north" in finding.where and finding.hint for finding in findings)
    assert "'Ice'" in findings[0].where
