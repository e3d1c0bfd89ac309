"""What the docstring of every baseline names, and that each with public code was compared with it."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from candor.nets.baselines import baselines

PARITY = Path(__file__).parents[3] / "benchmarks" / "parity.md"
MODELS = [*baselines, "lightgbm"]
PARTS = ("Idea", "Read", "Changed")
PUBLIC = re.compile(r"`([\w.-]+/[\w-]+)`")  # owner and name of a repository; with a dot in the name it is a file
LICENCE = r"(?:MIT|(?:Apache|BSD|L?GPL|AGPL|MPL|CC)-[\w.-]+)(?: by its README)?|no licence file|licence unknown"
LEAST_WORDS = 8  # of a part that says something


def parts_of(name: str) -> dict[str, str]:
    """Returns the head and the parts of a model's docstring by name, in their order."""
    room = "nets.baselines" if name in baselines else "forecasting"
    text = import_module(f"candor.{room}.{name.replace('-', '_')}").__doc__ or ""
    head, *rest = re.split(rf"\n\n(?=(?:{'|'.join(PARTS)})\b)", text)
    found = {"head": head}
    for part in rest:
        word = next(word for word in PARTS if part.startswith(word))
        found[word] = f"{found.get(word, '')} {part}"
    return found


def repositories(name: str) -> list[str]:
    """Returns the public repositories that were read for a model; what stands in brackets is within one."""
    return PUBLIC.findall(re.sub(r"\([^()]*\)", "", parts_of(name)["Read"]))


def rows() -> dict[str, list[str]]:
    """Returns the cells of each model's row after the first."""
    lines = [line.strip("|").split("|") for line in PARITY.read_text().splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines[1:]}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_names_paper_and_year_its_idea_what_was_read_and_what_was_changed(name: str) -> None:
    parts = parts_of(name)
    assert list(parts) == ["head", *PARTS]
    assert re.search(r"\b20[0-2]\d\b", parts["head"])
    for word in PARTS:
        assert len(parts[word].split()) >= LEAST_WORDS, word


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_public_code_was_compared_with_the_code_that_was_read(name: str) -> None:
    read = repositories(name)
    if name in baselines and baselines.get(name).is_reconstruction:
        assert name not in rows()
        return
    repository, shape, parameters, difference, *_ = rows()[name]
    if not read:
        assert not (repository or shape or parameters or difference)
        return
    assert any(one in repository for one in read)
    assert re.search(r"\b[0-9a-f]{12,40}\b", repository), "the commit is missing"
    assert re.search(r"\d", shape) and re.search(r"\d", parameters) and re.search(r"\d", difference)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_names_the_licence_of_each_public_repository_that_was_read(name: str) -> None:
    read = " ".join(parts_of(name)["Read"].split())
    for repository in repositories(name):
        assert re.search(rf"`{re.escape(repository)}` \((?:{LICENCE})[;)]", read), repository


def test_no_row_is_of_a_model_that_is_not_there() -> None:
    assert set(rows()) <= {*MODELS, "lightgbm"}
