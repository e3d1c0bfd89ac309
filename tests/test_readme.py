"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from candor.cli import run

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
# A small network that hardly learns: all that is printed of it but its scores is as in the README.
QUICK = "epochs=1 hidden=8 heads=2 forecast_width=16 head_width=16"
SCORE = re.compile(r"[\d,]+\.\d+")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for language, text in BLOCKS if language == kind]


def commands() -> list[str]:
    return [line[2:] for text in blocks("console") for line in text.splitlines() if line.startswith("$ ")]


def test_the_commands_run_and_print_the_tables_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(commands()) >= 4
    for command in ["candor demo", *commands()]:
        name, verb, *rest = shlex.split(command)
        assert name == "candor"
        trains_candor = verb in ("demo", "train") and "--model" not in rest
        assert run([verb, *rest, *(QUICK.split() if trains_candor else ())]) == 0, command
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    alike = {without_scores(line) for line in printed}
    shown = [line.rstrip() for text in blocks("") for line in text.splitlines()]
    assert len(shown) > 15
    assert [line for line in shown if without_scores(line) not in alike] == []
    simple = [line for line in shown if line.startswith(("│ last", "│ seasonal", "│ historical", "│ linear"))]
    assert len(simple) == 8
    assert {errors_of(line) for line in simple} <= {errors_of(line) for line in printed}


def without_scores(line: str) -> str:
    """Returns a line of a table with its scores, and the space that aligns them, left out."""
    return re.sub(r" +", " ", SCORE.sub("#", line).replace("-#", "#").replace("+#", "#"))


def errors_of(line: str) -> tuple[str, ...]:
    """Returns name, MAE and RMSE of a row: what does not depend on CANDOR."""
    return tuple(cell.strip() for cell in line.split("│")[1:4])


@pytest.mark.slow
def test_the_demo_reaches_what_is_shown_of_candor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["demo", "--out", str(tmp_path)]) == 0
    shown, reached = (scores_of("│ candor ", text) for text in (README, capsys.readouterr().out))
    for one, other, leeway in zip(shown, reached, (0.03, 0.05, 3.0, 4.0), strict=True):
        assert one == pytest.approx(other, abs=leeway)  # machines feed the network differently


@pytest.mark.slow
def test_two_files_reach_what_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in commands():
        assert run(shlex.split(command)[1:]) == 0, command
    shown, reached = (scores_of("│ all ", text) for text in (README, capsys.readouterr().out))
    assert shown == pytest.approx(reached, rel=0.05)


def scores_of(beginning: str, text: str) -> list[float]:
    """Returns the numbers of the first row that begins so."""
    row = next(line for line in text.splitlines() if line.startswith(beginning))
    return [float(cell.strip(" %")) for cell in row.split("│")[2:-1] if cell.strip()]


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
