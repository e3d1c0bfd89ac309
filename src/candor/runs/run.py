"""A run directory: a fitted model and everything needed to evaluate it again or to use it, on any machine.

run.json        what was trained on what, under which protocol, with which versions
model/          the fitted forecaster; not there while its training goes on
data/           the panel, for somebody's own data; datasets of the catalogue are named instead
training/       of networks: the state of their training, see candor.runs.fit
evaluation.json scores on the test part, once evaluated
backtest.json   scores of a rolling origin, once backtested
refits/         what a backtest under way has learned, see candor.runs.refits
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from candor.core.errors import InputError
from candor.core.files import atomic_folder, check_version, read_json, sha256_of_file, write_json
from candor.core.settings import Settings, parse_settings
from candor.core.versions import versions
from candor.data.catalog import load_dataset
from candor.data.panel import Panel
from candor.data.panel_store import is_panel_folder, load_panel, save_panel
from candor.data.protocol import Protocol, Task, make_task
from candor.forecasting.forecaster import Forecaster, label_of, read_model

if TYPE_CHECKING:
    from candor.forecasting.candor import Candor

FORMAT_VERSION = 1
RECORD, EVALUATION, BACKTEST = "run.json", "evaluation.json", "backtest.json"
TRAINING = "training"
MANIFEST = "manifest.json"  # of a run directory that is a bundle


class Start(Settings):
    """Where the initial weights of a training came from, if they were not drawn at random."""

    run: str
    """The run directory, as it was named."""
    weights: Literal["model", "best", "last"]
    """Which of its weights: those of its model, or of a training that was not finished."""
    sha256: str
    """Checksum of the weights as they are kept in training/start.safetensors."""


class Gaps(Settings):
    """What counts as missing in a file of readings."""

    missing: tuple[float, ...]
    """Numbers that stand for no reading."""
    minimum: float | None
    """Readings below it are impossible."""


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
    """How the record was cut and is evaluated."""
    seed: int
    """Of all random numbers."""
    versions: dict[str, str]
    """What it was made with."""
    made: datetime | None = None
    """When it was made, in UTC."""
    learning_seconds: float | None = None
    """How long a model that is fitted in one go learned; for networks see the state of their training."""
    reasons: tuple[str, ...] = ()
    """What was chosen for the data and why, in sentences."""
    start: Start | None = None
    """Where the initial weights came from; None means they were drawn at random."""
    gaps: Gaps | None = None
    """What counted as missing in the files of readings; None means as usual."""
    zone: str | None = None
    """The zone of the files of readings, of which the data keep the standard time; None means that of the data."""

    @property
    def label(self) -> str:
        """The name of the model as people are shown it."""
        return label_of(self.model)

    @staticmethod
    def of(
        model: str, panel: Panel, protocol: Protocol, *, seed: int, is_catalogued: bool, reasons: Sequence[str] = ()
    ) -> "RunRecord":
        """Return the record of a run that is being made now."""
        return RunRecord(
            model=model,
            data=panel.name,
            is_catalogued=is_catalogued,
            fingerprint=panel.fingerprint,
            unit=panel.unit,
            protocol=protocol,
            seed=seed,
            versions=versions(),
            made=datetime.now(UTC).replace(microsecond=0),
            reasons=tuple(reasons),
            gaps=panel.provenance.get("gaps"),
            zone=panel.provenance.get("zone"),
        )


@dataclass(frozen=True, eq=False)
class Run:
    """A run directory that was opened."""

    folder: Path
    record: RunRecord
    forecaster: Forecaster

    def task(self) -> Task:
        """Return the task the model was trained on; data that have changed since are refused."""
        return load_task(self.folder, self.record)

    def measured(self) -> Panel:
        """Return the readings of the task as they were measured: where filled targets count, its panel has no gaps."""
        protocol = self.record.protocol.model_copy(update={"targets": "observed"})
        return replace(self, record=self.record.model_copy(update={"protocol": protocol})).task().panel

    def as_measured(self, task: Task) -> Task:
        """Return its task with the readings that were measured, to be shown to people; forecasts are the same."""
        return task if task.protocol.targets == "observed" else replace(task, panel=self.measured())

    def candor(self) -> "Candor":
        """Return the forecaster of a run of the published network; others have no states to explain."""
        from candor.forecasting.candor import Candor  # loads torch, which simple rules do without

        if isinstance(self.forecaster, Candor) and self.forecaster.is_additive:
            raise InputError(
                "these figures show what the published network learned; this run has an account and shared networks",
                where=str(self.folder),
                hint="candor explain RUN says where its forecasts come from; or train the network: stages=network",
            )
        if not isinstance(self.forecaster, Candor):
            raise InputError(
                f"these figures show what CANDOR learned; this is a run of {self.record.model}",
                where=str(self.folder),
                hint="give a run of candor: candor train DATA",
            )
        return self.forecaster


def load_task(folder: Path, record: RunRecord) -> Task:
    """Return the task of the run in `folder`, which need not be finished; data that have changed are refused."""
    panel = _load_data(Path(folder), record)
    if panel.fingerprint != record.fingerprint:
        raise InputError(
            f"the data {record.data!r} are not those the model was trained on: their content has changed",
            where=str(folder),
            hint="bring back the data of that time, or train again",
        )
    return make_task(panel, record.protocol)


def _load_data(folder: Path, record: RunRecord) -> Panel:
    """Return the panel that a run names or holds; if it is gone, says so and what to bring back."""
    if record.is_catalogued:
        try:
            return load_dataset(record.data)
        except InputError as error:
            raise InputError(
                f"the dataset {record.data!r}, which this run was trained on, cannot be read: {error.what}",
                where=error.where or str(folder),
                hint=error.hint,
            ) from None
    if not is_panel_folder(folder / "data"):
        if (folder / MANIFEST).is_file():
            raise InputError(
                "this bundle holds no readings",
                where=folder.name,
                hint="give recent ones, e.g. candor forecast BUNDLE --readings FILE",
            )
        raise InputError(
            f"the data {record.data!r} that this run was trained on are no longer in its folder",
            where=str(folder / "data"),
            hint="bring the folder data/ of this run back, from a copy of the run for instance, or train again",
        )
    return load_panel(folder / "data")


def save_run(
    folder: Path,
    forecaster: Forecaster,
    panel: Panel,
    protocol: Protocol,
    *,
    is_catalogued: bool,
    reasons: Sequence[str] = (),
    learning_seconds: float | None = None,
) -> Run:
    """Write a fitted forecaster and its circumstances as a run directory, in place of all that is there."""
    record = RunRecord.of(
        forecaster.name, panel, protocol, seed=forecaster.seed, is_catalogued=is_catalogued, reasons=reasons
    ).model_copy(update={"learning_seconds": learning_seconds})
    with atomic_folder(folder) as temporary:
        forecaster.save(temporary / "model")
        if not is_catalogued:
            save_panel(panel, temporary / "data")
        write_json(temporary / RECORD, record.model_dump(mode="json"))
    return Run(folder, record, forecaster)


def load_run(folder: Path) -> Run:
    """Return the run in `folder`."""
    record = load_record(folder)
    if not is_finished(folder):
        raise InputError(
            "this run is unfinished: it holds no fitted model yet",
            where=str(folder),
            hint="wait for its training, or go on with it: candor train --resume RUN",
        )
    return Run(Path(folder), record, read_model(Path(folder) / "model"))


def load_record(folder: Path) -> RunRecord:
    """Return what run.json says of the run in `folder`, which need not be finished."""
    path = Path(folder) / RECORD
    if not path.is_file():
        raise InputError(
            f"this is not a run directory: it has no {RECORD}",
            where=str(folder),
            hint="give the folder that `candor train` named",
        )
    content = read_json(path)
    if isinstance(content, dict):
        hint = "use the version of candor that made it, or train again with this one"
        check_version(content.get("format_version", FORMAT_VERSION), FORMAT_VERSION, "run", path, hint)
    return parse_settings(RunRecord, content, str(path))


def is_finished(folder: Path) -> bool:
    """Return whether the run in `folder` holds a fitted model."""
    return (Path(folder) / "model" / "model.json").is_file()


def model_checksum(folder: Path) -> str:
    """Return the SHA-256 of what the model of the run in `folder` has learned."""
    return sha256_of_file(Path(folder) / "model" / "state.safetensors")
