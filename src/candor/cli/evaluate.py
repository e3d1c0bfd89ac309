"""`candor evaluate`: the test tables of a run."""

from math import isfinite, nan
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, percent, print_json, progress, say, table
from candor.core.text import number

if TYPE_CHECKING:
    from candor.data.protocol import Task
    from candor.forecasting.forecaster import Forecaster
    from candor.runs.evaluation import Evaluation

RunArgument = inputs.RunArgument


def evaluate(
    run: inputs.RunArgument,
    sensors: Annotated[bool, typer.Option("--sensors", help="Show a table of all sensors as well.")] = False,
    json: inputs.JsonOption = False,
) -> None:
    """Evaluate a run on its test part, beside the simple forecasters: tables here, all of it in evaluation.json.

    The file lies in the run directory; that of a bundle lies in a folder beside it.
    """
    from candor.core.files import write_json
    from candor.metrics import as_json
    from candor.runs import evaluate_simple
    from candor.runs.bundle import open_run, results_folder
    from candor.runs.run import EVALUATION, model_checksum

    opened, path = open_run(run), results_folder(run) / EVALUATION
    checksum = model_checksum(opened.folder)  # before evaluating: training may go on meanwhile and leave another model
    task = opened.task()
    scored = evaluate_test_part(opened.forecaster, task)
    with progress() as report:
        simple = evaluate_simple(task, report)
    skills = as_json({name: scored.skill_against(other) for name, other in simple.items()})
    content = scored.to_json() | {
        "model_sha256": checksum,
        "skill": {"metric": "mae", "against": "last-value", "value": skills["last-value"]},
        "simple_forecasters": {
            name: {"skill": skills[name]} | other.errors_to_json() for name, other in simple.items()
        },
    }
    write_json(path, content)
    if json:
        print_json(content)
        return
    beside = best_simple(scored, simple)
    show(scored, beside)
    show_beside(scored, simple)
    if (skill := skills["last-value"]) is not None:
        console().print(f"MAE {abs(100 * skill):.1f} % {'below' if skill >= 0 else 'above'} that of last-value")
    show_intervals(scored)
    if sensors:
        show_sensors(scored, beside)
    say(f"all steps and sensors: {path}")


def evaluate_test_part(forecaster: "Forecaster", task: "Task") -> "Evaluation":
    """Returns the evaluation on the test part, with a progress bar."""
    from candor.runs import evaluate as evaluate_forecaster

    with progress() as report:
        return evaluate_forecaster(forecaster, task, report=report)


def best_simple(scored: "Evaluation", simple: "dict[str, Evaluation]") -> "Evaluation":
    """Returns the simple forecaster with the smallest MAE over all steps, other than the one that is evaluated."""
    others = {name: other.overall()["mae"] for name, other in simple.items() if name != scored.forecaster.name}
    return simple[min(others, key=lambda name: (others[name] != others[name], others[name]))]  # NaN comes last


def show(scored: "Evaluation", beside: "Evaluation | None" = None) -> None:
    """Prints the table of errors: the reported steps and all steps together; beside the MAE of another if given."""
    from candor.core.text import duration
    from candor.forecasting.forecaster import label_of

    panel, protocol = scored.task.panel, scored.task.protocol
    unit = _unit(scored)
    names = {"mae": f"MAE {unit}", "rmse": f"RMSE {unit}", "mse": "MSE", "mape": r"MAPE \[%]"}
    if protocol.is_river:
        names |= {"nse": "NSE", "kge": "KGE"}
    title = f"{label_of(scored.forecaster.name)} on {escape(panel.name)}: {scored.windows:,} {scored.part} windows"
    shown = table(title, "step", "ahead", *names.values(), *_heads(beside))
    steps, overall = scored.scores.scores("step"), scored.overall()
    others = [] if beside is None else [beside.scores.scores("step")["mae"]]
    for step in protocol.reported_steps():
        columns = [*(steps[name] for name in names), *others]
        ahead = duration(step * panel.times.interval)
        shown.add_row(str(step), ahead, *(number(float(column[step - 1])) for column in columns))
    shown.add_section()
    all_steps = [] if beside is None else [beside.overall()["mae"]]
    shown.add_row("all", "", *(number(score) for score in (*(overall[name] for name in names), *all_steps)))
    console().print(shown)
    if isfinite(overall.get("peak_timing", nan)):  # it may be that no peak could be timed
        late = overall["peak_timing"] * panel.times.interval
        console().print(f"peaks come {duration(late)} early or late on average, {protocol.horizon} steps ahead")


def show_beside(scored: "Evaluation", simple: "dict[str, Evaluation]") -> None:
    """Prints the errors over all steps beside those of the simple forecasters, and the skill against each."""
    from candor.forecasting.forecaster import label_of

    unit, name = _unit(scored), label_of(scored.forecaster.name)
    shown = table(
        "Beside the simple forecasters, all steps", "model", f"MAE {unit}", f"RMSE {unit}", f"skill of {name}"
    )
    overall = scored.overall()
    shown.add_row(f"[bold]{name}[/]", number(overall["mae"]), number(overall["rmse"]), "")
    for other, evaluation in simple.items():
        if other == name:
            continue
        skill = scored.skill_against(evaluation)
        gain = "–" if skill != skill else f"{100 * skill:+.1f} %"
        shown.add_row(other, number(evaluation.overall()["mae"]), number(evaluation.overall()["rmse"]), gain)
    console().print(shown)


def show_intervals(scored: "Evaluation") -> None:
    """Prints how many readings the intervals held and how wide they were: the reported steps and all together."""
    from candor.core.text import duration

    intervals, unit = scored.intervals, _unit(scored)
    if intervals is None:
        say("no intervals: there is nothing the model could be calibrated on")
        return
    asked = f"{100 * intervals.coverage:g} %"
    shown = table(
        f"Intervals for {asked}", "step", "ahead", r"held \[%]", f"mean width {unit}", f"interval score {unit}"
    )
    steps, overall = intervals.scores("step"), intervals.scores("overall")
    for step in scored.task.protocol.reported_steps():
        ahead = duration(step * scored.task.panel.times.interval)
        held, *rest = (float(steps[name][step - 1]) for name in ("coverage", "width", "interval_score"))
        shown.add_row(str(step), ahead, percent(held), *map(number, rest))
    shown.add_section()
    shown.add_row("all", "", percent(overall["coverage"]), number(overall["width"]), number(overall["interval_score"]))
    console().print(shown)


def show_sensors(scored: "Evaluation", beside: "Evaluation | None" = None) -> None:
    """Prints errors, coverage and width of every sensor, beside the MAE of another forecaster if given."""
    unit, scores = _unit(scored), scored.scores.scores("sensor")
    intervals = None if scored.intervals is None else scored.intervals.scores("sensor")
    errors = (f"MAE {unit}", *_heads(beside), f"RMSE {unit}")
    shown = table("Sensors, all steps", "id", "name", *errors, r"held \[%]", f"mean width {unit}", "targets", left=2)
    other = [] if beside is None else [beside.scores.scores("sensor")["mae"]]
    columns = [scores["mae"], *other, scores["rmse"]]
    for place, sensor in enumerate(scored.task.panel.sensors):
        held, width = (intervals[name][place] if intervals else None for name in ("coverage", "width"))
        shown.add_row(
            escape(sensor.id), escape(sensor.name), *(number(float(column[place])) for column in columns),
            percent(held), number(width), f"{scores['count'][place]:,}",
        )  # fmt: skip
    console().print(shown)


def _heads(beside: "Evaluation | None") -> list[str]:
    """Returns the head of the column of another forecaster, if there is one."""
    return [] if beside is None else [f"MAE of {beside.forecaster.name}"]


def _unit(scored: "Evaluation") -> str:
    """Returns the unit in brackets, for the head of a column."""
    unit = scored.task.panel.unit or "the sensors' unit"
    return escape(f"[{unit}]")
