"""A protocol says all that a score depends on, and means the same wherever it is written down."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from candor.core.errors import InputError
from candor.core.settings import parse_overrides, parse_settings, read_yaml
from candor.data.panel import Panel, Sensor
from candor.data.protocol import Protocol, make_task, suggest_protocol
from candor.data.times import DAY, TimeAxis


def make_panel(rows: int, interval: timedelta = timedelta(hours=1)) -> Panel:
    values = np.random.default_rng(0).random((rows, 2), np.float32)
    values[::7] = np.nan
    times = TimeAxis(datetime(2020, 1, 1, 8, tzinfo=UTC), interval, rows, "UTC-08:00")
    return Panel(values, times, (Sensor("a"), Sensor("b")))


def test_a_protocol_survives_being_written_down() -> None:
    protocol = Protocol(history=12, horizon=3, first="2020-01-01", steps=(1, 3), shares=(0.7, 0.1, 0.2))
    assert parse_settings(Protocol, protocol.model_dump(mode="json"), "here") == protocol


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": 0},
        {"horizon": -1},
        {"split": "random"},
        {"fill": "mean"},
        {"targets": "all"},
        {"steps": (0,)},
        {"wings": 2},
        {"shares": (0.5, 0.5)},
        {"first": 2020},
        {"last": 7.5},
        {"targets": "filled", "fill": "last"},
        {"targets": "filled", "fill": "zero"},
        {"targets": "observed", "fill": "forward-backward"},
    ],
)
def test_settings_that_make_no_sense_are_refused_and_named(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=str(next(iter(wrong)))):
        parse_settings(Protocol, {"history": 12, "horizon": 12} | wrong, "settings")


def test_nobody_can_change_a_protocol() -> None:
    with pytest.raises(ValidationError):
        Protocol(history=1, horizon=1).history = 2  # type: ignore[misc]


@pytest.mark.parametrize("text", ["2020-01-03", "2020-01-03T06:00", "2020-01-03 06:00:00", "'2020-01-03'"])
def test_dates_may_be_written_without_quotes(text: str) -> None:
    """YAML turns a bare date into a date before anybody can stop it."""
    overrides = parse_overrides([f"first={text}", f"last={text}"])
    protocol = parse_settings(Protocol, {"history": 2, "horizon": 1} | overrides, "settings")
    quoted = Protocol(history=2, horizon=1, first=text.strip("'"), last=text.strip("'"))
    panel = make_panel(24 * 5)
    bounds = ((protocol.first, protocol.last), (quoted.first, quoted.last))
    assert panel.between(*bounds[0]).fingerprint == panel.between(*bounds[1]).fingerprint
    assert parse_settings(Protocol, read_yaml(f"history: 2\nhorizon: 1\nfirst: {text}", "f"), "f").first is not None


@given(st.integers(1, 300), st.lists(st.integers(1, 300), max_size=5))
def test_reported_steps_lie_in_the_horizon_and_there_always_are_some(horizon: int, steps: list[int]) -> None:
    reported = Protocol(history=1, horizon=horizon, steps=tuple(steps)).reported_steps()
    assert reported
    assert all(1 <= step <= horizon for step in reported)
    inside = tuple(step for step in steps if step <= horizon)
    if inside:
        assert reported == inside
    else:
        assert reported[-1] == horizon
        assert list(reported) == sorted(set(reported))


def test_a_task_is_the_record_between_the_dates_cut_by_the_split() -> None:
    panel = make_panel(24 * 10)
    protocol = Protocol(history=4, horizon=2, first="2020-01-02", last="2020-01-08", shares=(0.5, 0.25, 0.25))
    task = make_task(panel, protocol)
    assert task.panel.fingerprint == panel.slice(24, 24 * 8).fingerprint
    assert task.split.train_end == 24 * 7 // 2
    assert task.split.test[-1] + 2 == 24 * 7
    assert task.protocol is protocol
    np.testing.assert_array_equal(task.panel.mask, panel.mask[24 : 24 * 8])


def test_filled_targets_have_no_gap_and_observed_ones_keep_theirs() -> None:
    panel = make_panel(100)
    observed = make_task(panel, Protocol(history=2, horizon=1))
    assert observed.panel is panel
    filled = make_task(panel, Protocol(history=2, horizon=1, targets="filled", fill="forward-backward"))
    assert filled.panel.mask.all()
    np.testing.assert_array_equal(filled.panel.values[panel.mask], panel.values[panel.mask])
    assert not panel.mask.all()


def test_a_record_that_is_too_short_is_refused_in_plain_words() -> None:
    with pytest.raises(InputError, match="too few for a validation part"):
        make_task(make_panel(20), Protocol(history=5, horizon=5))


@given(st.integers(1, 40 * 86_400).map(lambda seconds: timedelta(seconds=seconds)))
def test_a_protocol_can_be_suggested_for_every_interval(interval: timedelta) -> None:
    protocol = suggest_protocol(make_panel(3, interval))
    assert protocol.history >= protocol.horizon >= 1
    assert (protocol.split, protocol.fill, protocol.targets) == ("time", "last", "observed")


@pytest.mark.parametrize(
    ("interval", "history", "horizon"),
    [
        (timedelta(minutes=5), 12, 12),
        (timedelta(minutes=15), 4, 4),
        (timedelta(minutes=20), 4, 4),
        (timedelta(minutes=30), 96, 48),
        (timedelta(hours=1), 48, 24),
        (timedelta(hours=6), 8, 4),
        (DAY, 28, 14),
        (7 * DAY, 28, 14),
    ],
)
def test_the_suggestion_fits_what_such_data_usually_are(interval: timedelta, history: int, horizon: int) -> None:
    protocol = suggest_protocol(make_panel(3, interval))
    assert (protocol.history, protocol.horizon) == (history, horizon)
