"""Sizes of CANDOR by name."""

import pytest

from candor.training.recipe import Recipe


@pytest.mark.parametrize(("size", "widths"), [("small", (64, 128)), ("paper", (256, 512))])
def test_sizes_have_the_widths_of_forecast_and_head_that_their_names_stand_for(
    size: str, widths: tuple[int, int]
) -> None:
    settings = Recipe(size=size).model_settings(11, 28, 14)
    assert (settings.forecast_width, settings.head_width) == widths
    assert settings.hidden == 32
    wider = Recipe(size=size, model={"head_width": 99}).model_settings(11, 28, 14)
    assert (wider.forecast_width, wider.head_width) == (widths[0], 99)
