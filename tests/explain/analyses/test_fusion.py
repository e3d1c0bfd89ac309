"""Fusion weights asked for without readings are those of the forecast, and groups are what the clock says."""

import numpy as np
import pytest
from made_readings import HISTORY, HORIZON, daily, made_candor, river_panel

from candor.data.panel import Panel
from candor.explain.analyses.fusion import FusionWeights, find_fusion, fusion_weights, group_weights
from candor.forecasting.explanation import network_states
from candor.nets.trainable import tensors_of
from candor.render.figures.gallery import draw

BRANCHES = ("functional", "forward", "reverse")


def origins_of(panel: Panel, count: int) -> np.ndarray:
    return np.linspace(HISTORY, panel.times.length - HORIZON, count).astype(np.int64)


def found_for(panel: Panel, count: int = 60, **sizes) -> FusionWeights:
    return fusion_weights(made_candor(panel, **sizes), panel, origins_of(panel, count))


@pytest.mark.parametrize("season", [False, True])
def test_weights_are_those_of_the_pass_that_forecasts(season: bool) -> None:
    panel = river_panel()
    candor, origins = made_candor(panel, season=season), origins_of(panel, 40)  # more than one batch
    found = fusion_weights(candor, panel, origins)
    places = np.array([0, 31, 32, 39])
    states, _ = network_states(candor.trained(), tensors_of(candor.windows(panel, origins).batch(places)))
    for place, branch in enumerate(BRANCHES):
        expected = states.representations.fusion_weights[..., place].detach().numpy()
        np.testing.assert_allclose(found.weights[branch][places], expected, rtol=1e-5)
    np.testing.assert_allclose(sum(found.weights.values()), 1, rtol=1e-5)


def test_groups_are_means_over_all_that_the_clock_puts_together() -> None:
    panel = river_panel()
    assert list(group_weights(found_for(panel))) == ["hour of day", "weekday", "step ahead"]
    found = found_for(panel, season=True)
    groups = group_weights(found)
    assert list(groups) == ["hour of day", "weekday", "month", "step ahead"]
    # Recomputed one by one: hour of the beginning of every target patch.
    by_hour: dict[int, list[float]] = {}
    for target, starts in enumerate(found.starts):
        for window, start in enumerate(starts):
            by_hour.setdefault(start.hour, []).extend(found.weights["forward"][window, :, target].tolist())
    assert [group.value for group in groups["hour of day"]] == sorted(by_hour)
    for group in groups["hour of day"]:
        mean, low, high = group.weights["forward"]
        assert mean == pytest.approx(np.mean(by_hour[group.value]), rel=1e-5)
        assert low == pytest.approx(np.quantile(by_hour[group.value], 0.1), rel=1e-5)
        assert high == pytest.approx(np.quantile(by_hour[group.value], 0.9), rel=1e-5)


def test_target_patches_begin_where_the_calendar_is_read() -> None:
    panel = river_panel()
    candor, origins = made_candor(panel), origins_of(panel, 3)
    found = fusion_weights(candor, panel, origins)
    settings = candor.trained().network.settings
    for target, start in enumerate(settings.target_starts):
        rows = origins - settings.history + start
        assert list(found.starts[target]) == list(panel.times.slice(0, 700).local[rows])
        first, last = found.steps[target]
        assert first == max(start - settings.history, 0) + 1
        assert last == min(start + settings.patch_length - settings.history, HORIZON)


def test_daily_readings_have_no_hours_and_months_only_where_the_season_is_read() -> None:
    panel = daily(river_panel())
    said = find_fusion(found_for(panel))
    assert any(sentence.startswith("By weekday") for sentence in said.sentences)
    assert not any("month" in sentence for sentence in said.sentences)
    groups = group_weights(found_for(panel, season=True))
    assert "hour of day" not in groups
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    assert [group.label for group in groups["month"]] == months
    said = find_fusion(found_for(panel, season=True))
    assert any(sentence.startswith("By month") for sentence in said.sentences)


def test_what_is_said_is_the_mean_over_everything() -> None:
    found = found_for(river_panel(), season=True)
    said = find_fusion(found)
    for branch, weights in found.weights.items():
        assert said.numbers[branch]["mean"] == pytest.approx(weights.mean(), rel=1e-5)
        held = (weights >= said.numbers[branch]["low_10"]) & (weights <= said.numbers[branch]["high_90"])
        assert held.mean() == pytest.approx(0.8, abs=0.01)
    assert said.pictures
    table = draw(said.pictures["fusion"]).table
    assert set(table.by) == {"all", "hour of day", "weekday", "month", "step ahead"}
    sums = table.groupby(["by", "group"])["mean"].sum()
    np.testing.assert_allclose(sums, 1, rtol=1e-5)


def test_networks_that_do_not_weigh_say_so() -> None:
    panel = river_panel()
    alike = find_fusion(found_for(panel, 4, learned_fusion=False))
    assert "33 %" in alike.sentences[0] and alike.pictures == {}
    single = find_fusion(found_for(panel, 4, branches=("functional",)))
    assert "one branch" in single.sentences[0]
