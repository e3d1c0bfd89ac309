"""The benchmark of speed: its pieces run at tiny sizes, its numbers follow from what it measured."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tiny import SIZES

from candor.nets.candor.settings import ModelSettings

FOLDER = Path(__file__).parents[3] / "benchmarks"
PROMISED = {
    "train_step_ratio", "train_memory_ratio", "schedule_ratio", "forecast_ratio", "step_over_head_matmuls",
    "step_over_head_matmuls_median",
}  # fmt: skip


@pytest.fixture
def speed(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script as a module; the number of threads is put back."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import speed as module

    threads = torch.get_num_threads()
    yield module
    torch.set_num_threads(threads)
    sys.modules.pop("speed")


def tiny(speed: ModuleType) -> object:
    settings = ModelSettings(nodes=5, history=6, horizon=3, patch_length=3, patch_stride=3, **SIZES)
    return speed.Sizes(settings, batch=4, micro_batch=2, oracle_batch=2, prefixes=(1, 3))


def test_it_measures_all_that_it_promises(speed: ModuleType) -> None:
    asked = []

    def cost(work: object, *arguments: object, repeats: int) -> object:
        asked.append((work.__name__, arguments[1:]))
        work(*arguments)
        return speed.Cost(0.0, {"model_memory": 10.0}.get(work.__name__, 100.0 + 50.0 * sum(arguments[1:])))

    found = speed.measure(tiny(speed), rounds=1, turns=1, cost=cost)
    assert set(json.loads(json.dumps(found))) > PROMISED
    assert all(value > 0 for value in found.values() if not isinstance(value, str))
    assert asked == [("model_memory", ()), ("oracle_memory", (1,)), ("oracle_memory", (2,))]
    assert found["oracle_megabytes"] == 300.0  # 100 once, and 50 for each of four windows
    assert found["train_memory_ratio"] == 30.0
    assert found["step_and_head_turns"] == 5  # fewer are not enough on a noisy machine


def test_works_take_turns_back_and_forth_after_a_run_to_warm_up(speed: ModuleType) -> None:
    done: list[str] = []
    works = {name: lambda name=name: done.append(name) for name in "abc"}
    times = speed.take_turns(works, 3)
    assert "".join(done) == "abc" + "abc" + "cba" + "abc"  # the first are to warm up
    assert {name: len(found) for name, found in times.items()} == {"a": 3, "b": 3, "c": 3}


def test_the_curriculum_spends_six_epochs_on_each_prefix_and_the_rest_on_the_last(speed: ModuleType) -> None:
    assert speed.curriculum({1: 1.0, 12: 1.0}) == pytest.approx(80)
    by_hand = 6 * sum(range(1, 12)) + (80 - 66) * 12
    assert speed.curriculum({1: 1.0, 12: 12.0}) == pytest.approx(by_hand)


def test_a_step_of_the_model_is_that_of_the_oracle(speed: ModuleType) -> None:
    """What is timed on both sides is the same work: the same gradients, dropout aside."""
    sizes = tiny(speed)
    problem = speed.make_problem(4, sizes.settings)
    network, parameters, adjacency = speed.sides(problem)
    with speed.make_replicas(network.eval()) as replicas:
        speed.model_step(problem, replicas, 3, 2)
    speed.oracle_step(problem, parameters, adjacency, 3)
    for name, parameter in network.named_parameters():
        theirs = parameters[name].grad
        if parameter.grad is None or theirs is None:  # of what a step does not touch
            assert all(gradient is None or not gradient.any() for gradient in (parameter.grad, theirs)), name
        else:
            torch.testing.assert_close(parameter.grad, theirs, rtol=1e-3, atol=1e-3 * float(theirs.abs().max() + 1e-3))
