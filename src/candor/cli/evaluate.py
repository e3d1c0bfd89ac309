"""`candor evaluate`: the test table of a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli import inputs
from candor.cli.screen import console, number, print_json, progress, say, table

if TYPE_CHECKING:
    from candor.data.protocol import Task
    from candor.evaluation.judging import Evaluation
    from candor.forecasting.forecaster import Forecaster


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory made by `candor train`.")],
    json: inputs.JsonOption = False,
) -> None:
    """Judge a run on its test part: a table here, everything in RUN/evaluation.json."""
    from candor.files import write_json
    from candor.forecasting.runs import load_run
    from candor.forecasting.simple import LastValue

    opened = load_run(run)
    task = opened.task()
    judged = judge(opened.forecaster, task)
    protocol = task.protocol
    reference = LastValue(protocol.history, protocol.horizon).fit(task.panel, task.split)
    skill = judged.skill_against(judge(reference, task))
    content = judged.to_json() | {"skill": {"metric": "mae", "against": "last-value", "value": skill}}
    write_json(run / "evaluation.json", content)
    if json:
        print_json(content)
        return
    show(judged)
    console().print(f"MAE {abs(100 * skill):.1f} % {'below' if skill >= 0 else 'above'} that of last-value")
    say(f"all steps and sensors: {run / 'evaluation.json'}")


def judge(forecaster: "Forecaster", task: "Task") -> "Evaluation":
    """Returns the evaluation on the test part, with a progress bar."""
    from candor.evaluation import evaluate as evaluate_forecaster

    with progress() as report:
        return evaluate_forecaster(forecaster, task, report=report)


def show(judged: "Evaluation") -> None:
    """Prints the test table: the reported steps and all steps together."""
    from candor.data.times import in_words

    panel, protocol = judged.task.panel, judged.task.protocol
    unit = panel.unit or "the sensors' unit"
    names = {"mae": f"MAE [{unit}]", "rmse": f"RMSE [{unit}]", "mse": "MSE", "mape": "MAPE [%]"}
    if protocol.is_river:
        names |= {"nse": "NSE", "kge": "KGE"}
    shown = table(
        f"{judged.forecaster.name} on {panel.name}: {len(judged.task.split.test):,} test windows", "step", "ahead",
        *(name.replace("[", r"\[") for name in names.values()),
    )  # fmt: skip
    steps = judged.scores.scores("step")
    for step in protocol.reported_steps():
        ahead = in_words(step * panel.times.interval)
        shown.add_row(str(step), ahead, *(number(float(steps[name][step - 1])) for name in names))
    overall = judged.overall()
    shown.add_section()
    shown.add_row("all", "", *(number(overall[name]) for name in names))
    console().print(shown)
    if "peak_timing" in overall:
        late = overall["peak_timing"] * panel.times.interval
        console().print(f"peaks come {in_words(late)} early or late on average, {protocol.horizon} steps ahead")
