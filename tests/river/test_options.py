"""What the options of `candor data build-river` become: the paper's rules where nothing is said."""

import made_basin
import numpy as np
import pytest
import typer
from usgs_server import MadeSite

from candor.cli.app import app
from candor.cli.build_river import BasinOptions
from candor.data.panel_store import load_panel
from candor.river.settings import BasinSettings

GIVEN = {"huc": "180102", "start": "2021-05-01", "end": "2021-05-21"}
DEFAULTS = {
    "parameter": "00300",
    "zone": None,
    "max_missing": 0.10,
    "max_distance_km": 200.0,
    "min_sites": 10,
    "min_edges": None,
    "hourly": "nearest",
    "keep_negative": False,
}


def test_where_nothing_is_said_the_rules_of_the_paper_hold() -> None:
    assert BasinOptions(**GIVEN).settings(None).model_dump() == GIVEN | DEFAULTS


@pytest.mark.parametrize("preset", ["basin030501", "basin031300", "basin180102"])
def test_a_preset_says_basin_and_period_and_nothing_else(preset: str) -> None:
    settings = BasinOptions().settings(preset).model_dump()
    assert {name: settings[name] for name in DEFAULTS} == DEFAULTS
    assert settings["huc"] == preset.removeprefix("basin")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("parameter", "00010"),
        ("zone", "UTC"),
        ("max_missing", 0.25),
        ("max_distance_km", 12.5),
        ("min_sites", 3),
        ("min_edges", 0),
        ("hourly", "mean"),
        ("keep_negative", True),
    ],
)
@pytest.mark.parametrize("preset", [None, "basin180102"])
def test_each_option_changes_its_own_setting_only(preset: str | None, name: str, value: object) -> None:
    options = BasinOptions(**GIVEN | ({"huc": None} if preset else {}) | {name: value})
    assert options.settings(preset).model_dump() == GIVEN | DEFAULTS | {name: value}


def test_every_setting_has_an_option_and_its_help_names_the_default() -> None:
    command = typer.main.get_command(app).commands["data"].commands["build-river"]  # type: ignore[attr-defined]
    options = {parameter.name: parameter for parameter in command.params}
    assert set(BasinSettings.model_fields) <= set(options)
    for name, words in {
        "max_missing": "0.10",
        "max_distance_km": "200",
        "min_sites": "10",
        "parameter": "00300",
        "min_edges": "one less than there are stations",
    }.items():
        assert f"(default: {words}" in options[name].help


def test_options_reach_the_panel(usgs, build, tmp_path) -> None:
    made_basin.fill(usgs)
    usgs.sites[5] = MadeSite("USGS-06", 60.0, 40.0, sensors=usgs.sites[5].sensors)  # on no river
    usgs.observations = [one for one in usgs.observations if int(one.site[-2:]) in (6, 7, 8)]
    changed = usgs.observations[4]
    usgs.observations[4] = type(changed)(changed.site, "00300", changed.sensor, changed.time, "-1.5")
    days = ("--huc", "180102", "--start", "2021-05-01", "--end", "2021-05-20")
    code, _, err = build(*days)
    assert code == 2 and "3 stations lack at most 10 %" in " ".join(err.split())
    code, _, err = build(*days, "--min-sites", 3)
    assert code == 2 and "1 pairs of stations lie below one another within 200 km" in " ".join(err.split())
    code, _, err = build(*days, "--min-sites", 3, "--min-edges", 1, "--keep-negative", "--zone", "UTC")
    assert code == 0, err
    panel = load_panel(tmp_path / "basin")
    assert panel.times.zone == "UTC" and panel.times.start.hour == 0
    assert np.nanmin(panel.values) == -1.5
    settings = panel.provenance["settings"]
    assert (settings["min_edges"], settings["keep_negative"], settings["zone"]) == (1, True, "UTC")
