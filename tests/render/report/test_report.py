"""A report says what the model and its scores say when they are asked in another way, and nothing in it is foreign."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run, river
from read_report import EVIL, Reader, with_evil_names
from tiny import PROTOCOL, tiny_recipe

from candor.cli import run as candor
from candor.core.text import amount
from candor.core.versions import versions
from candor.data.panel import Panel
from candor.explain.overview import Overview, overview_of
from candor.explain.scores import errors_by_clock
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.render.report.maps import bent_lines, find_places
from candor.render.report.page import make_page
from candor.runs import evaluate
from candor.runs.fit import train_model
from candor.runs.run import Run, load_run

ALWAYS = {"trained", "forecast", "network", "data", "configuration"}
JUDGED = {"skill", "errors", "coverage"}
OF_CANDOR = {"components", "fusion", "learned"}


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "last-value", "last-value")


def test_a_run_of_candor_has_every_section(page: str) -> None:
    assert Reader(page).sections() == ALWAYS | JUDGED | OF_CANDOR | {"training"}


def test_where_rain_stands_for_shocks_nothing_is_said_of_shock_gates(page: str, overview: Overview) -> None:
    assert overview.learned is not None and overview.learned.components is not None
    components = overview.learned.components
    fewer = replace(components, gates={name: gate for name, gate in components.gates.items() if "shock" not in name})
    other = make_page(replace(overview, learned=replace(overview.learned, components=fewer)))
    for made, words in ((page, "accumulation, release and shock."), (other, "accumulation and release.")):
        assert f"Gates choose what counts as {words}" in made
    assert "shock (here the rain that it was given)" in other


def test_a_simple_rule_has_no_section_of_candor_and_is_not_compared_with_itself(simple: Path) -> None:
    found = overview_of(load_run(simple))
    assert Reader(make_page(found)).sections() == ALWAYS | JUDGED
    assert found.scores is not None
    assert [rule.name for rule in found.scores.rules] == ["seasonal-naive", "historical-average", "linear"]


def test_a_network_without_some_parts_says_nothing_of_them(tmp_path: Path) -> None:
    recipe = tiny_recipe(epochs=1)
    recipe["model"] = recipe["model"] | {"decomposition": False, "branches": ["functional"]}
    panel = sample_panel().slice(0, 160)
    lesser = train_model(panel, PROTOCOL, "candor", {"recipe": recipe}, tmp_path / "run", is_catalogued=False)
    assert Reader(make_page(overview_of(lesser))).sections() == ALWAYS | JUDGED | {"training"}


def test_what_a_protocol_filled_is_not_shown_as_readings(tmp_path: Path) -> None:
    protocol = PROTOCOL.model_copy(update={"fill": "forward-backward", "targets": "filled"})
    panel = river().select(["g2", "g1", "g0"])  # the first is silent at the end
    found = overview_of(load_run(make_run(tmp_path / "run", "last-value", protocol, panel)))
    np.testing.assert_array_equal(found.outlook.readings, panel.values[-len(found.outlook.times) :])
    assert np.isnan(found.outlook.readings[:, 0]).all() and found.shown == 2


def test_without_test_windows_nothing_is_said_of_errors(tmp_path: Path) -> None:
    protocol, units = PROTOCOL.model_copy(update={"shares": (0.8, 0.2, 0.0)}), ["m", "m", "ft", "", ""]
    sensors = tuple(replace(one, unit=unit) for one, unit in zip(river().sensors, units, strict=True))
    found = overview_of(load_run(make_run(tmp_path / "run", "last-value", protocol, replace(river(), sensors=sensors))))
    assert Reader(make_page(found)).sections() == ALWAYS
    assert Reader(make_page(found)).data()["units"] == units  # a sensor without a unit has not that of others
    assert "(m, ft, one that is not stated)" in found.introduction[2]
    assert "none to test on" in found.introduction[-1]


def test_data_without_a_gap_or_a_finding_are_called_so(tmp_path: Path) -> None:
    panel = sample_panel()
    whole = replace(panel, values=np.random.default_rng(0).normal(10, 1, panel.values.shape).astype(np.float32))
    found = overview_of(load_run(make_run(tmp_path / "run", "last-value", PROTOCOL, panel=whole)))
    assert not found.check.findings
    assert "found nothing amiss. No reading is missing." in make_page(found)


def test_a_report_is_made_by_the_version_that_writes_it(simple: Path) -> None:
    overview = overview_of(load_run(simple))
    record = overview.record.model_copy(update={"versions": {"candor-forecast": "0.0.0-of-the-training"}})
    page = make_page(replace(overview, record=record))
    assert f"Made by candor {versions()['candor-forecast']}. " in page


def test_links_lead_to_sections_and_charts_have_their_places(page: str) -> None:
    reader = Reader(page)
    links = {attributes["href"] for tag, attributes in reader.elements if tag == "a"}
    assert links == {f"#{section}" for section in reader.sections()}
    places = {attributes["id"] for _, attributes in reader.elements if attributes.get("class") == "chart"}
    assert places == {f"chart-{name}" for name in reader.data()["charts"]}


def test_the_words_agree_with_evaluation_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", "linear")
    before = overview_of(load_run(folder)).scores
    assert candor(["evaluate", str(folder)]) == 0
    scores = json.loads((folder / "evaluation.json").read_text())
    found = overview_of(load_run(folder))
    assert before is not None and found.scores is not None
    assert found.scores.overall == scores["overall"]
    assert before.overall == pytest.approx(scores["overall"])  # judged by the report itself
    skills = {name: 1 - scores["overall"]["mae"] / other["overall"]["mae"]
              for name, other in scores["simple_forecasters"].items() if name != "linear"}  # fmt: skip
    assert {rule.name: rule.skill for rule in found.scores.rules} == pytest.approx(skills)
    best = min(skills, key=lambda name: skills[name])
    side = "below" if skills[best] > 0 else "above"
    text = " ".join(Reader(make_page(found)).texts["p"])
    assert f"{abs(100 * skills[best]):.1f} % {side} that of {best}" in text
    beaten = sum(skill > 0 for skill in skills.values())
    assert f"beats {'all 3' if beaten == 3 else f'{beaten} of 3' if beaten else 'none of the 3'}" in text
    assert f"held {100 * scores['intervals']['overall']['coverage']:.1f} %" in text
    capsys.readouterr()


def test_scores_of_another_model_are_not_taken_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", "linear")
    assert candor(["evaluate", str(folder)]) == 0
    capsys.readouterr()
    path = folder / "evaluation.json"
    scores = json.loads(path.read_text())
    path.write_text(json.dumps(scores | {"model_sha256": "0" * 64, "overall": scores["overall"] | {"mae": 99.0}}))
    found = overview_of(load_run(folder)).scores
    assert found is not None and found.overall["mae"] == pytest.approx(scores["overall"]["mae"])


@pytest.mark.parametrize(("days", "groups"), [(1 / 24, 24), (1, 7)])
def test_errors_by_the_clock_are_those_of_all_pairs_in_a_loop(tmp_path: Path, days: float, groups: int) -> None:
    times = replace(river().times, interval=timedelta(days=days))
    opened = load_run(make_run(tmp_path / "run", "last-value", panel=replace(river(), times=times)))
    task = opened.task()
    found = errors_by_clock(opened.forecaster, task)
    assert found is not None and found.word == ("hour of the day" if groups == 24 else "day of the week")
    assert (len(found.names), found.names[0]) == (groups, "00:00" if groups == 24 else "Monday")
    misses: dict[int, list[float]] = {group: [] for group in range(groups)}
    for origin in task.split.test:
        forecast = opened.forecaster.predict(task.panel, np.array([origin]))[0]
        for step in range(task.protocol.horizon):
            moment = task.panel.times.local[origin + step].to_pydatetime()
            miss = np.abs(forecast[step] - task.panel.values[origin + step])
            misses[moment.hour if groups == 24 else moment.weekday()] += miss[~np.isnan(miss)].tolist()
    assert found.mae == pytest.approx([np.mean(misses[group]) for group in range(groups)], rel=1e-5)
    pooled = sum(sum(some) for some in misses.values()) / sum(len(some) for some in misses.values())
    assert pooled == pytest.approx(evaluate(opened.forecaster, task).overall()["mae"], rel=1e-5)


def test_reasons_are_what_explanations_say_of_each_sensor(run: Run, overview: Overview) -> None:
    model, learned = run.forecaster, overview.learned
    assert isinstance(model, Candor) and learned is not None and learned.components is not None
    for column, sensor in enumerate(overview.panel.sensor_ids):
        told = model.explain(overview.panel, sensor)
        assert [span.start for span in told.patches] == learned.components.starts
        assert [span.end for span in told.patches] == learned.components.ends
        for name, component in told.components.items():
            np.testing.assert_allclose(learned.components.strengths[name][column], component.raw_strength, rtol=1e-5)
        gates = (told.gates.accumulation, told.gates.release, told.gates.shock_current, told.gates.shock_following)
        for shown, expected in zip(learned.components.gates.values(), gates, strict=True):
            np.testing.assert_allclose(shown[column], expected, rtol=1e-5)
        for branch, weights in learned.fusion.items():
            np.testing.assert_allclose(weights[column], [getattr(one, branch) for one in told.fusion], rtol=1e-5)


def test_the_outlook_is_what_the_model_predicts_of_what_the_panel_holds(run: Run, overview: Overview) -> None:
    panel, outlook, horizon = overview.panel, overview.outlook, PROTOCOL.horizon
    expected = run.forecaster.predict_interval(panel, np.array([panel.times.length - horizon, panel.times.length]))
    for place, made in enumerate((outlook.known, outlook.ahead)):
        assert made.lower is not None and made.upper is not None
        for shown, name in ((made.forecast, "forecast"), (made.lower, "lower"), (made.upper, "upper")):
            np.testing.assert_allclose(shown, getattr(expected, name)[place], rtol=1e-5)
    assert list(outlook.times[-horizon:]) == list(outlook.known.times)
    assert outlook.ahead.times[0] - outlook.times[-1] == panel.times.interval
    np.testing.assert_array_equal(outlook.readings, panel.values[-len(outlook.times) :])


def test_nothing_is_asked_of_the_network_and_the_file_is_not_too_large(page: str) -> None:
    reader = Reader(page)
    for _, attributes in reader.elements:
        for name in {"src", "href", "action", "data"} & set(attributes):
            assert (attributes[name] or "").startswith("#")
    assert not re.search(r"url\(|@import|https?:", "".join(reader.texts["style"]))
    (policy,) = (found["content"] for _, found in reader.elements if found.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert len(page.encode()) < 8_000_000


def test_names_from_outside_stay_names(page: str, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "last-value", panel=with_evil_names(river()))
    for made in (page, make_page(overview_of(load_run(folder)))):
        reader = Reader(made)
        assert EVIL not in made
        assert [tag for tag, _ in reader.elements].count("script") == 3  # numbers, plotly, and what draws
        assert f"1 · {EVIL} ({EVIL}0)" in reader.texts["option"]  # shown as it is
        drawn = json.dumps(reader.data())
        assert "<script" not in drawn and "&lt;script" in drawn  # plotly would take it for HTML of its own


def test_numbers_keep_three_digits_however_small_they_are() -> None:
    errors = {2.5e-10: "0.000000000250 kg/m³", 0.0123: "0.0123 kg/m³", 12345.6: "12,346 kg/m³", 0.0: "0 kg/m³"}
    assert {value: amount(value, "kg/m³") for value in errors} == errors


@pytest.fixture
def placed() -> Callable[..., Panel]:
    def place(*points: tuple[float, float]) -> Panel:
        panel = sample_panel().select(sample_panel().sensor_ids[: len(points)])
        sensors = [replace(s, longitude=x, latitude=y) for s, (x, y) in zip(panel.sensors, points, strict=True)]
        return replace(panel, sensors=tuple(sensors))

    return place


def test_sensors_stand_where_they_are_and_only_those_on_one_another_are_parted(placed: Callable[..., Panel]) -> None:
    points = [(10.0, 60.0), (11.0, 60.5), (12.0, 61.0)]
    found = find_places(placed(*points))
    assert found.is_map and not found.is_parted
    np.testing.assert_array_equal(found.points, points)
    assert found.stretch == pytest.approx(1 / np.cos(np.radians(60.5)))
    parted = find_places(placed(*points, (12.0, 61.0)))
    assert parted.is_parted
    np.testing.assert_allclose(parted.points[:2], points[:2], atol=1e-6)
    distances = np.linalg.norm((parted.points[3] - parted.points[:3]) * [1, parted.stretch], axis=1)
    assert 0 < distances[2] < 0.1 * 2 * parted.stretch < distances[1]
    np.testing.assert_allclose(parted.points[2:].mean(axis=0), points[2])


def test_neighbours_across_the_date_line_are_neighbours_on_the_map(placed: Callable[..., Panel]) -> None:
    found = find_places(placed((179.5, -18.0), (-179.5, -18.0), (178.5, -17.0)))
    np.testing.assert_allclose(found.points[:, 0], [179.5, 180.5, 178.5])


def test_without_all_places_sensors_stand_on_a_circle() -> None:
    found = find_places(sample_panel())
    assert not found.is_map
    np.testing.assert_allclose(np.linalg.norm(found.points, axis=1), 1)


def test_lines_begin_and_end_at_their_sensors_and_there_and_back_are_apart(placed: Callable[..., Panel]) -> None:
    places = find_places(placed((0.0, 0.0), (4.0, 0.0)))
    across, up = bent_lines(places, np.array([0, 1]), np.array([1, 0]))
    np.testing.assert_allclose(across[:, [0, -2]], [[0, 4], [4, 0]])
    np.testing.assert_allclose(up[:, [0, -2]], 0, atol=1e-12)
    assert np.isnan(across[:, -1]).all() and np.isnan(up[:, -1]).all()
    assert (up[0, 1:-2] > 0).all() and (up[1, 1:-2] < 0).all()


def test_the_command_writes_the_file_where_it_says(
    simple: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert candor(["report", str(simple), "--out", str(tmp_path / "there" / "page.html")]) == 0
    assert str(tmp_path / "there" / "page.html") in capsys.readouterr().out
    assert candor(["report", str(simple)]) == 0
    assert (simple / "report.html").read_text() == (tmp_path / "there" / "page.html").read_text()
    assert candor(["report", str(tmp_path)]) == 2
    assert "not a run directory" in capsys.readouterr().err
