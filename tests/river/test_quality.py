"""The paper's basins: what its table says, and every difference from it."""

from dataclasses import replace

import pytest

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.data.catalog import datasets
from candor.river.folder import dataset_card, save_basin
from candor.river.quality import QualityReport, compare_totals, compare_with_paper
from candor.river.settings import PRESETS, preset_called

OBSERVED = {"basin030501": 518_850, "basin031300": 845_290, "basin180102": 473_155}
AS_IN_THE_PAPER = {
    name: QualityReport((), preset.sites, preset.edges, preset.hours, OBSERVED[name])
    for name, preset in PRESETS.items()
}


def test_the_presets_add_up_to_the_table_s_last_row() -> None:
    assert sum(preset.sites for preset in PRESETS.values()) == 43
    assert sum(preset.edges for preset in PRESETS.values()) == 87
    assert sum(preset.sites * preset.hours for preset in PRESETS.values()) == 1_884_432
    rounded = sum(p.sites * p.hours * p.observed_percent / 100 for p in PRESETS.values())
    assert rounded == pytest.approx(1_837_295, abs=1_884_432 * 0.00005)


def test_the_catalogue_knows_a_dataset_of_every_preset_and_says_the_same_of_it() -> None:
    for name, preset in PRESETS.items():
        facts = datasets.get(name).facts
        assert f"| sensors | {preset.sites} |" in facts
        assert f"{preset.edges} directed pairs" in facts
        assert f"{preset.observed_percent} %" in facts
        assert preset.settings.start in facts and preset.settings.end in facts


@pytest.mark.parametrize("name", PRESETS)
def test_a_basin_as_in_the_paper_differs_in_nothing(name: str) -> None:
    assert all(line.is_none for line in compare_with_paper(PRESETS[name], AS_IN_THE_PAPER[name]))


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        ({"edges": 41}, {"edges"}),
        ({"sites": 10}, {"sites", "station-hours", "observed, %"}),
        ({"hours": 43_823}, {"hours", "station-hours"}),
        ({"observed": 470_000}, {"observed, %"}),
    ],
)
def test_every_difference_is_listed(changes: dict[str, int], differing: set[str]) -> None:
    lines = compare_with_paper(PRESETS["basin180102"], replace(AS_IN_THE_PAPER["basin180102"], **changes))
    assert {line.what for line in lines if not line.is_none} == differing


def test_totals_are_compared_when_all_three_are_built() -> None:
    assert compare_totals({"basin180102": AS_IN_THE_PAPER["basin180102"]}) == []
    assert all(line.is_none for line in compare_totals(AS_IN_THE_PAPER))
    fewer = AS_IN_THE_PAPER | {"basin180102": replace(AS_IN_THE_PAPER["basin180102"], observed=473_154)}
    assert [line.what for line in compare_totals(fewer) if not line.is_none] == ["observed of all three"]


def test_basins_beside_one_another_are_added_up_on_disk(built, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CANDOR_DATA", str(tmp_path / "nothing"))
    for name in ("basin030501", "basin031300"):
        assert not any("all three" in line.what for line in save_basin(built.basin, tmp_path / name, name))
    lines = save_basin(built.basin, tmp_path / "basin180102", "basin180102")
    totals = {line.what: (line.paper, line.built) for line in lines if "all three" in line.what}
    assert totals["sites of all three"] == (43, 33)
    assert totals["observed of all three"] == (1_837_295, 3 * built.basin.report.observed)
    assert len(read_json(tmp_path / "basin180102" / "quality.json")["paper"]) == len(lines)


def test_a_report_that_somebody_harmed_is_told_of(built, tmp_path) -> None:
    for name in ("basin030501", "basin031300"):
        save_basin(built.basin, tmp_path / name, name)
    (tmp_path / "basin030501" / "quality.json").write_text("{}")
    with pytest.raises(InputError, match="lacks its numbers"):
        save_basin(built.basin, tmp_path / "basin180102", "basin180102")
    assert not (tmp_path / "basin180102").exists()


def test_the_card_shows_the_paper_beside_the_basin(built) -> None:
    card = dataset_card(built.basin, compare_with_paper(PRESETS["basin180102"], built.basin.report))
    assert "| sites | 11 | 11 |  |" in card
    assert "| hours | 43,824 | 504 | -43,320 |" in card


def test_an_unknown_preset_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="basin030501, basin031300, basin180102"):
        preset_called("basin99")
