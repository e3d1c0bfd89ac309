"""LatentTSF: sizes, an autoencoder that sees one time only and stays as it was, and targets that were not measured."""

import pandas as pd
import torch
from frames import calendar, frame, metr_la_frame, parameters, targets

from candor.nets.baselines.latenttsf import Autoencoder, LatentTsf, LatentTsfSizes, carried_forward

SIZES = LatentTsf.tiny


def test_it_has_the_parameters_counted_by_hand() -> None:
    nodes, inside, state, steps = 207, 512, 256, 12
    encoder = (nodes + 1) * inside + (inside + 1) * state
    decoder = (state + 1) * inside + (inside + 1) * nodes
    made = LatentTsf(LatentTsfSizes(), metr_la_frame())
    assert parameters(made) == 2 * (steps + 1) * steps  # of DLinear, which alone learns in the end
    assert parameters(Autoencoder(state, metr_la_frame())) == encoder + decoder == 475_599
    assert sum(weights.numel() for weights in made.parameters()) == 475_599 + 312


def test_every_time_is_rebuilt_by_itself_from_a_state_that_is_never_negative() -> None:
    torch.manual_seed(0)
    made, values = Autoencoder(16, frame(5)), torch.randn(2, 12, 5)
    singly = torch.stack([made(values[:, step : step + 1])[:, 0] for step in range(12)], dim=1)
    torch.testing.assert_close(made(values), singly)
    assert (made.encoder(values) >= 0).all()


def test_what_does_not_change_is_forecast_without_error_before_anything_is_learned() -> None:
    """DLinear begins with the mean of the history, and the states of a constant history are constant."""
    torch.manual_seed(0)
    made = LatentTsf(SIZES, frame())
    for layer in (made.backbone.trend, made.backbone.remainder):
        torch.nn.init.zeros_(layer.bias)
    level = torch.randn(3, 1, 5)
    inputs = (level.expand(-1, 12, -1), *calendar(3, 18, 12))
    for later, is_missed in ((level, False), (level + 1, True)):
        _, terms = made.objective(inputs, targets(later.expand(-1, 6, -1)))
        assert all((float(term.detach()) > 1e-3) == is_missed for term in terms.values())


def test_a_missing_target_is_the_value_before_it_or_the_first_that_is_there() -> None:
    generator = torch.Generator().manual_seed(0)
    values, mask = torch.randn(3, 8, 4, generator=generator), torch.rand(3, 8, 4, generator=generator) < 0.5
    mask[1, :, 2] = False  # nothing is there: what was read last
    last = torch.randn(3, 4, generator=generator)
    for window, found in enumerate(carried_forward(last, values, mask)):
        gappy = pd.DataFrame(values[window].where(mask[window], torch.nan).numpy())
        assert (gappy.ffill().bfill().fillna(dict(enumerate(last[window].tolist()))).to_numpy() == found.numpy()).all()


def test_a_time_at_which_nothing_was_measured_teaches_nothing() -> None:
    torch.manual_seed(0)
    made = LatentTsf(SIZES, frame())
    inputs, wanted = (torch.randn(2, 12, 5), *calendar(2, 18, 12)), torch.randn(2, 6, 5)
    mask = torch.ones(2, 6, 5, dtype=torch.bool)
    mask[:, 2] = False
    made.objective(inputs, targets(wanted, mask))[1]["prediction"].backward()
    touched = (made.backbone.trend.weight.grad != 0).any(dim=1)
    assert touched.tolist() == [step != 2 for step in range(6)]
