"""Any EPANET input file is read, and what cannot be simulated is refused in plain words."""

import re
import sys
from pathlib import Path

import pytest
from made_water import LINE, write_network

from candor.core.errors import InputError
from candor.data.catalog import datasets
from candor.data.water import generate_water_network
from candor.data.water.inp import open_model, sources_of


def test_without_wntr_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wntr", None)
    with pytest.raises(InputError, match=r"needs the package wntr(.|\n)*candor-forecast\[physics\]"):
        generate_water_network()


def test_a_dataset_whose_package_is_missing_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("candor.data.catalog.registry.find_spec", lambda name: None)
    assert not datasets.get("water-network").is_available()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": 1}, "steps is 1"),
        ({"seed": -1}, "seed is -1"),
        ({"sensors": 0}, "sensors is 0"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"missing_share": 0.95}, "missing_share is 0.95"),
        ({"minutes": 7}, "minutes is 7"),
        ({"twin_pairs": 2}, "no twins"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(change: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        generate_water_network(**change)


class TestWithWntr:
    """Files that only wntr can read."""

    @pytest.fixture(autouse=True)
    def _wntr(self) -> None:
        pytest.importorskip("wntr", reason="the extra `physics` is not installed")

    def test_what_is_neither_a_name_nor_a_file_is_refused_and_names_are_listed(self) -> None:
        with pytest.raises(InputError, match=r"Net4: this is neither(.|\n)*Net3"):
            open_model("Net4")

    @pytest.mark.parametrize(
        ("found", "replaced", "said"),
        [
            (r"(?s).*", "these are no pipes", "not an EPANET input file"),
            (r"(?s).*", "", "no water comes"),
            (r"Spring 80", "", "not an EPANET input file"),
            (r"A 0 0", "A zero 0", "not an EPANET input file"),
            (r"\[RESERVOIRS\]\nSpring 80", "[TANKS]\nSpring 80 2 0 4 8 0", "no water comes"),
            (r"(?s)\[PIPES\].*\[OPTIONS\]", "[OPTIONS]", "no pipe"),
            (r"\[RESERVOIRS\]", "Lonely 0 1\n[RESERVOIRS]", "EPANET cannot simulate.*Lonely"),
        ],
    )
    def test_what_cannot_be_simulated_is_refused(self, tmp_path: Path, found: str, replaced: str, said: str) -> None:
        source = write_network(tmp_path, re.sub(found, replaced, LINE, count=1))
        with pytest.raises(InputError, match=said) as refusal:
            generate_water_network(source, steps=20)
        assert source in str(refusal.value)

    def test_a_file_that_is_no_text_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "town.inp"
        path.write_bytes(bytes(range(256)))
        with pytest.raises(InputError, match="not an EPANET input file"):
            open_model(str(path))

    def test_water_comes_from_reservoirs_and_from_junctions_that_give(self, tmp_path: Path) -> None:
        assert sources_of(open_model(write_network(tmp_path))) == ["Spring"]
        assert sources_of(open_model("Net2")) == ["1"]
