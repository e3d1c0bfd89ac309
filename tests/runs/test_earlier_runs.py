"""Run directories as an earlier state of version 0.1.0 wrote them: they open, and training goes on in them.

Both are of one training of CANDOR, which was stopped after three steps, and then brought to its end by that version.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from candor.runs.fit import resume_run
from candor.runs.run import load_run
from candor.runs.summary import RunState, summarise_run


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    with zipfile.ZipFile(Path(__file__).with_name("earlier_runs.zip")) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_a_finished_run_opens_with_its_scores_and_forecasts(earlier: Path) -> None:
    summary, run = summarise_run(earlier / "finished"), load_run(earlier / "finished")
    assert summary.state == RunState.EVALUATED and summary.trouble == ""
    panel = run.task().panel
    forecast = run.forecaster.predict(panel)
    np.testing.assert_allclose(forecast.ravel()[:3], [10.063427, 10.06484, 10.090019], rtol=1e-5)
    assert run.forecaster.predict_interval(panel).lower.shape == forecast.shape


def test_an_unfinished_training_goes_on_to_the_weights_it_would_have_had(earlier: Path) -> None:
    found = resume_run(earlier / "unfinished").forecaster.state_
    expected = load_run(earlier / "finished").forecaster.state_
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(
            found[name], array, rtol=1e-2, atol=1e-4, err_msg=name
        )  # other libraries round otherwise
