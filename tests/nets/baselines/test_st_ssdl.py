"""ST-SSDL: size, what is usual, no deviation from it where there is none, and truth that is fed only in training."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from frames import calendar, frame, hourly_windows, metr_la_frame, parameters, targets
from torch import Tensor

from candor.nets.baselines.st_ssdl import StSsdl, StSsdlSizes

SIZES = StSsdl.tiny.model_copy(update={"orders": 3})


def network(**more: float) -> StSsdl:
    torch.manual_seed(0)
    made = StSsdl(SIZES.model_copy(update=more), frame())
    with torch.no_grad():
        made.usual.normal_()
    return made


def test_it_has_the_parameters_counted_by_hand() -> None:
    features, encoder, prototype, decoder = 3 + 20 + 25, 128, 64, 128 + 64
    embeddings = (3 + 3) + 288 * 20 + 207 * 25
    prototypes = 20 * prototype + encoder * prototype
    cells = sum(3 * (features + width) * 3 * width + 3 * width for width in (encoder, decoder))  # two gates, candidate
    heads = (2 * decoder * 20 + 20) + (decoder + 1)
    assert embeddings + prototypes + cells + heads == 646_738
    assert parameters(StSsdl(StSsdlSizes(), metr_la_frame())) == 646_738


def test_what_is_usual_is_the_mean_of_observed_readings_of_the_same_hour_of_the_week() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=(400, 2)).astype(np.float32)
    values[generator.random(values.shape) < 0.3] = np.nan
    values[40:60, 1] = np.nan
    place = frame(2, history=12, horizon=6)
    made = StSsdl(SIZES, place)
    made.prepare(hourly_windows(values, 12, 301))

    seen = pd.DataFrame(values[:300], index=pd.date_range("2024-01-03", periods=300, freq="h"))  # rows windows read
    means = seen.groupby(seen.index.day_of_week * 24 + seen.index.hour).mean().reindex(range(168))
    expected = means.fillna(seen.mean()).to_numpy()
    assert means.isna().to_numpy().any()
    np.testing.assert_allclose(made.usual.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_usual_window_does_not_deviate_and_any_other_does() -> None:
    made = network().eval()
    time_of_day, day_of_week = calendar(4, 18, 12)
    usual = made.usual[day_of_week[:, :12] * 24 + time_of_day[:, :12] // 12]
    wanted = targets(torch.zeros(4, 6, 5))
    _, terms = made.objective((usual, time_of_day, day_of_week), wanted)
    assert float(terms["deviation"].detach()) < 1e-5
    _, terms = made.objective((usual + 1, time_of_day, day_of_week), wanted)
    assert float(terms["deviation"].detach()) > 1e-2


def test_the_truth_of_a_step_is_fed_to_later_steps_in_training_only_and_less_and_less_often() -> None:
    made = network(teaching=1e6)  # always fed at first
    inputs = (torch.randn(3, 12, 5), *calendar(3, 18, 12))
    mask = torch.ones(3, 6, 5, dtype=torch.bool)
    mask[0] = False
    wanted = torch.randn(3, 6, 5)
    other = wanted.clone()
    other[:, 2] += 1

    def changed(done: float = 0.0) -> list[list[bool]]:
        lessons = (replace(targets(truth, mask), done=done) for truth in (wanted, other))
        with torch.no_grad():
            one, two = (made.objective(inputs, lesson)[0] for lesson in lessons)
        return (one != two).any(dim=2).tolist()

    is_later = [step > 2 for step in range(6)]
    assert changed() == [[False] * 6, is_later, is_later]  # nothing was measured in the first window
    made.eval()
    assert changed() == [[False] * 6] * 3
    made.train()
    assert changed(done=1e9) == [[False] * 6] * 3


def test_the_truth_is_fed_as_often_as_on_metr_la_at_the_same_share_of_a_training() -> None:
    made, truth = network(), targets(torch.zeros(1, 12_000, 1))
    for epoch in (0, 20, 40, 60):  # of 200, with 375 steps each
        expected = 2000 / (2000 + math.exp(375 * epoch / 2000))
        torch.manual_seed(epoch)
        fed = made.draw_steps(replace(truth, done=epoch / 200)).float().mean()
        assert float(fed) == pytest.approx(expected, abs=0.02)


def test_the_encoder_listens_along_edges_and_not_against_them() -> None:
    adjacency = torch.zeros(3, 3)
    adjacency[0, 1] = 4.0  # 0 sends to 1; nobody sends from 2

    def support(weights: Tensor) -> Tensor:
        return StSsdl(SIZES, replace(frame(3), adjacency=weights)).support

    found = support(adjacency + torch.eye(3) * 5)
    torch.testing.assert_close(found.diag(), torch.tensor([5 / 9, 1.0, 1.0]))
    torch.testing.assert_close(found[1, 0], torch.tensor(4 / 45**0.5))
    torch.testing.assert_close(support(1e-36 * (adjacency + torch.eye(3) * 5)), found)  # edges of nearly equal length
    assert found[0, 1] == 0 and not support(torch.zeros(3, 3)).any()
