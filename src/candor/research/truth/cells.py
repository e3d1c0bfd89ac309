"""One cell of `candor truth`: a model on one synthetic network, and in truth.json what its answers scored.

CANDOR's network is trained, and its cell is an ordinary run directory; the account is found anew in seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Literal, get_args

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from candor.core.errors import InputError
from candor.core.files import read_json, write_json
from candor.core.progress import Report
from candor.core.settings import Settings, parse_settings
from candor.core.versions import versions
from candor.data.panel import Panel
from candor.data.protocol import Task, make_task
from candor.data.synthetic import Truth, generate_river, generate_road
from candor.data.water import generate_water_network
from candor.forecasting.own_data import choose_protocol, choose_recipe, choose_settings
from candor.nets.candor.recipe import Recipe
from candor.research.engine import Cell, Interruption
from candor.research.grid import train_cell
from candor.research.truth.account import question_account
from candor.research.truth.answers import refuse_variants
from candor.research.truth.pulses import Curve
from candor.research.truth.questions import PULSE_SIZE, PULSE_WINDOWS, RANDOM_SEED, question_candor
from candor.research.truth.scores import Score
from candor.runs.evaluation import evaluate_run
from candor.runs.fit import Limits, train_model
from candor.runs.run import TRAINING, Run, model_checksum
from candor.training.checkpoint import Checkpoint

TRUTH = "truth.json"
FORMAT_VERSION = 3
"""Of the scores: cells scored by another one are scored again."""
MAKERS: Mapping[str, Callable[..., tuple[Panel, Truth]]] = {
    "synthetic-river": generate_river,
    "synthetic-road": generate_road,
    "water-network": generate_water_network,
}
_DATA = "data."

Model = Literal["account", "candor"]
"""Whose explanations are scored: the account in closed form, or CANDOR's network."""


class DataSettings(Settings):
    """What a synthetic network is made of, where it differs from that of the catalogue."""

    sensors: PositiveInt | None = None  # how many there are
    steps: PositiveInt | None = None  # readings of each
    noise: float | None = None  # standard deviation of the noise as a share of the level
    missing_share: float | None = None  # share of the readings that is missing
    twin_pairs: NonNegativeInt | None = None  # pairs of sensors that share a background


class TruthCell(Settings, Cell):
    """A model on one synthetic network; the seed is that of the network and that of the training."""

    result: ClassVar[str] = TRUTH

    model: Model = "candor"
    dataset: str
    seed: NonNegativeInt
    data: DataSettings = DataSettings()
    settings: dict[str, Any] = Field(default_factory=dict)  # of protocol, model and training, as of `candor train`
    budget_minutes: PositiveFloat | None = None  # of training; schedules are shortened to it. None trains to the end

    @property
    def name(self) -> str:
        """Network and seed; those of the account have a folder of their own."""
        network = f"{self.dataset}/seed-{self.seed}"
        return network if self.model == "candor" else f"{self.model}/{network}"

    def content(self) -> dict[str, Any]:
        """Return all fields; CANDOR is not named, as it was not when nothing else was asked."""
        return self.model_dump(mode="json", exclude={"model"} if self.model == "candor" else None)

    def make(self) -> tuple[Panel, Truth]:
        """Return the network and the truth about it."""
        return MAKERS[self.dataset](seed=self.seed, **self.data.model_dump(exclude_none=True))

    def is_done(self, folder: Path) -> bool:
        """Return whether there are scores in today's format, of the model that is there."""
        if not (folder / TRUTH).is_file():
            return False
        content = read_json(folder / TRUTH)
        is_current = bool(content["format_version"] == FORMAT_VERSION)
        if self.model == "account":
            return is_current
        return is_current and content["circumstances"]["model_sha256"] == model_checksum(folder)

    def work(self, folder: Path, report: Report, interruption: Interruption) -> None:
        """Find the account, or train CANDOR, and score the answers."""
        panel, truth = self.make()
        if self.model == "account":
            self._work_account(folder, panel, truth, report)
        else:
            self._work_candor(folder, panel, truth, report, interruption)

    def _work_account(self, folder: Path, panel: Panel, truth: Truth, report: Report) -> None:
        protocol, rest = choose_protocol(panel, self.dataset, self.settings)
        task = make_task(panel, protocol)
        recipe, _ = choose_recipe(task, self.dataset, rest)
        settings = recipe.model_settings(len(panel.sensors), protocol.history, protocol.horizon)
        started = perf_counter()
        scores, curves = question_account(task, truth, settings, report)
        circumstances = {
            "made": datetime.now(UTC).replace(microsecond=0).isoformat(),
            "data_sha256": panel.fingerprint,
            "versions": versions(),
            "protocol": protocol.model_dump(mode="json"),
            "split": {"windows": {part: len(getattr(task.split, part)) for part in ("train", "validation", "test")}},
            "patches": {"length": settings.patch_length, "stride": settings.patch_stride},
            "unit": panel.unit,
            "seconds": perf_counter() - started,
            "chance_seed": RANDOM_SEED,
        }
        _write(folder, scores, curves, circumstances)

    def _work_candor(
        self, folder: Path, panel: Panel, truth: Truth, report: Report, interruption: Interruption
    ) -> None:

        def begin(limits: Limits) -> tuple[Run, Task]:
            protocol, rest = choose_protocol(panel, self.dataset, self.settings)
            task = make_task(panel, protocol)
            settings, _ = choose_settings("candor", task, self.dataset, rest | {"stages": ["network"]})
            recipe = parse_settings(Recipe, settings["recipe"], "settings")
            refuse_variants(recipe.model_settings(len(panel.sensors), protocol.history, protocol.horizon))
            run = train_model(
                panel, protocol, "candor", settings, folder, seed=self.seed, is_catalogued=False, report=report,
                limits=limits,
            )  # fmt: skip
            return run, task

        run, task = train_cell(folder, self.budget_minutes, begin, report, interruption)
        if run.record.fingerprint != panel.fingerprint:
            raise InputError(
                "the network of this seed is not the one that the run was trained on",
                where=str(folder),
                hint="it was made by another version of candor; train again in another folder (--out)",
            )
        task = task or make_task(panel, run.record.protocol)
        evaluation = evaluate_run(run, report, task).to_json()
        scores, curves = question_candor(run.candor(), task, truth, report)
        _write(folder, scores, curves, _circumstances(run, evaluation))


@dataclass(frozen=True)
class Scored:
    """A cell that is done: what all answers score, how forecasts answer pulses, and what both depend on."""

    cell: TruthCell
    scores: tuple[Score, ...]
    curves: tuple[Curve, ...]
    circumstances: Mapping[str, Any]


def _write(folder: Path, scores: Sequence[Score], curves: Sequence[Curve], circumstances: Mapping[str, Any]) -> None:
    content: dict[str, Any] = {"format_version": FORMAT_VERSION, "scores": [asdict(score) for score in scores]}
    content |= {"curves": [asdict(curve) for curve in curves]}
    write_json(folder / TRUTH, content | {"circumstances": circumstances})


def cells_of(
    datasets: list[str],
    seeds: list[int],
    overrides: Mapping[str, Any],
    budget_minutes: float | None,
    model: str = "candor",
) -> list[TruthCell]:
    """Return the cells, seed by seed, so that a command that is stopped leaves whole rounds.

    Overrides are settings of protocol, model and training; those that begin with `data.` are of the network.
    """
    for name in datasets:
        if name not in MAKERS:
            raise InputError(f"the truth about {name!r} is not known", hint=f"known: {', '.join(MAKERS)}")
    if model not in get_args(Model):
        known = " and ".join(get_args(Model))
        raise InputError(f"there are no explanations of {model!r} to score", where="--model", hint=f"known: {known}")
    if model == "account" and budget_minutes is not None:
        raise InputError("the account is not trained: it takes seconds", hint="leave out --budget-minutes")
    if cutting := [key for key in ("first", "last") if key in overrides]:
        raise InputError(
            f"{' and '.join(cutting)} would cut the record, and the truth belongs to the whole of it",
            hint="shorten the record with data.steps=NUMBER",
        )
    for what, given in (("dataset", datasets), ("seed", seeds)):
        if not given or len(set(given)) < len(given):
            raise InputError(f"every {what} must be named once, and at least one", where=f"--{what}s")
    data = {key.removeprefix(_DATA): value for key, value in overrides.items() if key.startswith(_DATA)}
    content = {
        "model": model,
        "data": parse_settings(DataSettings, data, "settings data.KEY=VALUE"),
        "settings": {key: value for key, value in overrides.items() if not key.startswith(_DATA)},
        "budget_minutes": budget_minutes,
    }
    return [
        parse_settings(TruthCell, {"dataset": dataset, "seed": seed} | content, "settings")
        for seed in seeds
        for dataset in datasets
    ]


def read_scored(cell: TruthCell, root: Path) -> Scored:
    """Return what a cell scored that is done."""
    content = read_json(root / cell.name / TRUTH)
    scores = tuple(Score(**score) for score in content["scores"])
    return Scored(cell, scores, read_curves(content["curves"]), content["circumstances"])


def read_curves(content: Sequence[Mapping[str, Any]]) -> tuple[Curve, ...]:
    """Return responses to pulses as they were written."""
    return tuple(Curve(**{**curve, "response": tuple(curve["response"])}) for curve in content)


def _circumstances(run: Run, evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the scores depend on, and how good the forecasts are, in the sensors' unit."""
    progress = Checkpoint(run.folder / TRAINING).progress()
    return {
        "made": datetime.now(UTC).replace(microsecond=0).isoformat(),
        "data_sha256": run.record.fingerprint,
        "model_sha256": model_checksum(run.folder),
        "versions": versions(),
        "protocol": run.record.protocol.model_dump(mode="json"),
        "settings": run.forecaster.settings(),
        "split": evaluation["split"],
        "part": evaluation["part"],
        "mae": evaluation["overall"]["mae"],
        "unit": evaluation["unit"],
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "train_seconds": progress.seconds,
        "pulses": {"windows": PULSE_WINDOWS, "size_in_deviations": PULSE_SIZE},
        "chance_seed": RANDOM_SEED,
    }
