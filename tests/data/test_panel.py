"""A panel never changes, says what it holds by its fingerprint, and is cut without losing or inventing anything."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from candor.core.errors import InputError
from candor.data.panel import Covariate, Edges, Panel, Sensor
from candor.data.times import DAY, TimeAxis, zone_from_name

HOUR = timedelta(hours=1)
READINGS = st.floats(-100, 100, width=32) | st.just(np.nan)


def make_panel(rows: int = 12, zone: str = "UTC", start: datetime = datetime(2020, 1, 1), **parts: Any) -> Panel:
    generator = np.random.default_rng(0)
    values = generator.normal(9, 1, (rows, 3)).astype(np.float32)
    values[1:3, 1] = np.nan
    given: dict[str, Any] = {
        "values": values,
        "times": TimeAxis(start.replace(tzinfo=UTC), HOUR, rows, zone),
        "sensors": (Sensor("a", "Mouth", 45.5, -122.0, "mg/L"), Sensor("b", unit="mg/L"), Sensor("c", unit="m")),
        "edges": Edges([0, 1, 2], [1, 2, 0], distance=[2.5, 4.0, 1.0], weight=[0.5, 0.25, 1.0], distance_unit="km"),
        "covariates": {"rain": Covariate(generator.random((rows, 3)), "mm/h")},
        "name": "river",
    }
    return Panel(**given | parts)


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    """Draws panels of one to five sensors with gaps, edges and perhaps a covariate."""
    count, rows = draw(st.integers(1, 5)), draw(st.integers(0, 12))
    table = arrays(np.float32, (rows, count), elements=READINGS)
    pairs = draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), unique=True, max_size=8))
    source, target = np.array(pairs, np.int32).reshape(-1, 2).T
    return Panel(
        values=draw(table),
        times=TimeAxis(datetime(2020, 1, 1, tzinfo=UTC), HOUR, rows, draw(st.sampled_from(["UTC", "Asia/Seoul"]))),
        sensors=tuple(Sensor(f"s{i}") for i in range(count)),
        edges=Edges(source, target, weight=np.arange(1, len(pairs) + 1)),
        covariates={"rain": Covariate(draw(table), "mm")} if draw(st.booleans()) else {},
    )


def named_edges(panel: Panel) -> dict[tuple[str, str], float]:
    ids, edges = panel.sensor_ids, panel.edges
    weights = np.ones(len(edges)) if edges.weight is None else edges.weight
    return {(ids[s], ids[t]): float(w) for s, t, w in zip(edges.source, edges.target, weights, strict=True)}


def arrays_of(panel: Panel) -> dict[str, np.ndarray]:
    return {
        "values": panel.values,
        "mask": panel.mask,
        "rain": panel.covariates["rain"].values,
        "utc": panel.times.utc,
        **{part: getattr(panel.edges, part) for part in ("source", "target", "distance", "weight")},
    }


def test_no_array_of_a_panel_can_be_written_to() -> None:
    panel = make_panel()
    for made in (panel, panel.slice(2, 8), panel.select(["c", "a"]), panel.between("2020-01-01T02:00", None)):
        for name, array in arrays_of(made).items():
            assert not array.flags.writeable, name
    with pytest.raises(FrozenInstanceError):
        panel.name = "other"  # type: ignore[misc]
    for mapping in (panel.covariates, panel.provenance):
        with pytest.raises(TypeError):
            mapping["new"] = 1  # type: ignore[index]


def test_what_is_done_to_the_arrays_it_was_made_of_does_not_reach_it() -> None:
    source = np.array([0, 1], np.int32)
    values, rain, weight = (np.ones(shape, np.float32) for shape in ((12, 3), (12, 3), 2))
    covariates = {"rain": Covariate(rain)}
    panel = make_panel(
        values=values, covariates=covariates, edges=Edges(source, np.array([1, 2]), np.ones(2, np.float32), weight)
    )
    before = panel.fingerprint
    for array in (values, rain, weight):
        array[...] = 7
    source[...] = 2
    covariates.clear()
    again = replace(panel)  # its fingerprint is counted anew
    assert again.fingerprint == before
    assert panel.mask.all()


def test_a_read_only_view_of_an_array_that_somebody_can_write_to_is_copied() -> None:
    owned = np.ones((12, 3), np.float32)
    view = owned[:]
    view.flags.writeable = False
    panel = make_panel(values=view)
    owned[...] = 7
    assert (panel.values == 1).all()


def test_a_changed_data_frame_does_not_reach_the_panel_made_of_it() -> None:
    frame = pd.DataFrame(np.ones((12, 3), np.float32))
    panel = make_panel(values=frame.to_numpy())
    frame.iloc[0, 0] = 7
    assert (panel.values == 1).all()


def test_an_array_that_nobody_can_write_to_is_taken_as_it_is() -> None:
    owned = np.ones((12, 3), np.float32)
    owned.flags.writeable = False
    assert make_panel(values=owned).values is owned
    part = make_panel(values=owned).slice(3, 9)
    assert np.shares_memory(part.values, owned)
    assert np.shares_memory(part.slice(1, 2).values, owned)


def test_a_changed_data_frame_of_it_does_not_reach_the_panel() -> None:
    panel = make_panel(zone="Asia/Seoul")
    frame = panel.to_frame()
    np.testing.assert_array_equal(frame.to_numpy(), panel.values)
    assert list(frame.columns) == ["a", "b", "c"]
    assert str(frame.index[0]) == "2020-01-01 09:00:00+09:00"
    frame.iloc[:, :] = 0
    assert (panel.values[panel.mask] != 0).all()


CHANGES: dict[str, Callable[[Panel], Panel]] = {
    "one reading": lambda p: replace(p, values=np.where(np.arange(36).reshape(12, 3) == 35, 1, p.values)),
    "one gap more": lambda p: replace(p, values=np.where(np.arange(36).reshape(12, 3) == 35, np.nan, p.values)),
    "a gap filled with zero": lambda p: replace(p, values=np.nan_to_num(p.values)),
    "two sensors' readings swapped": lambda p: replace(p, values=p.values[:, [1, 0, 2]]),
    "the start": lambda p: replace(p, times=replace(p.times, start=p.times.start + HOUR)),
    "the interval": lambda p: replace(p, times=replace(p.times, interval=2 * HOUR)),
    "the zone": lambda p: replace(p, times=replace(p.times, zone="Asia/Seoul")),
    "an id": lambda p: replace(p, sensors=(Sensor("A", *_rest(p.sensors[0])), *p.sensors[1:])),
    "a unit": lambda p: replace(p, sensors=(*p.sensors[:2], replace(p.sensors[2], unit="ft"))),
    "a latitude": lambda p: replace(p, sensors=(replace(p.sensors[0], latitude=45.6), *p.sensors[1:])),
    "a sensor's name": lambda p: replace(p, sensors=(replace(p.sensors[0], name="Source"), *p.sensors[1:])),
    "an edge's weight": lambda p: replace(p, edges=replace(p.edges, weight=[0.5, 0.25, 0.75])),
    "an edge's length": lambda p: replace(p, edges=replace(p.edges, distance=[2.5, 4.0, 2.0])),
    "all edges' direction": lambda p: replace(p, edges=replace(p.edges, source=p.edges.target, target=p.edges.source)),
    "one edge's direction": lambda p: replace(p, edges=replace(p.edges, source=[1, 1, 2], target=[0, 2, 0])),
    "the unit of lengths": lambda p: replace(p, edges=replace(p.edges, distance_unit="mi")),
    "the weights gone": lambda p: replace(p, edges=replace(p.edges, weight=None)),
    "weights called lengths": lambda p: replace(p, edges=replace(p.edges, distance=p.edges.weight, weight=None)),
    "no edges": lambda p: replace(p, edges=Edges.none()),
    "a covariate's value": lambda p: replace(
        p, covariates={"rain": Covariate(p.covariates["rain"].values + 1, "mm/h")}
    ),
    "a covariate's unit": lambda p: replace(p, covariates={"rain": Covariate(p.covariates["rain"].values, "in/h")}),
    "a covariate's name": lambda p: replace(p, covariates={"snow": p.covariates["rain"]}),
    "a covariate gone": lambda p: replace(p, covariates={}),
    "readings and covariate swapped": lambda p: replace(
        p, values=p.covariates["rain"].values, covariates={"rain": Covariate(p.values, "mm/h")}
    ),
    "the last row": lambda p: p.slice(0, 11),
    "the order of sensors": lambda p: p.select(["b", "a", "c"]),
}


def _rest(sensor: Sensor) -> tuple[Any, ...]:
    return sensor.name, sensor.latitude, sensor.longitude, sensor.unit


def test_every_part_of_the_content_has_its_say_in_the_fingerprint() -> None:
    panel = make_panel()
    prints = {what: change(panel).fingerprint for what, change in CHANGES.items()} | {"as it was": panel.fingerprint}
    alike = [(one, other) for one in prints for other in prints if one < other and prints[one] == prints[other]]
    assert alike == []


def test_names_origin_and_order_of_edges_have_none() -> None:
    panel = make_panel(covariates={name: Covariate(np.ones((12, 3)), "mm") for name in ("rain", "snow")})
    edges = panel.edges
    order = [2, 0, 1]
    for other in (
        replace(panel, name="brook", provenance={"made": "today"}),
        replace(panel, covariates=dict(reversed(panel.covariates.items()))),
        replace(
            panel,
            edges=Edges(edges.source[order], edges.target[order], edges.distance[order], edges.weight[order], "km"),
        ),
        replace(panel, values=np.where(panel.mask, panel.values, -np.float32(np.nan))),
        replace(panel, values=np.asfortranarray(panel.values)),
        replace(panel, values=panel.values.astype(np.float64)),
        panel.slice(np.int64(0), np.int64(12)),
        panel.select(panel.sensor_ids),
    ):
        assert other.fingerprint == panel.fingerprint
    zero, minus_zero = (make_panel(values=np.full((12, 3), number)) for number in (0.0, -0.0))
    assert zero.fingerprint == minus_zero.fingerprint


def test_coordinates_are_numbers_however_they_were_written() -> None:
    whole, real = Sensor("a", latitude=45, longitude=np.float32(-122)), Sensor("a", latitude=45.0, longitude=-122.0)
    sensors = make_panel().sensors[1:]
    assert make_panel(sensors=(whole, *sensors)).fingerprint == make_panel(sensors=(real, *sensors)).fingerprint


@given(panels())
def test_every_panel_has_a_fingerprint_and_keeps_it(panel: Panel) -> None:
    assert len(panel.fingerprint) == 64
    assert replace(panel).fingerprint == panel.fingerprint


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"values": np.ones((12, 2))}, "shape"),
        ({"values": np.ones((11, 3))}, "shape"),
        ({"values": np.full((12, 3), np.inf)}, "infinite"),
        ({"covariates": {"rain": Covariate(np.ones((12, 2)))}}, "rain has shape"),
        ({"covariates": {"rain": Covariate(np.full((12, 3), -np.inf))}}, "rain holds infinite"),
        ({"sensors": (Sensor("a"), Sensor("b"), Sensor("a"))}, "same id"),
        ({"edges": Edges([0], [3], weight=[1.0])}, "not in the panel"),
        ({"edges": Edges([-1], [0], weight=[1.0])}, "not in the panel"),
    ],
)
def test_parts_that_do_not_fit_are_a_programming_mistake(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_panel(**wrong)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"source": [0, 0], "target": [1, 1]}, "twice"),
        ({"source": [0, 1], "target": [1]}, "length"),
        ({"source": [0], "target": [1], "weight": [0.0]}, "positive"),
        ({"source": [0], "target": [1], "weight": [np.nan]}, "positive"),
        ({"source": [0], "target": [1], "distance": [-1.0]}, "zero or more"),
        ({"source": [0], "target": [1], "distance": [np.inf]}, "zero or more"),
    ],
)
def test_edges_that_make_no_sense_are_refused(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Edges(**parts)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_place_is_known_or_none(number: float) -> None:
    for part in ("latitude", "longitude"):
        with pytest.raises(ValueError, match=part):
            Sensor("a", **{part: number})


def test_units_are_named_once_each() -> None:
    assert make_panel().unit == "mg/L, m"
    assert make_panel().select(["c"]).unit == "m"


@given(panels(), st.integers(-3, 15), st.integers(0, 15))
def test_a_slice_is_the_rows_it_names(panel: Panel, start: int, stop: int) -> None:
    rows = [row for row in range(start, stop) if 0 <= row < panel.times.length]
    part = panel.slice(start, stop)
    np.testing.assert_array_equal(part.values, panel.values[rows])
    np.testing.assert_array_equal(part.mask, panel.mask[rows])
    np.testing.assert_array_equal(part.times.utc, panel.times.utc[rows])
    for name, covariate in part.covariates.items():
        np.testing.assert_array_equal(covariate.values, panel.covariates[name].values[rows])
        assert covariate.unit == panel.covariates[name].unit
    assert named_edges(part) == named_edges(panel)


ZONES = st.sampled_from(["America/Los_Angeles", "Europe/Dublin", "Australia/Sydney", "UTC-08:00", "Asia/Kolkata"])
# Around the changes of all these zones in 2020, so that skipped and repeated hours turn up often.
CHANGES_OF_2020 = st.sampled_from(
    [datetime(2020, 3, 7), datetime(2020, 3, 28), datetime(2020, 4, 4), datetime(2020, 10, 3), datetime(2020, 10, 31)]
)
QUARTERS = st.integers(-10, 250).map(lambda quarters: quarters * timedelta(minutes=15))


@given(ZONES, CHANGES_OF_2020, st.sampled_from([15, 20, 60, 360]), QUARTERS, QUARTERS)
def test_between_two_wall_clock_times_lie_the_rows_whose_clock_says_so(
    zone: str, start: datetime, minutes: int, first: timedelta, last: timedelta
) -> None:
    axis = TimeAxis(start.replace(tzinfo=UTC), timedelta(minutes=minutes), 60 * 60 // minutes, zone)
    panel = Panel(np.zeros((axis.length, 1)), axis, (Sensor("a"),))
    begin, end = (axis.local[0].to_pydatetime().replace(tzinfo=None) + away for away in (first, last))
    lies_between = _compare_with_wall(axis, begin, is_last=False) & _compare_with_wall(axis, end, is_last=True)
    expected = axis.utc[lies_between]
    if len(expected) == 0:
        with pytest.raises(InputError, match="nothing between"):
            panel.between(str(begin), str(end))
        return
    for bounds in ((str(begin), str(end)), (begin, end)):
        np.testing.assert_array_equal(panel.between(*bounds).times.utc, expected)


def _compare_with_wall(axis: TimeAxis, wall: datetime, is_last: bool) -> np.ndarray:
    """Returns which rows lie from `wall` on, or up to it; of a time shown twice the outer one counts (zoneinfo)."""
    zone = zone_from_name(axis.zone)
    moment = wall.replace(tzinfo=zone, fold=int(is_last)).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        rows, bound = axis.utc, np.datetime64(moment.replace(tzinfo=None))
    else:  # the clock skipped it: what it did show is in order around there
        rows, bound = axis.local.tz_localize(None).to_numpy(), np.datetime64(wall)
    return rows <= bound if is_last else rows >= bound


@given(ZONES, CHANGES_OF_2020, st.sampled_from([20, 60, 360, 1440]), st.integers(0, 5), st.integers(0, 5))
def test_between_two_dates_lie_all_rows_of_these_days(
    zone: str, start: datetime, minutes: int, first: int, last: int
) -> None:
    axis = TimeAxis(start.replace(tzinfo=UTC), timedelta(minutes=minutes), 6 * 1440 // minutes, zone)
    panel = Panel(np.zeros((axis.length, 1)), axis, (Sensor("a"),))
    days = np.array([moment.date() for moment in axis.local])
    begin, end = (start.date() + day * DAY for day in (first, last))
    expected = axis.utc[(days >= begin) & (days <= end)]
    if len(expected) == 0:
        with pytest.raises(InputError, match="nothing between"):
            panel.between(str(begin), str(end))
    else:
        np.testing.assert_array_equal(panel.between(str(begin), str(end)).times.utc, expected)


def test_moments_with_a_zone_are_read_in_that_zone() -> None:
    panel = make_panel(zone="Asia/Seoul")
    part = panel.between("2020-01-01T02:00Z", datetime(2020, 1, 1, 5, tzinfo=UTC))
    assert part.fingerprint == panel.slice(2, 6).fingerprint
    assert panel.between("2020-01-01T11:00", "2020-01-01T14:00").fingerprint == part.fingerprint


def test_open_ends_and_bounds_outside_the_record_keep_what_is_there() -> None:
    panel = make_panel()
    for bounds in (
        (None, None),
        ("1900-01-01", "2100-01-01"),
        ("2020-01-01", "2020-01-01"),
        (None, "2020-01-01T11:00"),
    ):
        assert panel.between(*bounds).fingerprint == panel.fingerprint


@pytest.mark.parametrize(
    "bounds",
    [
        ("2020-01-02", None),
        ("2020-01-01T11:30", "2020-01-05"),
        (None, "2019-12-31"),
        ("2020-01-01T05:00", "2020-01-01T04:00"),
        ("2019-01-01", "2019-02-01"),
    ],
)
def test_bounds_that_hold_nothing_are_refused_and_the_record_is_named(bounds: tuple[str | None, str | None]) -> None:
    with pytest.raises(InputError, match=r"river: there is nothing between .*\n.*01 00:00.* to 2020-01-01 11:00"):
        make_panel().between(*bounds)


@pytest.mark.parametrize("word", ["rubbish", "10/08/2020", "now", "2020-10", "", "9999-12-31"])
def test_bounds_that_are_no_times_are_refused_in_plain_words(word: str) -> None:
    panel = make_panel(zone="America/Los_Angeles")
    for bounds in ((word, None), (None, word)):
        with pytest.raises(InputError):
            panel.between(*bounds)


def test_an_empty_record_has_nothing_between_any_bounds() -> None:
    with pytest.raises(InputError, match="nothing between"):
        make_panel().slice(5, 5).between("2020-01-01", None)


@given(panels(), st.data())
def test_chosen_sensors_take_their_readings_gaps_covariates_and_edges_along(panel: Panel, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.sampled_from(panel.sensor_ids), unique=True))
    chosen = panel.select(ids)
    assert list(chosen.sensor_ids) == ids
    for sensor_id in ids:
        was, now = panel.sensor_ids.index(sensor_id), ids.index(sensor_id)
        assert chosen.sensors[now] == panel.sensors[was]
        np.testing.assert_array_equal(chosen.values[:, now], panel.values[:, was])
        np.testing.assert_array_equal(chosen.mask[:, now], panel.mask[:, was])
        for name, covariate in panel.covariates.items():
            np.testing.assert_array_equal(chosen.covariates[name].values[:, now], covariate.values[:, was])
    assert named_edges(chosen) == {pair: w for pair, w in named_edges(panel).items() if set(pair) <= set(ids)}


@given(panels(), st.randoms(use_true_random=False))
def test_shuffling_sensors_and_back_changes_nothing(panel: Panel, random: Any) -> None:
    ids = list(panel.sensor_ids)
    random.shuffle(ids)
    assert panel.select(ids).select(panel.sensor_ids).fingerprint == panel.fingerprint
    assert panel.select(ids).slice(1, 5).fingerprint == panel.slice(1, 5).select(ids).fingerprint


def test_unknown_sensors_are_refused_and_known_ones_named() -> None:
    with pytest.raises(InputError, match=r"no sensor called d, e\n.*known: a, b, c"):
        make_panel().select(["a", "d", "e"])
