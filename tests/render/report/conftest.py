"""A run of CANDOR and its report, made once for all tests of reports."""

import pytest
from read_report import with_evil_names
from tiny import PROTOCOL, tiny_recipe

from candor.explain.overview import Overview, overview_of
from candor.forecasting.contract import sample_panel
from candor.render.report.page import make_page
from candor.runs.fit import train_model
from candor.runs.run import Run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small CANDOR, trained on sensors whose names would do harm."""
    settings = {"recipe": tiny_recipe(epochs=2)}
    folder = tmp_path_factory.mktemp("runs") / "candor"
    panel = with_evil_names(sample_panel().slice(0, 160))
    return train_model(panel, PROTOCOL, "candor", settings, folder, is_catalogued=False)


@pytest.fixture(scope="session")
def overview(run: Run) -> Overview:
    """What its report says."""
    return overview_of(run)


@pytest.fixture(scope="session")
def page(overview: Overview) -> str:
    """Its report."""
    return make_page(overview)
