"""`candor evaluate`: the test tables of a run."""

from collections.abc import Callable
from math import isfinite, nan
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from candor.cli import inputs
from candor.cli.inputs import option
from candor.cli.screen import percentage, print_json, progress, say, show_table, tell
from candor.core.text import NOTHING, duration, number

if TYPE_CHECKING:
    from candor.runs.evaluation import Evaluation

Column = tuple[str, Any, float, Callable[[float], str]]
"""Of a table by step: its head, the values by step and over all steps, and how they are written."""


def evaluate(
    run: inputs.RunArgument,
    sensors: Annotated[bool, option("Show a table of all sensors as well.", "--sensors")] = False,
    json: inputs.JsonOption = False,
) -> None:
    """Evaluate a run on its test part, beside the simple forecasters: tables here, all of it in evaluation.json.

    The file lies in the run directory; that of a bundle lies in a folder beside it.
    """
    from candor.core.files import write_json
    from candor.metrics import as_json
    from candor.runs import evaluate as evaluate_forecaster
    from candor.runs import evaluate_simple
    from candor.runs.bundle import open_run, results_folder
    from candor.runs.run import EVALUATION, model_checksum

    opened, path = open_run(run), results_folder(run) / EVALUATION
    checksum = model_checksum(opened.folder)  # before evaluating: training may go on meanwhile and leave another model
    task = opened.task()
    with progress() as report:
        scored = evaluate_forecaster(opened.forecaster, task, report=report)
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
    others = {name: other.overall()["mae"] for name, other in simple.items() if name != scored.forecaster.name}
    best = simple[min(others, key=lambda name: (others[name] != others[name], others[name]))]  # NaN comes last
    show(scored, best)
    _show_simple(scored, simple)
    if (skill := skills["last-value"]) is not None:
        tell(f"MAE {abs(100 * skill):.1f} % {'below' if skill >= 0 else 'above'} that of last-value")
    show_intervals(scored)
    if sensors:
        _show_sensors(scored, best)
    say(f"all steps and sensors: {path}")


def show(scored: "Evaluation", beside: "Evaluation | None" = None) -> None:
    """Print the table of errors: the reported steps and all steps together; beside the MAE of another if given."""
    from candor.forecasting.forecaster import label_of

    panel, protocol, unit = scored.task.panel, scored.task.protocol, _unit(scored)
    names = {"mae": f"MAE {unit}", "rmse": f"RMSE {unit}", "mse": "MSE", "mape": r"MAPE \[%]"}
    if protocol.is_river:
        names |= {"nse": "NSE", "kge": "KGE"}
    steps, overall = scored.scores.scores("step"), scored.overall()
    columns: list[Column] = [(head, steps[name], overall[name], number) for name, head in names.items()]
    if beside is not None:
        others = beside.scores.scores("step")["mae"]
        columns.append((f"MAE of {beside.forecaster.name}", others, beside.overall()["mae"], number))
    title = f"{label_of(scored.forecaster.name)} on {escape(panel.name)}: {scored.windows:,} {scored.part} windows"
    _show_steps(scored, title, columns)
    if isfinite(overall.get("peak_timing", nan)):  # it may be that no peak could be timed
        late = overall["peak_timing"] * panel.times.interval
        tell(f"peaks come {duration(late)} early or late on average, {protocol.horizon} steps ahead")


def _show_steps(scored: "Evaluation", title: str, columns: list[Column]) -> None:
    """Print scores by step, the reported ones, and over all steps."""
    steps, interval = scored.task.protocol.reported_steps(), scored.task.panel.times.interval
    rows: list[list[str] | None] = [
        [str(step), duration(step * interval), *(cell(float(values[step - 1])) for _, values, _, cell in columns)]
        for step in steps
    ]
    rows += [None, ["all", "", *(cell(total) for _, _, total, cell in columns)]]
    show_table(title, ("step", "ahead", *(head for head, *_ in columns)), rows)


def _show_simple(scored: "Evaluation", simple: "dict[str, Evaluation]") -> None:
    """Print the errors over all steps beside those of the simple forecasters, and the skill against each."""
    from candor.forecasting.forecaster import label_of

    unit, name, overall = _unit(scored), label_of(scored.forecaster.name), scored.overall()
    rows = [(f"[bold]{name}[/]", number(overall["mae"]), number(overall["rmse"]), "")]
    for other, evaluation in simple.items():
        if other != name:
            skill, errors = scored.skill_against(evaluation), evaluation.overall()
            gain = NOTHING if skill != skill else f"{100 * skill:+.1f} %"
            rows.append((other, number(errors["mae"]), number(errors["rmse"]), gain))
    heads = ("model", f"MAE {unit}", f"RMSE {unit}", f"skill of {name}")
    show_table("Beside the simple forecasters, all steps", heads, rows)


def show_intervals(scored: "Evaluation") -> None:
    """Print how many readings the intervals held and how wide they were: the reported steps and all together."""
    intervals, unit = scored.intervals, _unit(scored)
    if intervals is None:
        say("no intervals: there is nothing the model could be calibrated on")
        return
    heads = {
        "coverage": r"coverage \[%]",
        "width": f"mean width {unit}",
        "interval_score": f"interval score {unit}",
    }
    steps, overall = intervals.scores("step"), intervals.scores("overall")
    columns: list[Column] = [
        (head, steps[name], overall[name], percentage if name == "coverage" else number) for name, head in heads.items()
    ]
    _show_steps(scored, f"Intervals for {100 * intervals.coverage:g} %", columns)


def _show_sensors(scored: "Evaluation", beside: "Evaluation") -> None:
    """Print errors, coverage and width of every sensor, beside the MAE of another forecaster."""
    unit, scores = _unit(scored), scored.scores.scores("sensor")
    intervals = None if scored.intervals is None else scored.intervals.scores("sensor")
    errors = (f"MAE {unit}", f"MAE of {beside.forecaster.name}", f"RMSE {unit}")
    columns = [scores["mae"], beside.scores.scores("sensor")["mae"], scores["rmse"]]
    rows = []
    for place, sensor in enumerate(scored.task.panel.sensors):
        held, width = (intervals[name][place] if intervals else None for name in ("coverage", "width"))
        numbers = [number(float(column[place])) for column in columns]
        names = (escape(sensor.id), escape(sensor.name))
        rows.append((*names, *numbers, percentage(held), number(width), f"{scores['count'][place]:,}"))
    heads = ("id", "name", *errors, r"coverage \[%]", f"mean width {unit}", "targets")
    show_table("Sensors, all steps", heads, rows, left=2)


def _unit(scored: "Evaluation") -> str:
    """Return the unit in brackets, for the head of a column."""
    unit = scored.task.panel.unit or "the sensors' unit"
    return escape(f"[{unit}]")
