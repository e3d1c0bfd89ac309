"""The table of commands. Each command's work lives in a file of its own and imports what it needs when it runs."""

from typing import Annotated

import typer

from candor import __version__
from candor.cli.ablate import ablate, sweep
from candor.cli.backtest import backtest
from candor.cli.benchmark import benchmark
from candor.cli.data import data_app
from candor.cli.demo import demo
from candor.cli.evaluate import evaluate
from candor.cli.explain import explain, report
from candor.cli.export import export
from candor.cli.forecast import forecast
from candor.cli.model import model_app
from candor.cli.paper import paper
from candor.cli.profile import profile
from candor.cli.runs import runs_app
from candor.cli.serve import serve
from candor.cli.shock_rain import shock_rain
from candor.cli.train import train
from candor.cli.truth import truth

app = typer.Typer(
    name="candor",
    help="Forecast a network of sensors, and see why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"candor {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Forecast a network of sensors, and see why."""


app.add_typer(data_app, name="data")
app.add_typer(model_app, name="model")
app.add_typer(runs_app, name="runs")
for command in (
    *(train, evaluate, forecast, backtest, benchmark, ablate, sweep, explain, report, profile),
    *(shock_rain, truth, paper, export, serve, demo),
):
    app.command()(command)
