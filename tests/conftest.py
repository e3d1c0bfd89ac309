"""What all tests share: where real data lie, how hard hypothesis tries, and what is made once for all of them."""

import gc
import os
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import jaxtyping
import pytest
import typer.main
from hypothesis import HealthCheck, settings
from pictures import without_paint

if TYPE_CHECKING:
    from candor.data.panel import Panel

# Machines that run tests are busy and noisy: nothing here is judged by the clock. `make test` tries the same examples
# every time; `make test-slow` looks for new ones.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNHURRIED, derandomize=True, max_examples=8)
settings.register_profile("exploring", _UNHURRIED)
settings.load_profile("exploring" if os.environ.get("CANDOR_EXPLORE") else "repeatable")

# One thread each, before PyTorch is loaded: waking more costs tiny tensors most of their time, and cores are shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_BESIDE = Path(__file__).parents[2] / "shared" / "data"
_OF_MODEL = Path(__file__).parent / "nets" / "candor"
if "CANDOR_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["CANDOR_DATA"] = str(_BESIDE)

# So many are there before garbage is looked for: tests make many things that live as long as the test.
_NEW_THINGS = 20_000

# Files that take seconds: begun last, one would keep a worker busy while the other has no more.
_LONGEST = (
    *("readme", "candor", "processes", "engine", "docs", "contract", "stages", "benchmark", "wheel"),
    *("page", "page_states", "page_changes", "page_live", "onnx", "report_page", "exactness", "follow", "refusals"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; with all others the order stays."""
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spares the search for garbage what is imported here: about a million things, all of which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(_NEW_THINGS)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Checks the shapes of all tensors in the tests of the model; in all others that only takes time."""
    jaxtyping.config.update("jaxtyping_disable", not item.path.is_relative_to(_OF_MODEL))


@pytest.fixture(scope="session", autouse=True)
def whole_batches() -> Iterator[None]:
    """Networks are given whole batches at once: to time smaller ones takes longer than most tests train."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("candor.training.batch_plan._FIRST_SIZE", 1_000_000)
        yield


@pytest.fixture(scope="session", autouse=True)
def unhurried_disk() -> Iterator[None]:
    """What is written need not outlive a power cut: to wait for the disk takes longer than to write small files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def made_once() -> Iterator[None]:
    """The table of commands and the datasets that come with the package are made once: neither can be changed."""
    from candor.data.catalog import datasets

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        for entry in [datasets.get(name) for name in datasets]:
            if not entry.needs:
                patch.setitem(datasets._entries, entry.name, replace(entry, load=cache(entry.load)))
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real datasets; tests that need it are skipped where it is absent."""
    folder = os.environ.get("CANDOR_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real datasets are not on this machine (set CANDOR_DATA to their folder)")
    return Path(folder)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made and their tables written, but pictures of them are left empty: to draw them takes longest."""

    def leave_empty(_: object, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    monkeypatch.setattr("candor.render.figures.style.Drawing._write_figure", leave_empty)


@pytest.fixture
def unpainted() -> Iterator[None]:
    """Figures are laid out, so that trouble with them shows, but pictures of them are left empty."""
    with without_paint():
        yield


@pytest.fixture(scope="session")
def metr_la(real_data: Path) -> "Panel":
    """The whole of METR-LA, read once."""
    from candor.data.catalog import load_dataset

    return load_dataset("metr-la")
