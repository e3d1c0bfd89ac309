"""`candor model summary` prints the sizes that the paper states."""

import json

import pytest

PAPER = {
    "metr-la": 898_566,
    "pems-bay": 904_373,
    "basin030501": 876_750,
    "basin031300": 878_030,
    "basin180102": 876_590,
}


@pytest.mark.parametrize("preset", PAPER)
def test_the_summary_ends_with_the_total_of_the_paper(candor, preset: str) -> None:
    shown = candor("model", "summary", preset)
    assert shown.code == 0, shown.err
    assert shown.out.rstrip().splitlines()[-2].split()[-2] == f"{PAPER[preset]:,}"
    content = json.loads(candor("model", "summary", preset, "--json").out)
    assert content["total"] == PAPER[preset] == sum(row["parameters"] for row in content["modules"])


def test_a_preset_without_sizes_says_which_have_them(candor) -> None:
    refused = candor("model", "summary", "korea4-do")
    assert refused.code == 2
    assert "metr-la" in refused.err
