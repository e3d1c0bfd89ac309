"""PhaseFormer: sizes as published, periods that fit, and phases that meet at the routers only."""

import pytest
import torch
from frames import calendar, frame, metr_la_frame, parameters

from candor.nets.baselines.phaseformer import PhaseFormer, PhaseFormerSizes, period_of

SIZES = PhaseFormerSizes(width=8, routers=3, heads=2, layers=2)


def counted(history: int, horizon: int, period: int, width: int, routers: int) -> int:
    cycles, ahead = -(-history // period), -(-horizon // period)
    embedding = (cycles + 1) * width + 2 * width
    tables = (routers + period) * width
    attentions = 2 * 4 * (width + 1) * width
    feed_forward = (width + 1) * 4 * width + (4 * width + 1) * width + 2 * 2 * width
    return embedding + tables + attentions + feed_forward + (width + 1) * ahead


def test_it_has_the_parameters_counted_by_hand() -> None:
    network = PhaseFormer(PhaseFormerSizes(), metr_la_frame())
    assert parameters(network) == counted(12, 12, 3, 128, 4) == 266_628


def test_it_has_the_parameters_of_the_smallest_published_network() -> None:
    sizes = PhaseFormerSizes(period=24, width=8, routers=8)
    assert parameters(PhaseFormer(sizes, frame(3, 720, 96))) == counted(720, 96, 24, 8, 8) == 1_716


@pytest.mark.parametrize(
    ("history", "steps_per_day", "period"),
    [(720, 24, 24), (48, 24, 24), (28, 1, 7), (12, 288, 3), (24, 24, 6), (13, 1, 3), (2, 24, 1)],
)
def test_the_period_is_a_day_or_a_week_that_fits_twice_or_a_quarter(
    history: int, steps_per_day: int, period: int
) -> None:
    assert period_of(frame(2, history, 6, steps_per_day)) == period


def test_without_routers_a_phase_is_forecast_from_its_own_past() -> None:
    torch.manual_seed(0)
    network = PhaseFormer(SIZES, frame(1, 60, 30)).eval()  # hourly: days, of which 60 hours hold two and a half
    values = torch.randn(2, 60, 1)
    other = values.clone()
    other[:, [29, 53]] = values[:, [53, 29]]  # both at phase 5; mean and deviation of the window stay

    def changed() -> list[int]:
        with torch.no_grad():
            difference = network(values, *calendar(2, 90)) - network(other, *calendar(2, 90))
        return (difference.abs() > 1e-5).any(dim=0).flatten().nonzero().flatten().tolist()

    assert changed() == list(range(30))
    with torch.no_grad():
        for unit in network.units:
            unit.spread.out.weight.zero_()
    assert changed() == [5, 29]
