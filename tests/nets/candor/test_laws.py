"""Laws of the model that hold whatever its weights are."""

import numpy as np
import pytest
import torch
from torch import Tensor

from candor.core.errors import InputError
from candor.core.settings import parse_settings
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.physical_operator import DirectionalSupport, EdgeArrays, closed_walks
from candor.nets.candor.settings import LossWeights, ModelSettings

SIZES = {
    "nodes": 6, "history": 9, "horizon": 6, "patch_length": 3, "patch_stride": 2, "hidden": 8, "forecast_width": 12,
    "head_width": 16, "node_width": 6, "relation_width": 5, "value_width": 7, "pairs": 4, "relations": 2, "heads": 2,
    "fusion_width": 9,
}  # fmt: skip
# Two rivers that do not touch: 0 -> 1 -> 2 and 3 -> 4, with a self-loop at 1; node 5 stands alone.
EDGES = EdgeArrays(np.array([0, 1, 3, 1]), np.array([1, 2, 4, 1]), np.array([0.5, 1.0, 2.0, 0.7]))


def network(edges: EdgeArrays = EDGES, **changes: object) -> CandorNetwork:
    torch.manual_seed(0)
    built = CandorNetwork(ModelSettings(**(SIZES | changes)), edges).double()
    with torch.no_grad():  # so that zero-initialised parts take part
        for parameter in built.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return built.eval()


def inputs(batch: int = 3, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(batch, 9, 6, generator=generator, dtype=torch.float64)
    return (
        values,
        torch.randint(288, (batch, 15), generator=generator),
        torch.randint(7, (batch, 15), generator=generator),
    )


def test_rows_of_the_operators_sum_to_one_or_zero() -> None:
    model = network()
    states = model.encode(*inputs())
    for path, support in (
        (states.paths["forward"], model.physical.forward_support),
        (states.paths["reverse"], model.physical.reverse_support),
    ):
        rows = torch.zeros(*path.weights.shape[:-1], 6, dtype=torch.float64)
        rows.scatter_add_(-1, support.receiver.expand_as(path.weights), path.weights)
        has_edges = torch.zeros(6).index_fill(0, support.receiver, 1.0).double()
        torch.testing.assert_close(rows, has_edges.expand_as(rows))
        assert (path.weights > 0).all()


@pytest.mark.parametrize("prefix", [6, 3])
def test_the_explanation_has_the_gates_of_the_paths_and_the_forecasts_of_the_branches(prefix: int) -> None:
    model = network()
    values, *clock = inputs()
    states = model.encode(values, *clock, prefix)
    starts = model.patch_starts
    rows = torch.cat(
        [model.calendar.time_of_day(clock[0][:, starts]), model.calendar.day_of_week(clock[1][:, starts])], -1
    )
    history, targets = model.settings.patches, model.settings.decoded_patches(prefix)
    tables = {"forward": model.physical.second_nodes.weight, "reverse": model.physical.first_nodes.weight}
    for direction, path in states.paths.items():
        layers = model.physical.path(direction).gate
        beside = [tables[direction][:, None].expand(3, 6, len(starts), -1), rows[:, None].expand(-1, 6, -1, -1)]
        expected = layers.second(layers.first(torch.cat(beside, dim=-1)).relu()).sigmoid()[..., 0]
        torch.testing.assert_close(path.gates, expected[..., :history])
        torch.testing.assert_close(path.target_gates, expected[..., history : history + targets])
    found = states.branch_forecasts()
    assert list(found) == ["functional", "forward", "reverse"]
    for branch, forecast in found.items():
        alone = states.representations.by_branch[branch]
        torch.testing.assert_close(forecast, model.head(alone, prefix))
        assert forecast.shape == (3, prefix, 6)


def test_the_forecast_of_an_only_branch_is_the_forecast() -> None:
    model = network(branches=("functional",))
    (forecast,) = model.encode(*inputs()).branch_forecasts().values()
    torch.testing.assert_close(forecast, model(*inputs()))


@pytest.mark.parametrize("orders", [1, 2, 3])
@pytest.mark.parametrize("dense_from", [0.0, 2.0])
def test_graph_terms_exclude_the_node_itself(monkeypatch: pytest.MonkeyPatch, orders: int, dense_from: float) -> None:
    monkeypatch.setattr("candor.nets.candor.physical_operator.DENSE_FROM", dense_from)
    chance = np.random.default_rng(0)
    source, target = np.nonzero(chance.random((6, 6)) < 0.6)
    support = DirectionalSupport(EdgeArrays(source, target, np.ones(len(source))), 6, orders, 3, is_reverse=False)
    weights = torch.rand(2, 3, len(source))
    features = torch.randn(2, 6, 3, 4, requires_grad=True)
    for reached in support.operator(weights).walk(features):
        for node in range(6):
            (gradient,) = torch.autograd.grad(reached[:, node].sum(), features, retain_graph=True)
            assert gradient[:, node].abs().max() < 1e-5
            assert gradient.abs().max() > 0.1


@pytest.mark.parametrize("length", [1, 2, 3])
def test_closed_walks_are_the_diagonal_of_the_power(length: int) -> None:
    chance = np.random.default_rng(1)
    matrix = np.where(chance.random((7, 7)) < 0.4, chance.random((7, 7)), 0.0)
    receiver, sender = np.nonzero(matrix)
    walks = closed_walks(receiver, sender, 7, length)
    sums = np.zeros(7)
    np.add.at(sums, receiver[walks[0]], matrix[receiver, sender][walks].prod(axis=0))
    np.testing.assert_allclose(sums, np.diag(np.linalg.matrix_power(matrix, length)))


def test_a_node_does_not_feel_what_cannot_reach_it_along_edges() -> None:
    model = network()
    values, *calendar = inputs()
    changed = values.clone()
    changed[..., 3] += 1.0  # the other river
    before, after = (model.encode(given, *calendar).representations.by_branch for given in (values, changed))
    for direction in ("forward", "reverse"):
        moved = (before[direction] - after[direction]).abs().amax(dim=(0, 2, 3))
        assert moved[[0, 1, 2, 5]].max() == 0
        assert moved[[3, 4]].min() > 1e-6


def test_the_functional_branch_reaches_beyond_the_map() -> None:
    model = network(pairs=100)
    values, *calendar = inputs()
    changed = values.clone()
    changed[..., 5] += 1.0
    forecasts = [model.encode(v, *calendar).representations.by_branch["functional"] for v in (values, changed)]
    assert (forecasts[0] - forecasts[1]).abs().amax(dim=(0, 2, 3)).min() > 1e-9


def test_overlap_averaging_reproduces_a_constant() -> None:
    for sizes in ({}, {"patch_stride": 1}, {"patch_stride": 3}, {"patch_length": 9, "patch_stride": 4}, {"horizon": 1}):
        model = network(**sizes)
        horizon, length = model.settings.horizon, model.settings.patch_length
        patches = torch.full((2, 6, model.settings.target_patches, length), 7.5).double()
        recovered = model.head.recover(patches, horizon)
        torch.testing.assert_close(recovered, torch.full((2, horizon, 6), 7.5).double(), rtol=1e-6, atol=0)


def test_only_the_calendar_of_patch_starts_and_the_last_step_is_read() -> None:
    model = network()
    values, time_of_day, day_of_week = inputs()
    read = set(model.settings.history_starts) | set(model.settings.target_starts) | {8}
    forecast = model(values, time_of_day, day_of_week)
    for step in range(15):
        other = time_of_day.clone()
        other[:, step] = (other[:, step] + 100) % 288
        is_same = torch.equal(model(values, other, day_of_week), forecast)
        assert is_same == (step not in read), step


@pytest.mark.parametrize("prefix", range(1, 7))
def test_a_prefix_is_the_beginning_of_the_whole_forecast(prefix: int) -> None:
    model = network()
    states = model.encode(*inputs(), prefix)
    torch.testing.assert_close(model.head(states.fused, prefix), model(*inputs())[:, :prefix], rtol=1e-12, atol=1e-12)
    assert states.fused.shape[2] == model.settings.decoded_patches(prefix)


def test_samples_of_a_batch_do_not_meet() -> None:
    model = network()
    together = model(*inputs())
    singly = torch.cat([model(*(part[i : i + 1] for part in inputs())) for i in range(3)])
    torch.testing.assert_close(together, singly, rtol=1e-10, atol=1e-10)


def gradients(model: CandorNetwork, total: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    total.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def test_micro_batches_have_the_gradient_of_the_whole_batch() -> None:
    model = network()
    generator = torch.Generator().manual_seed(5)
    batch = inputs(batch=7)
    targets = torch.randn(7, 6, 6, generator=generator, dtype=torch.float64)
    mask = torch.rand(7, 6, 6, generator=generator) < 0.7
    targets[~mask] = torch.nan
    shared = {"prefix": 5, "space": LossSpace(3.0, 2.0), "is_active": True}
    valid = int(mask[:, :5].sum())

    states = model.encode(*batch, 5)
    whole = losses(model, states, targets, mask, LossWeights(), **shared).total
    expected = gradients(model, whole)

    total = torch.zeros((), dtype=torch.float64)
    for part in (slice(0, 3), slice(3, 4), slice(4, 7)):  # unequal on purpose
        states = model.encode(*(tensor[part] for tensor in batch), 5)
        share = len(targets[part]) / 7
        found = losses(model, states, targets[part], mask[part], LossWeights(), **shared, valid=valid, share=share)
        total = total + found.total
    torch.testing.assert_close(total, whole, rtol=1e-10, atol=1e-10)
    summed = gradients(model, total)
    assert summed.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(summed[name], gradient, rtol=1e-9, atol=1e-10, msg=name)


def test_role_maps_have_no_gradient_before_activation() -> None:
    model = network()
    states = model.encode(*inputs())
    shape = (3, 6, 6)
    found = losses(
        model, states, torch.zeros(shape).double(), torch.ones(shape, dtype=torch.bool), LossWeights(),
        prefix=6, space=LossSpace(), is_active=False,
    )  # fmt: skip
    assert not [name for name in gradients(model, found.total) if name.startswith("roles")]
    assert {"reconstruction", "role_release"}.isdisjoint(found.terms)


def test_a_batch_without_valid_targets_has_a_finite_loss() -> None:
    model = network()
    nothing = torch.full((3, 6, 6), torch.nan, dtype=torch.float64)
    mask = torch.zeros(3, 6, 6, dtype=torch.bool)
    states, settled = model.encode(*inputs()), {"prefix": 6, "space": LossSpace(), "is_active": True}
    found = losses(model, states, nothing, mask, LossWeights(), **settled)
    assert found.terms["prediction"] == 0
    assert all(torch.isfinite(g).all() for g in gradients(model, found.total).values())


def test_training_begins_where_the_paper_says() -> None:
    torch.manual_seed(0)
    model = CandorNetwork(ModelSettings(**SIZES), EDGES)
    states = model.eval().encode(*(part.float() if part.is_floating_point() else part for part in inputs()))
    shares = states.representations.fusion_weights
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.25, 0.25]).expand_as(shares))
    for name, parameter in model.named_parameters():
        if name.startswith("roles"):
            assert torch.equal(parameter, torch.eye(8)), name
    assert model.history.scale.item() == model.functional.scale.item() == pytest.approx(0.1)
    assert model.physical.shock_strength.item() == 0
    assert not model.functional.relation_bias.any()
    bound = (6 / (8 + 3 * 8)) ** 0.5
    assert 0.8 * bound < model.functional.gru.weight_ih.abs().max() <= bound
    assert not model.physical.forward_path.attention.in_bias.any()
    assert not model.physical.forward_path.attention.out.bias.any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"patch_stride": 4}, "patch_stride <= patch_length <= history"),
        ({"patch_length": 10}, "patch_stride <= patch_length <= history"),
        ({"temporal_span": 5}, "temporal_span"),
        ({"spatial_orders": 0}, "spatial_orders"),
        ({"heads": 3}, "multiple of heads"),
        ({"nodes": 0}, "nodes"),
        ({"dropout": 1.0}, "dropout"),
        ({"wings": 2}, "wings"),
    ],
)
def test_sizes_that_cannot_work_are_refused_in_plain_words(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_settings(ModelSettings, SIZES | changes, "here")


@pytest.mark.parametrize(
    ("source", "target", "weight"),
    [([0, 0], [1, 1], [1.0, 1.0]), ([0], [1], [0.0]), ([0], [1], [np.nan]), ([0], [1, 2], [1.0])],
)
def test_edges_that_cannot_be_are_refused(source: list[int], target: list[int], weight: list[float]) -> None:
    with pytest.raises(ValueError, match="edge"):
        EdgeArrays(np.array(source), np.array(target), np.array(weight))
