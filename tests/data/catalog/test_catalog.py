"""Datasets are what their files say they are, and say how to get them where they are not."""

import pickle
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from candor.core.errors import InputError
from candor.data.catalog import datasets, load_dataset
from candor.data.catalog.korea4_do import GAUGE_OF_STATION
from candor.data.catalog.registry import data_folders, find_data
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.data.preprocessing import fit_scaler
from candor.data.readers.edges import read_edges
from candor.presets import load_preset

NEEDING_FILES = [name for name in datasets if datasets.get(name).needs]


def self_loops(panel: Panel) -> int:
    return int((panel.edges.source == panel.edges.target).sum())


def missing_percent(panel: Panel) -> float:
    return 100 * (1 - float(panel.mask.mean()))


@pytest.mark.parametrize("name", list(datasets))
def test_every_dataset_says_what_it_is(name: str) -> None:
    entry = datasets.get(name)
    assert entry.name == name
    for text in (entry.title, entry.licence, entry.source):
        assert text.strip() and "\n" not in text
    table = dict(re.findall(r"^\| (\w+) \| (.+) \|$", entry.facts, re.MULTILINE))
    assert table["fact"] == "value"
    assert "quantity" in table
    assert load_preset(name).data == name


def test_unknown_datasets_are_refused_and_near_ones_named() -> None:
    with pytest.raises(InputError, match="did you mean metr-la"):
        load_dataset("metrla")


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folder that CANDOR_DATA names and the cache, both empty."""
    folder, cache = tmp_path / "data", tmp_path / "cache"
    folder.mkdir()
    cache.mkdir()
    monkeypatch.setenv("CANDOR_DATA", str(folder))
    monkeypatch.setattr("candor.data.catalog.registry.pooch.os_cache", lambda project: cache)
    return folder, cache


@pytest.mark.parametrize("name", NEEDING_FILES)
def test_a_dataset_that_is_not_here_says_where_it_was_looked_for_and_what_to_do(
    name: str, nowhere: tuple[Path, Path]
) -> None:
    assert not datasets.get(name).is_available()
    with pytest.raises(InputError) as refusal:
        load_dataset(name)
    needs = datasets.get(name).needs
    for word in (*map(str, nowhere), needs[0][0], "CANDOR_DATA"):
        assert word in str(refusal.value)
    for names in needs:
        assert not datasets.get(name).is_available()
        (nowhere[1] / names[-1]).mkdir()
    assert datasets.get(name).is_available()


def test_readings_without_their_graph_are_not_enough(nowhere: tuple[Path, Path]) -> None:
    write_new_form(nowhere[0])
    assert datasets.get("metr-la").is_available()
    (nowhere[0] / "metr-la.edges.csv").unlink()
    assert not datasets.get("metr-la").is_available()
    with pytest.raises(InputError, match=r"the graph of METR-LA is not on this machine.*adj_mx\.pkl"):
        load_dataset("metr-la")


def test_a_data_folder_that_cannot_be_looked_at_is_said_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANDOR_DATA", 300 * "x")
    with pytest.raises(InputError, match="cannot be looked at"):
        datasets.get("metr-la").is_available()


def test_the_named_folder_comes_before_the_cache_and_the_first_name_before_the_second(
    nowhere: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = nowhere
    assert data_folders() == [folder, cache]
    for path in (cache / "first", cache / "second"):
        path.touch()
    assert find_data("first", "second") == cache / "first"
    (folder / "second").touch()
    assert find_data("first", "second") == folder / "second"
    monkeypatch.setenv("CANDOR_DATA", "")
    assert data_folders() == [cache]
    assert find_data("third") is None


@pytest.mark.parametrize("name", ["klamath-daily", "klamath-daily-min", "klamath-daily-max"])
def test_klamath_is_what_its_facts_say(name: str) -> None:
    panel = load_dataset(name)
    assert (panel.name, panel.unit, panel.times.zone) == (name, "mg/L", "UTC-08:00")
    assert panel.values.shape == (4_086, 11)
    assert panel.times.interval == timedelta(days=1)
    assert [str(day)[:16] for day in panel.times.local[[0, -1]]] == ["2014-01-01 00:00", "2025-03-09 00:00"]
    assert (len(panel.edges), self_loops(panel), panel.edges.distance_unit) == (41, 0, "km")
    assert panel.edges.distance is not None and panel.edges.distance.min() > 0 and panel.edges.distance.max() < 200
    assert np.nanmin(panel.values) >= 0
    assert all(sensor.latitude and sensor.longitude and sensor.name for sensor in panel.sensors)
    assert panel.sensor_ids[0] == "421401121480900"


def test_klamath_is_nearly_complete_in_the_years_that_are_used() -> None:
    panel = load_dataset("klamath-daily")
    protocol = load_preset("klamath-daily").protocol
    used = panel.between(protocol.first, protocol.last)
    assert round(missing_percent(panel), 1) == 14.3
    assert used.times.length == 1_609
    assert round(missing_percent(used), 1) == 1.4
    assert [str(day)[:10] for day in used.times.local[[0, -1]]] == ["2020-10-08", "2025-03-04"]


def test_klamath_has_its_minimum_below_its_mean_below_its_maximum() -> None:
    lowest, middle, highest = (
        load_dataset(name).values for name in ("klamath-daily-min", "klamath-daily", "klamath-daily-max")
    )
    known = ~np.isnan(lowest) & ~np.isnan(middle) & ~np.isnan(highest)
    assert known.mean() > 0.8
    assert (lowest[known] <= middle[known] + 0.1).all()  # published to one decimal
    assert (middle[known] <= highest[known] + 0.1).all()


def test_the_bundled_river_is_the_one_that_was_gathered(real_data: Path) -> None:
    for name, file in (("klamath-daily", ""), ("klamath-daily-min", "_MIN"), ("klamath-daily-max", "_MAX")):
        gathered = pd.read_parquet(real_data / "water" / f"KLAMATH180102_DO_DAILY{file}.parquet")
        bundled = load_dataset(name)
        np.testing.assert_array_equal(bundled.values, gathered[list(bundled.sensor_ids)].to_numpy(np.float32))


def test_metr_la_is_what_its_facts_say(metr_la: Panel) -> None:
    panel = metr_la
    assert panel.values.shape == (34_272, 207)
    assert panel.times.interval == timedelta(minutes=5)
    assert (panel.unit, panel.times.zone) == ("mph", "UTC-08:00")
    assert [str(moment)[:16] for moment in panel.times.local[[0, -1]]] == ["2012-03-01 00:00", "2012-06-27 23:55"]
    assert (len(panel.edges), self_loops(panel)) == (1_722, 207)
    assert panel.edges.weight is not None and panel.edges.weight.min() >= 0.1 and panel.edges.weight.max() == 1
    assert round(missing_percent(panel), 2) == 8.11
    assert round(float(np.nanmean(panel.values, dtype=np.float64)), 3) == 58.460
    assert round(float(np.nan_to_num(panel.values).mean(dtype=np.float64)), 3) == 53.719
    assert not (panel.values == 0).any()
    assert all(sensor.latitude and sensor.longitude for sensor in panel.sensors)


def test_pems_bay_has_its_official_graph(real_data: Path) -> None:
    ids = pd.read_csv(real_data / "pems-bay.sensors.csv", dtype=str)["sensor_id"].tolist()
    edges = read_edges(real_data / "pems-bay.edges.csv", ids, Findings())
    assert (len(ids), len(edges), int((edges.source == edges.target).sum())) == (325, 2_694, 325)


def test_shuffling_the_sensors_of_a_dataset_leaves_its_scaler() -> None:
    panel = load_dataset("klamath-daily")
    turned = panel.select(panel.sensor_ids[::-1])
    assert fit_scaler(turned.values).mean == pytest.approx(fit_scaler(panel.values).mean, rel=1e-12)
    assert turned.fingerprint != panel.fingerprint


@pytest.fixture(scope="module")
def korea(real_data: Path) -> Panel:
    return load_dataset("korea4-do")


def test_korea_is_what_its_facts_say(korea: Panel) -> None:
    assert korea.values.shape == (61_344, 14)
    assert (korea.unit, korea.times.zone, korea.edges.distance_unit) == ("mg/L", "Asia/Seoul", "km")
    assert (len(korea.edges), self_loops(korea)) == (16, 0)
    units = {name: covariate.unit for name, covariate in korea.covariates.items()}
    assert units == {"rain": "mm/h", "temperature": "deg C", "conductivity": "uS/cm"}
    protocol = load_preset("korea4-do").protocol
    used = korea.between(protocol.first, protocol.last)
    assert used.times.length == 43_824
    assert round(missing_percent(used), 2) == 15.26
    assert [str(moment)[:16] for moment in used.times.local[[0, -1]]] == ["2015-01-01 00:00", "2019-12-31 23:00"]
    assert all(covariate.values.shape == used.values.shape for covariate in used.covariates.values())


def test_korea_is_four_rivers_that_do_not_touch(korea: Panel) -> None:
    rivers = {sensor_id: sensor_id[:3] for sensor_id in korea.sensor_ids}
    assert sorted(list(rivers.values()).count(river) for river in set(rivers.values())) == [3, 3, 4, 4]
    ends = zip(korea.edges.source, korea.edges.target, strict=True)
    assert all(rivers[korea.sensor_ids[one]] == rivers[korea.sensor_ids[other]] for one, other in ends)


@pytest.mark.parametrize(("name", "file"), [("temperature", "KOREA4_WTEMP"), ("conductivity", "KOREA4_EC")])
def test_korean_covariates_stand_at_the_hour_they_were_measured(
    korea: Panel, real_data: Path, name: str, file: str
) -> None:
    measured = pd.read_parquet(real_data / "water" / f"{file}.parquet")[list(korea.sensor_ids)]
    on_the_clock = measured.reindex(korea.times.local.tz_localize(None)).to_numpy(np.float32)
    np.testing.assert_array_equal(korea.covariates[name].values, on_the_clock)


def test_korean_rain_is_that_of_each_stations_gauge(korea: Panel, real_data: Path) -> None:
    gauges = pd.read_parquet(real_data / "water" / "KOREA4_RAIN.parquet")
    clock = korea.times.local.tz_localize(None)
    is_gauged = (clock >= gauges.index[0]) & (clock <= gauges.index[-1])
    assert is_gauged.sum() == 35_064
    for place, station in enumerate(korea.sensor_ids):
        rain = korea.covariates["rain"].values[:, place]
        source = gauges[GAUGE_OF_STATION[station]].reindex(clock)
        if GAUGE_OF_STATION[station].startswith("ASOS"):  # blank is dry, but only while the gauge was there
            source = source.where(source.notna() | ~is_gauged, 0.0)
        np.testing.assert_array_equal(rain, source.to_numpy(np.float32))
    assert np.isnan(korea.covariates["rain"].values[~is_gauged]).all()


def small_traffic() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    """Returns speeds, adjacency and places of twenty sensors, over the night in which Los Angeles skips an hour."""
    generator = np.random.default_rng(0)
    ids = [str(700_000 + 13 * i) for i in range(20)]
    stamps = pd.date_range("2012-03-10 20:00", periods=300, freq="5min").as_unit("ns")
    speeds = generator.uniform(3, 70, (300, 20))
    speeds[generator.random(speeds.shape) < 0.1] = 0
    weights = np.where(generator.random((20, 20)) < 0.2, generator.uniform(0.1, 1, (20, 20)), 0).astype(np.float32)
    np.fill_diagonal(weights, 1)
    places = pd.DataFrame({"sensor_id": ids, "latitude": generator.uniform(34, 35, 20).round(5), "longitude": -118.25})
    return pd.DataFrame(speeds, stamps, ids), weights, places


def write_new_form(folder: Path) -> None:
    speeds, weights, places = small_traffic()
    speeds.astype(np.float32).rename_axis("timestamp").to_parquet(folder / "metr-la.parquet")
    source, target = np.nonzero(weights)
    ids = places["sensor_id"].to_numpy()
    edges = pd.DataFrame({"from": ids[source], "to": ids[target], "weight": weights[source, target]})
    edges.to_csv(folder / "metr-la.edges.csv", index=False)
    places.to_csv(folder / "metr-la.sensors.csv", index=False)


def write_classic_form(folder: Path) -> None:
    speeds, weights, places = small_traffic()
    speeds.to_hdf(folder / "metr-la.h5", key="df", format="fixed")
    ids = places["sensor_id"].tolist()
    adjacency = [ids, {sensor_id: i for i, sensor_id in enumerate(ids)}, weights]
    (folder / "adj_mx.pkl").write_bytes(pickle.dumps(adjacency, protocol=2))
    places.rename_axis("index").to_csv(folder / "graph_sensor_locations.csv")


def test_the_classic_files_hold_the_same_panel_as_the_new_ones(nowhere: tuple[Path, Path]) -> None:
    panels = []
    for write in (write_new_form, write_classic_form):
        for file in nowhere[0].iterdir():
            file.unlink()
        write(nowhere[0])
        panels.append(load_dataset("metr-la"))
    new, classic = panels
    assert new.times.start == datetime(2012, 3, 11, 4, tzinfo=UTC)
    assert new.values.shape == (300, 20)
    assert new.mask.mean() == pytest.approx(0.9, abs=0.02)
    np.testing.assert_array_equal(classic.values, new.values)
    assert (classic.times, classic.sensors) == (new.times, new.sensors)
    assert replace(classic, name=new.name).fingerprint == new.fingerprint


@pytest.mark.parametrize("name", [name for name in datasets if datasets.get(name).fingerprint])
def test_the_recorded_checksum_is_that_of_the_content_and_stands_in_the_facts(
    name: str, request: pytest.FixtureRequest
) -> None:
    entry = datasets.get(name)
    assert entry.fingerprint in entry.facts
    if not entry.is_available():
        pytest.skip(f"{name} is not on this machine (set CANDOR_DATA to the folder of real datasets)")
    loaded = {"metr-la": "metr_la", "korea4-do": "korea"}  # by tests before, and not once more
    panel = request.getfixturevalue(loaded[name]) if name in loaded else entry.load()
    assert panel.fingerprint == entry.fingerprint
