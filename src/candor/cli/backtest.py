"""`candor backtest`: a run as it would have done in operation, forecast after forecast."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, cast

from candor.cli import inputs
from candor.cli.evaluate import show, show_intervals
from candor.cli.inputs import option
from candor.cli.screen import print_json, progress, say, tell

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from candor.runs.backtesting import Backtest
    from candor.runs.evaluation import Part
    from candor.runs.refits import KeptRefits

_MOST_STEPS = 1_000_000  # a timedelta of more could overflow


def backtest(
    run: inputs.RunArgument,
    part: Annotated[str, option("test or validation.")] = "test",
    every: Annotated[int, option("Steps from one forecast to the next.", min=1, max=_MOST_STEPS)] = 1,
    refit: Annotated[
        int | None, option("Learn anew after so many forecasts. (default: never)", min=1, max=_MOST_STEPS)
    ] = None,
    adaptive: Annotated[bool, option("Widen intervals after misses and narrow them after hits.", "--adaptive")] = False,
    coverage: Annotated[float, option("Share of readings the intervals shall hold.")] = 0.9,
    json: inputs.JsonOption = False,
) -> None:
    """Let a run forecast its test part step by step with what was known by then: tables, and backtest.json.

    The file lies in the run directory; that of a bundle lies in a folder beside it. With --refit what was learned is
    kept there too until the end: after Ctrl-C or a kill the same command goes on.
    """
    from candor.core.errors import InputError
    from candor.core.files import write_json
    from candor.runs import Pace, keeping_refits
    from candor.runs import backtest as backtest_forecaster
    from candor.runs.bundle import open_run, results_folder
    from candor.runs.evaluation import check_part
    from candor.runs.run import BACKTEST, TRAINING, model_checksum

    pace = Pace(every, refit, adaptive, coverage)
    if part not in ("test", "validation"):
        raise InputError(f"there is no part called {part!r} to backtest on", hint="say --part test or validation")
    opened, path = open_run(run), results_folder(run) / BACKTEST
    checksum = model_checksum(opened.folder)  # at once: training may go on meanwhile and leave another model
    chosen, task = cast("Part", part), opened.task()
    check_part(task, chosen)  # before anything is written
    notes = []
    if refit is not None:
        from candor.runs.resumable import notes_on_refits

        notes = notes_on_refits(opened.folder)
    for note in notes:
        say(note)
    training = opened.folder / TRAINING
    keeping = keeping_refits(path.parent, opened.forecaster, task, chosen, pace, checksum, training)
    with nullcontext() if refit is None else _announcing(keeping) as refits:
        with progress() as report:
            done = backtest_forecaster(opened.forecaster, task, chosen, pace, report, refits)
        content = done.to_json() | {"model_sha256": checksum, "notes": notes}
        write_json(path, content)
    if json:
        print_json(content)
        return
    show(done.evaluation)
    if part == "validation":
        say("this part calibrated the model: scores on it are too good, and there are no intervals before a refit")
    if done.evaluation.intervals is not None or part == "test":
        show_intervals(done.evaluation)
    tell(_summary(done))
    say(f"all steps and sensors: {path}")


@contextmanager
def _announcing(keeping: "AbstractContextManager[KeptRefits]") -> "Iterator[KeptRefits]":
    """Yield the stored refits; say what an earlier run of the command left, and on Ctrl-C how to continue."""
    with keeping as refits:
        if refits.note:
            say(refits.note)
        try:
            yield refits
        except KeyboardInterrupt:
            if refits.is_begun:
                say("what was learned so far is kept: the same command goes on from there")
            raise


def _summary(done: "Backtest") -> str:
    from candor.core.text import duration

    apart = duration(done.pace.every * done.evaluation.task.panel.times.interval)
    refits = f"refitted {len(done.refits)} times" if done.refits else "never refitted"
    kind = "adaptive" if done.pace.is_adaptive else "fixed"
    intervals = "" if done.evaluation.intervals is None else f", {kind} intervals"
    return f"one forecast every {apart}, {refits}{intervals}"
