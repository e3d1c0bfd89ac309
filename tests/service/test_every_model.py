"""Every registered model, in a tiny size, is trained to a run directory, judged from it, and served from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tiny import PROTOCOL, tiny_recipe

from candor.forecasting import forecasters
from candor.forecasting.contract import sample_panel
from candor.runs import evaluate
from candor.runs.fit import train_model
from candor.runs.run import load_run
from candor.service.metrics import Metrics
from candor.service.models import open_models
from candor.service.server import make_service
from candor.service.settings import ServiceSettings

ROWS = 200
SEVEN_DIGITS = {"rtol": 2e-6, "atol": 1e-6}


def tiny(name: str) -> dict[str, Any]:
    """Returns settings with which a model is trained in a blink; a search, teacher or autoencoder has its epoch too."""
    if name == "candor":
        return {"recipe": tiny_recipe(epochs=1, batch=128)}
    kind = forecasters.get(name)
    sizes = {"sizes": kind.tiny} if hasattr(kind, "tiny") else {}
    own = {"latenttsf": {"autoencoder_epochs": 1.0}, "rstib-mlp": {"teacher_epochs": 1.0}}.get(name, {})
    recipe = {"recipe": {"training": {"epochs": 1, "batch": 128}} | own}
    return sizes | (recipe if hasattr(kind, "trained") else {})


def ask(folder: Path, address: str) -> dict[str, Any]:
    """Returns the answer of a service that serves one run."""
    settings, metrics = ServiceSettings(), Metrics()
    models = open_models([folder], settings, metrics, lambda source: source.with_suffix(".sqlite"))
    with TestClient(make_service(models, settings, metrics)[0], base_url="http://127.0.0.1") as client:
        answer = client.get(address)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


@pytest.mark.slow
@pytest.mark.parametrize("name", forecasters.names())
def test_a_trained_run_is_judged_and_served_with_the_forecasts_of_its_model(name: str, tmp_path: Path) -> None:
    whole = sample_panel()
    panel = replace(whole, values=whole.values[:ROWS], times=whole.times.slice(0, ROWS))
    trained = train_model(panel, PROTOCOL, name, tiny(name), tmp_path / "run", is_catalogued=False)
    run = load_run(tmp_path / "run")
    assert run.record.model == run.forecaster.name == name
    again, before = (evaluate(forecaster, run.task()) for forecaster in (run.forecaster, trained.forecaster))
    assert again.overall() == before.overall() and np.isfinite(again.overall()["mae"])
    content = ask(tmp_path / "run", "/v1/forecast/latest")
    served = np.array([row["forecast"] for row in content["forecasts"]]).reshape(PROTOCOL.horizon, -1)
    np.testing.assert_allclose(served, run.forecaster.predict(panel)[0], **SEVEN_DIGITS)
