"""iTransformer: sizes as counted, and series without order, level or unit."""

import torch
from frames import calendar, frame, metr_la_frame, parameters
from torch import Tensor

from candor.nets.baselines.itransformer import ITransformer, ITransformerSizes

SMALL = {"width": 8, "feed_forward": 16, "heads": 2}


def make(**more: bool) -> ITransformer:
    torch.manual_seed(0)
    return ITransformer(ITransformerSizes(**SMALL, **more), frame()).double().eval()


def forecast(network: ITransformer, values: Tensor, hours_later: int = 0) -> Tensor:
    time_of_day, day_of_week = calendar(len(values), 18)
    with torch.no_grad():
        return network(values, (time_of_day + 12 * hours_later) % 288, day_of_week)


def test_it_has_the_parameters_counted_by_hand() -> None:
    width, hidden, layers, steps = 512, 512, 2, 12
    attention = 4 * (width + 1) * width
    layer = attention + (width + 1) * hidden + (hidden + 1) * width + 2 * 2 * width
    expected = (steps + 1) * width + layers * layer + 2 * width + (width + 1) * steps
    assert parameters(ITransformer(ITransformerSizes(), metr_la_frame())) == expected == 3_169_804


def test_sensors_may_come_in_any_order() -> None:
    network, values, order = make(), torch.randn(3, 12, 5, dtype=torch.float64), [3, 0, 4, 1, 2]
    torch.testing.assert_close(forecast(network, values[:, :, order]), forecast(network, values)[:, :, order])


def test_sensors_that_come_later_change_the_forecast_but_need_no_new_weights() -> None:
    network, values = make(), torch.randn(3, 12, 9, dtype=torch.float64)
    few, many = forecast(network, values[:, :, :5]), forecast(network, values)
    assert many.shape == (3, 6, 9) and (few != many[:, :, :5]).any(dim=1).all()


def test_normalised_series_are_forecast_in_any_unit_and_others_are_not() -> None:
    values = 3 * torch.randn(3, 12, 5, dtype=torch.float64)
    for normalise in (True, False):
        network = make(normalise=normalise)
        here, elsewhere = forecast(network, values), forecast(network, 1.8 * values + 32)
        assert torch.allclose(elsewhere, 1.8 * here + 32, atol=1e-3) == normalise


def test_the_calendar_is_read_only_if_it_is_wanted() -> None:
    values = torch.randn(3, 12, 5, dtype=torch.float64)
    for calendar_is_read in (True, False):
        network = make(calendar=calendar_is_read)
        changed = forecast(network, values) != forecast(network, values, hours_later=6)
        assert changed.any(dim=1).all() == calendar_is_read
