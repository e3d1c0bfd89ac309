"""New readings either fit a trained model after all that was done to them is said, or are refused with the hint."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.core.errors import InputError
from candor.data.alignment import Aligned, KnownPanel, align
from candor.data.findings import Finding, Level
from candor.data.panel import Covariate, Edges, Panel, Sensor
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel
from candor.data.times import DAY, TimeAxis
from candor.data.units import UNITS
from candor.forecasting import SeasonalNaive

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
START = datetime(2024, 1, 1, tzinfo=UTC)
HISTORY, LAWS = 6, settings(max_examples=40)
READINGS = st.floats(-100, 100, width=32) | st.just(np.nan)


def make_panel(rows: int = 48, ids: Sequence[str] = ("a", "b", "c", "d"), **parts: Any) -> Panel:
    """Returns lively hourly readings of a chain of sensors, between 5 and 15 mg/L."""
    count, chain = len(ids), np.arange(len(ids) - 1)
    content: dict[str, Any] = {
        "values": np.random.default_rng(count).uniform(5, 15, (rows, count)),
        "times": TimeAxis(START, HOUR, rows, "America/Los_Angeles"),
        "sensors": tuple(Sensor(i, f"Station {i}", 45.5, None, "mg/L") for i in ids),
        "edges": Edges(chain, chain + 1, distance=chain + 0.1, weight=chain + 1, distance_unit="km"),
        "name": "river",
    }
    return Panel(**content | parts)


def with_unit(panel: Panel, unit: str) -> Panel:
    return replace(panel, sensors=tuple(replace(sensor, unit=unit) for sensor in panel.sensors))


def every(interval: timedelta, rows: int = 48, start: datetime = START, zone: str = "America/Los_Angeles") -> Panel:
    return make_panel(rows, times=TimeAxis(start, interval, rows, zone))


def of_level(aligned: Aligned, level: Level) -> list[Finding]:
    return [finding for finding in aligned.findings if finding.level is level]


def only(aligned: Aligned, level: Level) -> Finding:
    (finding,) = of_level(aligned, level)
    return finding


def refusal(readings: Panel, known: Panel, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        align(readings, KnownPanel.of(known), options.pop("history", HISTORY), **options)
    assert caught.value.hint
    return caught.value


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    """Draws panels of one to five sensors with gaps, perhaps covariates, and a reading in the last row."""
    count, rows = draw(st.integers(1, 5)), draw(st.integers(HISTORY, 12))
    values = draw(arrays(np.float32, (rows, count), elements=READINGS)).copy()
    values[-1, draw(st.integers(0, count - 1))] = 1.0
    rain = draw(arrays(np.float32, (rows, count), elements=READINGS))
    pairs = draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), unique=True, max_size=6))
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T
    weight = draw(arrays(np.float32, len(pairs), elements=st.floats(np.float32(0.01), 10, width=32)))
    interval = timedelta(microseconds=draw(st.integers(1, 10**12)))
    return Panel(
        values=values,
        times=TimeAxis(START + interval / 3, interval, rows, draw(st.sampled_from(["UTC", "Asia/Seoul"]))),
        sensors=tuple(Sensor(f"s{i}", unit=draw(st.sampled_from(["", "m", "uS/cm"]))) for i in range(count)),
        edges=Edges(source, target, weight=weight),
        covariates={"rain": Covariate(rain, "mm")} if draw(st.booleans()) else {},
        name="drawn",
    )


@LAWS
@given(panels(), st.randoms())
def test_a_shuffled_panel_aligns_to_the_identical_one_without_a_word(panel: Panel, chance: Any) -> None:
    ids = list(panel.sensor_ids)
    chance.shuffle(ids)
    aligned = align(panel.select(ids), KnownPanel.of(panel), HISTORY)
    assert aligned.panel.fingerprint == panel.fingerprint and aligned.panel.name == panel.name
    assert all("no reading in the last" in finding.what for finding in aligned.findings)


@LAWS
@given(panels(), st.data())
def test_further_sensors_change_nothing_and_are_named(panel: Panel, data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.sampled_from(panel.sensor_ids), min_size=1, unique=True))
    alone = panel.select(wanted)
    assume(alone.mask[-1].any())
    aligned = align(panel, KnownPanel.of(alone), HISTORY)
    assert aligned.panel.fingerprint == alone.fingerprint
    further = sorted(set(panel.sensor_ids) - set(wanted))
    assert [note.where for note in of_level(aligned, Level.NOTE)] == ([", ".join(further)] if further else [])


@LAWS
@given(
    unit=st.sampled_from(["mg/L", "ppm", ""]),
    minutes=st.sampled_from([15, 20, 60]),
    shift=st.sampled_from([0, 7, 30]),
    ids=st.sampled_from(["a", "a b", "d c b a", "x b c d y", "A b C D"]),
    empty=st.integers(0, 5),
    age=st.sampled_from([-30, 30, 60, 10_000]),
    history=st.sampled_from([1, 30]),
    seed=st.integers(0, 99),
)
def test_aligning_twice_is_aligning_once_and_leaves_the_input_alone(
    unit: str, minutes: int, shift: int, ids: str, empty: int, age: int, history: int, seed: int
) -> None:
    generator, rows, last = np.random.default_rng(seed), 40, 39 - empty
    values = generator.uniform(5, 15, (rows, len(ids.split())))
    values[generator.random(values.shape) < 0.4] = np.nan
    values[last], values[last + 1 :] = 9.0, np.nan
    times = TimeAxis(START + shift * MINUTE, minutes * MINUTE, rows, "Asia/Seoul")
    readings = Panel(values, times, tuple(Sensor(name, unit=unit) for name in ids.split()))
    before, now = replace(readings).fingerprint, times.start + last * times.interval + age * MINUTE
    options: dict[str, Any] = {"least_share": 0.25, "allow_short": True, "now": now}
    known = KnownPanel.of(make_panel())
    once = align(readings, known, history, **options).panel
    twice = align(once, known, history, **options).panel
    assert twice.fingerprint == once.fingerprint and replace(readings).fingerprint == before
    assert (once.sensors, once.times.interval, once.times.zone) == (known.panel.sensors, HOUR, known.panel.times.zone)
    assert once.edges.digest() == known.panel.edges.digest() and once.times.length >= history
    assert once.mask[-1].any() and (once.times.start - START) % HOUR == timedelta(0)


@LAWS
@given(panels())
def test_the_description_survives_json_to_the_last_digit(panel: Panel) -> None:
    known = KnownPanel.of(panel)
    content = known.to_json()
    again = KnownPanel.from_json(json.loads(json.dumps(content, allow_nan=False)))
    assert again.to_json() == content and again.panel.fingerprint == known.panel.fingerprint
    assert align(panel, again, HISTORY).panel.fingerprint == panel.fingerprint


@pytest.mark.parametrize(
    "change",
    [{"lowest": [1.0]}, {"edges": {"source": [0]}}, {"edges": {"source": [0], "target": [9]}}, {"sensors": [{"no": 1}]},
     {"times": {}}, {"highest": ["much"] * 4}, {"covariates": []}],
)  # fmt: skip
def test_a_damaged_description_is_refused(change: dict[str, Any]) -> None:
    content = KnownPanel.of(make_panel()).to_json()
    for damaged in (content | change, {k: v for k, v in content.items() if k not in change}, None):
        with pytest.raises(InputError, match=r"run\.json: .*training data"):
            KnownPanel.from_json(damaged, "run.json")


def test_the_description_knows_the_ranges_of_training_only_and_the_covariates_that_are_read() -> None:
    panel = make_panel(covariates={n: Covariate(np.zeros((48, 4)), "mm") for n in ("rain", "snow")})
    values = panel.values.copy()
    values[:, 1], values[30:] = np.nan, 1000.0
    known = KnownPanel.of(replace(panel, values=values), train_end=30, covariates=["snow"])
    assert known.lowest[0] == values[:30, 0].min() and known.highest[3] == values[:30, 3].max()
    assert np.isnan([known.lowest[1], known.highest[1]]).all() and list(known.panel.covariates) == ["snow"]


def test_absent_sensors_are_silent_as_long_as_enough_are_there() -> None:
    panel = make_panel()
    aligned = align(panel.select(["d", "b"]), KnownPanel.of(panel), HISTORY)
    np.testing.assert_array_equal(aligned.panel.values[:, [1, 3]], panel.values[:, [1, 3]])
    assert np.isnan(aligned.panel.values[:, [0, 2]]).all()
    warning = only(aligned, Level.WARNING)
    assert "silent" in warning.what and warning.where == "a, c" and warning.count == 2
    error = refusal(panel.select(["d"]), panel)
    assert "1 of the model's 4" in error.what and "50%" in error.what and "'d'" in error.what and error.where == "river"
    assert "75%" in refusal(panel.select(["d", "b"]), panel, least_share=0.75).what
    assert align(panel.select(["d"]), KnownPanel.of(panel), HISTORY, least_share=0.25).panel.mask[:, 3].all()
    assert "none of the model's 4" in refusal(make_panel(ids=("x", "y")), panel, least_share=0.0).what


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (["01646500", "11509370"], ["1646500", "USGS-11509370"]),
        (["USGS-01646500", "USGS-11509370"], [" 1646500", "usgs:11509370 "]),
        (["North", "South"], ["NORTH", "south "]),
        (["A-1", "B-1"], ["a-01", "b-1"]),
    ],
)
def test_sensors_that_are_merely_spelled_otherwise_are_matched_and_said(known: list[str], given: list[str]) -> None:
    panel = make_panel(ids=known)
    sensors = tuple(replace(sensor, id=name) for sensor, name in zip(panel.sensors, given, strict=True))
    aligned = align(replace(panel, sensors=sensors).select(given[::-1]), KnownPanel.of(panel), HISTORY)
    assert aligned.panel.fingerprint == panel.fingerprint
    note = only(aligned, Level.NOTE)
    assert "matched" in note.what and note.count == 2 and all(repr(name) in note.where for name in given)


@pytest.mark.parametrize(
    ("known", "given", "hint"),
    [
        ("7 8", "07 007", "'7' may be '07' or '007'"),
        ("07 007", "7 x", "'07' may be '7', '007' may be '7'"),
        ("USGS-7 NWIS-7", "7 x", "'USGS-7' may be '7', 'NWIS-7' may be '7'"),
        ("S-1 S-2", "T-1 T-2", "call the sensors as the model does"),
        ("1 01 2 3", "1 x", "call the sensors as the model does"),
    ],
)
def test_spellings_that_may_mean_two_sensors_are_suggested_but_not_matched(known: str, given: str, hint: str) -> None:
    error = refusal(make_panel(ids=given.split()), make_panel(ids=known.split()))
    assert error.hint.endswith(hint) and all(repr(name) in error.what for name in f"{known} {given}".split())


def test_a_short_history_is_refused_or_made_up_as_silence() -> None:
    panel = make_panel()
    error = refusal(panel.slice(40, 48), panel, history=12)
    assert "8 rows" in error.what and "12" in error.what and "2024-01-02 04:00" in error.hint  # 12:00 UTC
    aligned = align(panel.slice(40, 48), KnownPanel.of(panel), 12, allow_short=True)
    assert aligned.panel.times == panel.slice(36, 48).times and np.isnan(aligned.panel.values[:4]).all()
    assert only(aligned, Level.NOTE).count == 4 and (aligned.panel.values[4:] == panel.values[40:]).all()


def test_rows_before_the_window_are_kept_for_models_that_look_back_further() -> None:
    panel = make_panel(96)
    model = SeasonalNaive(history=HISTORY, horizon=3, season=24).fit(panel)
    aligned = align(panel.select("dcba"), KnownPanel.of(panel), HISTORY)
    np.testing.assert_array_equal(model.predict(aligned.panel), panel.values[None, 72:75])


@LAWS
@given(
    minutes=st.sampled_from([5, 10, 15, 20, 30]),
    per_row=st.sampled_from([2, 3, 4, 12, 288]),
    zone=st.sampled_from(["UTC", "UTC-08:00"]),
    missing=st.floats(0, 0.9),
    seed=st.integers(0, 10_000),
)
def test_finer_readings_aligned_are_what_reading_them_on_the_models_grid_gives(
    minutes: int, per_row: int, zone: str, missing: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    wanted, rows = minutes * per_row * MINUTE, 6 * per_row
    first = pd.Timestamp("2024-01-01", tz="UTC") + generator.integers(0, 2 * per_row) * minutes * MINUTE
    index = pd.date_range(first, periods=rows, freq=minutes * MINUTE)
    values = generator.uniform(5, 15, (rows, 2))
    values[generator.random(values.shape) < missing] = np.nan
    values[[0, -1]] = 9.0
    frame = pd.DataFrame(values, index, ["a", "b"])
    ways = (ReadOptions(zone=zone, interval=interval) for interval in (minutes * MINUTE, wanted))
    fine, coarse = (read_panel(frame, options=options) for options in ways)
    aligned = align(fine, KnownPanel.of(coarse.slice(2, 3)), 1)
    np.testing.assert_array_equal(aligned.panel.values, coarse.values)
    assert aligned.panel.times == coarse.times
    grid = next(finding for finding in aligned.findings if "averaged" in finding.what)
    assert grid.level is (Level.WARNING if wanted % DAY == timedelta(0) else Level.NOTE)


def test_readings_beside_the_grid_move_to_its_nearest_moment() -> None:
    known = make_panel()
    for minutes, row in ((10, 0), (30, 0), (40, 1)):
        late = replace(known, times=replace(known.times, start=START + minutes * MINUTE))
        aligned = align(late, KnownPanel.of(known), HISTORY)
        assert aligned.panel.times.start == START + row * HOUR
        np.testing.assert_array_equal(aligned.panel.values, known.values)
        assert f"{minutes} min late" in only(aligned, Level.NOTE).what


def test_intervals_that_do_not_divide_the_models_are_refused() -> None:
    for interval, words in ((2 * HOUR, "2 h"), (25 * MINUTE, "25 min")):
        error = refusal(every(interval), make_panel())
        assert words in error.what and "1 h" in error.what and "1 h" in error.hint


def test_days_must_begin_when_the_models_do() -> None:
    known = every(DAY, start=START + 8 * HOUR, zone="UTC-08:00")
    error = refusal(every(DAY, zone="UTC"), known)
    assert "00:00 UTC" in error.what and "08:00 UTC" in error.what and "--zone UTC-08:00" in error.hint
    dates = pd.DataFrame({"time": pd.date_range("2024-03-01", periods=9).astype(str), "a": range(9), "b": range(9)})
    mended = read_panel(dates, options=ReadOptions(zone="UTC-08:00"))
    assert align(mended, KnownPanel.of(known), HISTORY).panel.times == mended.times
    assert "16 h" in refusal(every(7 * DAY, start=START + DAY), every(7 * DAY, start=START + 8 * HOUR)).what


def test_another_zone_moves_no_reading() -> None:
    panel = make_panel()
    aligned = align(panel.in_zone("Asia/Seoul"), KnownPanel.of(panel), HISTORY)
    assert aligned.panel.fingerprint == panel.fingerprint
    note = only(aligned, Level.NOTE)
    assert "Asia/Seoul" in note.what and "America/Los_Angeles" in note.what and "--zone" in note.hint


@LAWS
@given(arrays(np.float32, (8, 4), elements=READINGS), st.sampled_from(sorted(UNITS)), st.randoms())
def test_a_unit_converted_there_and_back_is_as_before(values: np.ndarray, kind: str, chance: Any) -> None:
    (unit, other), values[-1] = chance.choices(sorted(UNITS[kind]), k=2), 1.0
    panel = with_unit(make_panel(8, values=values), unit)
    there = align(panel, KnownPanel.of(with_unit(panel, other)), HISTORY).panel
    back = align(there, KnownPanel.of(panel), HISTORY).panel
    assert there.unit == other and back.unit == unit
    np.testing.assert_allclose(back.values, values, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("unit", "number", "other", "expected"),
    [("mph", 60, "km/h", 96.56064), ("ft", 10, "m", 3.048), ("deg C", 100, "°F", 212), ("degF", -40, "C", -40),
     ("ppm", 8, "mg/L", 8), ("cfs", 1, "m³/s", 0.028316847), ("m", 2, "cm", 200), ("degF", 32, "degC", 0),
     ("m^3/s", 1, "ft^3/s", 35.3146667)],
)  # fmt: skip
def test_known_conversions_agree_with_well_known_pairs(unit: str, number: float, other: str, expected: float) -> None:
    panel = make_panel(values=np.full((48, 4), number))
    aligned = align(with_unit(panel, unit), KnownPanel.of(with_unit(panel, other)), HISTORY)
    np.testing.assert_allclose(aligned.panel.values, expected, rtol=1e-6, atol=1e-5)
    assert f"from {unit} to {other}" in of_level(aligned, Level.NOTE)[0].what


def test_units_without_a_known_way_are_refused_and_unstated_ones_are_taken_to_be_the_models() -> None:
    panel = make_panel()
    error = refusal(with_unit(panel, "uS/cm"), panel)
    assert "uS/cm" in error.what and "mg/L" in error.what and "--unit mg/L" in error.hint
    refusal(with_unit(panel, "MW"), with_unit(panel, "mW"))  # in units that are not known, case may mean much
    huge = with_unit(make_panel(values=np.full((48, 4), 3e38)), "m")
    assert "--missing" in refusal(huge, with_unit(panel, "mm")).hint
    unstated = align(with_unit(panel, ""), KnownPanel.of(panel), HISTORY)
    assert unstated.panel.fingerprint == panel.fingerprint and "mg/L" in only(unstated, Level.NOTE).what
    unknown = align(panel, KnownPanel.of(with_unit(panel, "")), HISTORY)
    assert unknown.panel.unit == "" and "mg/L" in only(unknown, Level.NOTE).what
    for unit, same in (("mg/l ", "mg/L"), ("cfs", "ft^3/s"), ("µg/L", "ug/l")):
        assert not align(with_unit(panel, unit), KnownPanel.of(with_unit(panel, same)), HISTORY).findings


def test_covariates_that_the_model_reads_must_be_there_and_are_aligned_like_the_readings() -> None:
    rain = {"rain": Covariate(np.arange(192).reshape(48, 4), "mm")}
    panel = make_panel(covariates=rain)
    error = refusal(make_panel(covariates={"snow": rain["rain"]}), panel)
    assert "rain" in error.what and "snow" in error.what
    centimetres = {"rain": Covariate(rain["rain"].values / 10, "cm")}
    short = replace(panel, covariates=centimetres).select("dca").slice(40, 48)
    aligned = align(short, KnownPanel.of(panel), 10, allow_short=True).panel.covariates["rain"]
    assert aligned.unit == "mm" and np.isnan(aligned.values[:, 1]).all() and np.isnan(aligned.values[:2]).all()
    np.testing.assert_allclose(aligned.values[2:, [0, 2, 3]], rain["rain"].values[40:, [0, 2, 3]], rtol=1e-6)


def test_silent_stuck_and_far_off_sensors_are_named_but_resting_ones_are_not() -> None:
    panel = make_panel()
    values = panel.values.copy()
    values[-HISTORY:, 0], values[10:, 1], values[-1, 2], values[:, 3] = np.nan, 10.0, 400.0, panel.values[:, 3].min()
    aligned = align(replace(panel, values=values), KnownPanel.of(panel), HISTORY)
    silent, stuck, far = of_level(aligned, Level.WARNING)
    assert (silent.where, stuck.where) == ("a (Station a)", "b (Station b) at 10")
    assert far.where.startswith("c (Station c) reads 400, training saw")
    values[-HISTORY, 0], values[-20, 1], values[-1, 2] = 9.0, 10.5, 16.0  # none of this is worth a word
    assert not align(replace(panel, values=values), KnownPanel.of(panel), HISTORY).findings


def test_the_forecast_begins_after_the_last_reading_of_a_sensor_of_the_model() -> None:
    panel = make_panel()
    values = np.where(np.arange(48)[:, None] < 40, panel.values, np.nan)
    further = np.concatenate([values, panel.values[:, :1]], axis=1)
    readings = Panel(further, panel.times, (*panel.sensors, Sensor("further")))
    aligned = align(readings, KnownPanel.of(panel), HISTORY, now=panel.times.end + 1000 * DAY, horizon=3)
    assert aligned.panel.fingerprint == panel.slice(0, 40).fingerprint
    cut = of_level(aligned, Level.NOTE)[1]
    assert cut.count == 8 and "2024-01-02 08:00" in cut.what  # 16:00 UTC
    assert "2024-01-02 08:00 to 2024-01-02 10:00" in only(aligned, Level.WARNING).what
    silent = replace(readings, values=np.where(np.arange(5) == 4, further, np.nan))
    assert "a, b, c, d" in refusal(silent, panel).what


def test_old_readings_are_warned_of_and_a_clock_a_little_ahead_is_forgiven() -> None:
    panel = make_panel()
    last = panel.times.end - HOUR
    for age in (0 * HOUR, 2 * HOUR):
        assert not align(panel, KnownPanel.of(panel), HISTORY, now=last + age).findings
    old = align(panel, KnownPanel.of(panel), HISTORY, now=last + 3 * HOUR)
    assert "3 h old" in only(old, Level.WARNING).what and "2024-01-02 16:00 on" in only(old, Level.WARNING).what
    ahead = align(panel, KnownPanel.of(panel), HISTORY, now=last - HOUR)
    assert ahead.panel.fingerprint == panel.slice(0, 47).fingerprint and only(ahead, Level.NOTE).count == 1


def test_readings_from_the_future_are_refused_but_empty_rows_there_are_not() -> None:
    panel = make_panel()
    error = refusal(panel, panel, now=START + 20 * HOUR)
    assert "2024-01-02 15:00" in error.what and "2024-01-01 12:00" in error.what and "--zone" in error.hint
    empty = replace(panel, values=np.where(np.arange(48)[:, None] <= 20, panel.values, np.nan))
    aligned = align(empty, KnownPanel.of(panel), HISTORY, now=START + 20 * HOUR)
    assert aligned.panel.fingerprint == panel.slice(0, 21).fingerprint
    refusal(panel.slice(0, 1), panel, now=START - MINUTE)


@pytest.mark.parametrize("wrong", [{"history": 0}, {"least_share": 1.5}, {"now": datetime(2024, 1, 1)}])
def test_impossible_requests_are_programming_mistakes(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        align(make_panel(), KnownPanel.of(make_panel()), **{"history": HISTORY} | wrong)
