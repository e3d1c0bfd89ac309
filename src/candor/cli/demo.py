"""`candor demo`: the main job on the bundled data, from readings to a forecast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from candor.cli.evaluate import judge, show
from candor.cli.screen import console, number, say, table

if TYPE_CHECKING:
    from candor.evaluation.judging import Evaluation

_MODELS = ("last-value", "seasonal-naive", "historical-average", "linear")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the runs and the forecast.")] = Path("runs/demo"),
) -> None:
    """Compare the simple forecasters on dissolved oxygen of the Klamath River and forecast with the best."""
    from candor.data.catalog import load_dataset
    from candor.data.writers import write_forecast
    from candor.files import write_json
    from candor.forecasting.choices import choose_protocol
    from candor.forecasting.train import train_model

    panel = load_dataset("klamath-daily")
    protocol, _ = choose_protocol(panel, "klamath-daily", {})
    say(f"{len(panel.sensors)} stations of the Klamath River, dissolved oxygen in {panel.unit}, daily")
    judged: dict[str, Evaluation] = {}
    for model in _MODELS:
        run = train_model(panel, protocol, model, {}, out / model, is_catalogued=True)
        judged[model] = judge(run.forecaster, run.task())
        write_json(out / model / "evaluation.json", judged[model].to_json())
    best = min(judged, key=lambda model: judged[model].overall()["mae"])
    _compare(judged, best)
    show(judged[best])
    recent = judged[best].task.panel
    path = out / "forecast.csv"
    write_forecast(path, recent, judged[best].forecaster.predict(recent)[0])
    console().print(f"the next {protocol.horizon} days of every station, by {best}: {path}")


def _compare(judged: "dict[str, Evaluation]", best: str) -> None:
    shown = table("Two weeks ahead, test part", "model", r"MAE \[mg/L]", r"RMSE \[mg/L]", "against last-value")
    for model, evaluation in judged.items():
        overall, skill = evaluation.overall(), evaluation.skill_against(judged["last-value"])
        shown.add_row(
            f"[bold]{model}[/]" if model == best else model,
            number(overall["mae"]), number(overall["rmse"]), "" if model == "last-value" else f"{-100 * skill:+.1f} %",
        )  # fmt: skip
    console().print(shown)
