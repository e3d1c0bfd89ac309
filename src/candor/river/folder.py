"""A basin on disk: a panel folder with its quality report and dataset card beside the readings.

quality.json    what was found at every site, what was decided, and the differences from the paper's table
card.md         the same for people: what the dataset is, where it comes from, how it was made
"""

from dataclasses import asdict
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import atomic_folder, read_json, remove_leftovers, write_json
from candor.data.locations import find_data
from candor.data.panel_store import check_panel_place, save_panel
from candor.river.build import Basin
from candor.river.card import dataset_card
from candor.river.presets import PRESETS, Difference, compare_totals, compare_with_paper, preset_called
from candor.river.quality import QualityReport

QUALITY = "quality.json"
CARD = "card.md"


def save_basin(basin: Basin, folder: Path, preset: str | None = None) -> list[Difference]:
    """Writes the basin to `folder`, all or nothing, and returns its numbers beside those of the paper's table.

    Raises:
        InputError: if the folder holds anything but an earlier panel, or cannot be written.
    """
    check_panel_place(folder)
    differences = [] if preset is None else compare_with_paper(preset_called(preset), basin.report)
    if preset is not None:
        differences += compare_totals(_reports(basin, Path(folder), preset))
    _remove_leftovers(Path(folder))
    try:
        with atomic_folder(folder) as temporary:
            save_panel(basin.panel, temporary)
            paper = [asdict(difference) for difference in differences]
            write_json(temporary / QUALITY, basin.report.as_plain() | {"paper": paper})
            (temporary / CARD).write_text(dataset_card(basin, differences), encoding="utf-8")
    except OSError as error:
        what = f"the basin cannot be written ({error.strerror or error})"
        raise InputError(what, where=str(folder), hint="choose another place, or make room") from None
    return differences


def _remove_leftovers(folder: Path) -> None:
    """Removes what builders of this folder that were killed while they wrote left beside it, under hidden names."""
    for half_written in folder.parent.glob(f".{folder.name}.*"):
        remove_leftovers(half_written)  # of the panel that was being written into it
    remove_leftovers(folder)


def _reports(basin: Basin, folder: Path, preset: str) -> dict[str, QualityReport]:
    """Returns the reports of the paper's basins: this one, and those found beside it or among the datasets."""
    reports = {preset: basin.report}
    for name in PRESETS:
        for place in (folder.parent / name, find_data(name)):
            if name not in reports and place is not None and (place / QUALITY).is_file():
                reports[name] = _read_report(place / QUALITY)
    return reports


def _read_report(path: Path) -> QualityReport:
    content = read_json(path)
    try:
        sites, edges, hours, observed = (int(content[name]) for name in ("sites", "edges", "hours", "observed"))
    except (LookupError, TypeError, ValueError):
        what = "the quality report lacks its numbers"
        raise InputError(what, where=str(path), hint="build the basin again") from None
    return QualityReport((), sites, edges, hours, observed)
