"""`candor runs`: which runs there are, what is in one, and how several compare."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.inputs import argument
from candor.cli.screen import percentage, print_json, say, show_table, tell, tell_facts
from candor.core.errors import InputError
from candor.core.text import NOTHING, number, timestamp

if TYPE_CHECKING:
    from candor.runs.summary import RunSummary

runs_app = typer.Typer(help="List runs, look into one, compare several.", no_args_is_help=True)


@runs_app.command("list")
def list_runs(
    folder: Annotated[Path, argument("FOLDER", "Where the runs are.")] = Path("runs"), json: inputs.JsonOption = False
) -> None:
    """List the runs in a folder: model, data, protocol, seed, test errors if evaluated, and when they were made."""
    from candor.runs.summary import find_runs, summarise_run

    found = [summarise_run(run) for run in find_runs(folder)]
    if json:
        print_json([_content(summary) for summary in found])
        return
    if not found:
        say(f"no runs in {folder}")
        return
    _show_runs(f"Runs in {folder}", found)
    for summary in found:
        if summary.trouble:
            say(f"{summary.folder}: {summary.trouble}")


@runs_app.command("show")
def show_run(run: inputs.RunArgument, json: inputs.JsonOption = False) -> None:
    """Print what a run is: model and settings, data, protocol, versions, and its scores if it has been evaluated."""
    from candor.core.files import read_json
    from candor.runs.bundle import open_run
    from candor.runs.summary import summarise_run

    opened = open_run(run) if run.is_file() else None  # the file of a bundle stays unpacked as long as this is kept
    folder = run if opened is None else opened.folder
    summary = replace(summarise_run(folder), folder=run)
    described = read_json(folder / "model" / "model.json") if summary.state in ("trained", "evaluated") else {}
    facts = _content(summary)
    facts |= {"settings": described.get("settings"), "calibrated": described.get("is_calibrated")}
    if json:
        print_json(facts)
        return
    shown = {name: _in_words(fact) for name, fact in (facts | {"model": _model(summary)}).items()}
    tell_facts((name, fact) for name, fact in shown.items() if fact not in (None, ""))


@runs_app.command("compare")
def compare_runs(
    runs: Annotated[list[Path], argument("RUN RUN ...", "Run directories.")], json: inputs.JsonOption = False
) -> None:
    """Put runs beside each other, the best test MAE first if they were evaluated on the same data by the same rules."""
    from candor.runs.summary import compare

    compared, differences = compare(runs)
    if json:
        content = [_content(summary) for summary in compared]
        print_json({"is_ranked": not differences, "differences": differences, "runs": content})
        return
    _show_runs("Runs, not ranked" if differences else "Runs, best first", compared)
    for difference in differences:
        tell(f"not comparable: {difference}")
    for summary in compared:
        if summary.evaluation is None:
            command = ("train", "--resume") if summary.state == "unfinished" else ("evaluate",)
            next_step = shlex.join(["candor", *command, str(summary.folder)])
            tell(f"{summary.folder}: {summary.trouble or f'{summary.state.value}, not evaluated yet: {next_step}'}")


def _show_runs(title: str, summaries: "list[RunSummary]") -> None:
    rows = []
    for summary in summaries:
        facts, record = _content(summary), summary.record
        rules = made = NOTHING
        if record is not None:
            rules = f"{record.protocol.horizon} from {record.protocol.history}, {record.protocol.split}"
            made = timestamp(record.made)
        words = (facts["run"], facts["state"], _model(summary) or NOTHING, facts["data"] or NOTHING, rules, made)
        seed = NOTHING if facts["seed"] is None else str(facts["seed"])
        errors = (number(facts["test_mae"]), number(facts["test_rmse"]), percentage(facts["test_coverage"]))
        rows.append((*map(escape, words), seed, *errors))
    heads = ("run", "state", "model", "data", "protocol", "made (UTC)", "seed", "test MAE", "RMSE", r"coverage \[%]")
    show_table(title, heads, rows, left=6)


def _model(summary: "RunSummary") -> str | None:
    """Return the display name of the model of a run; the bare name of one that this version does not know."""
    if summary.record is None:
        return None
    try:
        return summary.record.label
    except InputError:
        return summary.record.model


def _content(summary: "RunSummary") -> dict[str, Any]:
    record, evaluation = summary.record, summary.evaluation or {}
    intervals = evaluation.get("intervals") or {}
    described = record.model_dump(mode="json") if record else {}
    return {
        "run": str(summary.folder),
        "state": summary.state.value,
        "trouble": summary.trouble,
        **{name: described.get(name) for name in ("model", "data", "unit", "fingerprint", "seed", "made")},
        "test_mae": summary.score("mae"),
        "test_rmse": summary.score("rmse"),
        "test_coverage": (intervals.get("overall") or {}).get("coverage"),
        **{name: described.get(name) for name in ("protocol", "reasons", "start", "versions")},
    }


def _in_words(fact: Any) -> Any:
    from candor.core.settings import flattened

    if isinstance(fact, dict):
        return ", ".join(f"{key} {value}" for key, value in flattened(fact).items() if value not in (None, "", []))
    return "; ".join(fact) if isinstance(fact, list) else fact
