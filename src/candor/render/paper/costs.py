"""What models cost, and accuracy against cost where a grid has errors on the same preset."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import read_json
from candor.core.progress import Report
from candor.core.settings import parse_settings
from candor.core.text import NOTHING, significant
from candor.presets import load_preset, preset_names
from candor.render.figures.benchmark import draw_costs
from candor.render.paper.entry import Entry, Origin, Picture, ShownTable, in_dates, in_versions, table_files
from candor.render.paper.grid import Grid, Kind
from candor.render.paper.tables import write_tables
from candor.render.paper.words import data_in_words
from candor.research.measuring import HOW
from candor.research.profiling import Circumstances, Errors, Profile, errors_in, labels_of
from candor.research.results import RESULTS
from candor.research.tables import Table, TableCell

_COLUMNS = ("parameters", "MFLOPs", "inference [ms]", "training step [ms]", "peak memory [MB]")
_CAPTIONS = {
    "accuracy-parameters": "Error against parameters; the area of a bubble is the time of a forecast.",
    "accuracy-time": "Error against the time of a forecast; the area of a bubble is the number of parameters.",
}


def read_profile(path: Path) -> Profile:
    """Returns the profile that `candor profile` wrote."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError("this is not a profile that can be read", where=str(path))
    return parse_settings(Profile, {key: value for key, value in content.items() if key != "how"}, str(path))


def make_costs(path: Path, grids: Sequence[Grid], folder: Path, report: Report) -> list[Entry]:
    """Writes the table and figures of a profile to a folder and returns its entry.

    Args:
        path: of profile.json.
        grids: that may have errors of the same models on the same preset.
        folder: where to.
        report: is told how far it has come.
    """
    report("drawing costs", None)
    profile = read_profile(path)
    at = profile.circumstances
    table = cost_table(profile)
    write_tables([table], folder, "tables")
    errors = find_errors(profile, grids)
    drawings = {} if errors is None else draw_costs(profile, errors)
    for name, drawing in drawings.items():
        drawing.write(folder, name)
    shows = [f"What {len(profile.models)} models cost at the shape and graph of {at.preset}.", *_failed(profile)]
    if errors is not None:
        kind = {"mae": "absolute", "mse": "squared"}[errors.metric]
        shows.append(f"Mean {kind} errors in the figures are those of {errors.where.parent}.")
    return [
        Entry(
            title=f"{at.preset}: cost of models",
            shows=tuple(shows),
            origin=_origin(path, profile),
            pictures=tuple(Picture(f"{folder.name}/{name}", _CAPTIONS[name]) for name in drawings),
            tables=(ShownTable(table, has_note=False),),
            files=table_files(folder.name),
        )
    ]


def find_errors(profile: Profile, grids: Sequence[Grid]) -> Errors | None:
    """Returns the errors of the benchmark grid that has most of the profile's models on its preset, if there is one."""
    preset, measured = profile.circumstances.preset, {model.name for model in profile.models}
    best: Errors | None = None
    for grid in grids:
        if grid.kind != Kind.BENCHMARK:
            continue
        if not set(labels_of(preset)) & set(grid.tasks):
            continue
        try:
            found = errors_in(grid.results, preset, grid.folder / RESULTS, grid.suite)
        except InputError:  # the grid has other scores on the preset, but not these
            continue
        shared = measured & set(found.by_model)
        if shared and (best is None or len(shared) > len(measured & set(best.by_model))):
            best = found
    return best


def cost_table(profile: Profile) -> Table:
    """Returns a row per model, smallest first: parameters, operations, times and memory, a dash where it has none."""
    at = profile.circumstances
    rows = []
    for model in profile.models:
        texts = (
            NOTHING if model.parameters is None else f"{model.parameters:,}",
            significant(None if model.operations is None else model.operations / 1e6),
            significant(1e3 * model.inference_seconds),
            significant(None if model.training_seconds is None else 1e3 * model.training_seconds),
            significant(model.peak_megabytes),
        )
        rows.append((model.label, tuple(TableCell(text) for text in texts)))
    return Table(
        title=f"Cost on {at.preset}",
        groups=((f"batch of {at.batch} windows", len(_COLUMNS)),),
        columns=_COLUMNS,
        rows=tuple(rows),
        note="; ".join([_circumstances(at), *_notes(profile)]),
    )


def _notes(profile: Profile) -> list[str]:
    """Returns what has to be said of some of the rows."""
    notes = []
    if any(model.parameters is None for model in profile.models):
        notes.append("models without a network have no costs but the time of a forecast")
    if any(model.is_reconstruction for model in profile.models):
        notes.append("(reconstruction): rebuilt by us from what is published, without the authors' code")
    return notes


def _circumstances(at: Circumstances) -> str:
    machine = at.machine
    return (
        f"{at.nodes} sensors, {at.edges:,} edges (graph: {at.graph}), {at.horizon} steps from {at.history}; "
        f"{at.batch} windows at once, mean of {at.passes} passes after {at.warm_ups}; {machine.get('processor', '')}, "
        f"{machine.get('cores', '?')} cores, {machine.get('threads', '?')} threads, single precision"
    )


def _origin(path: Path, profile: Profile) -> Origin:
    at = profile.circumstances
    names = ",".join([*(model.name for model in profile.models), *profile.failed])
    words = ["candor", "profile", "--preset", at.preset, "--models", names, "--batch", str(at.batch)]
    words += ["--warm-ups", str(at.warm_ups), "--passes", str(at.passes), "--out", str(path.parent)]
    meanings = "; ".join(f"{name.replace('_', ' ')}: {meaning}" for name, meaning in HOW.items())
    data = load_preset(at.preset).data if at.preset in preset_names() else at.preset
    packages = ("python", "torch", "candor-forecast")
    moments = [model.measured for model in profile.models if model.measured is not None]
    return Origin(
        source=str(path),
        command=shlex.join(words),
        data=f"random readings in the shape of {data_in_words(data)}",
        protocol=f"{_circumstances(at)}. {meanings}.",
        made=in_dates(moment.isoformat() for moment in moments),
        versions=in_versions([{name: at.machine[name] for name in packages if name in at.machine}]),
    )


def _failed(profile: Profile) -> list[str]:
    return [f"{name} could not be measured: {why}." for name, why in profile.failed.items()]
