"""Networks go on to compute what they did, so that what was compared with released code does not change unnoticed."""

import json

import pytest
from frozen_baselines import FROZEN, numbers_of, variants

KNOWN = json.loads(FROZEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("variant", [variant for variant in variants() if variant in KNOWN])
def test_forecasts_terms_and_gradients_are_those_that_are_kept(variant: str) -> None:
    assert numbers_of(variant) == pytest.approx(KNOWN[variant], rel=1e-3, abs=1e-4)


def test_no_numbers_are_kept_of_what_is_not_there() -> None:
    assert set(KNOWN) <= set(variants())
