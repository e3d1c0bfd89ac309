"""Laws that every baseline's network keeps; a file under `candor/nets/baselines` is tested as soon as it is there."""

from dataclasses import replace

import pytest
import torch
from frames import calendar, frame, nodes_moved_by
from pydantic import ValidationError
from torch import Tensor

from candor.data.preprocessing import Scaler
from candor.nets.baseline import BaselineNetwork, BaselineTrainable, Frame
from candor.nets.baselines import baselines
from candor.nets.recipe import Stage, TrainingSettings
from candor.nets.trainable import StepContext

HISTORY, HORIZON, NODES = 12, 6, 5
SEARCH_STEPS = 12  # a search tries two operators of an edge at a time, so two steps do not reach all of them


def tiny(name: str, place: Frame) -> BaselineNetwork:
    kind = baselines.get(name)
    return kind(kind.tiny, place)


def batch(windows: int = 6, seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    time_of_day, day_of_week = calendar(windows, HISTORY + HORIZON, 12)
    return {
        "inputs": torch.randn(windows, HISTORY, NODES, generator=generator),
        "input_mask": torch.ones(windows, HISTORY, NODES, dtype=torch.bool),
        "time_of_day": time_of_day,
        "day_of_week": day_of_week,
        "targets": 50 + 10 * torch.randn(windows, HORIZON, NODES, generator=generator),
        "target_mask": torch.rand(windows, HORIZON, NODES, generator=generator) < 0.8,
    }


def trainable(name: str) -> BaselineTrainable:
    torch.manual_seed(0)
    network = tiny(name, frame(NODES, HISTORY, HORIZON))
    return BaselineTrainable(network, Scaler(50.0, 10.0), HORIZON, network.recipe)


def objective(learner: BaselineTrainable, windows: dict[str, Tensor], share: float = 1.0, valid: int | None = None):
    number = int(windows["target_mask"].sum()) if valid is None else valid
    return learner.objective(windows, StepContext(HORIZON, True, number, share))


def dropouts() -> list[tuple[str, str]]:
    """Returns every model with each of its settings that is a share to drop."""
    return [
        (name, field)
        for name in baselines
        for field in type(baselines.get(name).sizes).model_fields
        if field.endswith("dropout")
    ]


@pytest.mark.parametrize(("name", "field"), dropouts())
def test_dropping_everything_is_refused_before_anything_is_trained(name: str, field: str) -> None:
    with pytest.raises(ValidationError, match=rf"{field}\n.*less than 1"):
        type(baselines.get(name).sizes)(**{field: 1.0})


def stages() -> list[tuple[str, str]]:
    """Returns every model with each of its stages by name; the last, of the network that forecasts, has none."""
    found = []
    for name in baselines:
        kind = baselines.get(name)
        earlier = kind.stages(kind.sizes, kind.recipe)
        found += [(name, stage.name) for stage in (*earlier, Stage(TrainingSettings()))]
    return found


def trainable_of(name: str, wanted: str) -> BaselineTrainable:
    """Returns what a stage of a model trains."""
    kind = baselines.get(name)
    for stage in kind.stages(kind.tiny, kind.recipe):
        if stage.name == wanted:
            torch.manual_seed(0)
            network = stage.build(frame(NODES, HISTORY, HORIZON))
            return stage.kind(network, Scaler(50.0, 10.0), HORIZON, kind.recipe)
    return trainable(name)


@pytest.mark.parametrize(("name", "stage"), stages())
def test_every_parameter_learns_within_two_steps(name: str, stage: str) -> None:
    learner = trainable_of(name, stage)
    learner.network.train()
    optimiser = torch.optim.SGD(learner.network.parameters(), lr=1e-3)
    untouched = {key for key, value in learner.network.named_parameters() if value.requires_grad}
    assert untouched
    for step in range(SEARCH_STEPS if stage == "search" else 2):
        optimiser.zero_grad(set_to_none=True)
        objective(learner, batch(seed=step)).total.backward()
        named = learner.network.named_parameters()
        untouched -= {key for key, value in named if value.grad is not None and bool((value.grad != 0).any())}
        if not untouched:
            return
        optimiser.step()
    assert untouched == set()


def test_the_searches_teachers_and_autoencoders_are_walked_as_well() -> None:
    earlier = {(name, stage) for name, stage in stages() if stage}
    assert earlier >= {("autostf", "search"), ("rstib-mlp", "teacher"), ("latenttsf", "autoencoder")}


@pytest.mark.parametrize("name", baselines.names())
def test_missing_targets_teach_nothing(name: str) -> None:
    learner = trainable(name)
    learner.network.eval()  # without random numbers
    windows = batch()
    totals = []
    for unseen in (0.0, 1e6, float("nan")):
        targets = torch.where(windows["target_mask"], windows["targets"], unseen)
        totals.append(objective(learner, windows | {"targets": targets}).total.detach())
    assert torch.isfinite(totals[0]) and totals[0] == totals[1] == totals[2]


@pytest.mark.parametrize("name", baselines.names())
def test_a_forecast_does_not_depend_on_the_other_windows(name: str) -> None:
    learner = trainable(name)
    learner.network.eval()
    windows = batch()
    with torch.no_grad():
        together = learner.forecast(windows)
        singly = torch.cat(
            [learner.forecast({key: part[i : i + 1] for key, part in windows.items()}) for i in range(6)]
        )
    torch.testing.assert_close(together, singly, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["dlinear", "dtaf", "patchtst", "phaseformer", "stid"])
def test_nodes_are_forecast_one_by_one_where_they_do_not_influence_each_other(name: str) -> None:
    torch.manual_seed(0)
    assert nodes_moved_by(tiny(name, frame()), 3) == [3]


@pytest.mark.parametrize("name", [name for name in baselines if not baselines.get(name).needs_whole_batches])
def test_micro_batches_add_up_to_the_whole_batch(name: str) -> None:
    learner = trainable(name)
    learner.network.eval()
    windows = batch()
    valid = int(windows["target_mask"].sum())
    whole = objective(learner, windows).total
    cuts = ((slice(0, 4), 4 / 6), (slice(4, 6), 2 / 6))
    parts = [objective(learner, {k: v[cut] for k, v in windows.items()}, share, valid).total for cut, share in cuts]
    torch.testing.assert_close(sum(parts), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", baselines.names())
def test_terms_of_an_objective_keep_their_weights_in_another_unit_or_say_which_unit_they_go_with(name: str) -> None:
    learner, windows = trainable(name), batch()
    learner.network.eval()
    says_which, terms = learner.recipe.loss_space == "original", []
    for space in ("scores", "original"):
        learner.recipe = learner.recipe.model_copy(update={"loss_space": space})
        terms.append({key: float(term.detach()) for key, term in objective(learner, windows).terms.items()})
    first, *others = (terms[1][key] / term for key, term in terms[0].items() if term)
    assert says_which or others == pytest.approx([first] * len(others))


@pytest.mark.parametrize("name", baselines.names())
def test_any_history_and_horizon_can_be_asked_for(name: str) -> None:
    for history, horizon, steps_per_day, nodes in ((24, 24, 24, 3), (28, 14, 1, 2), (48, 96, 24, 1)):
        place = frame(nodes, history, horizon, steps_per_day)
        network = tiny(name, place).eval()
        with torch.no_grad():
            found = network(torch.randn(2, history, nodes), *calendar(2, history + horizon, 288 // steps_per_day))
        assert found.shape == (2, horizon, nodes) and torch.isfinite(found).all()


@pytest.mark.parametrize("name", baselines.names())
def test_constant_readings_of_nodes_without_edges_have_a_forecast(name: str) -> None:
    network = tiny(name, replace(frame(3, HISTORY, HORIZON), adjacency=torch.zeros(3, 3))).eval()
    with torch.no_grad():
        assert torch.isfinite(network(torch.zeros(2, HISTORY, 3), *calendar(2, HISTORY + HORIZON, 12))).all()
