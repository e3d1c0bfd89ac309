"""Every table and figure of the paper for which there are results, in one folder with an index page."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from candor.core.errors import InputError
from candor.core.files import atomic_folder, check_replaceable, write_json
from candor.core.progress import Report, silent, within
from candor.render.paper.entry import PaperEntry, Part, make_slug
from candor.render.paper.grids import make_ablations_together, make_grid, make_sweeps_together
from candor.render.paper.index import INDEX, SECTIONS, make_index
from candor.render.paper.runs import make_explanation, make_exploration, make_figures, make_fusions, make_schematics
from candor.render.paper.studies import make_associations, make_costs, make_shock_rain
from candor.render.paper.truth import make_truth
from candor.research.paper.found import (
    FORMAT,
    MARK,
    Found,
    GridKind,
    Trouble,
    data_names,
    data_of_runs,
    find_results,
    is_here,
)
from candor.research.paper.missing import Missing, find_missing
from candor.research.shock_rain_runs import RainComparison, read_comparison

_FORMAT_VERSION = 1
_SECTION_OF = {GridKind.BENCHMARK: "comparisons", GridKind.ABLATIONS: "ablations", GridKind.SWEEP: "sweeps"}
_WEIGHTS: Mapping[object, float] = {
    make_exploration: 5, make_grid: 2, make_fusions: 5, make_figures: 10, make_explanation: 25, make_costs: 2,
}  # fmt: skip
"""How long parts take, where that is longer than others do."""


@dataclass(frozen=True, eq=False)
class Paper:
    """What was written."""

    folder: Path
    entries: Mapping[str, Sequence[PaperEntry]]  # by name of their section
    missing: tuple[Missing, ...]  # what could be made, with its command
    troubles: tuple[Trouble, ...]  # what could not be read or drawn

    def to_json(self) -> dict[str, Any]:
        """Return everything as content of a JSON file; figures are named without their endings."""
        listed = [
            {
                "section": section,
                "title": entry.title,
                "origin": asdict(entry.origin),
                "figures": [picture.stem for picture in entry.pictures],
                "tables": [shown.table.title for shown in entry.tables],
                "files": [path for path, _ in entry.files],
            }
            for section, entries in self.entries.items()
            for entry in entries
        ]
        return {
            "format": FORMAT,
            "format_version": _FORMAT_VERSION,
            "entries": listed,
            "missing": [asdict(one) for one in self.missing],
            "not_readable": [asdict(one) for one in self.troubles],
        }


def write_paper(folders: Sequence[Path], out: Path, report: Report = silent) -> Paper:
    """Write tables, figures and index.html to a folder, which is made anew, all or nothing, and return them.

    Args:
        folders: that are searched for what other commands left behind; one that is a run of CANDOR is drawn itself.
        out: where to. A folder with anything else in it is refused.
        report: is told how far it has come.
    """
    out = Path(out)
    check_replaceable(out, MARK, FORMAT, "the paper")
    report("making the paper | looking for results", 0.0)
    found = find_results([Path(folder) for folder in folders])
    with atomic_folder(out) as temporary:
        entries, troubles = _make_parts(list(_parts(found)), temporary, report)
        made = Paper(out, entries, tuple(find_missing(found)), (*found.troubles, *troubles))
        page = make_index(made.entries, made.missing, made.troubles, _newest(made))
        (temporary / INDEX).write_text(page, encoding="utf-8")
        write_json(temporary / MARK, made.to_json())
    return made


def _parts(found: Found) -> Iterator[Part]:
    """Yield the work in the order of the sections."""
    used: set[str] = set()

    def part(
        section: str, words: Sequence[str], source: str, make: Callable[..., Iterator[PaperEntry]], *given: Any
    ) -> Part:
        used.add(name := make_slug("-".join(words), used))
        return Part(section, name, source, partial(make, *given), _WEIGHTS.get(make, 1.0))

    own = data_of_runs(found.runs)
    for name in data_names(found):
        if name in own or is_here(name):
            yield part("data", ("data", name), name, make_exploration, name, own.get(name))
    yield part("method", ("method",), "the method", make_schematics)
    if len({task for grid in found.grids if grid.kind == GridKind.ABLATIONS for task in grid.tasks}) > 1:
        yield part("ablations", ("ablations", "together"), "ablations", make_ablations_together, found.grids)
    if len(sweeps := [grid for grid in found.grids if grid.kind == GridKind.SWEEP]) > 1:
        yield part("sweeps", ("sweeps", "together"), "sweeps", make_sweeps_together, sweeps)
    for grid in found.grids:
        yield part(_SECTION_OF[grid.kind], (grid.folder.name,), str(grid.folder), make_grid, grid)
    if len(found.runs) > 1:
        yield part("runs", ("runs", "together"), "runs", make_fusions, found.runs)
    for run in found.runs:
        yield part("runs", ("figures", run.name), str(run.folder), make_figures, run)
        yield part("runs", ("explained", run.name), str(run.folder), make_explanation, run)
    for path in found.profiles:
        yield part("costs", (path.parent.name,), str(path), make_costs, path, found.grids)
    if len(stored := _readable(found.shock_rains)) > 1:
        yield part("shock-rain", ("shock-rain", "together"), "rain", make_associations, stored)
    for path in found.shock_rains:
        words = ("shock-rain", *(word for word in path.parent.parts[-2:] if word not in ("/", "..")))
        yield part("shock-rain", words, str(path), make_shock_rain, path)
    for path in found.truths:
        yield part("truth", ("truth", path.parent.name), str(path), make_truth, path)


def _readable(paths: Sequence[Path]) -> list[RainComparison]:
    """Return the comparisons with rain that can be read; the others are named when their own part fails."""
    found = []
    for path in paths:
        try:
            found.append(read_comparison(path))
        except (InputError, OSError, ValueError):
            continue
    return found


def _make_parts(
    parts: Sequence[Part], folder: Path, report: Report
) -> tuple[dict[str, list[PaperEntry]], list[Trouble]]:
    """Return the entries by section, and what could not be made: that stops nothing else and leave no files."""
    entries: dict[str, list[PaperEntry]] = {section: [] for section in SECTIONS}
    troubles = []
    whole, done = sum(part.weight for part in parts), 0.0
    for part in parts:
        listen = within(report, "making the paper", part.source, done / whole, (done + part.weight) / whole)
        try:
            entries[part.section] += list(part.make(folder / part.folder, listen))  # all of them or none
        except Exception as error:  # whatever it is, it must not stop the other parts
            what = error.what if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            troubles.append(Trouble(part.source, what))
            rmtree(folder / part.folder, ignore_errors=True)
        done += part.weight
    return entries, troubles


def _newest(made: Paper) -> str:
    dates = (entry.origin.made for entries in made.entries.values() for entry in entries)
    return max((day for text in dates for day in re.findall(r"\d{4}-\d{2}-\d{2}", text)), default="")
