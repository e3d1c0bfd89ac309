"""`candor train`: from data to a run directory, in one go or in pieces."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from candor.cli import inputs
from candor.cli.inputs import argument, option
from candor.cli.screen import count_processes, print_error, print_json, progress, say
from candor.core.errors import InputError

if TYPE_CHECKING:
    from candor.data.panel import Panel
    from candor.data.protocol import Protocol

_INTERRUPTED = 130


@inputs.takes(inputs.DataFiles, defaults={"data": ""})
def train(
    files: inputs.DataFiles,
    context: typer.Context,
    settings: Annotated[list[str] | None, argument("KEY=VALUE", "Settings, e.g. horizon=24 epochs=20.")] = None,
    model: Annotated[str, option("Name of a model: candor, or another.")] = "candor",
    run: Annotated[Path | None, option("Run directory. (default: runs/DATA-MODEL)")] = None,
    preset: Annotated[str | None, option("A recipe. (default: that of the dataset)")] = None,
    seed: Annotated[int, option("Seed of the random state.", min=0)] = 0,
    resume: Annotated[Path | None, option("Go on with the training of this run.")] = None,
    init: Annotated[Path | None, option("Begin with the weights of this run.")] = None,
    budget_minutes: Annotated[
        float | None, option("Stop in good order after so many minutes. (default: 10 for the stages of CANDOR)")
    ] = None,
    json: inputs.JsonOption = False,
) -> None:
    """Fit a model to data and keep it in a run directory; or go on with a training that was stopped."""
    from candor.core.settings import parse_overrides
    from candor.runs.fit import STAGED_MINUTES, Limits, check_budget, is_network, is_staged, resume_run, train_model
    from candor.runs.run import load_record

    check_budget(budget_minutes)
    if resume is not None:
        _refuse_with_resume(context)
    if preset and "=" in files.data and not _is_there(files.data):  # a preset names its data: these are settings
        files, settings = replace(files, data=""), [files.data, *(settings or [])]
    if resume is not None:
        _refuse_many_processes(load_record(resume).model)
        with _together(), _interruption() as interruption, progress() as report:
            trained = resume_run(resume, report=report, limits=Limits(budget_minutes, interruption))
    else:
        panel, is_catalogued = _data_of(preset) if preset and not files.data else files.load()
        recipe = preset or (panel.name if is_catalogued else None)
        folder = run or Path("runs") / f"{recipe or inputs.folder_name(panel.name)}-{model}"
        protocol, own, reasons = _choose(panel, model, recipe, parse_overrides(settings or []))
        _refuse_many_processes(model)
        # What is fitted in one go has nothing to save when it is interrupted, and leaves nothing behind.
        interrupting = _interruption() if is_network(model) else nullcontext(lambda: None)
        with _together(), interrupting as interruption, progress() as report:
            limits = Limits(budget_minutes, interruption)
            if is_staged(model, own):  # the budget is planned, not cut
                limits = Limits(budget_minutes or STAGED_MINUTES, interruption, fits_schedule=True)
            trained = train_model(
                panel, protocol, model, own, folder, seed=seed, is_catalogued=is_catalogued, report=report,
                limits=limits, start_from=init, reasons=reasons,
            )  # fmt: skip
    notes = []
    if is_network(trained.record.model):
        from candor.runs.resumable import notes_on_training

        notes = notes_on_training(trained.folder)
    if json:
        print_json({"run": str(trained.folder), "notes": notes} | trained.record.model_dump(mode="json"))
        return
    say(
        f"{trained.record.label} is fitted. Evaluate it with: {shlex.join(['candor', 'evaluate', str(trained.folder)])}"
    )
    for note in notes:
        say(note)


def _is_there(text: str) -> bool:
    """Return whether a text is the path of something; one that is too long for a path is none."""
    try:
        return Path(text).exists()
    except OSError:
        return False


def _refuse_with_resume(context: typer.Context) -> None:
    """Refuse everything that would change a run that goes on: it has its data, settings, model and seed."""
    given = []
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name not in ("resume", "budget_minutes", "json"):
            given.append(parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name))
    if given:
        raise InputError(
            f"a run goes on with the data and settings it began with: {', '.join(given)} cannot be given as well",
            hint="give --resume RUN alone, with --budget-minutes if you like; other settings need a run of their own",
        )


def _data_of(preset: str) -> "tuple[Panel, bool]":
    """Return the dataset that a preset is for, which is one of the catalogue."""
    from candor.presets import load_preset

    return inputs.load_named(load_preset(preset).data), True


def _choose(
    panel: "Panel", model: str, preset: str | None, overrides: dict[str, Any]
) -> "tuple[Protocol, dict[str, Any], list[str]]":
    """Return the protocol, the model's own settings and the reasons for them, and say what was chosen."""
    from candor.data.protocol import make_task
    from candor.forecasting.own_data import choose_protocol, choose_settings

    protocol, rest = choose_protocol(panel, preset, overrides)
    say(
        f"{panel.name}: {len(panel.sensors):,} sensors, {panel.times.length:,} times; "
        f"{protocol.horizon} steps ahead from {protocol.history}, split by {protocol.split}"
    )
    own, reasons = choose_settings(model, make_task(panel, protocol), preset, rest)
    for reason in (*reasons, *_smaller_preset(model, preset)):
        say(f"  {reason}")
    return protocol, own, reasons


def _smaller_preset(model: str, preset: str | None) -> Iterator[str]:
    """Yield the advice to take a smaller preset, where there is one and no graphics card."""
    import torch

    from candor.presets import preset_names

    smaller = f"{preset}-small"
    if model == "candor" and smaller in preset_names() and not torch.cuda.is_available():
        yield f"without a graphics card this takes days; --preset {smaller} takes about two hours on two cores"


def _refuse_many_processes(model: str) -> None:
    """Refuse a model whose work several processes cannot share, if there are several."""
    from candor.forecasting.forecaster import forecasters
    from candor.runs.fit import is_network

    can_be_shared = is_network(model) and not getattr(forecasters.get(model), "needs_whole_batches", False)
    if count_processes() > 1 and not can_be_shared:
        raise InputError(f"{model} is fitted by one process", hint="leave out torchrun or accelerate launch")


@contextmanager
def _together() -> Iterator[None]:
    """Meet the processes that were launched with this one, if there are any, and part with them in good order."""
    if count_processes() == 1:
        yield
        return
    from torch.distributed import DistError

    from candor.training.processes import join_processes

    state = join_processes()
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, DistError) and "gloo" not in str(error):
            raise
        raise InputError(
            f"another of the {count_processes()} processes ended before its time",
            hint="see what it said, then go on: candor train --resume RUN, launched as before",
        ) from None
    state.destroy_process_group()


@contextmanager
def _interruption() -> Iterator[Callable[[], str | None]]:
    """Yield what says why training should stop; one that was stopped exits with the code of an interruption."""
    from candor.runs.fit import TrainingStoppedError
    from candor.training.interruption import stopping_on_interrupt

    try:
        with stopping_on_interrupt(say) as reason:
            yield reason
    except TrainingStoppedError as stopped:
        if not stopped.is_interrupted:
            raise
        print_error(stopped)
        raise typer.Exit(_INTERRUPTED) from None
