"""MSTHG (reconstruction): size, groups by nearness and by mutual information, means over groups, and frequencies."""

from datetime import UTC, datetime, timedelta

import numpy as np
import torch
from frames import calendar, frame, metr_la_frame, parameters
from sklearn.metrics import mutual_info_score

from candor.data.panel import Panel, Sensor
from candor.data.times import TimeAxis
from candor.data.windows import Windows
from candor.nets.baseline import Frame
from candor.nets.baselines.msthg import (
    HypergraphConvolution,
    Msthg,
    MsthgSizes,
    equally_filled,
    groups_of,
    mutual_information,
    periodic_features,
)

SIZES = Msthg.tiny


def network(place: Frame, **more: int) -> Msthg:
    torch.manual_seed(0)
    return Msthg(SIZES.model_copy(update=more), place).eval()


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, history, horizon, frequencies = 64, 12, 12, 7
    tables = (288 + 7 + 207) * width
    features = 2 * width + (3 * frequencies * width + width)
    convolutions = 2 * 2 * ((width * width + width) + (width + 1) + 2 * width)
    gates = 2 * (2 * width * width + width)
    recurrent = 3 * (2 * width * width + 2 * width)
    perceptron = (history * width * width + width) + (width * width + width)
    head = (width * 256 + 256) + (256 * horizon + horizon)
    total = tables + features + convolutions + gates + recurrent + perceptron + head
    assert total == 165_648
    assert parameters(Msthg(MsthgSizes(), metr_la_frame())) == total


def test_a_group_is_a_sensor_and_its_nearest_whichever_way_their_edges_lead() -> None:
    adjacency = torch.zeros(5, 5)
    adjacency[0, 1], adjacency[2, 0], adjacency[0, 3] = 0.5, 0.8, 0.1
    adjacency += 9 * torch.eye(5)  # loops say nothing
    near = network(Frame(5, 12, 6, 24, adjacency)).near
    expected = torch.eye(5)
    expected[2, 0], expected[1, 0] = 1.0, 0.5 / 0.8  # two members; 3 is farther
    expected[0, 1] = expected[0, 2] = expected[0, 3] = 1.0
    torch.testing.assert_close(near, expected)
    torch.testing.assert_close(network(Frame(5, 12, 6, 24, torch.zeros(5, 5))).near, torch.eye(5))


def test_mutual_information_is_that_of_scikit_learn_less_what_chance_gives() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(4000, 4, generator=generator)
    values[:, 1] = values[:, 0].square() + 0.3 * values[:, 1]  # no correlation, much in common
    values[:, 3] = values[:, 2].round()  # many equal values
    is_known = torch.rand(values.shape, generator=generator) < 0.8
    binned = equally_filled(torch.where(is_known, values, 77.0), is_known, 8)
    found = mutual_information(binned, 8)
    for one in range(4):
        for other in range(4):
            both = is_known[:, one] & is_known[:, other]
            plain = mutual_info_score(binned[one, both].numpy(), binned[other, both].numpy())
            expected = max(plain - 7**2 / (2 * int(both.sum())), 0)
            assert abs(float(found[one, other]) - expected) < 1e-9
    for node in range(3):
        filled = torch.bincount(binned[node], minlength=9)[:8]
        assert int(filled.max() - filled.min()) <= 1
    assert found[0, 1] > 0.2 and found[0, 2] < 0.02


def test_sensors_are_alike_by_what_training_windows_read_beyond_the_usual_hour() -> None:
    generator = np.random.default_rng(0)
    hours = np.arange(3000)
    values = generator.normal(size=(3000, 4)).astype(np.float32)
    values[:, 1] = np.abs(values[:, 0]) + 0.1 * values[:, 1]
    values[:, 3] = values[:, 2] ** 3
    values[:, [0, 2]] += 9 * np.sin(2 * np.pi * hours / 24)[:, None]  # the same hours, which is nothing in common
    values[2500:, 0] = values[2500:, 2]  # after training
    values[generator.random(values.shape) < 0.1] = np.nan
    sensors = tuple(Sensor(name) for name in "abcd")
    panel = Panel(values, TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 3000, "UTC"), sensors)
    made = network(Frame(4, 12, 6, 24, torch.zeros(4, 4)), members=1)
    made.prepare(Windows(panel, np.nan_to_num(values, nan=50.0), np.arange(12, 2400), 12, 6))
    pairs = torch.tensor([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    torch.testing.assert_close(made.alike, pairs)


def test_what_sensors_hear_is_a_mean_weighed_as_the_formula_of_hypergraphs_says() -> None:
    torch.manual_seed(0)
    layer, states = HypergraphConvolution(8), torch.randn(2, 3, 5, 8)
    incidence = groups_of(frame().adjacency, 2)
    with torch.no_grad():
        found = layer.spread(states, incidence)
        alike = layer.spread(states[:, :, :1].expand(-1, -1, 5, -1), incidence)
        by_hand = torch.empty_like(states)
        for batch in range(2):
            for time in range(3):
                into = incidence / incidence.sum(dim=0)
                weight = torch.nn.functional.softplus(layer.weigh(into.T @ states[batch, time])).diagflat()
                degree = (incidence @ weight).sum(dim=1).diag()
                by_hand[batch, time] = degree.inverse() @ incidence @ weight @ into.T @ states[batch, time]
    torch.testing.assert_close(found, by_hand, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(alike, states[:, :, :1].expand(-1, -1, 5, -1))


def test_sensors_that_share_no_group_do_not_feel_each_other() -> None:
    adjacency = torch.block_diag(torch.ones(3, 3), torch.ones(2, 2))
    made = network(Frame(5, 12, 6, 24, adjacency), layers=2)
    values = torch.randn(2, 12, 5)
    other = values.clone()
    other[:, :, 3] += 1
    with torch.no_grad():
        changed = (made(values, *calendar(2, 18, 12)) != made(other, *calendar(2, 18, 12))).any(dim=1).any(dim=0)
    assert changed.tolist() == [False, False, False, True, True]


def test_a_later_wave_has_the_same_amplitudes_and_a_larger_one_the_same_phases() -> None:
    hours = torch.arange(24.0)
    wave = 5 + 3 * torch.cos(2 * torch.pi * (hours - 2) / 12) + torch.cos(2 * torch.pi * hours / 6)
    plain, later, larger = (
        periodic_features(series[None, :, None])[0, 0].reshape(3, 13) for series in (wave, wave.roll(5), 4 * wave)
    )
    torch.testing.assert_close(plain[0], later[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(plain[1:], larger[1:], rtol=0, atol=0.01)
    assert (plain[1:] - later[1:]).abs().max() > 1
    angle = torch.atan2(plain[2, 2], plain[1, 2])  # of two rounds in the window, late by two steps of twelve
    torch.testing.assert_close(angle, torch.tensor(-2 * torch.pi * 2 / 12), rtol=0, atol=1e-3)
