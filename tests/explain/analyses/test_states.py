"""A reading holds what the network computes, window by window, and knows where training began."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_readings import daily, made_states, made_trainable, made_windows, river_panel
from tiny import tiny_recipe

from candor.explain.analyses.states import WindowStates, untrained, window_states
from candor.forecasting.candor import Candor
from candor.forecasting.explanation import network_states
from candor.nets.trainable import tensors_of
from candor.training.loop import Trainer


def test_training_begins_with_the_weights_that_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: dict[str, torch.Tensor] = {}

    def note_the_start(trainer: Trainer) -> dict[str, torch.Tensor]:
        begun.update({name: tensor.clone() for name, tensor in trainer.trainable.network.state_dict().items()})
        return {name: tensor + 1 for name, tensor in begun.items()}  # as if it had learned something

    monkeypatch.setattr(Trainer, "run", note_the_start)
    candor = Candor(history=12, horizon=4, seed=3, recipe=tiny_recipe()).fit(river_panel().slice(0, 40))
    chance = torch.random.get_rng_state()
    again = untrained(candor).network
    assert torch.equal(torch.random.get_rng_state(), chance)  # nobody else's chance is used up
    assert again.state_dict().keys() == begun.keys() and not again.training
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, begun[name]), name
    assert not torch.equal(candor.trained().network.embedding.linear.weight, again.embedding.linear.weight)


def test_windows_read_together_are_windows_read_alone() -> None:
    panel = river_panel()
    trainable = made_trainable(panel)
    windows = made_windows(panel, trainable, 19)  # more than one batch, the last one not full
    together, whole = window_states(trainable, windows), windows.origins
    for place in (0, 15, 16, 18):
        windows.origins = whole[place : place + 1]
        one = window_states(trainable, windows)
        assert one.origins == together.origins[place]
        for name in ("values", "anchor", "observed", "embedded", "time_of_day"):
            torch.testing.assert_close(getattr(together, name)[place], getattr(one, name)[0])
        assert together.components is not None and one.components is not None
        torch.testing.assert_close(together.components.raw_shock[place], one.components.raw_shock[0])
        for direction, path in together.paths.items():
            for name in ("temporal", "residual", "contribution", "weights", "sample_scores"):
                torch.testing.assert_close(getattr(path, name)[place], getattr(one.paths[direction], name)[0])
            torch.testing.assert_close(path.shared_scores, one.paths[direction].shared_scores)
        assert together.functional is not None and one.functional is not None
        torch.testing.assert_close(together.functional.weights[place], one.functional.weights[0])


def test_states_are_those_of_the_pass_that_forecasts() -> None:
    panel = river_panel()
    trainable = made_trainable(panel)
    windows = made_windows(panel, trainable, 5)
    states, forecast = network_states(trainable, tensors_of(windows.batch(np.arange(5))))
    reading = window_states(trainable, windows)
    torch.testing.assert_close(reading.embedded, states.embedded)
    torch.testing.assert_close(forecast, trainable.forecast(tensors_of(windows.batch(np.arange(5)))))
    whole = reading.values + reading.anchor
    torch.testing.assert_close(whole, tensors_of(windows.batch(np.arange(5)))["inputs"])


def test_what_a_network_lacks_is_not_read() -> None:
    bare = made_states(decomposition=False, branches=("functional",))
    assert bare.components is None and not bare.paths and bare.functional is not None
    physical = made_states(branches=("forward",), learned_operator=False)
    assert physical.functional is None and list(physical.paths) == ["forward"]
    assert physical.paths["forward"].shared_scores is None and physical.paths["forward"].sample_scores is None


def at_hours(hours: np.ndarray) -> WindowStates:
    """Returns a reading of so many windows, of which only the hours are to be believed."""
    bins = torch.from_numpy(12 * hours)
    return replace(made_states(count=2), origins=np.arange(len(hours)), time_of_day=bins)


def test_the_usual_is_the_mean_over_windows_of_the_same_hour() -> None:
    hours = np.random.default_rng(0).integers(0, 24, 400)
    reading = at_hours(hours)
    states = torch.randn(400, 3, 2, generator=torch.Generator().manual_seed(0))
    usual = reading.usual(states)
    for place in (0, 57, 399):
        torch.testing.assert_close(usual[place], states[torch.from_numpy(hours == hours[place])].mean(dim=0))
    torch.testing.assert_close(reading.deviations(states), states - usual)
    # What repeats every day is usual, whatever it is.
    repeated = torch.from_numpy(hours).double()[:, None] ** 2
    torch.testing.assert_close(reading.deviations(repeated), torch.zeros_like(repeated), atol=1e-9, rtol=0)


def test_few_windows_and_daily_readings_have_one_usual() -> None:
    states = torch.arange(80.0).view(40, 2)
    daily_reading = made_states(daily(river_panel()), count=40)
    torch.testing.assert_close(daily_reading.usual(states), states.mean(dim=0).expand(40, 2))
    few = at_hours(np.arange(6))
    torch.testing.assert_close(few.usual(states[:6]), states[:6].mean(dim=0).expand(6, 2))
