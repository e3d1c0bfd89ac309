"""What all tests share: where real data lie, and how hard hypothesis tries."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

# Machines that run tests are busy and noisy: nothing here is judged by the clock. `make test` tries the same examples
# every time; `make test-slow` looks for new ones.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", _UNHURRIED, derandomize=True, max_examples=25)
settings.register_profile("exploring", _UNHURRIED)
settings.load_profile("exploring" if os.environ.get("CANDOR_EXPLORE") else "repeatable")

# One thread each, before PyTorch is loaded: waking more costs tiny tensors most of their time, and cores are shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_BESIDE = Path(__file__).parents[2] / "shared" / "data"
_OF_MODEL = Path(__file__).parent / "model"
if "CANDOR_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["CANDOR_DATA"] = str(_BESIDE)

# Files whose tests start processes or train: begun last, one would keep a worker busy while the other has no more.
_LONGEST = ("readme", "candor", "processes", "engine", "docs", "contract", "stages", "benchmark", "workers", "wheel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest files first; with all others the order stays."""
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONGEST)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Checks the shapes of all tensors in the tests of the model; in all others that only takes time."""
    jaxtyping.config.update("jaxtyping_disable", not item.path.is_relative_to(_OF_MODEL))


@pytest.fixture(scope="session", autouse=True)
def whole_batches() -> Iterator[None]:
    """Networks are given whole batches at once: to time smaller ones takes longer than most tests train."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("candor.training.machine._FIRST", 1_000_000)
        yield


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real datasets; tests that need it are skipped where it is absent."""
    folder = os.environ.get("CANDOR_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real datasets are not on this machine (set CANDOR_DATA to their folder)")
    return Path(folder)
