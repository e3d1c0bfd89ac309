"""Suites: grids with a name, one YAML file each in `suites/`."""

from collections.abc import Iterable
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveFloat, PositiveInt

from candor.errors import InputError
from candor.forecasting import forecasters
from candor.settings import Settings, parse_settings, read_yaml

ALL = "all"
"""Stands for all registered models in a suite's file."""


class Contender(Settings):
    """A model with settings of its own, under a name that tables show."""

    name: str
    """Shown in tables and part of a cell's folder."""
    model: str
    """Name of the model."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """As on the command line of `candor train`, e.g. `size: small`."""


def _as_contender(entry: Any) -> Any:
    return {"name": entry, "model": entry} if isinstance(entry, str) else entry


class SuiteTask(Settings):
    """A dataset with a protocol."""

    preset: str
    """Names dataset and protocol."""
    horizon: PositiveInt | None = None
    """Steps, where they differ from the preset's."""

    @property
    def label(self) -> str:
        """Part of a cell's folder."""
        return self.preset if self.horizon is None else f"{self.preset}-h{self.horizon}"


class Suite(Settings):
    """A grid: every contender on every task with every seed."""

    name: str
    title: str
    tasks: tuple[SuiteTask, ...]
    contenders: tuple[Annotated[Contender, BeforeValidator(_as_contender)], ...] = Field(alias="models")
    seeds: tuple[int, ...] = (0, 1, 2)
    budget_minutes: PositiveFloat | None = None
    """Of training, for every cell; schedules are shortened to it. None trains to the end."""
    metric: Literal["mae", "mse"] = "mae"
    """By which models are ranked."""
    has_rivals: bool = True
    """Whether CANDOR is compared with other models, or with variants of itself."""
    ranking: Literal["task", "suite"] = "task"
    """Whether the best baselines are chosen for each task, or once by the mean over all tasks."""

    def chosen(
        self, models: Iterable[str] | None, seeds: Iterable[int] | None, budget_minutes: float | None
    ) -> "Suite":
        """Returns the suite with other models, seeds or budget where they are given."""
        changes: dict[str, Any] = {}
        if models is not None:
            known = {contender.name: contender for contender in self.contenders}
            changes["contenders"] = tuple(
                known.get(name) or Contender(name=name, model=name) for name in dict.fromkeys(models)
            )
        if seeds is not None:
            changes["seeds"] = tuple(dict.fromkeys(seeds))
        if budget_minutes is not None:
            changes["budget_minutes"] = budget_minutes
        return self.model_copy(update=changes)


def suite_names() -> list[str]:
    """Returns the names of all suites, sorted."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _folder().iterdir() if entry.name.endswith(".yaml"))


def load_suite(name: str) -> Suite:
    """Returns the suite called `name`."""
    if name not in suite_names():
        raise InputError(f"there is no suite called {name!r}", mend=f"known: {', '.join(suite_names())}")
    content = read_yaml((_folder() / f"{name}.yaml").read_text(encoding="utf-8"), f"suite {name}")
    everything = {"models": forecasters.names()} if content.get("models") == ALL else {}
    return parse_settings(Suite, {"name": name} | dict(content) | everything, f"suite {name}")


def _folder() -> Any:
    return files(__package__) / "suites"
