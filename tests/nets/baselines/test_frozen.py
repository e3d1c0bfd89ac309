"""Networks go on to compute what they did, so that what was compared with released code does not change unnoticed."""

import json

import pytest
from frozen_baselines import FROZEN, numbers_of, variants

KNOWN = json.loads(FROZEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("variant", variants())
def test_forecasts_terms_and_gradients_are_those_that_are_kept(variant: str) -> None:
    assert numbers_of(variant) == pytest.approx(KNOWN[variant], rel=1e-4, abs=1e-5)


def test_numbers_are_kept_of_all_that_is_there_and_of_nothing_else() -> None:
    assert set(KNOWN) == set(variants())
