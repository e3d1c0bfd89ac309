"""A run directory: a fitted model and everything needed to judge it again or to use it, on any machine.

run.json        what was trained on what, under which protocol, with which versions
model/          the fitted forecaster
data/           the panel, for somebody's own data; datasets of the catalogue are named instead
evaluation.json scores on the test part, once evaluated
"""

from dataclasses import dataclass
from pathlib import Path

from candor.data.catalog import load_dataset
from candor.data.panel import Panel
from candor.data.panel_store import load_panel, save_panel
from candor.data.protocol import Protocol, Task, make_task
from candor.errors import InputError
from candor.files import atomic_folder, read_json, write_json
from candor.forecasting.forecaster import Forecaster, load_forecaster
from candor.settings import Settings, parse_settings
from candor.versions import versions

FORMAT_VERSION = 1


class RunRecord(Settings):
    """The content of run.json."""

    format: str = "candor-run"
    format_version: int = FORMAT_VERSION
    model: str
    """Name of the model."""
    data: str
    """Name of the data."""
    is_catalogued: bool
    """Whether the data are a dataset of the catalogue; if not, they lie in `data/`."""
    fingerprint: str
    """SHA-256 of the content of the whole panel."""
    unit: str
    """Unit of the readings and of all errors."""
    protocol: Protocol
    """How the record was cut and is judged."""
    seed: int
    """Where chance began."""
    versions: dict[str, str]
    """What it was made with."""


@dataclass(frozen=True, eq=False)
class Run:
    """A run directory that was opened."""

    folder: Path
    record: RunRecord
    forecaster: Forecaster

    def task(self) -> Task:
        """Returns the task the model was trained on; data that have changed since are refused."""
        panel = load_dataset(self.record.data) if self.record.is_catalogued else load_panel(self.folder / "data")
        if panel.fingerprint != self.record.fingerprint:
            raise InputError(
                f"the data {self.record.data!r} are not those the model was trained on: their content has changed",
                where=str(self.folder),
                mend="bring back the data of that time, or train again",
            )
        return make_task(panel, self.record.protocol)


def save_run(folder: Path, forecaster: Forecaster, panel: Panel, protocol: Protocol, *, is_catalogued: bool) -> Run:
    """Writes a fitted forecaster and its circumstances as a run directory, all or nothing."""
    record = RunRecord(
        model=forecaster.name,
        data=panel.name,
        is_catalogued=is_catalogued,
        fingerprint=panel.fingerprint,
        unit=panel.unit,
        protocol=protocol,
        seed=forecaster.seed,
        versions=versions(),
    )
    with atomic_folder(folder) as temporary:
        forecaster.save(temporary / "model")
        if not is_catalogued:
            save_panel(panel, temporary / "data")
        write_json(temporary / "run.json", record.model_dump(mode="json"))
    return Run(folder, record, forecaster)


def load_run(folder: Path) -> Run:
    """Returns the run in `folder`."""
    path = Path(folder) / "run.json"
    if not path.is_file():
        raise InputError(
            "this is not a run directory: it has no run.json",
            where=str(folder),
            mend="give the folder that `candor train` named",
        )
    content = read_json(path)
    if isinstance(content, dict) and content.get("format_version", FORMAT_VERSION) != FORMAT_VERSION:
        raise InputError(
            f"the run has format version {content['format_version']}; this version of candor reads {FORMAT_VERSION}",
            where=str(path),
        )
    record = parse_settings(RunRecord, content, str(path))
    return Run(Path(folder), record, load_forecaster(Path(folder) / "model"))
