"""STID: sizes as published, and nodes that do not depend on each other."""

import torch
from frames import calendar, metr_la_frame, parameters

from candor.nets.baselines.stid import Stid, StidSizes


def test_it_has_the_parameters_counted_by_hand() -> None:
    assert parameters(Stid(StidSizes(), metr_la_frame())) == 117_868


def test_nodes_are_forecast_one_by_one() -> None:
    torch.manual_seed(0)
    network = Stid(StidSizes(), metr_la_frame()).eval()
    values = torch.randn(2, 12, 207)
    other = values.clone()
    other[:, :, 5] += 1
    with torch.no_grad():
        changed = (network(values, *calendar(2, 24)) != network(other, *calendar(2, 24))).any(dim=1).any(dim=0)
    assert changed.nonzero().flatten().tolist() == [5]
