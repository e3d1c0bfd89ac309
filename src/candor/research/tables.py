"""Tables shaped like the paper's: mean and spread over seeds, the best marked, our gain over the best baseline.

Spreads are standard deviations over seeds with one degree of freedom taken off (ddof = 1), and absent for one seed.
Reconstructions, models that were rebuilt without their authors' code, are shown and named as such in tables of all
models; no rank, mark, gain or count rests on them. Neither does one on an error that is not a number.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from statistics import mean, stdev

import pandas as pd

from candor.core.text import NOTHING
from candor.research.grid import ALL_STEPS, overall_errors, unique
from candor.research.suites import Contender, Suite
from candor.research.table_notes import is_reconstruction, protocol_of, seeds_of, shown_name, unit_of

_OURS = "candor"
AVERAGE = "Avg"
"""The head over means over horizons."""
_MOST_BASELINES = 8
_SHOWN = {"mae": ("mae", "rmse", "mape"), "mse": ("mse", "mae")}  # metrics of a table by that of the ranking
_NAMES = {"mae": "MAE", "rmse": "RMSE", "mape": "MAPE [%]", "mse": "MSE"}
_RAIN = "rain"
_ABOUT_RECONSTRUCTIONS = "(reconstruction): rebuilt by us from what is published, without the authors' code; not ranked"
Place = tuple[int | str, str]
"""A step, or whatever else stands over a group of columns, and a metric."""
Errors = Mapping[str, Mapping[Place, Sequence[float]]]
"""By model and place, one per seed."""


@dataclass(frozen=True)
class TableCell:
    """A number as it is printed, and whether it is the best or second best of its column."""

    text: str
    is_best: bool = False
    is_second: bool = False


@dataclass(frozen=True)
class PaperTable:
    """A table without a form yet."""

    title: str  # what it shows
    groups: tuple[tuple[str, int], ...]  # heads over columns and how many they span; not over the models'
    columns: tuple[str, ...]  # heads of the columns after the first
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]  # a name and its cells
    note: str = ""  # what has to be said below it


@dataclass(frozen=True)
class _Lineup:
    """Who is shown in a table."""

    rivals: tuple[str, ...]  # all baselines, best first, shown or not: marks and gains rest on them
    baselines: tuple[str, ...]  # those that are shown
    reconstructions: tuple[str, ...]  # models that were rebuilt without their authors' code
    ours: tuple[str, ...]  # CANDOR, of whatever size
    unranked: tuple[str, ...]  # baselines without a rank, since they have no results on some of the tasks; shown or not

    @property
    def models(self) -> tuple[str, ...]:
        """All that are shown, in the order of rows."""
        return (*self.baselines, *self.reconstructions, *self.ours)


def is_ours(model: str) -> bool:
    """Return whether a contender is CANDOR, of whatever size."""
    return model.split("-")[0] == _OURS


def _is_rival(model: str) -> bool:
    return not is_ours(model) and not is_reconstruction(model)


def tables_of(results: pd.DataFrame, suite: Suite, *, is_whole: bool = False) -> list[PaperTable]:
    """Return a table per task: errors over all steps, and at the steps that all its models report.

    Args:
        results: as `collect` gives them.
        suite: how models are ranked.
        is_whole: whether all models are shown, or ours and the eight best baselines, reconstructions left out; all
            variants of CANDOR are shown in any case.
    """
    found = []
    for rules, tasks in suite.parts_of(results["task"].tolist()):
        some = results[results["task"].isin(tasks)]
        for task, of_task in some.groupby("task", sort=False):
            errors = _errors(of_task, "step")
            ranked = some if rules.ranking == "suite" else of_task
            steps = sorted(set.intersection(*({int(step) for step, _ in places} for places in errors.values())))
            heads = {step: "all steps" if step == ALL_STEPS else f"step {step}" for step in steps}
            found.append(_make_table(str(task), errors, heads, rules, of_task, ranked, is_whole))
    return [table for table in found if table.rows]


def paper_tables_of(results: pd.DataFrame, suite: Suite, *, is_whole: bool = False) -> list[PaperTable]:
    """Return tables shaped like the paper's.

    Where baselines are chosen once for several tasks, there is a table per dataset with its horizons side by side;
    elsewhere, and for datasets with one horizon, a table per task with some of its steps. Arguments are those of
    `tables_of`.
    """
    found: list[PaperTable] = []
    for rules, tasks in suite.parts_of(results["task"].tolist()):
        some = results[results["task"].isin(tasks)]
        alone = {table.title: table for table in tables_of(some, rules, is_whole=is_whole)}
        for data, of_data in some.groupby("data", sort=False):
            own = unique(of_data, "task")
            if rules.ranking == "suite" and len(own) > 1:
                found.append(_side_by_side(str(data), of_data, some, rules, is_whole))
            else:
                found += [alone[task] for task in own if task in alone]
    return [table for table in found if table.rows]


def _side_by_side(data: str, results: pd.DataFrame, ranked: pd.DataFrame, rules: Suite, is_whole: bool) -> PaperTable:
    """Return the table of a dataset, with the mean of each seed over its horizons; ranks rest on more than this."""
    horizons = results.drop_duplicates("task").sort_values("horizon", kind="stable")
    heads = {str(task): f"H = {horizon}" for task, horizon in zip(horizons["task"], horizons["horizon"], strict=True)}
    overall = overall_errors(results)
    errors = _errors(overall, "task")
    for (model, metric), some in overall.groupby(["model", "metric"], sort=False):
        by_seed = some.groupby("seed")["value"]
        whole = [mean(values) for _, values in by_seed if len(values) == len(heads)]
        if whole:
            errors[str(model)][AVERAGE, str(metric)] = whole
    return _make_table(data, errors, heads | {AVERAGE: AVERAGE}, rules, results, ranked, is_whole)


def _errors(results: pd.DataFrame, by: str) -> dict[str, dict[Place, list[float]]]:
    """Return the errors by model, by what stands in another column, and by metric."""
    found: dict[str, dict[Place, list[float]]] = {}
    columns = (results[name].tolist() for name in ("model", by, "metric", "value"))
    for model, key, metric, value in zip(*columns, strict=True):
        found.setdefault(model, {}).setdefault((key, metric), []).append(value)
    return found


def _line_up(ranked: pd.DataFrame, models: Sequence[str], metric: str, *, is_whole: bool) -> _Lineup:
    """Return who is shown in a table.

    Baselines are ranked by the unrounded mean error over all steps, seeds and tasks, if they have results on all tasks;
    those without have no rank, and no place among the best. `models` are those with results in this table.
    """
    means: dict[str, list[float]] = {}
    overall = overall_errors(ranked)
    for (_, model), values in overall[overall["metric"] == metric].groupby(["task", "model"], sort=False)["value"]:
        means.setdefault(str(model), []).append(mean(values))
    tasks = ranked["task"].nunique()
    worth = {model: _worth(mean(found)) for model, found in means.items() if len(found) == tasks}
    best_first = sorted(filter(_is_rival, worth), key=worth.__getitem__)
    unranked = sorted(model for model in models if _is_rival(model) and model not in worth)
    rivals = (*best_first, *unranked)
    return _Lineup(
        rivals=rivals,
        baselines=rivals if is_whole else rivals[: min(len(best_first), _MOST_BASELINES)],
        reconstructions=tuple(sorted(filter(is_reconstruction, models))) if is_whole else (),
        ours=tuple(filter(is_ours, models)),
        unranked=tuple(unranked),
    )


def _worth(error: float) -> tuple[bool, float]:
    """Return what errors are sorted by, smallest first and at the end those that are not numbers."""
    return not isfinite(error), error


def _make_table(
    title: str,
    errors: Errors,
    heads: Mapping[int, str] | Mapping[str, str],
    rules: Suite,
    results: pd.DataFrame,
    ranked: pd.DataFrame,
    is_whole: bool,
) -> PaperTable:
    """Return a table of errors, of which a model may lack some, with the gain of ours below them.

    Heads stand over groups of columns, by the first part of their places; errors come from `results`, and the ranking
    rests on `ranked`. Without rivals all models are shown in any case.
    """
    metrics = _SHOWN[rules.metric]
    lineup = _line_up(ranked, list(errors), rules.metric, is_whole=is_whole or not rules.has_rivals)
    places: list[Place] = [(key, metric) for key in heads for metric in metrics]
    best = {place: _best_two(errors, [*lineup.rivals, *lineup.ours], place) for place in places}
    rows = []
    for model in lineup.models:
        cells = [
            TableCell(
                mean_and_spread(errors[model].get(place, ()), 2 if place[1] == "mape" else 3),
                is_best=model in best[place][0],
                is_second=model in best[place][1],
            )
            for place in places
        ]
        rows.append((shown_name(model), tuple(cells)))
    wins = strict_wins(results, rules.metric) if rules.has_rivals else {}
    if lineup.baselines and rules.has_rivals:
        rows += [
            (f"gain of {model}", tuple(_gain(errors, model, lineup.rivals, place) for place in places))
            for model in lineup.ours
        ]
    return PaperTable(
        title=title,
        groups=tuple((head, len(metrics)) for head in heads.values()),
        columns=tuple(_NAMES[metric] for _ in heads for metric in metrics),
        rows=tuple(rows),
        note=_note(results, lineup, _NAMES[rules.metric], wins),
    )


def strict_wins(results: pd.DataFrame, metric: str) -> dict[str, tuple[int, int]]:
    """Return for each of ours how often its worst seed beats the best seed of a baseline, and out of how many times.

    Errors are those over all steps; there is a comparison for every task and baseline.
    """
    found: dict[str, tuple[int, int]] = {}
    overall = overall_errors(results)
    for _, of_task in overall[overall["metric"] == metric].groupby("task", sort=False):
        errors = {str(model): values.tolist() for model, values in of_task.groupby("model", sort=False)["value"]}
        rivals = (list(filter(isfinite, values)) for model, values in errors.items() if _is_rival(model))
        best = [min(values) for values in rivals if values]
        for model in filter(is_ours, errors):
            worst = max(errors[model], key=_worth)
            wins, pairs = found.get(model, (0, 0))
            # What is not a number is below nothing.
            found[model] = wins + sum(worst < other for other in best), pairs + len(best)
    return {model: counts for model, counts in found.items() if counts[1]}


def _best_two(errors: Errors, models: Sequence[str], place: Place) -> tuple[set[str], set[str]]:
    """Return the models with the smallest and with the second smallest mean error; several where they are equal."""
    means = _means(errors, models, place)
    numbers = sorted(set(means.values()))
    first, second = ({model for model in means if means[model] in wanted} for wanted in (numbers[:1], numbers[1:2]))
    return first, second


def _means(errors: Errors, models: Sequence[str], place: Place) -> dict[str, float]:
    """Return the mean errors of models that are numbers."""
    means = {model: mean(errors[model][place]) for model in models if place in errors.get(model, ())}
    return {model: value for model, value in means.items() if isfinite(value)}


def mean_and_spread(values: Sequence[float], digits: int) -> str:
    """Return the mean of numbers, with their standard deviation if there are several; a dash without any."""
    if not values:
        return NOTHING
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 and all(map(isfinite, values)) else ""
    return f"{mean(values):.{digits}f}{spread}"


def _gain(errors: Errors, ours: str, baselines: Sequence[str], place: Place) -> TableCell:
    """Return by how much our error is below that of the best baseline."""
    best, mine = min(_means(errors, baselines, place).values(), default=0.0), _means(errors, [ours], place)
    if not mine or best <= 0:
        return TableCell(NOTHING)
    return TableCell(f"{100 * (1 - mine[ours] / best):+.1f} %")


def _note(results: pd.DataFrame, lineup: _Lineup, metric: str, wins: Mapping[str, tuple[int, int]]) -> str:
    """Return the note of a table of results whose models are ranked by a metric; `wins` as of `strict_wins`."""
    shown = results[results["model"].isin(lineup.models)]
    if shown.empty:
        return ""
    square = " (MSE in its square)" if metric == "MSE" else ""
    spread = " ± standard deviation (ddof 1)" if shown["seed"].nunique() > 1 else ""
    parts = [f"Errors in {unit_of(shown)}{square}, mean over {seeds_of(shown)}{spread}", *protocol_of(shown)]
    if hidden := len(set(lineup.rivals) - set(lineup.baselines)):
        among = f"all {len(lineup.rivals)} baselines, of which {hidden} are not shown"
        parts.append(f"best, second best and gains are those among {among}")
    if lineup.unranked:
        parts.append(f"not ranked, since they have results on some of the tasks only: {', '.join(lineup.unranked)}")
    parts += [
        f"the worst seed of {model} beats the best seed of a baseline in {count} of {pairs} comparisons ({metric})"
        for model, (count, pairs) in wins.items()
    ]
    return "; ".join([*parts, *([_ABOUT_RECONSTRUCTIONS] if lineup.reconstructions else [])])


def rain_table_of(results: pd.DataFrame, suite: Suite) -> PaperTable | None:
    """Return the paper's table of models without and with rain by dataset; None if no model has results of both.

    Errors are means over seeds and horizons, over those that both of a pair have; of each pair the better is bold.
    """
    datasets, metrics = unique(results, "data"), ("mae", "mse")
    overall = overall_errors(results).replace({"value": {inf: nan}})
    rows, missing, shown = [], [], []
    for without, with_rain in _pairs(suite):
        names = [without.name, with_rain.name]
        of_pair = overall[overall["model"].isin(names)]
        cells: list[tuple[TableCell, ...]] = []
        for data in datasets:
            for metric in metrics:
                some = of_pair[(of_pair["data"] == data) & (of_pair["metric"] == metric)]
                trials = some.pivot_table("value", ["task", "seed"], "model", aggfunc="last").reindex(columns=names)
                both = trials.dropna()
                if len(both) < len(trials.dropna(how="all")):
                    missing.append(without.name)
                dry, wet = (mean(both[name]) if len(both) else nan for name in names)
                texts = (f"{error:.4f}" if len(both) else NOTHING for error in (dry, wet))
                cells.append(tuple(map(TableCell, texts, (dry < wet, wet < dry))))
        if any(dry.text != NOTHING for dry, _ in cells):
            rows += [
                (without.name, (TableCell(reads), *own))
                for reads, own in zip(("No", "Yes"), zip(*cells, strict=True), strict=True)
            ]
            shown += names
    if not rows:
        return None
    return PaperTable(
        title="Models without and with rain",
        groups=(("", 1), *((data, len(metrics)) for data in datasets)),
        columns=("Rainfall", *(_NAMES[metric] for _ in datasets for metric in metrics)),
        rows=tuple(rows),
        note=_rain_note(results[results["model"].isin(shown)], list(dict.fromkeys(missing))),
    )


def _pairs(suite: Suite) -> Iterator[tuple[Contender, Contender]]:
    """Yield contenders that differ in nothing but that the second reads rain."""
    for wet in suite.contenders:
        covariates = wet.settings.get("covariates") or []
        if _RAIN not in covariates:
            continue
        left = [name for name in covariates if name != _RAIN]
        rest = {key: value for key, value in wet.settings.items() if key != "covariates"}
        settings = rest | ({"covariates": left} if left else {})
        yield from ((dry, wet) for dry in suite.contenders if dry.model == wet.model and dry.settings == settings)


def _rain_note(results: pd.DataFrame, missing: list[str]) -> str:
    """Return over what means were taken and under which protocol, from the results of the models that are shown."""
    horizons, seeds = (", ".join(map(str, sorted(set(results[name].tolist())))) for name in ("horizon", "seed"))
    unit = f"{unit_of(results)} (MSE in its square)"
    means = f"Errors in {unit} over all steps, mean over seeds {seeds} and horizons {horizons}"
    lacking = [f"results that only one of a pair has are left out ({', '.join(missing)})"] if missing else []
    return "; ".join([means, *protocol_of(results), *lacking])
