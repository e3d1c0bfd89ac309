"""What the README shows is what happens."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from candor.cli import run

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for language, text in BLOCKS if language == kind]


def test_the_commands_run_and_print_the_tables_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [line[2:] for text in blocks("console") for line in text.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 4
    for command in ["candor demo", *commands]:
        name, *arguments = shlex.split(command)
        assert name == "candor"
        assert run(arguments) == 0, command
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    shown = [line.rstrip() for text in blocks("") for line in text.splitlines()]
    assert len(shown) > 15
    assert not [line for line in shown if line not in printed]


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
