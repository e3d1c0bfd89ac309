"""The story of one forecast tells what the network did, found a second way."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from made_readings import HISTORY, daily, made_candor, river_panel

from candor.core.text import date_time
from candor.data.panel import Edges, Panel
from candor.data.times import TimeAxis
from candor.explain.forecast import (
    OneForecast,
    find_arrivals,
    find_branches,
    find_forecast,
    find_past,
    find_peers,
    look_into,
)
from candor.forecasting.candor import Candor
from candor.nets.candor.fusion import Head
from candor.render.figures.gallery import draw

ROW, COLUMN = 300, 2


@pytest.fixture(scope="module")
def panel() -> Panel:
    return river_panel()


@pytest.fixture(scope="module")
def candor(panel: Panel) -> Candor:
    return made_candor(panel)


@pytest.fixture(scope="module")
def told(candor: Candor, panel: Panel) -> OneForecast:
    return look_into(candor, panel, COLUMN, ROW)


def test_the_forecast_is_that_of_predict_and_the_outcome_that_of_the_panel(
    told: OneForecast, candor: Candor, panel: Panel
) -> None:
    made = candor.predict_interval(panel, np.array([ROW]))
    np.testing.assert_array_equal(told.forecast.forecast, made.forecast[0, :, COLUMN])
    section = find_forecast(told)
    assert section.table is not None and len(section.table.rows) == 4
    assert section.sentences[1].startswith("Intervals made to hold 90 % of the readings put the first one between ")
    for step, row in enumerate(section.table.rows):
        numbers = [float(cell) for cell in row[1:]]
        expected = [part[0, step, COLUMN] for part in (made.forecast, made.lower, made.upper)]
        np.testing.assert_allclose(numbers, [*expected, panel.values[ROW + step, COLUMN]], rtol=2e-3)
    known = panel.values[ROW : ROW + 4, COLUMN]
    held = int(((known >= made.lower[0, :, COLUMN]) & (known <= made.upper[0, :, COLUMN])).sum())
    off = np.abs(known - made.forecast[0, :, COLUMN]).mean()
    assert f"off by {off:#.3g} m" in section.sentences[2] and f"and {held} readings" in section.sentences[2]


@pytest.mark.parametrize(("level", "apart"), [(4139.5, 0.01), (101_325.0, 2.0), (2e-8, 3e-9), (10.0, 1.0)])
def test_numbers_keep_the_digits_that_tell_them_apart(told: OneForecast, level: float, apart: float) -> None:
    """Levels of a lake above the sea, pressures in pascal, and dust in kilograms per cubic metre."""
    values = level + apart * np.arange(4.0)
    picture = replace(told.forecast, forecast=values, lower=values - apart, upper=values + apart, happened=values)
    section = find_forecast(replace(told, forecast=picture))
    said = re.findall(r"([\d.,]+\d) (?:m|and)\b", " ".join(section.sentences[:2]))
    wanted = [*values[[0, -1, -1, 0]], *(values[0] + [-apart, apart]), *(values[-1] + [-apart, apart])]
    np.testing.assert_allclose([float(number.replace(",", "")) for number in said], wanted, atol=apart / 4)
    assert section.table is not None
    for row, value in zip(section.table.rows, values, strict=True):
        cells = [float(cell.replace(",", "")) for cell in row[1:]]
        np.testing.assert_allclose(cells, [value, value - apart, value + apart, value], atol=apart / 4)
    alone = replace(told, forecast=picture, alone={"forward": values, "reverse": values + apart})
    assert len(set(re.findall(r"[\d.,]+\d(?= m)", find_branches(alone).sentences[-1]))) == 2


def test_without_intervals_or_outcome_the_story_says_so(panel: Panel) -> None:
    unsure = made_candor(panel, is_calibrated=False)
    ahead = look_into(unsure, panel, COLUMN, panel.times.length)
    sentences = find_forecast(ahead).sentences
    assert any("no intervals" in sentence for sentence in sentences)
    assert "What happened is not known." in sentences


def test_times_are_written_as_far_as_they_differ() -> None:
    said = {}
    for seconds in (10, 3600, 86400):
        interval = timedelta(seconds=seconds)
        times = TimeAxis(datetime(2024, 11, 3, 8, tzinfo=UTC), interval, 2, "America/Los_Angeles").local.to_pydatetime()
        said[seconds] = [date_time(moment, interval) for moment in times]
    assert said[10] == ["03 Nov 2024 01:00:00 UTC−07:00", "03 Nov 2024 01:00:10 UTC−07:00"]
    assert said[3600] == ["03 Nov 2024 01:00 UTC−07:00", "03 Nov 2024 01:00 UTC−08:00"]
    assert said[86400] == ["03 Nov 2024", "04 Nov 2024"]


def test_branches_alone_are_decoded_by_the_same_head(told: OneForecast, candor: Candor, panel: Panel) -> None:
    """If one branch counted for everything, the forecast would be that of the branch alone."""
    network = candor.trained().network
    assert isinstance(network.head, Head)
    for place, branch in enumerate(("functional", "forward", "reverse")):
        certain = made_candor(panel)
        certain.state_["weights/fusion.mlp.second.weight"] = np.zeros_like(
            certain.state_["weights/fusion.mlp.second.weight"]
        )
        bias = np.full(3, -50.0, np.float32)
        bias[place] = 50.0
        certain.state_["weights/fusion.mlp.second.bias"] = bias
        forecast = certain.predict(panel, np.array([ROW]))[0, :, COLUMN]
        np.testing.assert_allclose(told.alone[branch], forecast, rtol=1e-4)


def test_weights_by_step_are_means_over_the_patches_that_cover_it(told: OneForecast) -> None:
    section = find_branches(told)
    table = draw(section.pictures["forecast-branches"]).table
    settings = told.states.network.settings
    for step in range(4):
        covering = [
            patch
            for patch, start in zip(told.found.fusion, settings.target_starts, strict=True)
            if start <= HISTORY + step < start + settings.patch_length
        ]
        assert table["forward weight"][step] == pytest.approx(np.mean([patch.forward for patch in covering]))
    np.testing.assert_allclose(table[[f"{name} weight" for name in told.alone]].sum(axis=1), 1, rtol=1e-5)


def test_what_arrived_is_shared_among_senders_by_size(told: OneForecast) -> None:
    section = find_arrivals(told)
    table = draw(section.pictures["forecast-arrivals"]).table
    for direction in ("forward", "reverse"):
        own = table[table.direction == direction]
        assert own.share.sum() == pytest.approx(1)
        sizes = {}
        for one in told.found.contributions:
            if one.direction == direction:
                sizes[one.sensor] = sizes.get(one.sensor, 0) + one.size
        for sensor, size in sizes.items():
            share = own[own["from"].str.contains(f"{sensor}\\b")].share.sum()
            assert share == pytest.approx(size / sum(sizes.values()))
    assert set(table[table.direction == "forward"]["from"]) == {"sensor g0", "Gauge 1 (g1)"}
    assert section.table is not None and len(section.table.rows) == len(told.found.contributions)
    assert "nothing is carried backwards" in section.sentences[-1]


def test_a_sensor_without_edges_hears_nothing_along_them(candor: Candor, panel: Panel) -> None:
    section = find_arrivals(look_into(candor, panel, 3, ROW))
    assert all("nothing arrives" in sentence for sentence in section.sentences) and not section.pictures


def test_peers_are_summed_over_channels_and_marked_beyond_the_edges(told: OneForecast) -> None:
    section = find_peers(told)
    table = draw(section.pictures["forecast-peers"]).table
    assert table.share.sum() == pytest.approx(1, abs=1e-5) and table.share.is_monotonic_decreasing
    weights = {}
    for peer in told.found.peers:
        weights[peer.sensor] = weights.get(peer.sensor, 0) + peer.weight
    assert table.share.tolist() == pytest.approx(sorted(weights.values(), reverse=True))
    alike = {peer.sensor: peer.resemblance for peer in told.found.peers}
    assert f"{max(alike.values()):.2f}, of 1 at most" in section.sentences[1]
    for row in table.itertuples():
        sensor = re.search(r"g\d", row.peer)[0]
        assert row.resemblance == pytest.approx(alike[sensor])
        assert row.is_beyond_edges == (sensor == "g3")  # all others are joined to g2


def test_the_past_tells_strengths_gates_and_what_was_missing(told: OneForecast, candor: Candor, panel: Panel) -> None:
    section = find_past(told)
    assert list(section.pictures) == ["forecast-past", "forecast-components"]
    told_times = re.findall(r"(\w+) from (.*?) \(([\d.]+) times its mean\)", section.sentences[1])
    assert [name for name, _, _ in told_times] == list(told.found.components)
    for name, span, times in told_times:
        strength = told.found.components[name].raw_strength
        assert float(times) == pytest.approx(strength.max() / strength.mean(), abs=0.051)
        assert span == told.span(told.found.patches[int(strength.argmax())])
    gates = told.found.gates
    activity = (gates.shock_current + gates.shock_following) / 2
    assert f"at {activity.max():.2f} " in section.sentences[2]
    missing = int(np.isnan(panel.values[ROW - HISTORY : ROW, 1]).sum())
    assert missing > 0
    assert f"{missing} of 12 readings were missing" in find_past(look_into(candor, panel, 1, ROW)).sentences[0]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"decomposition": False}, "does not split the past"),
        ({"branches": ("functional",)}, "no physical branch"),
        ({"branches": ("functional",)}, "one branch, functional"),
        ({"branches": ("forward", "reverse")}, "no functional branch"),
        ({"relations": 0}, "no peers"),
    ],
)
def test_parts_that_a_network_lacks_are_named(panel: Panel, sizes: dict, words: str) -> None:
    candor = made_candor(panel, **sizes)
    story = look_into(candor, panel, COLUMN, ROW)
    told_all = [find_past(story), find_arrivals(story), find_peers(story), find_branches(story)]
    assert any(words in sentence for section in told_all for sentence in section.sentences)


def test_days_have_no_clock_and_hours_do(told: OneForecast, panel: Panel) -> None:
    days = daily(replace(panel, edges=Edges.none()))
    story = look_into(made_candor(days), days, 0, ROW)
    assert not re.search(r"\d\d:\d\d", " ".join(find_forecast(story).sentences))
    assert re.search(r"\d\d:\d\d", find_forecast(told).sentences[0])
