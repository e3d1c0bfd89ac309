"""The readings of a water network are the sum of parts that EPANET makes, and obey the laws of what flows."""

import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from made_water import LINE, TANK, write_network

from candor.data.panel import Panel
from candor.data.water import WaterRecipe, WaterTruth, generate_water_network
from candor.data.water.dosing import injected, usual_doses
from candor.data.water.epanet import epanet
from candor.data.water.inp import Model, open_model, path_of, sources_of
from candor.data.water.recipe import LEVEL
from candor.data.water.scenario import make_ready, rows_of

pytest.importorskip("wntr", reason="the extra `physics` is not installed")

STEPS = 288
TOLERANCE = 2e-3  # mg/L; EPANET merges water that differs by less than 1e-4 time and again


@pytest.fixture(scope="module")
def net3() -> tuple[Panel, WaterTruth]:
    """Three days of Net3 without noise."""
    return generate_water_network("Net3", seed=1, steps=STEPS, noise=0.0)


def ready(source: str, recipe: WaterRecipe) -> Model:
    """Returns a network that can be simulated."""
    model = open_model(source)
    make_ready(model, recipe)
    return model


def test_readings_are_the_sum_of_the_parts(net3: tuple[Panel, WaterTruth]) -> None:
    panel, truth = net3
    assert (truth.components["noise"] == 0).all()
    np.testing.assert_allclose(panel.values, sum(truth.components.values()), rtol=1e-6)
    assert (panel.unit, panel.times.interval, panel.values.shape) == ("mg/L", timedelta(minutes=15), (STEPS, 40))


def test_all_doses_in_one_run_give_what_the_parts_add_up_to(net3: tuple[Panel, WaterTruth]) -> None:
    panel, truth = net3
    recipe = WaterRecipe("Net3", 1, STEPS)
    model, rows = ready("Net3", recipe), rows_of(recipe)
    sources = sources_of(model)
    usual = dict(zip(sources, usual_doses(recipe, len(sources), rows).T, strict=True))
    own = injected(truth.shocks, truth.shock_retention, STEPS)
    added = np.concatenate([np.zeros((rows - STEPS, own.shape[1])), own])
    with epanet(model, path_of("Net3")) as water:
        whole = water.concentrations(usual, dict(zip(panel.sensor_ids, added.T, strict=True)), at_first=LEVEL)
    columns = [model.junction_name_list.index(sensor) for sensor in panel.sensor_ids]
    np.testing.assert_allclose(panel.values, whole[-STEPS:, columns], atol=TOLERANCE)


def test_no_part_takes_away_what_was_not_there(net3: tuple[Panel, WaterTruth]) -> None:
    _, truth = net3
    for name in ("background", "storage", "shock", "transported"):
        assert truth.components[name].min() >= -TOLERANCE, name
    assert truth.components["transported"].max() > 0.1
    assert truth.components["background"].min() > 0.5


def test_edges_have_delays_and_shares(net3: tuple[Panel, WaterTruth]) -> None:
    panel, truth = net3
    assert len(panel.edges) >= 15
    assert (truth.delays >= 1).all() and (abs(truth.delays - np.maximum(truth.travel, 1)) <= 0.5001).all()
    assert (truth.travel_range[:, 0] <= truth.travel).all() and (truth.travel <= truth.travel_range[:, 1]).all()
    assert ((truth.attenuation > 0) & (truth.attenuation <= 1)).all()
    assert np.bincount(panel.edges.target, weights=truth.attenuation).max() <= 1 + 1e-9


def test_injections_are_where_and_when_the_truth_says(net3: tuple[Panel, WaterTruth]) -> None:
    _, truth = net3
    rises = np.diff(truth.components["shock"], axis=0, prepend=np.float32(0)) > 0
    assert list(zip(*np.nonzero(rises), strict=True)) == list(zip(truth.shocks.time, truth.shocks.sensor, strict=True))
    assert len(truth.shocks) >= 20


def test_the_seed_decides_all_numbers(net3: tuple[Panel, WaterTruth]) -> None:
    panel, truth = net3
    again, same = generate_water_network("Net3", seed=1, steps=STEPS, noise=0.0)
    assert again.fingerprint == panel.fingerprint
    np.testing.assert_array_equal(same.travel, truth.travel)
    other, differing = generate_water_network("Net3", seed=2, steps=STEPS, noise=0.0)
    assert not np.array_equal(differing.shocks.time, truth.shocks.time)
    assert other.fingerprint != panel.fingerprint


def test_nothing_arrives_before_its_travel_time_and_all_arrives_then(tmp_path: Path) -> None:
    source = write_network(tmp_path)
    recipe = WaterRecipe(source, 0, STEPS)
    model = ready(source, recipe)
    begin = rows_of(recipe) - STEPS + 40
    dose = np.zeros(rows_of(recipe))
    dose[begin : begin + 8] = 1.0
    with epanet(model, path_of(source)) as water:
        found = water.concentrations(injections={"A": dose})
        pipework = water.pipework()
    np.testing.assert_allclose(found[:, 0], dose, atol=1e-6)
    for column, links in ((1, (1,)), (2, (1, 2))):
        travel = pipework.travel_times(links)
        arrives = np.flatnonzero(found[:, column])[0] - begin
        # It enters half a step before `begin`, and is read at the next moment after it came; EPANET counts minutes.
        assert travel[begin] - 0.5 - 0.1 <= arrives <= travel[begin] + 0.5 + 0.1
        assert found[:, column].max() == pytest.approx(1.0, abs=1e-3)


def test_mass_is_neither_made_nor_lost(tmp_path: Path) -> None:
    source = write_network(tmp_path)
    recipe = WaterRecipe(source, 0, STEPS)
    model = ready(source, recipe)
    dose = np.zeros(rows_of(recipe))
    dose[100:130] = 0.7
    with epanet(model, path_of(source)) as water:
        found = water.concentrations(injections={"A": dose})
        flow = water.pipework().flow
    through_a, to_b, to_c = flow.T
    given = (dose * through_a).sum()
    taken = (found[:, 1] * (to_b - to_c) + found[:, 2] * to_c).sum()
    assert taken == pytest.approx(given, rel=0.02)


def test_only_tanks_store(tmp_path: Path) -> None:
    _, without = generate_water_network(write_network(tmp_path), steps=2000)
    assert abs(without.components["storage"]).max() <= TOLERANCE
    _, truth = generate_water_network(write_network(tmp_path, TANK), steps=2000)
    assert truth.components["storage"].max() > 10 * TOLERANCE


def test_timed_controls_go_on_after_the_first_week() -> None:
    recipe = WaterRecipe("Net3", 0, 12 * 24, minutes=60)
    model = ready("Net3", recipe)
    with epanet(model, path_of("Net3")) as water:
        water.concentrations()
        pump = water.pipework().flow[:, model.link_name_list.index("10")]
    by_day = (pump.reshape(-1, 24) > 1e-3).sum(axis=1)
    assert ((by_day >= 13) & (by_day <= 15)).all()  # on from one to three o'clock in the afternoon


def test_nothing_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    write_network(here)
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    generate_water_network("town.inp", steps=20)
    assert [path.name for path in here.iterdir()] == ["town.inp"]
    assert not list(temporary.iterdir())
    assert Path.cwd() == here


def test_what_flows_in_the_file_is_only_water(tmp_path: Path) -> None:
    plain, _ = generate_water_network(write_network(tmp_path), steps=50)
    dosed = LINE.replace("[COORD", "[SOURCES]\nSpring CONCEN 5\n[REACTIONS]\nGlobal Bulk -2\n[QUALITY]\nB 3\n[COORD")
    other, _ = generate_water_network(write_network(tmp_path, dosed, "dosed.inp"), steps=50)
    np.testing.assert_array_equal(plain.values, other.values)


def test_readings_can_be_missing(tmp_path: Path) -> None:
    source = write_network(tmp_path)
    whole, truth = generate_water_network(source, steps=2000)
    panel, same = generate_water_network(source, steps=2000, missing_share=0.3)
    assert panel.mask.mean() == pytest.approx(0.7, abs=0.1)
    np.testing.assert_array_equal(panel.values[panel.mask], whole.values[panel.mask])
    np.testing.assert_array_equal(same.delays, truth.delays)
