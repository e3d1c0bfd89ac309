"""Ablations: what is left out has neither parameters nor influence, and what is left still learns exactly."""

import numpy as np
import pytest
import torch
from tiny import SIZES as TINY
from torch import Tensor

from candor.core.errors import InputError
from candor.core.settings import parse_settings
from candor.nets.candor.candor import CandorNetwork
from candor.nets.candor.losses import LossSpace, losses
from candor.nets.candor.physical_operator import EdgeArrays
from candor.nets.candor.settings import LossWeights, ModelSettings
from candor.presets import load_preset
from candor.research.ablations import CHANGES, VARIANTS

SIZES = TINY | {"pairs": 8}  # all of them, so that every relation channel is used
SPANS = {"nodes": 5, "history": 10, "horizon": 6, "patch_length": 3, "patch_stride": 2}
EDGES = EdgeArrays(np.array([0, 0, 1, 3]), np.array([1, 2, 2, 4]), np.array([0.5, 0.3, 1.0, 2.0]))
# What each variant leaves out, by the beginnings of the parameters' names.
LEFT_OUT = {
    "without-decomposition": (
        "decomposition.", "history.mix", "history.scale", "history.norm", "history.temporal.", "history.feature.",
        "history.merge", "physical.shock_strength", "roles.",
    ),
    "without-auxiliary-losses": ("roles.",),
    "without-physical": ("physical.", "roles.", "fusion."),
    "without-functional": ("functional.", "history.temporal", "history.feature", "history.merge",
                           "history.forecast_norm", "history.calendar"),
    "forward-only": ("physical.reverse_path.",),
    "reverse-only": ("physical.forward_path.",),
    "raw-adjacency": ("physical.query", "physical.keys", "physical.window.", "physical.sample_"),
    "without-relation": ("functional.trend", "functional.level", "functional.relation_bias", "functional.reduce",
                         "functional.channels", "functional.restore"),
    "mean-fusion": ("fusion.",),
}  # fmt: skip


def settings_of(variant: str) -> dict[str, object]:
    changes = VARIANTS[variant][1]
    return {key.removeprefix("model."): value for key, value in changes.items() if key.startswith("model.")}


def network_of(variant: str | None = None, **spans: int) -> CandorNetwork:
    torch.manual_seed(0)
    own = {} if variant is None else settings_of(variant)
    network = CandorNetwork(ModelSettings(**SPANS | spans, **SIZES | own), EDGES).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network


def inputs(seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    chance = torch.Generator().manual_seed(seed)
    values = torch.randn(3, 10, 5, generator=chance, dtype=torch.float64)
    return values, torch.randint(288, (3, 16), generator=chance), torch.randint(7, (3, 16), generator=chance)


def supervision() -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(2)
    targets = torch.randn(3, 6, 5, generator=chance, dtype=torch.float64)
    return targets, torch.rand(3, 6, 5, generator=chance) < 0.8


def gradients(network: CandorNetwork, total: Tensor) -> dict[str, Tensor]:
    network.zero_grad()
    total.backward()
    return {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_left_out_has_no_parameters(variant: str) -> None:
    full, reduced = (dict(net.named_parameters()) for net in (network_of(), network_of(variant)))
    beginnings = LEFT_OUT[variant]
    kept = {name for name in full if not name.startswith(beginnings)} if beginnings else set(full)
    if variant == "without-decomposition":  # one map over patches and one over features in place of four
        kept |= {"decomposition.nodes.weight"}
        kept |= {f"history.{part}.{kind}" for part in ("temporal", "feature") for kind in ("weight", "bias")}
    assert set(reduced) == kept


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_parameter_that_is_left_learns(variant: str) -> None:
    network = network_of(variant)
    weights = parse_settings(LossWeights, _loss_of(variant), "loss")
    states = network.encode(*inputs())
    settled = {"prefix": 6, "space": LossSpace(), "is_active": True}
    found = gradients(network, losses(network, states, *supervision(), weights, **settled).total)
    silent = {name for name, _ in network.named_parameters() if name not in found or not found[name].any()}
    expected: set[str] = set()
    if variant == "without-relation":
        expected = {"functional.temporal.weight"}  # it maps what related sensors brought, which is zero
    assert silent == expected


ERRORS, OF_PATHS = {"prediction", "branch"}, {"history", "separation"}
OF_COMPONENTS, AUXILIARY = {"background", "shock"}, {"reconstruction"}
OF_ROLES = {"role_background", "role_accumulation", "role_release"}
EVERYTHING = ERRORS | OF_PATHS | OF_COMPONENTS | AUXILIARY | OF_ROLES
TERMS = dict.fromkeys(VARIANTS, EVERYTHING) | {
    "without-decomposition": ERRORS | OF_PATHS,
    "without-auxiliary-losses": ERRORS | OF_PATHS | OF_COMPONENTS,
    "without-physical": ERRORS | OF_COMPONENTS | AUXILIARY,
}


@pytest.mark.parametrize("variant", [None, *VARIANTS])
def test_the_objective_has_the_terms_that_the_paper_leaves(variant: str | None) -> None:
    network = network_of(variant)
    weights = parse_settings(LossWeights, {} if variant is None else _loss_of(variant), "loss")
    settled = {"prefix": 6, "space": LossSpace(), "is_active": True}
    found = losses(network, network.encode(*inputs()), *supervision(), weights, **settled)
    assert set(found.terms) == (EVERYTHING if variant is None else TERMS[variant])


def test_without_decomposition_the_embedding_stands_for_all_components() -> None:
    states = network_of("without-decomposition").encode(*inputs())
    assert torch.equal(states.refined, states.embedded)  # H_0 = Z
    assert torch.equal(states.components.background, states.embedded)  # B := Z
    assert states.components.shock_activity is None
    assert set(states.forecast_inputs.states) - {"context", "descriptor", "forward", "reverse"} == {"background"}
    torch.testing.assert_close(states.forecast_inputs.states["background"], states.embedded)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_one_direction_alone_is_held_to_the_history_and_to_separation(direction: str) -> None:
    network = network_of(f"{direction}-only")
    states = network.encode(*inputs())
    assert list(states.paths) == [direction]
    path, refined = states.paths[direction], states.refined.detach().numpy()
    temporal, arrived, residual = (part.detach().numpy() for part in (path.temporal, path.contribution, path.residual))
    history, cosines = [], []
    for sample in range(3):
        for node in range(5):
            predicted = temporal[sample, node] + arrived[sample, node]  # not halved: there is one direction
            history += ((predicted[:-1] - refined[sample, node, 1:]) ** 2).ravel().tolist()
            ours, theirs = temporal[sample, node].mean(axis=0), residual[sample, node].mean(axis=0)
            cosines.append(abs(np.corrcoef(ours, theirs)[0, 1]))
    settled = {"prefix": 6, "space": LossSpace(), "is_active": True}
    terms = losses(network, states, *supervision(), LossWeights(), **settled).terms
    assert float(terms["history"].detach()) == pytest.approx(np.mean(history), rel=1e-9)
    assert float(terms["separation"].detach()) == pytest.approx(np.mean(cosines), rel=1e-6)


def test_one_relation_is_offered_beside_the_nine_of_the_paper() -> None:
    assert len(VARIANTS) == 9 and "one-relation" not in VARIANTS
    changes = {key.removeprefix("model."): value for key, value in CHANGES["one-relation"][1].items()}
    network = CandorNetwork(ModelSettings(**SPANS, **SIZES | changes), EDGES)
    assert network.settings.relations == 1
    functional = network.double().eval().encode(*inputs()).functional
    assert functional is not None and functional.weights.shape[-1] == 4  # the other sensors, once each


def test_without_the_physical_graph_edges_do_not_matter() -> None:
    torch.manual_seed(0)
    settings = ModelSettings(**SPANS, **SIZES | settings_of("without-physical"))
    none = EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    one = CandorNetwork(settings, EDGES).double().eval()
    other = CandorNetwork(settings, none).double().eval()
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(*inputs()), other(*inputs()))


def test_without_relations_and_edges_no_sensor_feels_another() -> None:
    torch.manual_seed(0)
    none = EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    network = CandorNetwork(ModelSettings(**SPANS, **SIZES | {"relations": 0}), none).double().eval()
    values, *calendar = inputs()
    changed = values.clone()
    changed[..., 2] += 1.0
    moved = (network(values, *calendar) != network(changed, *calendar)).any(dim=1).any(dim=0)
    assert moved.nonzero().flatten().tolist() == [2]


def test_with_raw_adjacency_the_operator_is_the_support_whatever_the_window() -> None:
    network = network_of("raw-adjacency")
    states = network.encode(*inputs())
    for direction, path in states.paths.items():
        support = network.physical.support(direction)
        expected = torch.zeros(5, 5, dtype=torch.float64)
        expected[support.receiver, support.sender] = support.log_support.exp()
        sums = expected.sum(dim=1, keepdim=True)
        expected = torch.where(sums > 0, expected / sums.clamp(min=1e-300), 0.0)
        for sample in range(3):
            for position in range(network.settings.temporal_span):
                found = torch.zeros(5, 5, dtype=torch.float64)
                found[support.receiver, support.sender] = path.weights[sample, position]
                torch.testing.assert_close(found, expected)


def test_one_direction_feeds_back_its_own_prediction() -> None:
    both, one = network_of(), network_of("forward-only")
    kept = {name: value for name, value in both.state_dict().items() if not name.startswith(("physical.rev", "fusion"))}
    one.load_state_dict(kept, strict=False)
    alone, together = (model.encode(*inputs()).paths["forward"] for model in (one, both))
    torch.testing.assert_close(alone.temporal, together.temporal)  # the history is the same,
    torch.testing.assert_close(
        alone.predictions[..., 0, :], together.predictions[..., 0, :]
    )  # the first prediction too,
    assert (alone.predictions[..., 1, :] - together.predictions[..., 1, :]).abs().max() > 1e-4  # then paths part


def test_mean_fusion_is_the_mean_of_the_branches() -> None:
    found = network_of("mean-fusion").encode(*inputs())
    torch.testing.assert_close(found.fused, torch.stack(found.representations.branches).mean(dim=0))


@pytest.mark.parametrize("branches", [[], ["forward", "forward"], ["sideways"]])
def test_impossible_branches_are_refused(branches: list[str]) -> None:
    with pytest.raises(InputError, match="branches"):
        parse_settings(ModelSettings, SPANS | {"branches": branches}, "settings")


@pytest.mark.parametrize("change", [{"trend_weight": float("nan")}, {"shock_threshold": float("inf")}])
def test_settings_that_are_no_numbers_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(change))}.*finite"):
        parse_settings(ModelSettings, SPANS | change, "settings")


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


# Parameters counted by hand at the paper's sizes for METR-LA: 32 hidden, 256 forecast, 64 node, 5 patches, 7 targets.
TWO_ROWS = linear(128, 64) + linear(64, 1)
PATH = (
    TWO_ROWS
    + 2 * (96 * 32 + 96)
    + linear(32, 96)
    + 2 * linear(32, 32)
    + 64
    + 64 * 64
    + linear(96, 32)
    + linear(32, 256)
)
OPERATOR = 3 * 64 * 64 + linear(12, 64) + linear(64, 32) + 2 * 160 * 32
ROLES = 6 * 32 * 32
FUSION = 295 * 32 + linear(128, 128) + linear(128, 3)
RELATION = (
    linear(96, 64) + linear(64, 32) + 64 + 2 * 4 * 32 * 32 + 4 + linear(32, 64) + 4 * linear(64, 64) + linear(64, 32)
)
FUNCTIONAL = (
    RELATION + 2 * (96 * 32 + 96) + linear(160, 64) + linear(64, 32) + 64 + linear(32, 32)
    + linear(64, 32) + linear(32, 64) + 64 + linear(5, 7) + linear(32, 256) + 512 + linear(640, 64)
    + 2 * linear(64, 256) + 1 + 512
)  # fmt: skip
MERGE = linear(1024, 256)
PROJECTION = 4 * (linear(5, 7) + linear(32, 256)) + MERGE + 512 + linear(64, 256) + linear(256, 256)
SHOCK_GATE = linear(96, 64) + linear(64, 1) + 2 * linear(32, 32) + linear(64, 64) + linear(64, 1)
DECOMPOSITION = 3 * linear(32, 32) + 3 * 4 * 32 + 4 * 64 + 2 * (linear(192, 64) + linear(64, 32)) + 2 * SHOCK_GATE
REFINING = linear(128, 32) + 1 + 64


@pytest.mark.parametrize(
    ("variant", "removed"),
    [
        ("without-decomposition",
         DECOMPOSITION + REFINING + 3 * (linear(5, 7) + linear(32, 256)) + MERGE + 1 + ROLES),
        ("without-auxiliary-losses", ROLES),
        ("without-physical", 2 * 207 * 64 + OPERATOR + 1 + 2 * PATH + ROLES + FUSION),
        ("without-functional", FUNCTIONAL + PROJECTION + 129),
        ("forward-only", PATH + 129),
        ("reverse-only", PATH + 129),
        ("raw-adjacency", OPERATOR),
        ("without-relation", RELATION),
        ("mean-fusion", FUSION),
    ],
)  # fmt: skip
def test_the_size_of_each_variant_of_the_paper_on_metr_la(variant: str, removed: int) -> None:
    sizes = load_preset("metr-la").model_settings().model_dump() | settings_of(variant)
    none = EdgeArrays(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    network = CandorNetwork(parse_settings(ModelSettings, sizes, "settings"), none)
    assert sum(parameter.numel() for parameter in network.parameters()) == 898_566 - removed


def _loss_of(variant: str) -> dict[str, object]:
    changes = VARIANTS[variant][1]
    return {key.removeprefix("loss."): value for key, value in changes.items() if key.startswith("loss.")}
