"""Every registered model keeps the contract, and the contract notices who does not."""

from typing import Any

import numpy as np
import pytest
from pydantic.dataclasses import dataclass
from tiny import tiny_recipe

from candor.core.errors import InputError
from candor.core.settings import parse_settings
from candor.data.panel import Panel
from candor.forecasting import Forecaster, forecasters
from candor.forecasting.contract import check_forecaster
from candor.forecasting.forecaster import REFUSE_UNKNOWN

# Two steps: the second shows what the first left in the optimiser, and in what draws chance.
TWO_STEPS = {"epochs": 1, "epoch_windows": 32, "batch": 16, "validation_windows": 8}


def quick(name: str) -> dict[str, Any]:
    """Returns settings with which a model is fitted in a second."""
    if name == "candor":
        recipe = tiny_recipe(**TWO_STEPS)
        return {"recipe": recipe | {"model": recipe["model"] | {"patch_length": 6, "patch_stride": 6}}}
    kind = forecasters.get(name)
    sizes = {"sizes": kind.tiny} if hasattr(kind, "tiny") else {}
    own = {"autoencoder_epochs": 1.0} if name == "latenttsf" else {}
    return sizes | ({"recipe": {"training": TWO_STEPS} | own} if hasattr(kind, "trained") else {})


@pytest.mark.parametrize("name", forecasters.names())
def test_registered_model_keeps_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A shorter sample shows as much of a network; its test part still fills two batches.
    monkeypatch.setattr("candor.forecasting.contract._ROWS", 360)
    monkeypatch.setattr("candor.forecasting.inference.WINDOWS_PER_BATCH", 8)
    is_simple = not quick(name)  # what takes no time, over a whole day
    spans = {"history": 24, "horizon": 6} if is_simple else {"history": 12, "horizon": 4}
    check_forecaster(lambda: forecasters.get(name)(**spans, **quick(name)))


@pytest.mark.parametrize("name", forecasters.names())
def test_registered_model_refuses_unknown_and_impossible_settings(name: str) -> None:
    kind = forecasters.get(name)
    assert kind.name == name
    with pytest.raises(InputError, match="wings"):
        parse_settings(kind, {"history": 24, "horizon": 6, "wings": 2}, "settings")
    with pytest.raises(InputError, match="horizon"):
        parse_settings(kind, {"history": 24, "horizon": 0}, "settings")


@dataclass(config=REFUSE_UNKNOWN)
class Rogue(Forecaster):
    """Breaks one rule of the contract, chosen by name."""

    vice: str = ""
    name = "rogue"

    def _learn(self, panel, split, report):
        seen = panel.values if self.vice == "learns the test part" else panel.values[: split.train_end]
        chance = np.random.default_rng(None if self.vice == "ignores the seed" else 0)
        if self.vice == "changes its settings":
            self.seed += 1
        return {"level": np.array([np.nanmean(seen) + chance.random()], np.float32)}

    def _forecast(self, panel: Panel, origins):
        shape = (len(origins), self.horizon, len(panel.sensors))
        forecast = np.full(shape, self.state_["level"][0], np.float32)
        if self.vice == "sees the future":
            filled = np.nan_to_num(np.append(panel.values[:, 0], np.zeros(self.horizon, np.float32)))
            forecast += filled[origins][:, None, None]
        if self.vice == "depends on the batch" and len(origins):
            forecast += np.float32(origins.mean())
        if self.vice == "changes what it learned":
            self.state_["level"] = self.state_["level"] + 1
        if self.vice == "returns float64":
            return forecast.astype(np.float64)
        if self.vice == "says nothing":
            forecast[:, 0, 3] = np.nan
        return forecast


def test_the_contract_accepts_the_rogue_without_a_vice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(forecasters._entries, "rogue", Rogue)
    check_forecaster(lambda: Rogue(history=24, horizon=6))


@pytest.mark.parametrize(
    ("vice", "words"),
    [
        ("learns the test part", "the test part was learned"),
        ("ignores the seed", "the same seed differs"),
        ("changes its settings", "the settings were changed"),
        ("sees the future", "the future was seen"),
        ("depends on the batch", "batch and single windows differ"),
        ("changes what it learned", "predict and predict_interval differ"),
        ("returns float64", "not float32"),
        ("says nothing", "not a number"),
    ],
)
def test_the_contract_notices_each_vice(vice: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(forecasters._entries, "rogue", Rogue)
    with pytest.raises((AssertionError, InputError), match=words):
        check_forecaster(lambda: Rogue(history=24, horizon=6, vice=vice))
