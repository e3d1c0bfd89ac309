"""`candor runs`: which runs there are, what is in one, and how several compare."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, percent, print_json, say, table
from candor.core.text import number, timestamp

if TYPE_CHECKING:
    from candor.runs.summary import RunSummary

runs_app = typer.Typer(help="List runs, look into one, compare several.", no_args_is_help=True)


@runs_app.command("list")
def list_runs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the runs are.")] = Path("runs"),
    json: inputs.JsonOption = False,
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
    _show_table(f"Runs in {folder}", found)
    for summary in found:
        if summary.trouble:
            say(f"{summary.folder}: {summary.trouble}")


@runs_app.command("show")
def show_run(run: inputs.RunArgument, json: inputs.JsonOption = False) -> None:
    """Tell what a run is: model and settings, data, protocol, versions, and its scores if it has been evaluated."""
    from candor.runs.bundle import open_run
    from candor.runs.summary import summarise_run

    opened = open_run(run) if run.is_file() else None  # the file of a bundle stays unpacked as long as this is kept
    folder = run if opened is None else opened.folder
    summary = replace(summarise_run(folder), folder=run)
    facts = _content(summary) | {"settings": None, "calibrated": None}
    if summary.state in ("trained", "evaluated"):
        facts |= _model_facts(folder)
    if json:
        print_json(facts)
        return
    for name, fact in (facts | {"model": _model(summary)}).items():
        if isinstance(fact, dict):
            fact = ", ".join(f"{key} {value}" for key, value in _flat(fact).items() if value not in (None, "", []))
        if isinstance(fact, list):
            fact = "; ".join(fact)
        if fact not in (None, ""):
            console().print(f"[bold]{name}[/]: {escape(str(fact))}", soft_wrap=True)


@runs_app.command("compare")
def compare_runs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN ...", help="Run directories.")],
    json: inputs.JsonOption = False,
) -> None:
    """Put runs beside each other, the best test MAE first if they were evaluated on the same data by the same rules."""
    from candor.runs.summary import compare

    comparison = compare(runs)
    if json:
        print_json(
            {"is_ranked": comparison.is_ranked, "differences": comparison.differences}
            | {"runs": [_content(summary) for summary in comparison.runs]}
        )
        return
    _show_table("Runs, best first" if comparison.is_ranked else "Runs, not ranked", comparison.runs)
    for difference in comparison.differences:
        console().print(f"not comparable: {escape(difference)}")
    for summary in comparison.runs:
        if summary.evaluation is None:
            command = ("train", "--resume") if summary.state == "unfinished" else ("evaluate",)
            next_step = shlex.join(["candor", *command, str(summary.folder)])
            word = summary.trouble or f"{summary.state.value}, not evaluated yet: {next_step}"
            console().print(f"{escape(str(summary.folder))}: {escape(word)}")


def _show_table(title: str, summaries: "list[RunSummary]") -> None:
    columns = ("run", "state", "model", "data", "protocol", "made (UTC)", "seed", "test MAE", "RMSE", r"held \[%]")
    shown = table(title, *columns, left=6)
    for summary in summaries:
        facts = _content(summary)
        protocol = summary.record.protocol if summary.record else None
        rules = f"{protocol.horizon} from {protocol.history}, {protocol.split}" if protocol else "–"
        made = timestamp(summary.record.made if summary.record else None)
        words = (facts["run"], facts["state"], _model(summary) or "–", facts["data"] or "–", rules, made)
        seed = "–" if facts["seed"] is None else str(facts["seed"])
        errors = (number(facts["test_mae"]), number(facts["test_rmse"]), percent(facts["test_coverage"]))
        shown.add_row(*map(escape, words), seed, *errors)
    console().print(shown)


def _model(summary: "RunSummary") -> str | None:
    """Returns the display name of the model of a run; the bare name of one that this version does not know."""
    from candor.core.errors import InputError

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


def _model_facts(run: Path) -> dict[str, Any]:
    """Returns what model.json says, without opening the model."""
    from candor.core.files import read_json

    content = read_json(run / "model" / "model.json")
    return {"settings": content.get("settings"), "calibrated": content.get("is_calibrated")}


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Returns settings within settings under one name each: `training.epochs`."""
    flat: dict[str, Any] = {}
    for key, value in content.items():
        inner = _flat(value) if isinstance(value, dict) else None
        flat |= {key: value} if inner is None else {f"{key}.{name}": part for name, part in inner.items()}
    return flat
