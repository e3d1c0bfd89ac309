"""What is told of a forecast is what the network did, found a second way."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
import torch
from tiny import tiny_recipe
from torch.nn import functional as F

from candor.core.errors import InputError, NotFittedError
from candor.data.panel import Edges, Panel
from candor.forecasting.candor import Candor
from candor.forecasting.contract import sample_panel
from candor.forecasting.explanation import ForecastExplanation, network_states
from candor.nets.candor.candor import Encoding
from candor.nets.trainable import tensors_of

ROW = 400


def looped_panel() -> Panel:
    """The sample with a ring s1 -> s2 -> s4 -> s1 that s0 leads to, a way back s2 -> s1 and two loops; s3 alone."""
    source, target = [0, 1, 2, 4, 2, 1, 2], [1, 2, 4, 1, 1, 1, 2]
    edges = Edges(np.array(source), np.array(target), weight=np.linspace(0.2, 1.0, len(source)))
    return replace(sample_panel(), edges=edges)


def fitted(panel: Panel, **sizes: int) -> Candor:
    recipe = tiny_recipe(epochs=1)
    recipe["model"] = recipe["model"] | sizes
    return Candor(history=12, horizon=4, recipe=recipe).fit(panel.slice(0, 120))  # little is learned, and quickly


@pytest.fixture(scope="module")
def panel() -> Panel:
    return looped_panel()


@pytest.fixture(scope="module")
def candor(panel: Panel) -> Candor:
    return fitted(panel, temporal_span=3)


def time_of(panel: Panel, row: int) -> datetime:
    return panel.times.start + row * panel.times.interval


def states_at(candor: Candor, panel: Panel, row: int) -> Encoding:
    with torch.no_grad():
        return network_states(
            candor.trained(), tensors_of(candor.windows(panel, np.array([row])).batch(np.array([0])))
        )[0]


def explain(candor: Candor, panel: Panel, column: int) -> ForecastExplanation:
    return candor.explain(panel, panel.sensor_ids[column], time_of(panel, ROW))


@pytest.mark.parametrize("column", range(5))
def test_the_forecast_is_that_of_predict(candor: Candor, panel: Panel, column: int) -> None:
    found = explain(candor, panel, column)
    predicted = candor.predict(panel, np.array([ROW]))[0, :, column]
    np.testing.assert_allclose(found.forecast, predicted, rtol=1e-5)
    assert (found.sensor, found.unit) == (f"s{column}", "m")
    assert list(found.times) == [time_of(panel, ROW + step) for step in range(4)]
    latest = candor.explain(panel, f"s{column}")
    np.testing.assert_allclose(latest.forecast, candor.predict(panel)[0, :, column], rtol=1e-5)
    assert latest.time == panel.times.end and latest.time.utcoffset() == timedelta(hours=1)
    abroad = candor.explain(panel.in_zone("Asia/Tokyo"), f"s{column}")  # told on that clock, forecast by the own one
    np.testing.assert_array_equal(abroad.forecast, latest.forecast)
    assert abroad.time == latest.time and abroad.time.utcoffset() == timedelta(hours=9)


def test_patches_cover_the_history_up_to_the_last_reading(candor: Candor, panel: Panel) -> None:
    found = explain(candor, panel, 2)
    settings = candor.trained().network.settings
    hour = timedelta(hours=1)
    assert len(found.patches) == settings.patches
    assert found.patches[-1].end == found.time - hour and found.patches[0].start == found.time - 12 * hour
    assert {patch.end - patch.start for patch in found.patches} == {(settings.patch_length - 1) * hour}
    starts = [patch.start for patch in found.patches]
    assert {later - sooner for sooner, later in pairwise(starts)} == {settings.patch_stride * hour}


def test_components_and_gates_are_those_of_the_pass_that_predicts(candor: Candor, panel: Panel) -> None:
    trainable, seen = candor.trained(), []
    trainable.network.decomposition.register_forward_hook(lambda module, inputs, output: seen.append(output))
    with torch.no_grad():
        trainable.forecast(tensors_of(candor.windows(panel, np.array([ROW])).batch(np.array([0]))))
    (components,) = seen
    found = explain(candor, panel, 1)
    patches = len(found.patches)
    for name, component in found.components.items():
        states = getattr(components, name)[0, 1].numpy()
        np.testing.assert_allclose(component.states, states, atol=1e-6)
        lengths = np.linalg.norm(component.states, axis=1)
        np.testing.assert_allclose(component.strength, lengths / np.sqrt(states.shape[1]), rtol=1e-5)
        assert component.raw_strength.shape == (patches,) and (component.raw_strength > 0).all()
    activity = (found.gates.shock_current + found.gates.shock_following) / 2
    np.testing.assert_allclose(activity, components.shock_activity[0, 1].numpy(), rtol=1e-5)
    for gate in vars(found.gates).values():
        assert gate.shape == (patches,) and ((gate > 0) & (gate < 1)).all()


def test_contributions_sum_to_the_graph_term_of_the_path(candor: Candor, panel: Panel) -> None:
    assert_contributions_sum_to_the_graph_term(candor, panel, span=3)


def test_so_they_do_where_the_window_reaches_back_before_the_first_patch(panel: Panel) -> None:
    padded = fitted(panel, temporal_span=4, patch_length=4, patch_stride=4)
    assert padded.trained().network.settings.patches == 3
    assert_contributions_sum_to_the_graph_term(padded, panel, span=4)


def assert_contributions_sum_to_the_graph_term(candor: Candor, panel: Panel, span: int) -> None:
    """Recomputes o of every sensor densely, and with it the first-order term that contributions are parts of."""
    states, physical = states_at(candor, panel, ROW), candor.trained().network.physical
    for direction in ("forward", "reverse"):
        path, support = getattr(physical, f"{direction}_path"), getattr(physical, f"{direction}_support")
        of_path = states.paths[direction]
        dense = torch.zeros(span, 5, 5)
        dense[:, support.receiver, support.sender] = of_path.weights[0]
        residual = of_path.residual[0]
        padded = torch.cat([residual[:, :1]] * (span - 1) + [residual], dim=1)
        mapped = torch.stack(F.relu(path.window_map(padded[:, -span:].flatten(1))).chunk(span, dim=1))
        orders = []
        for power in (dense, dense @ dense):
            without_returns = power - torch.diag_embed(power.diagonal(dim1=1, dim2=2))
            orders.append((without_returns @ mapped).sum(dim=0))
        whole = path.merge(torch.cat([mapped.mean(dim=0), *orders], dim=1))
        torch.testing.assert_close(whole, of_path.contribution[0, :, -1], rtol=1e-4, atol=1e-5)
        for column in range(5):
            arrived = [
                one.arrived for one in explain(candor, panel, column).contributions if one.direction == direction
            ]
            total = np.sum(arrived, axis=0) if arrived else np.zeros(8)
            np.testing.assert_allclose(total, orders[0][column].detach().numpy(), rtol=1e-4, atol=1e-6)


def test_contributions_name_their_senders_positions_and_times(candor: Candor, panel: Panel) -> None:
    found = explain(candor, panel, 1)
    sizes = [one.size for one in found.contributions]
    assert sizes == sorted(sizes, reverse=True)
    senders = {(one.direction, one.sensor) for one in found.contributions}
    assert senders == {("forward", "s0"), ("forward", "s4"), ("forward", "s2"), ("reverse", "s2")}
    assert len(found.contributions) == 3 * len(senders)
    for one in found.contributions:
        assert one.patch == found.patches[len(found.patches) - 3 + one.position]
        assert one.size == pytest.approx(np.sqrt(np.mean(one.arrived**2)))


def test_weights_follow_from_support_and_the_two_scores(candor: Candor, panel: Panel) -> None:
    weight_of = {(int(s), int(t)): float(w) for s, t, w in zip(*panel_edges(panel), strict=True)}
    leaving = {source: sum(w for (s, _), w in weight_of.items() if s == source) for source in range(5)}
    found = [one for one in explain(candor, panel, 1).contributions if one.direction == "forward"]
    for position in range(3):
        here = [one for one in found if one.position == position]
        unnormalised = {}
        for one in here:
            sender = int(one.sensor[1:])
            support = weight_of[sender, 1] / leaving[sender]
            unnormalised[sender] = support * np.exp(one.shared_score + one.sample_score)
        shares = {int(one.sensor[1:]): one.weight for one in here}
        assert sum(shares.values()) < 1  # the loop at s1 has its share, and brings nothing
        for sender, share in shares.items():
            expected = unnormalised[sender] / sum(unnormalised.values())
            assert share / sum(shares.values()) == pytest.approx(expected, rel=1e-4)


def panel_edges(panel: Panel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    assert panel.edges.weight is not None
    return panel.edges.source, panel.edges.target, panel.edges.weight


def test_a_sensor_without_incoming_edges_receives_nothing(candor: Candor, panel: Panel) -> None:
    assert {one.direction for one in explain(candor, panel, 0).contributions} == {"reverse"}
    assert explain(candor, panel, 3).contributions == ()


def test_peers_are_the_pairs_of_the_network(candor: Candor, panel: Panel) -> None:
    functional = states_at(candor, panel, ROW).functional
    for column in range(5):
        peers = explain(candor, panel, column).peers
        neighbours, channels, weights = (
            getattr(functional, name)[0, column].tolist() for name in ("neighbour", "channel", "weights")
        )
        expected = {(f"s{n}", c): pytest.approx(w) for n, c, w in zip(neighbours, channels, weights, strict=True)}
        assert {(peer.sensor, peer.channel): peer.weight for peer in peers} == expected
        assert [peer.weight for peer in peers] == sorted((peer.weight for peer in peers), reverse=True)
        assert sum(peer.weight for peer in peers) == pytest.approx(1, abs=1e-5)
        assert f"s{column}" not in {peer.sensor for peer in peers}
        described = functional.descriptor[0].numpy()
        for peer in peers:
            own, other = described[column], described[int(peer.sensor[1:])]
            cosine = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
            assert peer.resemblance == pytest.approx(cosine, abs=1e-5)


def test_fusion_weights_sum_to_one_and_their_patches_cover_the_horizon(candor: Candor, panel: Panel) -> None:
    found = explain(candor, panel, 4)
    assert len(found.fusion) == candor.trained().network.settings.target_patches
    covered = set()
    for patch in found.fusion:
        assert patch.functional + patch.forward + patch.reverse == pytest.approx(1, abs=1e-6)
        covered |= {time for time in found.times if patch.span.start <= time <= patch.span.end}
        assert patch.span.start in found.times and patch.span.end in found.times
    assert covered == set(found.times)


def test_a_time_is_read_on_the_local_clock_and_between_steps_the_later_one_counts(candor: Candor, panel: Panel) -> None:
    local = panel.times.local[ROW]
    found = candor.explain(panel, "s0", local.strftime("%Y-%m-%dT%H:%M"))
    assert found.time == local
    assert candor.explain(panel, "s0", local.isoformat()).time == local
    assert candor.explain(panel, "s0", local - timedelta(minutes=7)).time == local


def test_impossible_questions_are_refused_in_plain_words(candor: Candor, panel: Panel) -> None:
    with pytest.raises(InputError, match="no sensor called s9"):
        candor.explain(panel, "s9")
    for time in (time_of(panel, 11), time_of(panel, panel.times.length + 1), datetime(1990, 1, 1, tzinfo=UTC)):
        with pytest.raises(InputError, match="the 12 steps before it") as refused:
            candor.explain(panel, "s0", time)
        assert panel.times.local[12].isoformat() in refused.value.hint
    with pytest.raises(InputError, match="is not a time"):
        candor.explain(panel, "s0", "yesterday")
    with pytest.raises(InputError, match="longer record"):
        candor.explain(panel.slice(0, 5), "s0")
    with pytest.raises(NotFittedError):
        Candor(history=12, horizon=4).explain(panel, "s0")
    with pytest.raises(InputError, match="their order"):
        candor.explain(panel.select([*reversed(panel.sensor_ids)]), "s0")
