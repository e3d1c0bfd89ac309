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


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    """One after the other in one process: what any of them imported would be there after it."""
    code = (
        "import sys\n"
        "import candor\n"
        "def look(words):\n"
        f"    loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    assert not loaded, (words, loaded)\n"
        "look('import candor')\n"
        "from candor.cli import run\n"
        "for words in ('--help', '--version', 'data check --help', 'train --help', 'explain --help'):\n"
        "    assert run(words.split()) == 0, words\n"
        "    look(words)\n"
    )
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
