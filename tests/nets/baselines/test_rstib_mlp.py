"""RSTIB-MLP: sizes as published, chance in training only, and what a teacher finds hard."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters, targets
from torch import Tensor, nn

from candor.nets.baselines.rstib_mlp import DynamicEmbedding, RstibMlp, RstibMlpSizes
from candor.nets.dropout import drawing_from

SIZES = RstibMlp.tiny


class Oracle(nn.Module):
    """A teacher whose forecasts are given."""

    def __init__(self, forecast: Tensor) -> None:
        super().__init__()
        self.forecast = forecast

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.forecast


def network(**more: object) -> RstibMlp:
    torch.manual_seed(0)
    return RstibMlp(SIZES.model_copy(update=more), frame())


def windows(number: int = 4) -> tuple[Tensor, ...]:
    return (torch.randn(number, 12, 5, generator=torch.Generator().manual_seed(1)), *calendar(number, 18, 12))


def test_it_has_the_parameters_counted_by_hand() -> None:
    nodes, part, steps = 207, 64, 12
    width, half = 5 * part, 5 * part // 2
    identities = (3 * steps + 1) * part + (nodes + 288 + 7) * part
    dynamic = (288 + nodes) * part + part**3 + steps
    encoder = 3 * 2 * (width + 1) * width
    noises = 2 * (half + 1) * width + 2 * (half + 1) * steps
    head = (half + 1) * steps
    published = identities + dynamic + encoder + noises + head + 1  # a bias that cancels
    assert published == 1_053_489
    sizes = RstibMlpSizes()
    assert parameters(RstibMlp(sizes, metr_la_frame())) == published - 1
    shared = sizes.model_copy(update={"as_released": True})
    assert parameters(RstibMlp(shared, metr_la_frame())) == published - 1 - (half + 1) * width


def test_training_ends_no_sooner_than_the_released_one_can() -> None:
    training = RstibMlp.recipe.training
    assert (training.epochs, training.patience) == (300, 150 + 20)


def test_a_dynamic_embedding_may_join_its_steps_before_or_after_its_core() -> None:
    torch.manual_seed(0)
    made, bins = DynamicEmbedding(4, frame()), calendar(3, 12, 12)[0]
    by_step = torch.einsum("bti,ijk,nj->btnk", made.times[bins], made.core, made.nodes)
    expected = torch.einsum("t,btnk->bnk", made.steps.weight[0], by_step).softmax(dim=1)
    torch.testing.assert_close(made(bins), expected)


def test_forecasts_are_a_matter_of_chance_in_training_only_and_of_the_generator_there() -> None:
    made, inputs = network(), windows()

    def forecasts(seed: int) -> Tensor:
        with torch.no_grad(), drawing_from(torch.Generator().manual_seed(seed)):
            return made(*inputs)

    assert torch.equal(forecasts(1), forecasts(1)) and not torch.equal(forecasts(1), forecasts(2))
    made.eval()
    assert torch.equal(forecasts(1), forecasts(2))


def test_hard_sensors_are_those_where_the_teacher_errs() -> None:
    made, wanted = network(), torch.randn(4, 6, 5)
    mask = torch.ones(4, 6, 5, dtype=torch.bool)
    forecast = wanted.clone()
    forecast[:, :, 2] += 0.1  # by one of the sensors' unit
    forecast[:, 3, 4] += 9.0
    mask[:, 3, 4] = False  # which nobody measured
    made.teacher = Oracle(forecast)
    found = made.hardness(windows(), targets(wanted, mask, unit=10.0))
    expected = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]).softmax(dim=0)
    torch.testing.assert_close(found, expected.expand(4, -1), rtol=1e-3, atol=1e-4)
    made.teacher = None
    torch.testing.assert_close(made.hardness(windows(), targets(wanted, unit=10.0)), torch.full((4, 5), 0.2))


@pytest.mark.parametrize("has_teacher", [True, False])
def test_micro_batches_add_up_to_the_whole_batch(has_teacher: bool) -> None:
    made, inputs = network(has_teacher=has_teacher).eval(), windows()
    wanted, mask = torch.randn(4, 6, 5), torch.rand(4, 6, 5) < 0.7
    _, whole = made.objective(inputs, targets(wanted, mask, unit=10.0))
    parts = []
    for cut in (slice(0, 3), slice(3, 4)):
        share = (cut.stop - cut.start) / 4
        part = targets(wanted[cut], mask[cut], share, int(mask.sum()), 10.0)
        parts.append(made.objective(tuple(one[cut] for one in inputs), part)[1])
    for name, term in whole.items():
        torch.testing.assert_close(parts[0][name] + parts[1][name], term, rtol=1e-4, atol=1e-5)


def test_the_teacher_stays_as_its_stage_left_it_and_in_use() -> None:
    made = network().train()
    assert made.teacher is not None
    before = {name: weights.clone() for name, weights in made.teacher.state_dict().items()}
    optimiser = torch.optim.SGD(made.parameters(), lr=0.1)
    _, terms = made.objective(windows(), targets(torch.randn(4, 6, 5), unit=10.0))
    torch.stack(list(terms.values())).sum().backward()
    optimiser.step()
    assert all(torch.equal(before[name], weights) for name, weights in made.teacher.state_dict().items())
    assert made.training and not any(part.training for part in made.teacher.modules())
