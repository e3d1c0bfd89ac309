"""STID: sizes as published."""

from frames import metr_la_frame, parameters

from candor.nets.baselines.stid import Stid, StidSizes


def test_it_has_the_parameters_counted_by_hand() -> None:
    assert parameters(Stid(StidSizes(), metr_la_frame())) == 117_868
