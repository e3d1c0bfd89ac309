"""The one pass over test windows gives the scores of the definition, with everything they depend on."""

import json
from dataclasses import replace

import numpy as np
import pytest

from candor.core.errors import InputError
from candor.data.protocol import Protocol, make_task
from candor.forecasting import LastValue, Linear, forecasters
from candor.forecasting.contract import sample_panel
from candor.runs import evaluate, evaluate_simple

PROTOCOL = Protocol(history=24, horizon=6, is_river=True)


def test_scores_equal_those_of_all_windows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model = Linear(24, 6).fit(task.panel, task.split)
    monkeypatch.setattr("candor.forecasting.forecaster._NUMBERS_PER_BATCH", 300)
    judged = evaluate(model, task)
    rows = task.split.test[:, None] + np.arange(6)
    error = (model.predict(task.panel, task.split.test) - task.panel.values[rows]).astype(float)
    assert judged.overall()["mae"] == pytest.approx(np.nanmean(np.abs(error)), rel=1e-6)
    assert judged.overall()["rmse"] == pytest.approx(np.nanmean(error**2) ** 0.5, rel=1e-6)
    np.testing.assert_allclose(judged.scores.scores("step")["mae"], np.nanmean(np.abs(error), axis=(0, 2)), rtol=1e-6)
    assert judged.overall()["count"] == np.count_nonzero(~np.isnan(error))


def test_readings_outside_the_part_do_not_count() -> None:
    panel = sample_panel()
    task = make_task(panel, PROTOCOL)
    model = LastValue(24, 6).fit(task.panel, task.split)
    before = evaluate(model, task, "validation").overall()
    values = panel.values.copy()
    values[task.split.test[0] :] = 99.0
    changed = make_task(replace(panel, values=values), PROTOCOL)
    assert evaluate(model, changed, "validation").overall() == pytest.approx(before, nan_ok=True)
    assert evaluate(model, changed).overall()["mae"] != evaluate(model, task).overall()["mae"]


def test_filled_targets_all_count_and_observed_ones_alone_otherwise() -> None:
    panel = sample_panel()
    filled = make_task(panel, PROTOCOL.model_copy(update={"fill": "forward-backward", "targets": "filled"}))
    judged = evaluate(LastValue(24, 6).fit(filled.panel, filled.split), filled)
    assert judged.overall()["count"] == len(filled.split.test) * 6 * 5
    assert judged.to_json()["mask"].startswith("none")


def test_json_states_the_protocol_and_holds_no_nan() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    content = evaluate(LastValue(24, 6).fit(task.panel, task.split), task).to_json()
    again = json.loads(json.dumps(content, allow_nan=False))
    assert again == content
    assert content["split"] == {
        "kind": "time",
        "shares": [0.6, 0.2, 0.2],
        "windows": {part: len(getattr(task.split, part)) for part in ("train", "validation", "test")},
    }
    assert content["unit"] == "m"
    assert content["mask"] == "observed targets only"
    assert content["data"]["sha256"] == task.panel.fingerprint
    assert content["versions"]["candor-forecast"]
    assert len(content["by_step"]["mae"]) == 6
    assert content["by_sensor"]["s3"]["mae"] is None
    assert content["by_sensor"]["s3"]["count"] == 0


def test_skill_is_the_share_of_error_taken_away() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    last, linear = (kind(24, 6).fit(task.panel, task.split) for kind in (LastValue, Linear))
    reference, judged = evaluate(last, task), evaluate(linear, task)
    assert reference.skill_against(reference) == 0.0
    share = judged.overall()["mae"] / reference.overall()["mae"]
    assert judged.skill_against(reference) == pytest.approx(1 - share)
    assert judged.skill_against(reference) > 0.5


def test_progress_ends_at_one() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    heard: list[float | None] = []
    evaluate(LastValue(24, 6).fit(task.panel, task.split), task, report=lambda what, share: heard.append(share))
    assert heard[-1] == 1.0


@pytest.mark.parametrize("coverage", [0.9, 0.6])
def test_intervals_are_scored_by_their_definition(monkeypatch: pytest.MonkeyPatch, coverage: float) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    model = Linear(24, 6).fit(task.panel, task.split)
    made = model.predict_interval(task.panel, task.split.test, coverage)
    target = task.panel.values[task.split.test[:, None] + np.arange(6)].astype(float)
    seen = ~np.isnan(target)
    monkeypatch.setattr("candor.forecasting.forecaster._NUMBERS_PER_BATCH", 1000)
    judged = evaluate(model, task, coverage=coverage).intervals
    assert judged is not None
    overall = judged.scores("overall")
    held = (made.lower <= target) & (target <= made.upper)
    width = made.upper.astype(float) - made.lower
    outside = np.maximum(made.lower - target, 0) + np.maximum(target - made.upper, 0)
    assert overall["coverage"] == pytest.approx(held[seen].mean())
    assert overall["width"] == pytest.approx(width[seen].mean())
    assert overall["interval_score"] == pytest.approx((width + 2 / (1 - coverage) * outside)[seen].mean())


def test_json_tells_of_the_intervals_or_that_there_are_none() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    content = evaluate(LastValue(24, 6).fit(task.panel, task.split), task).to_json()
    intervals = json.loads(json.dumps(content["intervals"], allow_nan=False))
    assert intervals["asked_coverage"] == 0.9
    assert 0.5 < intervals["overall"]["coverage"] <= 1
    assert len(intervals["by_step"]["width"]) == 6
    assert intervals["by_sensor"]["s3"]["coverage"] is None
    assert intervals["borrowing"]["cells"] == 30
    assert intervals["borrowing"]["from_network"] == 6  # the dead sensor
    assert content["windows"] == len(task.split.test)
    uncalibrated = evaluate(LastValue(24, 6).fit(task.panel), task)
    assert uncalibrated.intervals is None
    assert uncalibrated.to_json()["intervals"] is None


def test_intervals_from_windows_that_also_chose_the_weights_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(sample_panel(), PROTOCOL)
    judged = evaluate(Linear(24, 6).fit(task.panel, task.split), task)
    apart = judged.to_json()["intervals"]["method"]
    assert apart == "split conformal per step and sensor, on the second half of the validation part"
    monkeypatch.setattr(Linear, "selection", lambda self, split: split)  # as `selection: whole` of a recipe
    assert judged.to_json()["intervals"]["method"].startswith(f"{apart}, which also chose the weights")


def test_the_simple_forecasters_are_judged_like_any_other() -> None:
    task = make_task(sample_panel(), PROTOCOL)
    judged = evaluate_simple(task)
    assert list(judged) == ["last-value", "seasonal-naive", "historical-average", "linear"]
    for name, evaluation in judged.items():
        alone = evaluate(forecasters.get(name)(history=24, horizon=6).fit(task.panel, task.split), task)
        assert evaluation.overall() == pytest.approx(alone.overall(), nan_ok=True)


def test_an_empty_part_cannot_be_judged() -> None:
    task = make_task(sample_panel(), PROTOCOL.model_copy(update={"shares": (0.8, 0.2, 0.0)}))
    with pytest.raises(InputError, match="no windows"):
        evaluate(LastValue(24, 6).fit(task.panel, task.split), task)
