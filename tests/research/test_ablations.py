"""Paired changes on numbers that can be checked by eye."""

import pandas as pd
import pytest

from candor.research.ablations import paired_changes


def results(errors: dict[str, dict[int, float]]) -> pd.DataFrame:
    rows = [
        {"model": model, "seed": seed, "step": step, "metric": "mae", "value": value + step}
        for model, by_seed in errors.items()
        for seed, value in by_seed.items()
        for step in (0, 3)
    ]
    return pd.DataFrame(rows)


def test_changes_are_paired_by_seed_before_they_are_averaged() -> None:
    made = results({"candor": {0: 1.0, 1: 2.0}, "raw-adjacency": {1: 2.2, 0: 1.3}})
    (change,) = paired_changes(made, ("mae",))
    assert change.relative == pytest.approx((0.3 + 0.1) / 2) and change.seeds == 2


def test_a_dot_needs_more_than_twice_the_spread_of_the_full_model() -> None:
    full = {0: 0.99, 1: 1.0, 2: 1.01}  # a relative deviation of one percent
    near, far = ({seed: value * factor for seed, value in full.items()} for factor in (1.019, 1.021))
    found = {change.variant: change for change in paired_changes(results({"candor": full, "a": near, "b": far}))}
    assert not found["a"].is_beyond_chance and found["b"].is_beyond_chance


def test_seeds_without_a_partner_are_left_out_and_one_seed_proves_nothing() -> None:
    (change,) = paired_changes(results({"candor": {0: 1.0}, "a": {0: 2.0, 1: 9.0}}), ("mae",))
    assert (change.relative, change.seeds, change.is_beyond_chance) == (1.0, 1, False)


def test_errors_that_are_not_numbers_count_as_absent() -> None:
    nothing = float("nan")
    made = results({"candor": {0: 1.0, 1: nothing, 2: 1.0}, "a": {0: 2.0, 1: 9.0, 2: nothing}, "b": {0: nothing}})
    (change,) = paired_changes(made, ("mae",))
    assert (change.variant, change.relative, change.seeds) == ("a", 1.0, 1)
