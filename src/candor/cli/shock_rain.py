"""`candor shock-rain`: does the learned shock know of rain it never saw?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from candor.cli import inputs
from candor.cli.inputs import argument, option
from candor.cli.screen import print_json, progress, say, say_written, show_table, tell
from candor.core.text import NOTHING, number

if TYPE_CHECKING:
    from candor.research.shock_rain_runs import RainComparison


def shock_rain(
    runs: Annotated[list[Path], argument("RUN ...", "Runs of CANDOR on the same data.")],
    covariate: Annotated[str, option("Covariate of the data that is rain.")] = "rain",
    rain: Annotated[Path | None, option("A file of rainfall instead: a time column, a column per gauge.")] = None,
    gauges: Annotated[
        Path | None, option("Columns station and gauge: which column of --rain serves which station.")
    ] = None,
    longest_lag: Annotated[float, option("Hours.", min=0)] = 120,
    lag_step: Annotated[float, option("Hours from one lag to the next.", min=0)] = 2,
    shifts: Annotated[int, option("Circular shifts of the rain.", min=1, max=10_000_000)] = 20_000,
    least_shift: Annotated[
        float, option("Hours. Above twice the longest lag, no shift can meet the real lag.", min=0)
    ] = 0,
    out: Annotated[Path | None, option("Folder. (default: figures in RUN, or beside a bundle)")] = None,
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
    say_written(written)


def _show(found: "RainComparison") -> None:
    """Print the test, the lag of every horizon, the sign of every run, and the gauge of every station."""
    content = found.content
    title = f"Shock activity and rain, {escape(found.data)}, {content['first'][:10]} to {content['last'][:10]}"
    stations = str(found.stations)
    numbers = (number(content[name], 4) for name in ("rho", "null_mean", "excess"))
    test = (stations, *numbers, f"{content['p']:.2g}", f"{content['shifts']:,}")
    show_table(title, ("stations", "rho", "mean of shifts", "excess", "p", "shifts"), [test], left=0)
    lags = {row["horizon"]: f"{row['lag_hours']:+g}" for row in content["horizons"]}
    signs = {None: NOTHING, True: "+", False: "-"}
    rows = [
        (
            *(escape(row["run"]), str(row["horizon"]), str(row["seed"]), lags[row["horizon"]], number(row["rho"], 4)),
            signs[None if row["rho"] is None else row["is_positive"]],
        )
        for row in content["checkpoints"]
    ]
    show_table("Runs, at the lag of their horizon", ("run", "horizon", "seed", r"lag \[h]", "rho", "sign"), rows)
    known = [row["is_positive"] for row in content["checkpoints"] if row["is_positive"] is not None]
    tell(f"positive in {sum(known)} of {len(known)} runs, at the lag where the mean of a horizon is largest")
    if given := found.given_rain:
        tell(f"given rain, so that they have seen what they are asked about: {', '.join(given)}")
    if content["p_floor"]:
        tell(
            f"p is above about {content['p_floor']:.2g} whatever happened: that share of shifts leaves the real lag "
            f"within reach (--least-shift leaves them out)"
        )
    served = (f"{row['station']} by {row['gauge']}" for row in content["stations"])
    tell(f"stations and their gauges: {'; '.join(served)}")
