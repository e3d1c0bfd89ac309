"""Sizes of CANDOR by name."""

import pytest

from candor.nets.candor.recipe import Recipe


@pytest.mark.parametrize(("size", "widths"), [("small", (64, 128)), ("paper", (256, 512))])
def test_sizes_have_the_widths_of_forecast_and_head_that_their_names_stand_for(
    size: str, widths: tuple[int, int]
) -> None:
    settings = Recipe(size=size).model_settings(11, 28, 14)
    assert (settings.forecast_width, settings.head_width) == widths
    assert settings.hidden == 32
    wider = Recipe(size=size, model={"head_width": 99}).model_settings(11, 28, 14)
    assert (wider.forecast_width, wider.head_width) == (widths[0], 99)


@pytest.mark.parametrize("horizon", [1, 3, 7, 48])
def test_the_newest_reading_lies_in_a_patch_whatever_the_history(horizon: int) -> None:
    for history in range(1, 101):
        settings = Recipe().model_settings(1, history, horizon)
        assert settings.uncovered == 0 and settings.history_starts[-1] + settings.patch_length == history
        assert settings.patch_length < 3 * settings.patch_stride
