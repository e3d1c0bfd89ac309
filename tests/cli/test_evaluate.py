"""`candor evaluate` shows the best simple forecaster beside a run, step by step and sensor by sensor."""

import json
from pathlib import Path

import pytest
from made_runs import PROTOCOL, make_run, river

from candor.data.protocol import make_task
from candor.runs import evaluate_simple


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│┃").replace("┃", "│").split("│")]


@pytest.mark.parametrize(("model", "best"), [("historical-average", "linear"), ("linear", "historical-average")])
def test_the_best_other_rule_stands_beside_every_step_and_sensor(candor, tmp_path: Path, model: str, best: str) -> None:
    run = make_run(tmp_path / "run", model)
    shown = candor("evaluate", run, "--sensors")
    assert shown.code == 0, shown.err
    judged = evaluate_simple(make_task(river(), PROTOCOL))
    others = {name: judged[name].overall()["mae"] for name in judged if name != model}
    assert min(others, key=others.__getitem__) == best
    rows = [cells(line) for line in shown.out.splitlines() if line.startswith(("│", "┃"))]
    steps, sensors = (next(row for row in rows if row[0] == name) for name in ("step", "id"))
    by_step, by_sensor = (judged[best].scores.scores(by)["mae"] for by in ("step", "sensor"))
    place = steps.index(f"MAE of {best}")
    found = {row[0]: row[place] for row in rows[rows.index(steps) + 1 :][: len(PROTOCOL.reported_steps()) + 1]}
    expected = {str(step): f"{by_step[step - 1]:.3f}" for step in PROTOCOL.reported_steps()}
    assert found == expected | {"all": f"{others[best]:.3f}"}
    place = sensors.index(f"MAE of {best}")
    found = {row[0]: row[place] for row in rows[rows.index(sensors) + 1 :]}
    assert found == {f"g{i}": "–" if i == 3 else f"{by_sensor[i]:.3f}" for i in range(5)}  # g3 is dead


def test_a_river_without_a_peak_that_can_be_timed_is_judged(candor, tmp_path: Path) -> None:
    protocol = PROTOCOL.model_copy(update={"is_river": True, "shares": (0.79, 0.2, 0.01)})
    shown = candor("evaluate", make_run(tmp_path / "run", protocol=protocol))
    assert shown.code == 0, shown.err
    assert "NSE" in shown.out and "peaks come" not in shown.out and "historical-average" in shown.out


def test_the_file_holds_the_errors_of_the_simple_forecasters_by_step_and_sensor(candor, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", "last-value")
    content = json.loads(candor("evaluate", run, "--json").out)
    judged = evaluate_simple(make_task(river(), PROTOCOL))
    assert set(content["simple_forecasters"]) == set(judged)
    for name, found in content["simple_forecasters"].items():
        assert found["by_step"]["mae"] == pytest.approx(judged[name].scores.scores("step")["mae"].tolist())
        errors = judged[name].scores.scores("sensor")["rmse"]
        assert {sensor: row["rmse"] for sensor, row in found["by_sensor"].items()} == pytest.approx(
            {f"g{i}": None if i == 3 else errors[i] for i in range(5)}
        )
    assert content["by_step"] == content["simple_forecasters"]["last-value"]["by_step"]
