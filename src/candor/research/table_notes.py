"""What has to be said below a table: under which protocol its numbers were made, and what they do not tell."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from candor.forecasting import forecasters

_ABOUT_RECONSTRUCTIONS = "(reconstruction): rebuilt by us from what is published, without the authors' code; not ranked"
_MOST_NAMED = 4


@dataclass(frozen=True)
class Lineup:
    """Who is shown in a table.

    Args:
        baselines: best first.
        reconstructions: models that were rebuilt without their authors' code.
        ours: CANDOR, of whatever size.
        unranked: baselines without a rank, since they have no results on some of the tasks; shown or not.
        rivals: all baselines, shown or not: marks and gains rest on them, or the best of the shown would pass for the
            best of all.
    """

    baselines: tuple[str, ...]
    reconstructions: tuple[str, ...]
    ours: tuple[str, ...]
    unranked: tuple[str, ...]
    rivals: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """All that are shown, in the order of rows."""
        return (*self.baselines, *self.reconstructions, *self.ours)


def write_note(results: pd.DataFrame, lineup: Lineup, metric: str, wins: Mapping[str, tuple[int, int]]) -> str:
    """Returns the note of a table.

    Args:
        results: of the tasks it shows.
        lineup: who is shown.
        metric: by which models are ranked, as it is printed.
        wins: for each of ours how often its worst seed beats a baseline's best, and out of how many times.
    """
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
    for model, (count, pairs) in wins.items():
        parts.append(
            f"the worst seed of {model} beats the best seed of a baseline in {count} of {pairs} comparisons ({metric})"
        )
    if lineup.reconstructions:
        parts.append(_ABOUT_RECONSTRUCTIONS)
    return "; ".join(parts)


def is_reconstruction(model: str) -> bool:
    """Returns whether a contender is a model that was rebuilt without its authors' code, with whatever settings."""
    kinds = [name for name in forecasters.names() if model == name or model.startswith(f"{name}-")]
    return bool(kinds) and forecasters.get(max(kinds, key=len)).is_reconstruction


def shown_name(model: str) -> str:
    """Returns the name of a contender as people are shown it: of a reconstruction it says so."""
    return f"{model} (reconstruction)" if is_reconstruction(model) else model


def unit_of(results: pd.DataFrame) -> str:
    """Returns the unit of errors as it is printed."""
    return str(results["unit"].iloc[0] or "the unit of the sensors")


def protocol_of(results: pd.DataFrame) -> list[str]:
    """Returns under which rules results were made: windows, aggregation, mask, split, budget and changed settings.

    What keeps them from being compared is among it.
    """
    first: dict[Any, Any] = results.iloc[0].to_dict()
    budgets = sorted({float(budget) for budget in results["budget_minutes"].dropna()})
    return [
        f"{_range(results['windows'])} test windows",
        str(first["aggregation"]).partition(";")[0],
        f"mask: {first['mask']}",
        *_split(results["split"]),
        *(f"{budget:g} minutes of training each" for budget in budgets),
        *differences_of(results),
        *_changes(results),
    ]


def differences_of(results: pd.DataFrame) -> list[str]:
    """Returns what keeps models from being compared, with whose it is: other data, or more training in the same time.

    Results from before threads were counted do not state theirs.
    """
    found = []
    if "data_sha256" in results:
        for data, some in results.groupby("data", sort=False):
            checksums = _models_by(some, "data_sha256")
            if len(checksums) > 1:
                parts = (f"{data} ({str(checksum)[:8]}) of {_whose(names)}" for checksum, names in checksums.items())
                found.append(f"made on different data: {' and '.join(parts)}")
    if "threads" in results:
        threads = _models_by(results[results["budget_minutes"].notna()].dropna(subset="threads"), "threads")
        if len(threads) > 1:
            parts = (f"{int(count)} of {_whose(threads[count])}" for count in sorted(threads))
            found.append(f"the same minutes on different numbers of threads: {' and '.join(parts)}")
    return found


def _models_by(results: pd.DataFrame, column: str) -> dict[Any, list[str]]:
    """Returns the models by what stands in a column."""
    found: dict[Any, list[str]] = {}
    for model, value in results[["model", column]].drop_duplicates().itertuples(index=False):
        found.setdefault(value, []).append(str(model))
    return found


def _whose(models: Sequence[str]) -> str:
    return ", ".join(map(shown_name, models)) if len(models) <= _MOST_NAMED else f"{len(models)} models"


def seeds_of(results: pd.DataFrame) -> str:
    """Returns which seeds there are, and which models have others."""
    cells: dict[str, dict[str, set[int]]] = {}
    columns = (results[name].tolist() for name in ("model", "task", "seed"))
    for model, task, seed in zip(*columns, strict=True):
        cells.setdefault(model, {}).setdefault(task, set()).add(seed)
    every = sorted(set(results["seed"].tolist()))
    others: dict[str, list[str]] = {}
    for model, by_task in cells.items():
        sets = {tuple(sorted(seeds)) for seeds in by_task.values()}
        if sets == {tuple(every)}:
            continue
        said = _listed(sets.pop()) if len(sets) == 1 else "not all of them on every task"
        others.setdefault(said, []).append(shown_name(model))
    exceptions = "; ".join(f"{', '.join(models)}: {said}" for said, models in others.items())
    return f"{_listed(every)} ({exceptions})" if exceptions else _listed(every)


def _split(splits: "pd.Series[str]") -> list[str]:
    """Returns how the record was cut, with the numbers of windows where they are the same on all tasks."""
    found = [json.loads(split) for split in splits.unique()]
    if not found[0]:
        return []
    cut = f"split by {found[0]['kind']}, {' / '.join(f'{100 * share:g} %' for share in found[0]['shares'])}"
    windows = " / ".join(f"{count:,}" for count in found[0]["windows"].values())
    return [f"{cut}: {windows} windows" if len(found) == 1 else cut]


def _changes(results: pd.DataFrame) -> list[str]:
    """Returns which settings are not a model's usual ones, and whose."""
    if "changes" not in results:
        return []
    models: dict[str, list[str]] = {}
    for model, changes in zip(*(results[name].tolist() for name in ("model", "changes")), strict=True):
        for key, value in json.loads(changes).items():
            changed = models.setdefault(f"{key}={value}", [])
            if model not in changed:
                changed.append(model)
    return [f"{change} of {_whose(names)}" for change, names in models.items()]


def _range(numbers: "pd.Series[int]") -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _listed(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(str(seed) for seed in seeds)}"
