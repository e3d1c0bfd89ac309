"""What charts and tables of a report hold, read back from the page, is what the report says."""

import re
from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from html import unescape
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from read_report import Reader

from candor.explain.overview import Overview
from candor.render.report.maps import find_places
from candor.runs.run import Run

Numbers = NDArray[np.float64]


@pytest.fixture(scope="module")
def charts(page: str) -> dict[str, Any]:
    found: dict[str, Any] = Reader(page).data()["charts"]
    return found


def numbers(packed: Any) -> Numbers:
    """Returns the numbers of a list, or of the bytes that plotly packs an array into."""
    if isinstance(packed, dict):
        return np.frombuffer(b64decode(packed["bdata"]), np.dtype(packed["dtype"])).astype(np.float64)
    return np.array(packed, np.float64)


def choices(chart: dict[str, Any]) -> list[Numbers | None]:
    """Returns the numbers of all sensors by trace, sensor x point; None for traces that are of no one sensor."""
    packed = (chart["choices"].get(str(place)) for place in range(len(chart["data"])))
    return [one and np.frombuffer(b64decode(one["bytes"]), "<f4").reshape(-1, one["points"]) for one in packed]


def drawn_edges(chart: dict[str, Any], overview: Overview) -> list[tuple[int, int]]:
    """Returns the sensors at which the lines of a map begin and end."""
    found = []
    for trace in chart["data"]:
        if "lines" in trace["mode"]:
            lines = np.stack([numbers(trace[axis]) for axis in ("x", "y")], axis=1)
            for line in np.split(lines, np.flatnonzero(np.isnan(lines[:, 0])) + 1)[:-1]:
                gaps = np.linalg.norm(find_places(overview.panel).points[None] - line[[0, -2], None], axis=2)
                np.testing.assert_allclose(gaps.min(axis=1), 0, atol=1e-5)
                found.append((int(gaps[0].argmin()), int(gaps[1].argmin())))
    return found


def pairs(source: Sequence[int], target: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the edges between two sensors, sorted."""
    return sorted((int(one), int(other)) for one, other in zip(source, target, strict=True) if one != other)


def test_maps_draw_every_edge_from_its_source_to_its_target(charts: dict[str, Any], overview: Overview) -> None:
    edges, learned = overview.panel.edges, overview.learned
    assert learned is not None
    known = pairs(edges.source, edges.target)
    assert known != pairs(edges.target, edges.source)  # else nobody could tell the direction
    assert sorted(drawn_edges(charts["network"], overview)) == known
    for direction, weighted in learned.edges.items():
        heard = pairs(weighted.sender, weighted.receiver)
        assert heard == (known if direction == "forward" else pairs(edges.target, edges.source))
        assert sorted(drawn_edges(charts[f"learned-{direction}"], overview)) == heard


def test_every_edge_has_one_arrowhead_that_points_along_it(charts: dict[str, Any]) -> None:
    traces = [
        trace
        for name in ("network", "learned-forward", "learned-reverse")
        for trace in charts[name]["data"]
        if "lines" in trace["mode"]
    ]
    assert len(traces) >= 3
    for trace in traces:
        marker, across = trace["marker"], numbers(trace["x"])
        assert "markers" in trace["mode"]
        assert (marker["symbol"], marker["angleref"]) == ("arrow", "previous")
        sizes = numbers(marker["size"])
        assert len(sizes) == len(across)
        ends = np.flatnonzero(np.isnan(across))
        for size in np.split(sizes, ends + 1)[:-1]:
            (arrow,) = np.flatnonzero(size)
            # With a point of its own line before it, which it looks away from, and not under the sensor at the end.
            assert size[arrow] > 4 and 0 < arrow < len(size) - 2


def test_the_introduction_says_what_was_trained_on_what(page: str, run: Run) -> None:
    (said,) = (text for text in Reader(page).texts["p"] if "was trained on" in text)
    task = run.task()
    panel, split = task.panel, task.split
    assert said.startswith(f"candor was trained on {panel.name}: ")
    assert f" {len(panel.sensors)} sensors with {len(panel.edges)} directed edges" in said
    assert f" {len(split.train)} windows to learn from" in said
    assert f" {len(split.validation)} to choose and calibrate by" in said
    assert f" {len(split.test)} to test on" in said


def test_the_cards_hold_the_numbers_that_matter_most(page: str, overview: Overview) -> None:
    scores, panel = overview.scores, overview.panel
    assert scores is not None and scores.intervals is not None
    (inside,) = re.findall(r'<ul class="cards">(.*?)</ul>', page, re.DOTALL)
    found = re.findall(r"<strong>(.*?)</strong> <span>(.*?)</span>", inside)
    cards = {unescape(words): unescape(figure) for figure, words in found}
    error, last = scores.overall["mae"], next(rule.mae for rule in scores.rules if rule.name == "last-value")
    assert error is not None and last is not None
    assert cards.pop("sensors") == str(len(panel.sensors))
    assert cards.pop("ahead") == f"{overview.record.protocol.horizon} h"  # a reading every hour
    figure, _, unit = cards.pop("mean absolute error").partition(" ")
    assert float(figure) == pytest.approx(error, rel=5e-3) and unit == panel.unit != ""
    against = cards.pop("error against last-value")
    assert float(against.split()[0]) == pytest.approx(100 * (error / last - 1), abs=0.06) and against[0] in "+-"
    covered = cards.pop(f"coverage of {100 * scores.intervals['asked_coverage']:g} % intervals")
    assert float(covered.split()[0]) == pytest.approx(100 * scores.intervals["overall"]["coverage"], abs=0.06)
    assert not cards


def test_the_outlook_of_every_sensor_is_drawn_at_its_times(charts: dict[str, Any], overview: Overview) -> None:
    outlook = overview.outlook
    expected = {("readings", outlook.times[0]): (outlook.times, outlook.readings)}
    for made, name in ((outlook.known, "last forecast with known outcome"), (outlook.ahead, "next forecast")):
        parts = {"at least": made.lower, "at most": made.upper, name: made.forecast}
        expected |= {(part, made.times[0]): (made.times, heights) for part, heights in parts.items()}
    chart, seen = charts["forecast"], set()
    for trace, heights in zip(chart["data"], choices(chart), strict=True):
        times = [datetime.strptime(name, "%d %b %Y %H:%M") for name in trace["x"]]
        key = next(key for key in expected if (key[0], key[1].replace(tzinfo=None)) == (trace["name"], times[0]))
        moments, wanted = expected[key]
        assert times == [moment.replace(tzinfo=None) for moment in moments]
        for sensor in range(len(overview.panel.sensors)):
            np.testing.assert_allclose(heights[sensor], wanted[:, sensor], rtol=1e-6)
        np.testing.assert_array_equal(numbers(trace["y"]), heights[overview.shown])
        seen.add(key)
    assert seen == set(expected)


def test_reasons_of_every_sensor_are_drawn(charts: dict[str, Any], overview: Overview) -> None:
    learned = overview.learned
    assert learned is not None and learned.components is not None
    of_one = {name: [one for one in choices(charts[name]) if one is not None] for name in charts}
    for name, known in (
        ("strengths", learned.components.strengths), ("gates", learned.components.gates), ("fusion", learned.fusion)
    ):  # fmt: skip
        for drawn, wanted in zip(of_one[name], known.values(), strict=True):
            np.testing.assert_allclose(drawn, wanted, rtol=1e-6)
    assert [trace["name"] for trace in charts["strengths"]["data"]] == list(learned.components.strengths)
    assert {trace["mode"] for trace in charts["strengths"]["data"]} == {"lines+markers"}  # sizes make no stack
    assert [trace["name"] for trace in charts["gates"]["data"]] == list(learned.components.gates)
    usual = [numbers(trace["y"]) for trace in charts["fusion"]["data"] if trace["name"] == "usual"]
    np.testing.assert_allclose(usual, list(learned.usual_fusion.values()), rtol=1e-6)


def test_errors_and_training_are_drawn(charts: dict[str, Any], overview: Overview) -> None:
    scores = overview.scores
    assert scores is not None and scores.intervals is not None and scores.clock is not None
    steps = {trace["name"]: numbers(trace["y"]) for trace in charts["steps"]["data"]}
    np.testing.assert_allclose(steps["mean absolute error"], scores.by_step["mae"], rtol=1e-6)
    np.testing.assert_allclose(steps["root mean square error"], scores.by_step["rmse"], rtol=1e-6)
    places = [int(label.split()[0]) - 1 for label in charts["sensors"]["layout"]["yaxis"]["ticktext"]]
    errors = [scores.by_sensor[overview.panel.sensor_ids[place]]["mae"] for place in places]
    drawn = numbers(charts["sensors"]["data"][0]["x"])
    np.testing.assert_allclose(drawn, errors, rtol=1e-6)
    assert len(errors) > 1 and (np.diff(drawn) <= 0).all()
    np.testing.assert_allclose(numbers(charts["clock"]["data"][0]["y"]), scores.clock.mae, rtol=1e-6)
    shares = {trace["name"]: numbers(trace["y"]) / 100 for trace in charts["coverage"]["data"]}
    np.testing.assert_allclose(shares["coverage"], scores.intervals["by_step"]["coverage"], rtol=1e-6)
    np.testing.assert_allclose(shares["asked"], scores.intervals["asked_coverage"])
    assert overview.training is not None
    curves = {trace["name"]: numbers(trace["y"]) for trace in charts["training"]["data"]}
    np.testing.assert_allclose(curves["training"], [epoch.train_error for epoch in overview.training.epochs], rtol=1e-6)
    np.testing.assert_allclose(
        curves["validation"], [epoch.validation_error for epoch in overview.training.epochs], rtol=1e-6
    )


def test_findings_settings_and_versions_stand_in_the_tables(page: str, overview: Overview) -> None:
    rows = Reader(page).rows
    findings = [[one.level.value, one.what, one.where, one.hint] for one in overview.check.findings]
    known = [*overview.settings.items(), *overview.record.versions.items(), ("seed", str(overview.record.seed))]
    assert findings and {"history", "torch", "recipe.training.epochs"} <= {name for name, _ in known}
    for row in [*findings, *map(list, known)]:
        assert row in rows


def test_the_words_on_the_data_name_where_most_is_missing(page: str, overview: Overview) -> None:
    (said,) = (text for text in Reader(page).texts["p"] if text.startswith("A check of the readings that were used"))
    mask = overview.panel.mask
    gaps = [max(len(gap) for gap in "".join("?."[there] for there in column).split(".")) for column in mask.T.tolist()]
    missing = 1 - mask.mean(axis=0)
    assert len(set(gaps)) > 1 and missing.argmax() != missing.argmin()
    names = [f"{place} · {sensor.name} ({sensor.id})" for place, sensor in enumerate(overview.panel.sensors, start=1)]
    assert f" {100 * (1 - mask.mean()):.1f} % of them are missing, most at sensor {names[missing.argmax()]}: " in said
    assert f": {100 * missing.max():.1f} %. " in said
    where = f"at sensor {names[int(np.argmax(gaps))]} from "
    assert f"The longest gap is {max(gaps) / 24:.3g} d, {where}" in said  # a reading every hour


def test_scores_stand_in_the_tables(page: str, overview: Overview) -> None:
    scores = overview.scores
    assert scores is not None
    shown = {rule.name + rule.meaning: (rule.mae, rule.rmse) for rule in scores.rules}
    for place, sensor in enumerate(overview.panel.sensors, start=1):
        found = scores.by_sensor[sensor.id]
        shown[f"{place} · {sensor.name}{sensor.id}"] = (found["mae"], found["rmse"])
    assert len(shown) == 4 + len(overview.panel.sensors)
    rows = {row[0]: row[1:3] for row in Reader(page).rows}
    for name, wanted in shown.items():
        for cell, score in zip(rows[name], wanted, strict=True):
            assert cell == "–" if score is None else float(cell) == pytest.approx(score, rel=5e-3)


def test_the_skill_is_the_share_of_the_error_of_a_rule_that_the_model_avoids(page: str, overview: Overview) -> None:
    scores, rows = overview.scores, Reader(page).rows
    assert scores is not None
    (top,) = (place for place, row in enumerate(rows) if row[-1] == "skill of candor")
    name, error, root, skill = rows[top + 1]
    assert (name, skill) == ("candorthe model of this run", "")
    assert float(error) == pytest.approx(scores.overall["mae"], rel=5e-3)
    assert float(root) == pytest.approx(scores.overall["rmse"], rel=5e-3)
    skills = {row[0]: row[3] for row in rows[top + 2 : top + 2 + len(scores.rules)]}
    assert list(skills) == [rule.name + rule.meaning for rule in scores.rules]
    known = [rule for rule in scores.rules if rule.mae is not None]
    assert len(known) > 1
    for rule in scores.rules:
        cell = skills[rule.name + rule.meaning]
        if rule.mae is None:
            assert cell == "–"
        else:
            expected = 100 * (1 - scores.overall["mae"] / rule.mae)
            assert float(cell.removesuffix(" %")) == pytest.approx(expected, abs=0.06)
