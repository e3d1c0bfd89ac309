"""What models cost at the shape and graph of a preset: parameters, operations, seconds and memory.

All models are measured on one machine under the same circumstances, one after the other. What was measured is kept; a
profile that was interrupted goes on with the models that it lacks.
"""

import os
import platform
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from pydantic_core import to_jsonable_python

from candor.core.errors import InputError
from candor.core.files import atomic_file, read_json, write_json
from candor.core.progress import Report
from candor.core.settings import Settings, parse_settings
from candor.core.versions import versions
from candor.data.catalog import datasets, load_dataset
from candor.data.panel import Edges, Panel, adjacency_of
from candor.data.protocol import make_task
from candor.forecasting import forecasters
from candor.forecasting.own_data import choose_settings
from candor.nets.candor.recipe import SIZES, Recipe
from candor.presets import Preset, load_preset, preset_names
from candor.research.engine import SCORES, Cell, Interruption, failure_of
from candor.research.grid import RESULTS, cells_in, cells_of_results, overall_errors, read_results, unique
from candor.research.measuring import HOW, Job, ModelProfile, measure, random_panel
from candor.research.suites import Contender, Metric, Suite, SuiteTask, load_suite, suite_names
from candor.runs.fit import TrainingStoppedError

PROFILE, TABLE = "profile.json", "profile.csv"
PACKAGES = ("python", "torch", "candor-forecast")
# What a made-up graph is made from where the data are absent: the interval, and the edges between different sensors.
_ABSENT = {
    "metr-la": (timedelta(minutes=5), 1515),
    "pems-bay": (timedelta(minutes=5), 2369),
    "basin030501": (timedelta(hours=1), 17),
    "basin031300": (timedelta(hours=1), 28),
    "basin180102": (timedelta(hours=1), 42),
}


class Circumstances(Settings):
    """What the costs depend on besides the model."""

    preset: str
    graph: str  # where the edges come from
    nodes: PositiveInt
    edges: NonNegativeInt
    history: PositiveInt
    horizon: PositiveInt
    batch: PositiveInt
    warm_ups: NonNegativeInt
    passes: PositiveInt
    machine: dict[str, str | int]


class Profile(Settings):
    """The costs of several models under the same circumstances."""

    circumstances: Circumstances
    models: tuple[ModelProfile, ...] = ()  # smallest network first, then those that are no networks
    failed: dict[str, str] = Field(default_factory=dict)  # why some could not be measured, by name

    def with_model(self, name: str, found: ModelProfile | str) -> "Profile":
        """Return the profile with what was found of a model: its costs, or why there are none."""
        kept = [model for model in self.models if model.name != name]
        failed = {other: why for other, why in self.failed.items() if other != name}
        if isinstance(found, str):
            return self.model_copy(update={"models": tuple(kept), "failed": failed | {name: found}})
        models = sorted([*kept, found], key=lambda model: (model.parameters is None, model.parameters or 0, model.name))
        return self.model_copy(update={"models": tuple(models), "failed": failed})

    def save(self, folder: Path) -> list[Path]:
        """Write profile.json and profile.csv, where reconstructions are named as such, and return their paths."""
        content = self.model_dump(mode="json")
        write_json(folder / PROFILE, content | {"how": HOW})
        costs = pd.DataFrame(content["models"], columns=list(ModelProfile.model_fields), dtype=object)
        costs["name"] = [model.label for model in self.models]
        shared = content["circumstances"]
        machine = {f"machine_{key}": fact for key, fact in shared.pop("machine").items()}
        with atomic_file(folder / TABLE) as temporary:
            costs.assign(**shared, **machine).to_csv(temporary, index=False)
        return [folder / PROFILE, folder / TABLE]


@dataclass(frozen=True, eq=False)
class ProfileTarget:
    """A preset with readings of its shape and where its graph comes from."""

    name: str
    preset: Preset
    panel: Panel
    graph: str


def find_target(name: str) -> ProfileTarget:
    """Return the dataset of a preset, or a made-up network of its size where the data are absent."""
    preset = load_preset(name)
    if datasets.get(preset.data).is_available():
        return ProfileTarget(name, preset, load_dataset(preset.data), f"that of {preset.data}")
    if preset.nodes is None or preset.data not in _ABSENT:
        raise InputError(
            f"the data of {preset.data} are not here, and the preset does not say how many sensors there are",
            where=f"preset {name}",
            hint=f"see `candor data info {preset.data}`, or take another preset, such as metr-la",
        )
    interval, count = _ABSENT[preset.data]
    rows = 20 * (preset.protocol.history + preset.protocol.horizon)
    panel = random_panel(preset.nodes, random_edges(preset.nodes, count), interval, rows)
    return ProfileTarget(name, preset, panel, f"random, with as many edges as {preset.data}, whose data are not here")


def random_edges(nodes: int, count: int) -> Edges:
    """Return weighted edges between different sensors, the same whenever they are made."""
    generator = np.random.default_rng(0)
    places = generator.choice(nodes * (nodes - 1), count, replace=False)
    source, other = np.divmod(places, nodes - 1)
    target = other + (other >= source)  # skips the sensor itself
    return Edges(source, target, weight=generator.random(count, dtype=np.float32) + np.float32(0.1))


def choose_contenders(target: ProfileTarget, names: Sequence[str] | None = None) -> list[Contender]:
    """Return the models to measure; names that nobody knows are refused.

    They are names of models, or of CANDOR with a size (candor-small); None takes all, CANDOR in every size.
    """
    usual = (target.preset.recipe or Recipe()).size
    sized = {
        f"candor-{size}": Contender(name=f"candor-{size}", model="candor", settings={"size": size}) for size in SIZES
    }
    if names is None:
        names = [*forecasters.names(), *(name for name in sized if name != f"candor-{usual}")]
    found = [sized.get(name) or Contender(name=name, model=name) for name in dict.fromkeys(names)]
    for contender in found:
        if contender.model not in forecasters:
            forecasters.get(contender.model)  # says which are known
    return found


def circumstances_of(target: ProfileTarget, batch: int, warm_ups: int, passes: int) -> Circumstances:
    """Return the circumstances of measurements on this machine."""
    protocol, installed = target.preset.protocol, versions()
    return Circumstances(
        preset=target.name,
        graph=target.graph,
        nodes=len(target.panel.sensors),
        edges=adjacency_of(target.panel).nnz,
        history=protocol.history,
        horizon=protocol.horizon,
        batch=batch,
        warm_ups=warm_ups,
        passes=passes,
        machine={
            "device": "cpu",
            "processor": _processor(),
            "cores": os.cpu_count() or 1,
            "threads": torch.get_num_threads(),
            "system": platform.system(),
            **{name: installed[name] for name in PACKAGES if name in installed},
        },
    )


def read_profile(path: Path) -> Profile:
    """Return the profile that `candor profile` wrote to a file."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError("this is not a profile that can be read", where=str(path))
    return parse_settings(Profile, {key: value for key, value in content.items() if key != "how"}, str(path))


def load_profile(folder: Path, circumstances: Circumstances, *, is_anew: bool = False) -> Profile:
    """Return what was measured in a folder under the same circumstances before; an empty profile if there is none.

    Other circumstances are refused, or replaced by an empty profile if `is_anew`.
    """
    path, empty, what = folder / PROFILE, Profile(circumstances=circumstances), "this is not a profile that can be read"
    if not path.is_file():
        return empty
    with suppress(InputError):
        known = read_profile(path)
        if known.circumstances == circumstances:
            return known.model_copy(update={"failed": {}})
        there, here = known.circumstances.model_dump(), circumstances.model_dump()
        differences = ", ".join(key for key in here if there[key] != here[key])
        what = f"there is a profile with another {differences} in this place"
    if is_anew:
        return empty
    raise InputError(what, where=str(path), hint="give another folder (--out), or replace it (--anew)")


@dataclass(frozen=True, eq=False)
class ProfileCell(Cell):
    """One model to be measured in a process of its own."""

    job: Job
    circumstances: Circumstances

    @property
    def name(self) -> str:
        """The model's."""
        return self.job.name

    def content(self) -> dict[str, Any]:
        """Return the model, its settings and the circumstances."""
        parts = {"model": self.job.model, "settings": dict(self.job.settings), "circumstances": self.circumstances}
        return {name: to_jsonable_python(part) for name, part in parts.items()}

    def work(self, folder: Path, report: Report, interruption: Interruption) -> None:
        """Measure the model."""

        def checked(what: str, share: float | None) -> None:
            if reason := interruption():
                raise TrainingStoppedError(reason, folder)
            report(what, share)

        torch.set_num_threads(int(self.circumstances.machine["threads"]))  # those of the command, as it states
        write_json(folder / SCORES, measure(self.job, checked).model_dump(mode="json"))


def make_cells(
    target: ProfileTarget, contenders: Sequence[Contender], profile: Profile
) -> tuple[list[ProfileCell], Profile]:
    """Return the cells of models to be measured, and the profile with the names of those that cannot be made."""
    cells = []
    for contender in contenders:
        try:
            cells.append(ProfileCell(make_job(target, contender, profile.circumstances), profile.circumstances))
        except (InputError, ImportError) as error:
            missing = "it cannot be imported: " if isinstance(error, ImportError) else ""  # an extra
            profile = profile.with_model(contender.name, f"{missing}{error}")
    return cells, profile


def add_cells(profile: Profile, cells: Sequence[ProfileCell], root: Path) -> Profile:
    """Return the profile with what was measured in cells, and why others failed."""
    for cell in cells:
        if cell.is_done(root / cell.name):
            content = read_json(root / cell.name / SCORES)
            profile = profile.with_model(cell.name, parse_settings(ModelProfile, content, cell.name))
        elif (failure := failure_of(cell, root)) is not None:
            profile = profile.with_model(cell.name, str(failure))
    return profile


def make_job(target: ProfileTarget, contender: Contender, circumstances: Circumstances) -> Job:
    """Return what has to be measured of a contender."""
    protocol = target.preset.protocol
    task = make_task(target.panel, protocol)
    settings, _ = choose_settings(contender.model, task, target.name, contender.settings)
    return Job(
        name=contender.name,
        model=contender.model,
        settings={"history": protocol.history, "horizon": protocol.horizon} | settings,
        nodes=circumstances.nodes,
        edges=target.panel.edges,
        interval=target.panel.times.interval,
        batch=circumstances.batch,
        warm_ups=circumstances.warm_ups,
        passes=circumstances.passes,
    )


@dataclass(frozen=True)
class TaskErrors:
    """Errors of the models of a grid on one task."""

    by_model: Mapping[str, Sequence[float]]  # error over all steps by name, one per seed
    metric: Metric  # what kind of error, that by which the grid ranks its models
    unit: str  # of the readings
    where: Path  # the file they come from

    def check_any_of(self, names: Collection[str]) -> None:
        """Refuse results that have none of some models."""
        if not any(name in self.by_model for name in names):
            raise InputError(
                "there are no results of the models that are measured",
                where=str(self.where),
                hint=f"there are results of {', '.join(sorted(self.by_model))}",
            )


def read_errors(results: Path, preset: str) -> TaskErrors:
    """Return the errors on a preset from the folder of a grid, or from its results.parquet.

    Its suite is known by its cells, or else by the name of its folder.
    """
    path = results / RESULTS if results.is_dir() else results
    content = read_results(path)
    cells = cells_of_results(content) or cells_in(path.parent)
    name = cells[0].suite if cells else path.parent.name.removeprefix("benchmark-")
    return errors_in(content, preset, path, load_suite(name) if name in suite_names() else None)


def errors_in(results: pd.DataFrame, preset: str, where: Path, suite: Suite | None) -> TaskErrors:
    """Return the errors on a preset from a table of results, by the metric that the suite ranks by (else MAE).

    The grid may have the preset under another name, see `labels_of`.
    """
    overall = overall_errors(results)
    tasks = sorted(unique(overall, "task"))
    label = next((label for label in labels_of(preset) if label in tasks), None)
    if label is None:
        known = " or ".join(name for name in preset_names() if set(labels_of(name)) & set(tasks))
        others = f"there are results on {', '.join(tasks) or 'nothing'}, and no preset is one of these"
        hint = f"--preset {known}" if known else others
        raise InputError(f"there are no results on {preset}", where=str(where), hint=hint)
    metric: Metric = "mae" if suite is None else suite.metric_of(label)
    chosen = overall[(overall["task"] == label) & (overall["metric"] == metric)]
    if chosen.empty:
        raise InputError(f"there are no results on {preset} by {metric.upper()}", where=str(where))
    by_model = {str(name): [float(value) for value in rows] for name, rows in chosen.groupby("model")["value"]}
    return TaskErrors(by_model, metric, str(chosen["unit"].iloc[0] or ""), where)


def labels_of(preset: str) -> list[str]:
    """Return the labels of tasks that are a preset: its own, and those of others that are given its horizon."""
    if preset not in preset_names():
        return [preset]

    def without_horizon(name: str) -> Preset:
        found = load_preset(name)
        return found.model_copy(update={"protocol": found.protocol.model_copy(update={"horizon": 1, "steps": ()})})

    horizon, wanted = load_preset(preset).protocol.horizon, without_horizon(preset)
    alike = [name for name in preset_names() if without_horizon(name) == wanted]
    return [preset, *(SuiteTask(preset=name, horizon=horizon).label for name in alike)]


def _processor() -> str:
    """Return what the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())
