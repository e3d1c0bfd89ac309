"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from candor.cli import run

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
# The demo with a small network that hardly learns: all it prints but the scores of CANDOR is as in the README.
QUICK_DEMO = "candor demo epochs=1 hidden=8 heads=2 forecast_width=16 head_width=16"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for language, text in BLOCKS if language == kind]


def test_the_commands_run_and_print_the_tables_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [line[2:] for text in blocks("console") for line in text.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 4
    for command in [QUICK_DEMO, *commands]:
        name, *arguments = shlex.split(command)
        assert name == "candor"
        assert run(arguments) == 0, command
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    shown = [line.rstrip() for text in blocks("") for line in text.splitlines()]
    assert len(shown) > 15
    assert [line for line in shown if line not in printed] == [line for line in shown if line.startswith("│ candor ")]


@pytest.mark.slow
def test_the_demo_reaches_what_is_shown_of_candor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["demo", "--out", str(tmp_path)]) == 0
    shown, reached = (scores_of_candor(text) for text in (README, capsys.readouterr().out))
    for one, other, leeway in zip(shown, reached, (0.03, 0.05, 3.0, 4.0), strict=True):
        assert one == pytest.approx(other, abs=leeway)  # machines feed the network differently


def scores_of_candor(text: str) -> list[float]:
    """Returns MAE, RMSE, change against last-value and coverage of the first row that begins with candor."""
    row = next(line for line in text.splitlines() if line.startswith("│ candor "))
    return [float(cell.strip(" %")) for cell in row.split("│")[2:-1]]


def test_the_python_example_prints_what_its_comments_say() -> None:
    (code,) = blocks("python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^print\(.*# (.*)$", code, flags=re.MULTILINE)
    for said, printed in zip(expected, done.stdout.splitlines(), strict=True):
        assert said.startswith(printed)


def test_every_make_target_named_is_there() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z-]+)", README):
        assert f"\n{target}:" in makefile, target
