"""Suites: grids with a name, one YAML file each in `suites/`."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveFloat, PositiveInt

from candor.core.errors import InputError
from candor.core.settings import Settings, parse_settings, read_yaml
from candor.data.catalog import datasets
from candor.data.protocol import Protocol
from candor.forecasting import forecasters
from candor.presets import load_preset
from candor.runs.fit import check_budget, is_network

Metric = Literal["mae", "mse"]
Ranking = Literal["task", "suite"]
_FOLDER = files(__package__) / "suites"
_ALL = "all"  # stands for all registered models in a suite's file, alone or beside further contenders


class Contender(Settings):
    """A model with settings of its own, under a name that tables show."""

    name: str  # shown in tables and part of a cell's folder
    model: str  # name of the model
    settings: dict[str, Any] = Field(default_factory=dict)  # as on the command line of `candor train`

    @property
    def is_network(self) -> bool:
        """Whether it is trained step by step, unlike simple rules and trees."""
        return is_network(self.model)


def _as_contender(entry: Any) -> Any:
    return {"name": entry, "model": entry} if isinstance(entry, str) else entry


class SuiteTask(Settings):
    """A dataset with a protocol."""

    preset: str  # names dataset and protocol
    horizon: PositiveInt | None = None  # steps, where they differ from the preset's

    @property
    def label(self) -> str:
        """SuitePart of a cell's folder."""
        return self.preset if self.horizon is None else f"{self.preset}-h{self.horizon}"


class SuitePart(Settings):
    """Tasks of a suite that are ranked in another way than the rest."""

    tasks: tuple[str, ...]  # labels
    metric: Metric  # see `Suite`
    ranking: Ranking  # see `Suite`; together means within the part


class Suite(Settings):
    """A grid: every contender on every task with every seed."""

    name: str
    title: str
    tasks: tuple[SuiteTask, ...]
    contenders: tuple[Annotated[Contender, BeforeValidator(_as_contender)], ...] = Field(alias="models")
    seeds: tuple[int, ...] = (0, 1, 2)
    budget_minutes: PositiveFloat | None = None  # of training, for every cell; schedules are shortened to it
    metric: Metric = "mae"  # by which models are ranked
    has_rivals: bool = True  # whether CANDOR is compared with other models, or with variants of itself
    ranking: Ranking = "task"  # whether the best baselines are chosen for each task, or once by the mean over all
    parts: tuple[SuitePart, ...] = ()  # tasks ranked by rules of their own: those of the suites it is made of

    def chosen(
        self,
        models: Iterable[str] | None = None,
        seeds: Iterable[int] | None = None,
        budget_minutes: float | None = None,
        *,
        tasks: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> "Suite":
        """Return the suite with something else where it is given.

        Models are names of contenders of the suite, or of registered models; tasks are labels. Settings of the protocol
        are for all contenders, others for the networks among them; a contender's own go before these.
        """
        changes: dict[str, Any] = {}
        if models is not None:
            changes["contenders"] = self._named(models)
        if seeds is not None:
            changes["seeds"] = tuple(dict.fromkeys(seeds))
        if budget_minutes is not None:
            check_budget(budget_minutes)
            changes["budget_minutes"] = budget_minutes
        if tasks is not None:
            changes["tasks"] = self._labelled(tasks)
        chosen = self.model_copy(update=changes)
        return chosen._with_settings(settings) if settings else chosen

    def parts_of(self, labels: Iterable[str]) -> list[tuple["Suite", list[str]]]:
        """Return the labels by how they are ranked, each time with the suite that says how; the rest comes last."""
        left, found = list(dict.fromkeys(labels)), []
        for part in self.parts:
            rules = self.model_copy(update={"metric": part.metric, "ranking": part.ranking, "parts": ()})
            found.append((rules, [label for label in left if label in part.tasks]))
            left = [label for label in left if label not in part.tasks]
        found.append((self.model_copy(update={"parts": ()}), left))
        return [(rules, some) for rules, some in found if some]

    def metric_of(self, label: str) -> Metric:
        """Return by which error models are ranked on a task."""
        ((rules, _),) = self.parts_of([label])
        return rules.metric

    def available(self) -> tuple["Suite", list[str]]:
        """Return the suite without tasks whose data are not on this machine, and the labels of those."""
        names = {task: load_preset(task.preset).data for task in self.tasks}
        here = tuple(task for task, data in names.items() if datasets.get(data).is_available())
        left_out = [task.label for task in self.tasks if task not in here]
        if not here:
            lacking = list(dict.fromkeys(names.values()))
            raise InputError(
                f"the data of {self.name} are not on this machine: {', '.join(lacking)}",
                hint=f"see how to get them: candor data info {lacking[0]}",
            )
        return self.model_copy(update={"tasks": here}), left_out

    def _named(self, models: Iterable[str]) -> tuple[Contender, ...]:
        known = {contender.name: contender for contender in self.contenders}
        wanted = list(dict.fromkeys(models))
        if not wanted:
            raise InputError("no model is named", hint="write names with commas, e.g. --models candor,stid")
        if unknown := [name for name in wanted if name not in known and name not in forecasters]:
            names = [*forecasters.names(), *sorted(set(known) - set(forecasters.names()))]
            raise InputError(f"there is no model called {unknown[0]!r}", hint=f"known: {', '.join(names)}")
        return tuple(known.get(name) or Contender(name=name, model=name) for name in wanted)

    def _labelled(self, labels: Iterable[str]) -> tuple[SuiteTask, ...]:
        known = {task.label: task for task in self.tasks}
        wanted = list(dict.fromkeys(labels))
        unknown = [label for label in wanted if label not in known]
        if unknown or not wanted:
            what = f"{self.name} has no task called {unknown[0]!r}" if unknown else "no task is named"
            raise InputError(what, hint=f"its tasks: {', '.join(known)}")
        return tuple(known[label] for label in wanted)

    def _with_settings(self, settings: Mapping[str, Any]) -> "Suite":
        if "horizon" in settings:
            raise InputError("the horizon belongs to a task", hint="choose tasks with --tasks instead")
        for_all = {key: value for key, value in settings.items() if key in Protocol.model_fields}
        networks = [contender for contender in self.contenders if contender.is_network]
        if len(for_all) < len(settings) and not networks:
            further = ", ".join(key for key in settings if key not in for_all)
            raise InputError(
                f"no network is chosen that could have a setting {further}",
                hint=f"leave out {further}, or choose a network with --models, e.g. candor",
            )
        contenders = []
        for contender in self.contenders:
            given = settings if contender in networks else for_all
            contenders.append(contender.model_copy(update={"settings": {**given, **contender.settings}}))
        return self.model_copy(update={"contenders": tuple(contenders)})


def suite_names() -> list[str]:
    """Return the names of all suites, sorted."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _FOLDER.iterdir() if entry.name.endswith(".yaml"))


def load_suite(name: str) -> Suite:
    """Return the suite called `name`."""
    if name not in suite_names():
        raise InputError(f"there is no suite called {name!r}", hint=f"known: {', '.join(suite_names())}")
    content = dict(read_yaml((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), f"suite {name}"))
    if members := [load_suite(member) for member in content.pop("suites", ())]:
        content["tasks"] = [task for member in members for task in member.tasks]
        content["parts"] = [
            SuitePart(tasks=tuple(task.label for task in member.tasks), metric=member.metric, ranking=member.ranking)
            for member in members
        ]
    models = content.get("models", ())
    entries = [models] if models == _ALL else models
    expanded = [_as_contender(one) for entry in entries for one in (forecasters.names() if entry == _ALL else [entry])]
    content["models"] = list({one["name"]: one for one in expanded}.values())  # a later one of the same name counts
    return parse_settings(Suite, {"name": name} | content, f"suite {name}")
