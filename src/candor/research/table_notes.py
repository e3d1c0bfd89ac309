"""What has to be said below a table: under which protocol its numbers were made, and what they do not tell."""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from candor.core.text import listed
from candor.forecasting import forecasters

_MOST_NAMED = 4


def is_reconstruction(model: str) -> bool:
    """Return whether a contender is a model that was rebuilt without its authors' code, with whatever settings."""
    kinds = [name for name in forecasters.names() if model == name or model.startswith(f"{name}-")]
    return bool(kinds) and forecasters.get(max(kinds, key=len)).is_reconstruction


def shown_name(model: str) -> str:
    """Return the name of a contender as people are shown it: of a reconstruction it says so."""
    return f"{model} (reconstruction)" if is_reconstruction(model) else model


def _whose(models: Sequence[str]) -> str:
    return ", ".join(map(shown_name, models)) if len(models) <= _MOST_NAMED else f"{len(models)} models"


def unit_of(results: pd.DataFrame) -> str:
    """Return the unit of errors as it is printed."""
    return str(results["unit"].iloc[0] or "the unit of the sensors")


def budgets_of(results: pd.DataFrame) -> list[str]:
    """Return the minutes of training that cells were given, as they are printed; none where there was no budget."""
    return [f"{budget:g}" for budget in sorted({float(budget) for budget in results["budget_minutes"].dropna()})]


def protocol_of(results: pd.DataFrame) -> list[str]:
    """Return under which rules results were made: windows, aggregation, mask, split, budget and changed settings.

    What keeps them from being compared is among it.
    """
    first: dict[Any, Any] = results.iloc[0].to_dict()
    fewest, most = (f"{int(count):,}" for count in (results["windows"].min(), results["windows"].max()))
    return [
        f"{fewest if fewest == most else f'{fewest} to {most}'} test windows",
        str(first["aggregation"]).partition(";")[0],
        f"mask: {first['mask']}",
        *_split(results["split"]),
        *(f"{budget} minutes of training each" for budget in budgets_of(results)),
        *differences_of(results),
        *_changes(results),
    ]


def differences_of(results: pd.DataFrame) -> list[str]:
    """Return what keeps models from being compared, with whose it is: other data, or more training in the same time.

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
    """Return the models by what stands in a column."""
    return {value: list(some["model"].unique()) for value, some in results.groupby(column, sort=False)}


def seeds_of(results: pd.DataFrame) -> str:
    """Return which seeds there are, and which models have others."""
    every = sorted(set(results["seed"].tolist()))
    others: dict[str, list[str]] = {}
    for model, of_model in results.groupby("model", sort=False):
        sets = {tuple(sorted(set(seeds))) for _, seeds in of_model.groupby("task")["seed"]}
        if sets != {tuple(every)}:
            words = _numbered(sets.pop()) if len(sets) == 1 else "not all of them on every task"
            others.setdefault(words, []).append(shown_name(str(model)))
    exceptions = "; ".join(f"{', '.join(models)}: {words}" for words, models in others.items())
    return f"{_numbered(every)} ({exceptions})" if exceptions else _numbered(every)


def _numbered(seeds: Sequence[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {listed(seeds, len(seeds))}"


def _split(splits: "pd.Series[str]") -> list[str]:
    """Return how the record was cut, with the numbers of windows where they are the same on all tasks."""
    first, *others = (json.loads(split) for split in splits.unique())
    if not first:
        return []
    cut = f"split by {first['kind']}, {' / '.join(f'{100 * share:g} %' for share in first['shares'])}"
    windows = " / ".join(f"{count:,}" for count in first["windows"].values())
    return [cut if others else f"{cut}: {windows} windows"]


def _changes(results: pd.DataFrame) -> list[str]:
    """Return which settings are not a model's usual ones, and whose."""
    models: dict[str, list[str]] = {}
    if "changes" in results:
        for changes, names in _models_by(results, "changes").items():
            for key, value in json.loads(changes).items():
                models.setdefault(f"{key}={value}", []).extend(names)
    return [f"{change} of {_whose(list(dict.fromkeys(names)))}" for change, names in models.items()]
