"""`candor demo`: the main job on the bundled data, from readings to a forecast, figures and a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli.evaluate import show
from candor.cli.screen import console, percent, progress, say, table, tell
from candor.core.errors import InputError
from candor.core.text import number

if TYPE_CHECKING:
    from candor.data.panel import Panel
    from candor.runs.evaluation import Evaluation
    from candor.runs.run import Run

_DATA = "klamath-daily"


def demo(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Settings of the training, e.g. epochs=2.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the runs, the forecast and the report.")] = Path(
        "runs/demo"
    ),
) -> None:
    """Train CANDOR on dissolved oxygen of the Klamath River, compare it with simple rules, forecast, and draw why."""
    from candor.data.catalog import load_dataset
    from candor.forecasting.forecast_table import ForecastOptions

    panel = load_dataset(_DATA)
    _introduce(panel)
    run = _train_candor(panel, settings or [], out / "candor")
    scored = {model: _evaluate(simple) for model, simple in _train_simple(panel, run, out).items()}
    scored["candor"] = _evaluate(run)
    _compare(scored)
    show(scored["candor"])
    recent, path = scored["candor"].task.panel, out / "forecast.csv"
    ForecastOptions().forecast(run.forecaster, recent).write(path)
    figures, page = _draw_figures(run), _write_report(run, out)
    tell(f"the next {run.record.protocol.horizon} days of every station: {path}")
    tell(f"figures: {figures}")
    tell(f"report, to open in a browser: {page}")
    tell(f"all of it can be used again, e.g. candor forecast {run.folder}")


def _introduce(panel: "Panel") -> None:
    """Says what the data are and what a check of them found."""
    from candor.data.checks import check_panel

    say(f"{len(panel.sensors)} stations of the Klamath River, dissolved oxygen in {panel.unit}, daily")
    findings = check_panel(panel).findings
    counts = {level: sum(finding.level == level for finding in findings) for level in ("error", "warning", "note")}
    words = ", ".join(f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items())
    say(f"a check found {words}: candor data check {panel.name}")


def _train_candor(panel: "Panel", settings: list[str], folder: Path) -> "Run":
    """Returns the run of CANDOR in a folder; one that is there already goes on, or is taken as it is if finished."""
    from candor.core.settings import parse_overrides
    from candor.data.protocol import make_task
    from candor.forecasting.own_data import choose_protocol, choose_settings
    from candor.runs.fit import resume_run, train_model
    from candor.runs.run import RECORD

    if (folder / RECORD).is_file():
        if settings:
            raise InputError(
                "there is a run in this folder already, with settings of its own",
                where=str(folder),
                hint="leave out the settings to go on with it, choose another folder (--out), or delete it",
            )
        say(f"going on with the run in {folder}; delete it to begin anew")
        with progress() as report:
            return resume_run(folder, report=report)
    protocol, rest = choose_protocol(panel, _DATA, parse_overrides(settings))
    own, reasons = choose_settings("candor", make_task(panel, protocol), _DATA, rest)
    say("training CANDOR: a minute or two on two cores")
    with progress() as report:
        return train_model(panel, protocol, "candor", own, folder, is_catalogued=True, report=report, reasons=reasons)


def _train_simple(panel: "Panel", run: "Run", out: Path) -> "dict[str, Run]":
    """Returns runs of the simple forecasters under the same protocol, in place of those of an earlier demo."""
    from candor.runs.evaluation import SIMPLE
    from candor.runs.fit import train_model

    protocol = run.record.protocol
    with progress() as report:
        return {
            model: train_model(
                panel, protocol, model, {}, out / model, is_catalogued=True, report=report, replaces=True
            )
            for model in SIMPLE
        }


def _evaluate(run: "Run") -> "Evaluation":
    """Returns the scores of a run on the test part, and keeps them in its folder."""
    with progress() as report:
        from candor.runs import evaluate_run

        return evaluate_run(run, report)


def _draw_figures(run: "Run") -> Path:
    """Draws the figures of a run and returns their folder."""
    with progress() as report:
        report("preparing figures", None)  # the first import of matplotlib looks for the fonts of the machine
        from candor.explain.run import run_pictures
        from candor.render.figures.gallery import FIGURES, write_figures

        write_figures(run_pictures(run, report=report), run.folder / FIGURES, report)
    return run.folder / FIGURES


def _write_report(run: "Run", out: Path) -> Path:
    """Writes the report of a run beside it and returns its path."""
    from candor.explain.overview import overview_of
    from candor.render.report.page import REPORT, write_report

    with progress() as report:
        write_report(overview_of(run, report), out / REPORT)
    return out / REPORT


def _compare(scored: "dict[str, Evaluation]") -> None:
    from candor.core.text import duration

    best = min(scored, key=lambda model: scored[model].overall()["mae"])
    heads = (r"MAE \[mg/L]", r"RMSE \[mg/L]", "against last-value", "held by 90 % intervals")
    task = scored[best].task
    ahead = duration(task.protocol.horizon * task.panel.times.interval)
    shown = table(f"{ahead} ahead, test part", "model", *heads)
    for model, evaluation in scored.items():
        overall, skill = evaluation.overall(), evaluation.skill_against(scored["last-value"])
        held = None if evaluation.intervals is None else evaluation.intervals.scores("overall")["coverage"]
        shown.add_row(
            f"[bold]{model}[/]" if model == best else model,
            number(overall["mae"]), number(overall["rmse"]), "" if model == "last-value" else f"{-100 * skill:+.1f} %",
            "–" if held is None else f"{percent(held)} %",
        )  # fmt: skip
    console().print(shown)
