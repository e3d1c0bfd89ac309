"""What the paper has and the results that were found have not, with the commands that would make it."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from candor.core.errors import InputError
from candor.core.text import counted, listed
from candor.research.ablations import INTERVENTIONS, SWEEPS, VARIANTS
from candor.research.engine import failure_of
from candor.research.grid import GridCell, cells_of
from candor.research.paper.found import UNKNOWN, Found, FoundGrid, GridKind, data_names, data_of_runs, is_here
from candor.research.paper.tables import find_errors
from candor.research.profiling import labels_of, read_profile
from candor.research.suites import load_suite, suite_names
from candor.research.table_notes import shown_name

_WHOLE = "paper"
_SUITES = ("traffic", "basins", "river", "rainfall")
_IN_WHOLE = ("traffic", "basins")
_ABLATED = ("metr-la", "pems-bay", "basin030501", "basin031300", "basin180102")
_SWEPT = _MEASURED = ("metr-la", "basin180102")
_WITH_RAIN = "korea4-do-192"
_MOST_NAMED = 6


@dataclass(frozen=True)
class Missing:
    """What the paper has and this folder has not, and the command that would make it."""

    what: str
    command: str


def find_missing(found: Found) -> list[Missing]:
    """Return what is missing: whole results first, then what those that are there lack."""
    everything = (
        *_missing_suites(found),
        *_missing_ablations(found),
        *_missing_sweeps(found),
        *_missing_costs(found),
        *_missing_studies(found),
        *_missing_runs(found),
        *_missing_data(found),
        *(gap for grid in found.grids for gap in _gaps(grid)),
    )
    return list(dict.fromkeys(everything))


def _missing_suites(found: Found) -> Iterator[Missing]:
    there = {grid.suite.name for grid in found.grids if grid.kind == GridKind.BENCHMARK}
    if _WHOLE in there:
        there |= set(_IN_WHOLE)
    for name in _SUITES:
        if name not in there:
            yield Missing(f"Tables of the suite {name}: {load_suite(name).title}", f"candor benchmark {name}")


def _missing_ablations(found: Found) -> Iterator[Missing]:
    grids = [grid for grid in found.grids if grid.kind == GridKind.ABLATIONS]
    there = {task for grid in grids for task in grid.tasks if set(VARIANTS) & set(grid.models)}
    for preset in _ABLATED:
        if preset not in there:
            yield Missing(f"CANDOR without its parts on {preset}", f"candor ablate {preset}")
    if not any(name in grid.models for grid in grids for name in INTERVENTIONS):
        command = f"candor ablate {_WITH_RAIN} --variants {','.join(INTERVENTIONS)} --out runs/rain-{_WITH_RAIN}"
        yield Missing("Rain added to the shock component, and in its place", command)


def _missing_sweeps(found: Found) -> Iterator[Missing]:
    there = {(task, grid.setting) for grid in found.grids if grid.kind == GridKind.SWEEP for task in grid.tasks}
    for preset in _SWEPT:
        for setting in SWEEPS:
            if (preset, setting) not in there:
                yield Missing(f"The setting {setting} varied on {preset}", f"candor sweep {preset} {setting}")


def _missing_costs(found: Found) -> Iterator[Missing]:
    there: set[str] = set()
    for path in found.profiles:
        try:
            profile = read_profile(path)
        except InputError:  # is named among what cannot be read
            continue
        preset = profile.circumstances.preset
        there.add(preset)
        if find_errors(profile, found.grids) is None:
            yield Missing(f"Accuracy against cost on {preset}: there are costs, but no errors", _comparison(preset))
    for preset in _MEASURED:
        if preset not in there:
            yield Missing(f"Cost of models on {preset}", f"candor profile --preset {preset}")


def _comparison(preset: str) -> str:
    """Return the command that compares most models on a preset."""
    labels, suites = labels_of(preset), map(load_suite, suite_names())
    fitting = [(suite, task.label) for suite in suites for task in suite.tasks if task.label in labels]
    if not fitting:
        return f"candor train {shlex.quote(preset)}"
    suite, label = max(fitting, key=lambda fit: (len(fit[0].contenders), -len(fit[0].tasks)))
    return f"candor benchmark {suite.name} --tasks {label}"


def _missing_studies(found: Found) -> Iterator[Missing]:
    if not found.shock_rains:
        yield Missing(
            "Shock activity and rain; RUN are runs of CANDOR on data with rain, such as the suite river leaves",
            "candor shock-rain RUN ...",
        )
    if not found.truths:
        yield Missing("Whether explanations are true, on networks whose truth is known", "candor truth")


def _missing_runs(found: Found) -> Iterator[Missing]:
    if not found.runs:
        yield Missing("Figures of a run of CANDOR, and what it learned", "candor benchmark traffic --models candor")
    for folder in found.others:
        places = [str(place) for place in (*found.folders, folder)]
        yield Missing(
            f"Figures of the run {folder}, which belongs to no grid", shlex.join(["candor", "paper", *places])
        )


def _missing_data(found: Found) -> Iterator[Missing]:
    own = data_of_runs(found.runs)
    for name in data_names(found):
        if name not in own and not is_here(name):
            yield Missing(f"Views of {name} before any model: the data are not here", f"candor data info {name}")


def _why(cell: GridCell, grid: FoundGrid) -> str:
    try:
        failure = failure_of(cell, grid.folder)
        return str(failure).splitlines()[0] if failure else ""
    except (InputError, AttributeError):
        return "it failed, and the file that says why cannot be read"


def _gaps(grid: FoundGrid) -> Iterator[Missing]:
    """Yield the cells that a grid lacks: those that were begun or failed, and those that its suite has besides."""
    known, command = grid.known(), grid.command(is_whole=True)
    if begun := [cell for cell in grid.cells if cell.place not in known]:
        reasons = ((cell.name, _why(cell, grid)) for cell in begun[:_MOST_NAMED])
        named = "; ".join(f"{name} ({why})" if why else name for name, why in reasons)
        more = f" and {len(begun) - _MOST_NAMED} more" if len(begun) > _MOST_NAMED else ""
        yield Missing(f"{grid.folder}: begun but not done: {named}{more}", command)
    if grid.kind != GridKind.BENCHMARK or command == UNKNOWN:
        return
    lacking = [cell.place for cell in cells_of(grid.suite) if cell.place not in known]
    for task in dict.fromkeys(task for task, _, _ in lacking):
        there = {model for place, model, _ in known if place == task}
        models = list(dict.fromkeys(model for place, model, _ in lacking if place == task and model not in there))
        seeds = sum(place == task and model in there for place, model, _ in lacking)
        words = [f"{counted(len(models), 'model')} ({listed(map(shown_name, models), _MOST_NAMED)})"] if models else []
        words += [f"{counted(seeds, 'further seed')} of models that are there"] if seeds else []
        yield Missing(f"{grid.folder}, {task}: no results of {' and '.join(words)}", command)
