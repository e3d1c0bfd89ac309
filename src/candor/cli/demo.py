"""`candor demo`: the main job on the bundled data, from readings to a forecast, figures and a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from candor.cli.evaluate import show
from candor.cli.inputs import argument, option
from candor.cli.screen import percentage, preparing_figures, progress, say, show_table, tell
from candor.core.errors import InputError
from candor.core.text import NOTHING, counted, duration, number

if TYPE_CHECKING:
    from candor.data.panel import Panel
    from candor.runs.evaluation import Evaluation
    from candor.runs.run import Run

_DATA = "klamath-daily"
_MINUTES = 0.75  # of training, at the most


def demo(
    settings: Annotated[list[str] | None, argument("KEY=VALUE", "Settings of the training, e.g. epochs=2.")] = None,
    out: Annotated[Path, option("Folder for the runs, the forecast and the report.")] = Path("runs/demo"),
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
    path = out / "forecast.csv"
    ForecastOptions().forecast(run.forecaster, scored["candor"].task.panel).write(path)
    figures, page = _draw(run, out)
    tell(f"the next {run.record.protocol.horizon} days of every station: {path}")
    tell(f"figures: {figures}")
    tell(f"report, to open in a browser: {page}")
    tell(f"all of it can be used again, e.g. candor forecast {run.folder}")


def _introduce(panel: "Panel") -> None:
    """Say what the data are and what a check of them found."""
    from candor.data.checks import check_panel

    say(f"{len(panel.sensors)} stations of the Klamath River, dissolved oxygen in {panel.unit}, daily")
    levels: list[str] = [finding.level for finding in check_panel(panel).findings]
    words = ", ".join(counted(levels.count(level), level) for level in ("error", "warning", "note"))
    say(f"a check found {words}: candor data check {panel.name}")


def _train_candor(panel: "Panel", settings: list[str], folder: Path) -> "Run":
    """Return the run of CANDOR in a folder; one that is there already goes on, or is taken as it is if finished."""
    from candor.core.settings import parse_overrides
    from candor.data.protocol import make_task
    from candor.forecasting.own_data import choose_protocol, choose_settings
    from candor.runs.fit import Limits, resume_run, train_model
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
    say("training CANDOR: less than a minute")
    limits = Limits(_MINUTES, fits_schedule=True)
    with progress() as report:
        return train_model(
            panel, protocol, "candor", own, folder, is_catalogued=True, report=report, reasons=reasons, limits=limits
        )


def _train_simple(panel: "Panel", run: "Run", out: Path) -> "dict[str, Run]":
    """Return runs of the simple forecasters under the same protocol, in place of those of an earlier demo."""
    from candor.runs.evaluation import SIMPLE
    from candor.runs.fit import train_model

    rules = run.record.protocol
    with progress() as report:
        return {
            name: train_model(panel, rules, name, {}, out / name, is_catalogued=True, report=report, replaces=True)
            for name in SIMPLE
        }


def _evaluate(run: "Run") -> "Evaluation":
    """Return the scores of a run on the test part, and keep them in its folder."""
    from candor.runs import evaluate_run

    with progress() as report:
        return evaluate_run(run, report)


def _draw(run: "Run", out: Path) -> tuple[Path, Path]:
    """Draw the figures of a run and write its report; return the folder of the figures and the page."""
    with preparing_figures() as report:
        from candor.explain.overview import overview_of
        from candor.explain.run_pictures import run_pictures
        from candor.render.figures.gallery import FIGURES, write_figures
        from candor.render.report.page import REPORT, write_report

        write_figures(run_pictures(run, report=report), run.folder / FIGURES, report)
        write_report(overview_of(run, report), out / REPORT)
    return run.folder / FIGURES, out / REPORT


def _compare(scored: "dict[str, Evaluation]") -> None:
    best = min(scored, key=lambda model: scored[model].overall()["mae"])
    rows = []
    for model, evaluation in scored.items():
        overall, skill = evaluation.overall(), evaluation.skill_against(scored["last-value"])
        reached = None if evaluation.intervals is None else evaluation.intervals.scores("overall")["coverage"]
        gain = "" if model == "last-value" else f"{-100 * skill:+.1f} %"
        coverage = NOTHING if reached is None else f"{percentage(reached)} %"
        name = f"[bold]{model}[/]" if model == best else model
        rows.append((name, number(overall["mae"]), number(overall["rmse"]), gain, coverage))
    task = scored[best].task
    ahead = duration(task.protocol.horizon * task.panel.times.interval)
    heads = ("model", r"MAE \[mg/L]", r"RMSE \[mg/L]", "against last-value", "90 % interval coverage")
    show_table(f"{ahead} ahead, test part", heads, rows)
