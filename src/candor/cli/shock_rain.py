"""`candor shock-rain`: does the learned shock know of rain it never saw?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from candor.cli import inputs
from candor.cli.screen import console, print_json, progress, say, table
from candor.core.text import number

if TYPE_CHECKING:
    from candor.research.shock_rain_runs import RainComparison


def shock_rain(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN ...", help="Runs of CANDOR on the same data.")],
    covariate: Annotated[str, typer.Option("--covariate", help="Covariate of the data that is rain.")] = "rain",
    rain: Annotated[
        Path | None, typer.Option("--rain", help="A file of rainfall instead: a time column, a column per gauge.")
    ] = None,
    gauges: Annotated[
        Path | None,
        typer.Option("--gauges", help="Columns station and gauge: which column of --rain serves which station."),
    ] = None,
    longest_lag: Annotated[float, typer.Option("--longest-lag", min=0, help="Hours.")] = 120,
    lag_step: Annotated[float, typer.Option("--lag-step", min=0, help="Hours from one lag to the next.")] = 2,
    shifts: Annotated[
        int, typer.Option("--shifts", min=1, max=10_000_000, help="Circular shifts of the rain.")
    ] = 20_000,
    least_shift: Annotated[
        float,
        typer.Option(
            "--least-shift", min=0, help="Hours. Above twice the longest lag, no shift can meet the real lag."
        ),
    ] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder. (default: figures in RUN, or beside a bundle)")
    ] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Compare the shock activity of runs with rain over lags, and test it against circular shifts of the rain."""
    with progress() as report:
        report("opening runs", None)
        from candor.core.files import read_json
        from candor.render.figures.gallery import FIGURES
        from candor.render.figures.shock_rain import write_comparison
        from candor.research.shock_rain_runs import LagChoice, RainChoice, compare_runs
        from candor.runs.bundle import results_folder

        lags = LagChoice(longest_lag, lag_step, shifts, least_shift)
        found = compare_runs(runs, RainChoice(covariate, rain, gauges), lags, report=report)
        written = write_comparison(found, out or results_folder(runs[0]) / FIGURES)
    if json:
        print_json(read_json(written[-1]))
    else:
        _show(found)
    if found.left_out:
        say(f"left out, since rain or activity is unknown or never changes: {', '.join(found.left_out)}")
    say(f"written: {', '.join(str(path) for path in written)}")


def _show(found: "RainComparison") -> None:
    """Prints the test, the lag of every horizon, the sign of every run, and the gauge of every station."""
    content = found.content
    title = f"Shock activity and rain, {escape(found.data)}, {content['first'][:10]} to {content['last'][:10]}"
    test = table(title, "stations", "rho", "mean of shifts", "excess", "p", "shifts", left=0)
    stations = str(found.stations)
    numbers = (number(content[name], 4) for name in ("rho", "null_mean", "excess"))
    test.add_row(stations, *numbers, f"{content['p']:.2g}", f"{content['shifts']:,}")
    console().print(test)
    lags = {row["horizon"]: row["lag_hours"] for row in content["horizons"]}
    shown = table("Runs, at the lag of their horizon", "run", "horizon", "seed", r"lag \[h]", "rho", "sign")
    for row in content["checkpoints"]:
        sign = "–" if row["rho"] is None else "+" if row["is_positive"] else "-"
        lag = f"{lags[row['horizon']]:+g}"
        shown.add_row(escape(row["run"]), str(row["horizon"]), str(row["seed"]), lag, number(row["rho"], 4), sign)
    console().print(shown)
    known = [row["is_positive"] for row in content["checkpoints"] if row["is_positive"] is not None]
    console().print(f"positive in {sum(known)} of {len(known)} runs, at the lag where the mean of a horizon is largest")
    if given := found.given_rain:
        console().print(f"given rain, so that they have seen what they are asked about: {escape(', '.join(given))}")
    if content["p_floor"]:
        console().print(
            f"p is above about {content['p_floor']:.2g} whatever happened: that share of shifts leaves the real lag "
            f"within reach (--least-shift leaves them out)"
        )
    served = (f"{row['station']} by {row['gauge']}" for row in content["stations"])
    console().print(f"stations and their gauges: {escape('; '.join(served))}", soft_wrap=True)
