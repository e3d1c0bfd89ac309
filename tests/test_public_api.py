"""`import candor` is cheap, and every public name leads somewhere."""

import subprocess
import sys

import pytest

import candor

HEAVY = ("torch", "pandas", "pyarrow", "scipy", "h5py", "matplotlib")


@pytest.mark.parametrize("name", candor.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(candor, name).__doc__


def test_the_lazy_names_are_the_public_names() -> None:
    assert sorted(candor._HOME_OF) == sorted(candor.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        candor.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import candor",
        "from candor.cli import run; assert run(['--help']) == 0",
        "from candor.cli import run; assert run(['--version']) == 0",
        "from candor.cli import run; assert run(['data', 'check', '--help']) == 0",
        "from candor.cli import run; assert run(['train', '--help']) == 0",
        "from candor.cli import run; assert run(['plot', '--help']) == 0",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    code += f"; import sys; loaded = [m for m in {HEAVY!r} if m in sys.modules]; assert not loaded, loaded"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_reading_training_and_judging_need_no_torch() -> None:
    code = (
        "import candor, sys\n"
        "task = candor.make_task(candor.load_dataset('klamath-daily'), candor.Protocol(history=28, horizon=14))\n"
        "assert 'scipy.signal' not in sys.modules  # as slow to import as torch is, by half\n"
        "model = candor.Linear(28, 14).fit(task.panel, task.split)\n"
        "assert candor.evaluate(model, task).overall()['mae'] > 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
